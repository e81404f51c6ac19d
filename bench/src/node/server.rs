//! The servers of this experiment: each syncs its writes in one of two ways.

use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use crate::Result;
use crate::jvm_node::Plan;
use crate::process::resident;
use crate::programs::Programs;
use crate::server::{HalcyonPlan, Server};
use halcyon_oracle::Version;

const FIRST_PORT: u16 = 27142;

/// How a write becomes durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sync {
    Batch,
    Periodic,
}

impl Sync {
    pub(super) fn name(self) -> &'static str {
        match self {
            Sync::Batch => "batch",
            Sync::Periodic => "periodic",
        }
    }

    fn period(self) -> &'static str {
        match self {
            Sync::Batch => "0ms",
            Sync::Periodic => "10000ms",
        }
    }
}

/// What a start cost.
#[derive(Clone, Copy)]
pub(super) struct Started {
    /// From the start of the process to the first answered query.
    pub(super) seconds: f64,
    /// At rest, in bytes.
    pub(super) resident: u64,
}

/// Halcyon on a directory, which may have data; `settings` are further lines of its configuration.
pub(super) fn halcyon(
    programs: &Programs,
    dir: &Path,
    sync: Sync,
    settings: &[String],
) -> Result<(Server, f64)> {
    let mut lines = vec![format!("commitlog_sync: {}", sync.name())];
    if sync == Sync::Periodic {
        lines.push(format!("commitlog_sync_period: {}", sync.period()));
    }
    lines.extend_from_slice(settings);
    let plan = HalcyonPlan { mode: sync.name(), dir, settings: &lines, cage: None };
    Server::halcyon(programs, &plan)
}

/// Cassandra on an empty directory. `touched`: its heap is resident from the start, so that nothing grows later.
pub(super) fn cassandra(
    home: &Path,
    sync: Sync,
    number: u16,
    touched: bool,
) -> Result<(Server, f64)> {
    let plan = Plan {
        version: Version::V5,
        dir: home.join(format!("cassandra-{}", sync.name())),
        port: FIRST_PORT + 3 * number,
        settings: vec![
            format!("commitlog_sync: {}", sync.name()),
            format!("commitlog_sync_period: {}", sync.period()),
            // Its defaults, which the oracle does without.
            "commitlog_segment_size: 32MiB".to_owned(),
            "key_cache_size: 100MiB".to_owned(),
            "write_request_timeout: 30000ms".to_owned(),
            "read_request_timeout: 30000ms".to_owned(),
        ],
        jvm: if touched { "-XX:+AlwaysPreTouch" } else { "" },
        heap: "2g",
        cage: None,
    };
    Server::cassandra(sync.name(), &plan)
}

/// What it holds when nobody has asked it anything for a while.
pub(super) fn at_rest(server: &Server, seconds: f64, after: Duration) -> Started {
    sleep(after);
    Started { seconds, resident: resident(server.pid) }
}

/// Brings everything that was written into SSTables: Cassandra on request, Halcyon by a restart with further settings.
pub(super) fn flushed(
    server: Server,
    sync: Sync,
    programs: &Programs,
    settings: &[String],
) -> Result<Server> {
    server.thaw()?;
    if let Some(node) = server.node() {
        node.nodetool(&["flush"])?;
        return Ok(server);
    }
    let dir = server.stop()?.ok_or("Halcyon has no directory")?;
    Ok(halcyon(programs, &dir, sync, settings)?.0)
}
