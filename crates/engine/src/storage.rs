//! Where tables lie and how their files are written: what every service needs and none changes.

use halcyon_io::{DirLock, Disk};
use halcyon_model::time::MAX_DELETION_TIME;
use halcyon_sstable::format::deletion_time::LEGACY_LATEST;
use halcyon_sstable::{SSTableId, Version};

use crate::Options;

pub(crate) struct Storage {
    pub(crate) disk: Disk,
    pub(crate) options: Options,
    /// Of the SSTables that are written.
    pub(crate) version: Version,
    /// The directories are this node's for as long as a service may write to them.
    pub(crate) _locks: Vec<DirLock>,
}

impl Storage {
    /// The last second at which something can expire, by the version that is written (`Cell.getVersionedMaxDeletiontionTime`).
    pub(crate) fn latest_expiration(&self) -> u32 {
        if self.version.has_uint_deletion_time() { MAX_DELETION_TIME } else { LEGACY_LATEST }
    }

    /// Milliseconds since 1970.
    pub(crate) fn now_ms(&self) -> i64 {
        self.disk.clock().unix_micros() / 1000
    }

    pub(crate) fn fresh_timeuuid(&self) -> [u8; 16] {
        let nanos =
            u64::try_from(self.disk.clock().unix_micros()).unwrap_or(0).saturating_mul(1000);
        let id = SSTableId::fresh(nanos, self.disk.runtime().random().next_u64());
        id.to_uuid().unwrap_or_default()
    }
}
