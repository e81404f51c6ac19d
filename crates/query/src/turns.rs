//! How many reads of a shard run at once.

use std::cell::Cell;

use halcyon_io::Notify;
use halcyon_scan::RequestMemory;

/// What a read takes before its rows are counted: windows of its sources, and a row. Reads run at once as long as they fit, in a quarter
/// of the budget for those of named partitions, and of another one for scans.
const READ: u64 = 1 << 20;

/// Some reads always run at once.
const READS_MIN: u64 = 4;

/// The reads of one shard that run at once. Others wait: a read that waits takes little.
#[derive(Debug)]
pub(crate) struct Reads {
    free: Cell<u64>,
    freed: Notify,
}

/// A read that runs.
pub(crate) struct Turn<'a>(&'a Reads);

impl Reads {
    pub(crate) fn of_shard(memory: &RequestMemory, shards: usize) -> Reads {
        let most = memory.limit() / 4 / READ / (shards as u64).max(1);
        Reads { free: Cell::new(most.max(READS_MIN)), freed: Notify::default() }
    }

    pub(crate) async fn turn(&self) -> Turn<'_> {
        while self.free.get() == 0 {
            self.freed.notified().await;
        }
        self.free.set(self.free.get() - 1);
        if self.free.get() > 0 {
            // Two turns that ended before anyone looked were one notification.
            self.freed.notify_one();
        }
        Turn(self)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.free.set(self.0.free.get() + 1);
        self.0.freed.notify_one();
    }
}
