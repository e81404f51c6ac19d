//! `halcyon compact --service`: a process beside an Apache Cassandra, which its plug-in starts.

use halcyon_io::child::end_with_parent;

use crate::failure::{Failure, Result};

/// Serves until standard input ends. Messages are on standard output, what a person should read on standard error.
pub(crate) fn serve() -> Result<()> {
    let failed =
        |what: &dyn std::fmt::Display| Failure::unreadable(format!("compaction service: {what}"));
    end_with_parent().map_err(|e| failed(&e))?;
    let program = concat!("halcyon ", env!("CARGO_PKG_VERSION"));
    let served = halcyon_compactor::serve(
        &mut std::io::stdin().lock(),
        std::io::stdout(),
        program,
        std::process::id(),
    );
    served.map_err(|e| failed(&e))?;
    // Tasks may still run; their outputs are the node's to delete.
    std::process::exit(0)
}
