//! Apache Cassandra as a peer: one node for each release and mode, started once and warmed up; frozen (SIGSTOP) while
//! another peer runs.
//!
//! For each run:
//! 1. The table is truncated, the set's files are hard-linked into its folder, and `nodetool refresh` opens them.
//! 2. The page cache is dropped. A JMX client that is already connected calls the major compaction and hears when it is done:
//!    what is timed is that call, no tool and no start.
//! 3. Once the old files are gone, the output is looked at.

use std::path::{Path, PathBuf};

use super::Run;
use crate::Result;
use crate::connection::Connection;
use crate::dataset::DataSet;
use crate::jmx::Jmx;
use crate::machine::{cached_bytes, drop_page_cache, files_below};
use crate::process::Watch;
use crate::programs::Programs;
use crate::record::Contender;
use crate::restore::{restore, sstable_of, sstables_in, wait_until};
use crate::server::{Plan, Server};
use halcyon_oracle::{Oracle, Version};

const KEYSPACE: &str = "bench";
/// SSTables of the compaction that warms the JVM up: its compiler has seen all by the second GiB or so.
const WARM_UP: u32 = 12;

pub(super) struct Cassandra {
    pub(super) contender: Contender,
    node: Server,
    version: Version,
    /// Something has been compacted: the compiler has seen what is hot.
    is_warm: bool,
}

fn version_of(contender: &Contender) -> Result<Version> {
    let known = Version::ALL.into_iter().find(|version| version.name() == contender.peer);
    known.ok_or_else(|| format!("{} is no peer: halcyon, 5.0.9, 6.0-alpha2", contender.peer).into())
}

/// What the mode means in cassandra.yaml.
fn settings(contender: &Contender) -> Vec<&'static str> {
    let mut lines = vec!["concurrent_compactors: 2", "compaction_throughput: 0MiB/s"];
    if contender.peer != Version::V6.name() {
        return lines;
    }
    // Its default, and its fastest; the oracle of behaviour goes without.
    lines.push("cursor_compaction_enabled: true");
    if contender.mode != "buffered" {
        lines.push("compaction_read_disk_access_mode: direct");
    }
    if contender.mode == "direct" {
        lines.push("background_write_disk_access_mode: direct");
    }
    lines
}

/// Starts the node of a contender, and freezes it.
pub(super) fn start(programs: &Programs, contender: &Contender, home: &Path) -> Result<Cassandra> {
    let version = version_of(contender)?;
    let dir = home.join("nodes").join(format!("{}-{}", contender.peer, contender.mode));
    let plan = Plan::cassandra(version, &contender.mode, dir).set_all(&settings(contender));
    let node = Server::start(programs, &plan)?;
    Connection::open(node.port)?.create_keyspace(KEYSPACE)?;
    node.freeze()?;
    Ok(Cassandra { contender: contender.clone(), node, version, is_warm: false })
}

impl Cassandra {
    /// Compacts a set once; the node runs only meanwhile.
    pub(super) fn run(&mut self, programs: &Programs, set: &DataSet) -> Result<Run> {
        self.node.thaw()?;
        Connection::open(self.node.port)?.execute(&set.codec.schema(KEYSPACE))?;
        if !self.is_warm {
            self.compact(programs, set, Some(WARM_UP))?;
            self.is_warm = true;
        }
        let run = self.compact(programs, set, None);
        self.node.freeze()?;
        run
    }

    fn compact(&self, programs: &Programs, set: &DataSet, sstables: Option<u32>) -> Result<Run> {
        let table = set.codec.table();
        let folder = restore(&self.node, (KEYSPACE, &table), set, sstables)?;
        let mut jmx =
            Jmx::connect(&Oracle::open(self.version)?, self.node.jmx().ok_or("no JMX")?.1)?;
        jmx.ask(&["no-autocompaction", KEYSPACE, &table])?;
        let was_cold = drop_page_cache();
        let watch = Watch::process(self.node.pid, &folder)?;
        let compacted = jmx.ask(&["compact", KEYSPACE, &table]);
        let cost = watch.stop()?;
        compacted?;
        wait_until("compacted files are gone", || sstables_in(&folder).len() == 1)?;
        let outputs: Vec<PathBuf> =
            files_below(&folder).into_iter().filter(|path| sstable_of(path).is_some()).collect();
        let run = Run {
            contender: self.contender.clone(),
            buffers: None,
            cost,
            was_cold,
            cached_inputs: cached_bytes(&set.files()),
            cached_outputs: cached_bytes(&outputs),
            content: programs.measure(&["inspect".as_ref(), folder.as_os_str()])?,
            summary: None,
        };
        let truncate = format!("TRUNCATE {KEYSPACE}.{table}");
        Connection::open(self.node.port)?.execute(&truncate)?;
        run.checked()
    }
}
