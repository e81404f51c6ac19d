//! Snapshots that expire (`nodetool snapshot --ttl`): their manifests say when, and the node removes them then.
//!
//! 1. Shortly after the start all manifests are read: an earlier life of the node, or Cassandra, may have taken snapshots.
//! 2. From then on the time of the next expiry is known. So the look of each minute is a comparison; only when one is due, manifests
//!    are read again, and what has expired is removed, by a thread of its own: a snapshot can have very many files.
//! 3. A removal that fails, or that a crash interrupts, is tried again a minute later, or after the next start.

use std::sync::Arc;

use halcyon_io::{JobLost, ThreadPriority, contained, panic_point};

use super::next_expiry::{NEVER, UNKNOWN};
use super::{Snapshots, remove_folder};
use crate::reporter::Event;
use crate::start::directories::table_folders;
use crate::{Error, Result};

impl Snapshots {
    /// Removes what has expired, in the background.
    pub(crate) fn look(self: &Arc<Snapshots>) {
        let now_ms = self.storage.disk.clock().unix_micros() / 1000;
        if !self.next_expiry.take_due(now_ms) {
            return;
        }
        let snapshots = self.clone();
        let body = move || async move {
            let removed = contained(snapshots.remove_expired_snapshots(now_ms)).await;
            let next = removed.unwrap_or(Err(Error::JobLost(JobLost))).unwrap_or_else(|e| {
                snapshots.tables.reporter.report(Event::SnapshotsNotExpired { why: e.to_string() });
                UNKNOWN
            });
            snapshots.next_expiry.add(next);
        };
        self.storage
            .disk
            .runtime()
            .spawn_thread("snapshot-expiry", ThreadPriority::Idle, body)
            .detach();
    }

    /// Returns when the next one expires.
    async fn remove_expired_snapshots(&self, now_ms: i64) -> Result<i64> {
        panic_point("the expiry of snapshots");
        let mut next = NEVER;
        for table in table_folders(&self.storage.disk, &self.storage.options).await? {
            for folder in self.snapshot_folders(&table.path).await? {
                if self.tables.schedule.is_stopped() {
                    // The node ends.
                    return Ok(UNKNOWN);
                }
                let Some(expires_ms) = self.expiry_of(&folder).await? else { continue };
                if expires_ms >= now_ms {
                    next = next.min(expires_ms);
                    continue;
                }
                let snapshot = folder.clone();
                let event = match remove_folder(&self.storage.disk, &folder).await {
                    Ok(()) => Event::SnapshotExpired { snapshot },
                    Err(e) => {
                        next = UNKNOWN;
                        Event::SnapshotRemains { snapshot, why: e.to_string() }
                    }
                };
                self.tables.reporter.report(event);
            }
        }
        Ok(next)
    }
}
