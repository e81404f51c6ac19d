//! Failed compactions.
//!
//! 1. The failure is reported with table, inputs, cause and cure.
//! 2. A corrupt input is excluded from compactions until the next start; reads fail only in its corrupt part. `disk_failure_policy`
//!    determines the rest: only `stop_paranoid` and `die` stop the node for one SSTable, as in Cassandra.
//! 3. A failing device also triggers `stop`.
//! 4. Any other failure starts a back-off: one minute, doubled by each further failure, at most an hour.

use std::sync::Arc;

use halcyon_compaction::Error as Compaction;
use halcyon_sstable::Error as SSTable;

use super::Compactor;
use crate::options::DiskFailurePolicy;
use crate::reporter::CompactionFailed;
use crate::tables::store::Store;
use crate::version::LiveSSTable;
use crate::{Error, Event};

/// The cure, for the operator.
fn cure(error: &Error) -> &'static str {
    match error {
        Error::Compaction(Compaction::InDoubt(_)) => {
            "look at the device and its file system, then restart the node"
        }
        Error::Compaction(Compaction::NoSpace { .. }) => "free space or add a data directory",
        Error::Compaction(Compaction::SSTable(SSTable::Corrupt { .. })) => {
            "restore the SSTable from a backup, or run `nodetool scrub`"
        }
        Error::Disk(e) | Error::Compaction(Compaction::Io(e)) if e.is_no_space() => {
            "free space or add a data directory"
        }
        error if error.is_no_descriptors() => {
            "raise the limit of open files (ulimit -n, LimitNOFILE=)"
        }
        Error::Disk(_) | Error::Compaction(Compaction::Io(_)) => {
            "check the device and its file system"
        }
        Error::JobLost(_) => "report this defect",
        _ => "restart the node to reopen the SSTables",
    }
}

/// The corrupt file.
fn corrupt_file(error: &Error) -> Option<&std::path::Path> {
    match error {
        Error::SSTable(SSTable::Corrupt { path, .. })
        | Error::Compaction(Compaction::SSTable(SSTable::Corrupt { path, .. })) => Some(path),
        _ => None,
    }
}

fn is_device_failure(error: &Error) -> bool {
    let device = |e: &halcyon_io::Error| matches!(e, halcyon_io::Error::Device { .. });
    match error {
        Error::Disk(e) | Error::SSTable(SSTable::Io(e)) => device(e),
        Error::Compaction(Compaction::Io(e) | Compaction::SSTable(SSTable::Io(e)))
        | Error::Compaction(Compaction::InDoubt(e)) => device(e),
        _ => false,
    }
}

impl Compactor {
    pub(super) fn failed(&self, store: &Store, inputs: &[Arc<LiveSSTable>], error: &Error) {
        if matches!(error, Error::Compaction(Compaction::Cancelled)) {
            return;
        }
        let policy = self.storage.options.disk_failure_policy;
        let suspect = corrupt_file(error).and_then(|path| {
            let is_of = |live: &&Arc<LiveSSTable>| {
                let prefix = live.descriptor().path_of("");
                path.to_string_lossy().starts_with(prefix.to_string_lossy().as_ref())
            };
            inputs.iter().find(is_of)
        });
        let retried_after = match suspect {
            Some(live) => {
                live.suspect();
                None
            }
            None => Some(store.backoff.begin(self.storage.disk.clock().now())),
        };
        let event = Event::CompactionFailed(Box::new(CompactionFailed {
            table: store.table().full_name(),
            inputs: inputs.iter().map(|live| live.descriptor().to_string()).collect(),
            is_in_doubt: matches!(error, Error::Compaction(Compaction::InDoubt(_))),
            why: error.to_string(),
            cure: cure(error),
            retried_after,
        }));
        let stops = match policy {
            DiskFailurePolicy::Die | DiskFailurePolicy::StopParanoid => {
                suspect.is_some() || is_device_failure(error)
            }
            DiskFailurePolicy::Stop => is_device_failure(error),
            DiskFailurePolicy::BestEffort | DiskFailurePolicy::Ignore => false,
        };
        if stops {
            self.reporter.disk_failed(format!("writes are refused since a {event}"));
        }
        self.reporter.report(event);
    }
}
