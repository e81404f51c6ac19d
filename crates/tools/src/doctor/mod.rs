//! Explains why a node reads more than its queries need, and how to cure it.
//!
//! ```text
//!   machine  /sys, /proc ─┐
//!   tables   Statistics.db ├─▶ facts ─▶ rules ─▶ findings
//!   live     system_views ─┘
//! ```
//!
//! 1. Collect facts. Nothing is written; no file is created, not even to probe direct I/O.
//! 2. Each rule is a pure function of the facts, so tests can invent devices and tables.
//! 3. The findings are sorted, the worst first, each with evidence, cost and cure.

mod facts;
mod finding;
mod live;
mod machine;
mod rules;
mod tables;

use std::path::{Path, PathBuf};

use halcyon_client::Credentials;
use halcyon_io::Disk;

use crate::error::{Error, Result};
use crate::notices::Notices;
pub use facts::{Facts, Table};
pub use finding::{Finding, Severity};
pub use live::Source;

/// At least one of both.
pub struct Request {
    /// With keyspaces below, or with `data` below.
    pub data_directory: Option<PathBuf>,
    /// A running server, with or without a port.
    pub live: Option<(String, Credentials)>,
}

/// The facts, and the findings that follow from them.
pub async fn examine(
    disk: &Disk,
    request: &Request,
    notices: &dyn Notices,
) -> Result<(Facts, Vec<Finding>)> {
    let mut facts = Facts::default();
    if let Some(directory) = &request.data_directory {
        examine_directory(disk, directory, &mut facts, notices).await?;
    }
    if let Some((host, credentials)) = &request.live {
        live::examine(host, credentials, &mut facts).await?;
    }
    let findings = rules::examine(&facts);
    Ok((facts, findings))
}

/// What a running node finds about itself: in its data directories, and in what its virtual tables say.
pub async fn examine_node(
    disk: &Disk,
    directories: &[PathBuf],
    source: &mut dyn Source,
    notices: &dyn Notices,
) -> Result<Vec<Finding>> {
    let mut facts = Facts::default();
    for directory in directories {
        examine_directory(disk, directory, &mut facts, notices).await?;
    }
    live::examine_source(source, String::new(), &mut facts).await?;
    Ok(rules::examine(&facts))
}

async fn examine_directory(
    disk: &Disk,
    directory: &Path,
    facts: &mut Facts,
    notices: &dyn Notices,
) -> Result<()> {
    let directory =
        std::path::absolute(directory).map_err(|error| Error::unreadable(directory, error))?;
    let file = tables::examine(disk, &directory, facts, notices).await?;
    facts.machine = Some(machine::examine(&directory, file.as_deref()));
    Ok(())
}
