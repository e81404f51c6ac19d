//! Apache Cassandra as a peer: one node for each release and mode, started once and warmed up; frozen (SIGSTOP) while
//! another peer runs.
//!
//! For each run:
//! 1. The table is truncated, the set's files are hard-linked into its folder, and `nodetool refresh` opens them.
//! 2. The page cache is dropped. A JMX client that is already connected calls the major compaction and hears when it is done:
//!    what is timed is that call, no tool and no start.
//! 3. Once the old files are deleted, the output is checked.

use std::path::PathBuf;

use halcyon_oracle::{Result, Version};

use super::Run;
use crate::connection::{self, create_keyspace};
use crate::dataset::{DataSet, KEYSPACE};
use crate::invocation::Invocation;
use crate::machine::{cached_bytes, drop_page_cache, files_below};
use crate::process::Watch;
use crate::programs::Programs;
use crate::record::Contender;
use crate::restore::{restore, sstable_of, sstables_in, wait_until};
use crate::server::{Plan, Server};

/// SSTables of the compaction that warms the JVM up: its compiler has seen all by the second GiB or so.
const WARM_UP: u32 = 12;

pub(super) struct Cassandra {
    pub(super) server: Server,
    /// Something has been compacted: the compiler has seen what is hot.
    is_warm: bool,
}

/// Starts the node of a contender, and freezes it.
pub(super) fn start(invocation: &Invocation, contender: &Contender) -> Result<Cassandra> {
    let Contender { peer, mode } = contender;
    let known = Version::ALL.into_iter().find(|version| version.name() == peer);
    let version = known.ok_or_else(|| format!("{peer} is not a release of Cassandra"))?;
    let dir = invocation.data.join("nodes").join(format!("{peer}-{mode}"));
    let plan = Plan::cassandra(version, mode, dir).compacting(version, mode);
    let server = Server::start(&invocation.programs, &plan)?;
    create_keyspace(&mut connection::open(server.port)?, KEYSPACE)?;
    server.freeze()?;
    Ok(Cassandra { server, is_warm: false })
}

impl Cassandra {
    /// Compacts a set once; the node runs only meanwhile.
    pub(super) fn run(&mut self, programs: &Programs, set: &DataSet) -> Result<Run> {
        self.server.thaw()?;
        connection::open(self.server.port)?.query(&set.schema())?;
        if !self.is_warm {
            self.compact(programs, set, Some(WARM_UP))?;
            self.is_warm = true;
        }
        let run = self.compact(programs, set, None);
        self.server.freeze()?;
        run
    }

    fn compact(&self, programs: &Programs, set: &DataSet, sstables: Option<u32>) -> Result<Run> {
        let table = set.table();
        let mut jmx = self.server.jmx()?;
        let folder = restore(&self.server, &mut jmx, set, sstables)?;
        let was_cold = drop_page_cache();
        let watch = Watch::process(self.server.pid, &folder)?;
        let compacted = jmx.ask(&["compact", KEYSPACE, &table]);
        let cost = watch.stop()?;
        compacted?;
        wait_until("compacted files are deleted", || sstables_in(&folder).len() == 1)?;
        let outputs: Vec<PathBuf> =
            files_below(&folder).into_iter().filter(|path| sstable_of(path).is_some()).collect();
        let run = Run {
            buffers: None,
            cost,
            was_cold,
            cached_inputs: cached_bytes(&set.files()),
            cached_outputs: cached_bytes(&outputs),
            content: programs.measure(&["inspect".as_ref(), folder.as_os_str()])?,
            summary: None,
        };
        let truncate = format!("TRUNCATE {KEYSPACE}.{table}");
        connection::open(self.server.port)?.query(&truncate)?;
        Ok(run)
    }
}
