//! What is hot of new SSTables goes into the shards' caches before the SSTables are live (`sstable/src/write/carry.rs`), and what
//! was cached of those that they replace leaves them after the last reader of those.
//!
//! Until then it takes memory beside the caches, which have what is hot of the old SSTables: readers need that to the last moment. So it is
//! bounded twice, by a budget and by what the process holds at all: no share of the memory is kept free for it.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use halcyon_io::{Mutex, resources, spawn};
use halcyon_sstable::read::Budget;
use halcyon_sstable::{Carried, Carry, Descriptor, Heat};
use halcyon_stream::PartitionKey;

use crate::background::Job;
use crate::caches::memory::Memory;
use crate::heat::Hot;
use crate::shard::Shard;
use crate::tables::Tables;
use crate::tables::store::Store;
use crate::version::LiveSSTable;

/// Of one compaction or flush.
pub(crate) struct Carrier {
    hot: Hot,
    room: Arc<Budget>,
    /// Of the room; given back with the carrier.
    used: AtomicU64,
    /// It came from SSTables that are replaced.
    replaces: bool,
    /// What the caches of each shard were lent for it.
    lent: Box<[AtomicU64]>,
    /// What the process held when that was looked at last.
    resident: AtomicU64,
    taken: Mutex<Vec<(Descriptor, Carried)>>,
}

impl Drop for Carrier {
    fn drop(&mut self) {
        self.room.give_back(*self.used.get_mut());
    }
}

/// The memory of the process is looked at each time this many bytes were carried.
const LOOK: u64 = 4 << 20;

impl Carry for Carrier {
    fn heat(&self, key: &PartitionKey) -> Heat {
        self.hot.of(key)
    }

    fn is_hot(&self, key: &PartitionKey, clustering: &[u8]) -> bool {
        self.hot.has_row(key, clustering)
    }

    fn reserve(&self, bytes: usize) -> bool {
        let bytes = bytes as u64;
        let used = self.used.load(Relaxed);
        let looks = used / LOOK != (used + bytes) / LOOK;
        let has_room = !(looks && self.takes_too_much()) && self.room.take(bytes);
        if has_room {
            self.used.fetch_add(bytes, Relaxed);
        }
        has_room
    }

    fn take(&self, of: &Descriptor, carried: Carried) {
        let mut taken = self.taken.lock();
        taken.push((of.clone(), carried));
    }
}

impl Carrier {
    fn takes_too_much(&self) -> bool {
        let resident = resources::resident_memory();
        let before = self.resident.swap(resident, Relaxed);
        is_too_much(resident, before, resources::available_memory())
    }

    fn of(&self, descriptor: &Descriptor) -> Option<Carried> {
        let mut taken = self.taken.lock();
        let at = taken.iter().position(|(of, _)| of == descriptor)?;
        Some(taken.swap_remove(at).1)
    }
}

/// Whether the process holds three quarters of the memory (a fifth is for requests), and more and more of it. What it held before may be
/// used again: caches and allocator keep it for themselves. With seven eighths, who needs memory next may be anybody.
fn is_too_much(resident: u64, before: u64, memory: u64) -> bool {
    let grows = resident.saturating_sub(before) > LOOK / 2;
    grows && resident > memory / 4 * 3 || resident > memory / 8 * 7
}

impl Memory {
    /// `None` if nothing of the table is hot. If it `replaces` SSTables, they are forgotten with it at the end.
    pub(crate) fn carrier(&self, store: &Store, replaces: bool) -> Option<Arc<Carrier>> {
        let hot = store.heat.hot();
        if hot.is_empty() {
            return None;
        }
        let (room, resident) = (self.carry_room.clone(), resources::resident_memory().into());
        let lent = (0..self.shards).map(|_| AtomicU64::default()).collect();
        let (used, taken) = Default::default();
        Some(Arc::new(Carrier { hot, room, used, replaces, lent, resident, taken }))
    }
}

impl Tables {
    /// Gives the shards what was carried over of an SSTable that is about to be live.
    pub(crate) async fn hand_over(
        &self,
        store: &Store,
        live: &LiveSSTable,
        carrier: Option<&Arc<Carrier>>,
    ) {
        let Some(carrier) = carrier else { return };
        let Some(carried) = carrier.of(live.descriptor()) else { return };
        let keys = store.definition.load().caching.keys;
        let parts = carried.by_owner(self.shard_count(), |token| self.owner(token));
        for (index, part) in parts.into_iter().enumerate().filter(|(_, part)| !part.is_empty()) {
            let (table, carrier) = (live.table.clone(), carrier.clone());
            let job = move |shard: Rc<Shard>| async move {
                let caches = if keys { &shard.caches } else { &shard.caches_without_keys };
                let lent = table.keep_carried(caches, part, carrier.replaces).await;
                if let Some(all) = carrier.lent.get(index) {
                    all.fetch_add(lent, Relaxed);
                }
            };
            // A shard that has ended needs no caches.
            let _ = self.mesh.on(index, job).await;
        }
    }

    /// Begins to remove from the caches what they have of SSTables that have lost their last reader, and to take back what they were
    /// lent for those that have replaced them. Shards do it between other work.
    pub(crate) fn forget(
        &self,
        sstables: &[Arc<LiveSSTable>],
        carrier: Option<Arc<Carrier>>,
    ) -> Job {
        let mesh = self.mesh.clone();
        let ids: Arc<[u64]> = sstables.iter().map(|live| live.table.id()).collect();
        Box::new(move || {
            Box::pin(async move {
                let job = move |shard: Rc<Shard>| {
                    let (ids, carrier) = (ids.clone(), carrier.clone());
                    async move {
                        let (caches, index) = (shard.caches.clone(), shard.index());
                        let removal = async move {
                            let lent = carrier.as_ref().and_then(|carrier| carrier.lent.get(index));
                            caches.forget(&ids, lent.map_or(0, |lent| lent.load(Relaxed))).await;
                            // Its room is free now.
                            drop(carrier);
                        };
                        spawn(removal).detach();
                    }
                };
                // A shard that has ended has no caches.
                let _ = mesh.on_each(job).await;
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that carrying over ends where the memory does, but continues in memory that the process holds anyway.
    #[test]
    fn memory_has_an_end() {
        const GIB: u64 = 1 << 30;
        assert!(is_too_much(7 * GIB, 7 * GIB - LOOK, 8 * GIB));
        assert!(!is_too_much(7 * GIB, 7 * GIB, 8 * GIB));
        assert!(!is_too_much(7 * GIB - LOOK, 7 * GIB, 8 * GIB));
        assert!(!is_too_much(5 * GIB, 5 * GIB - LOOK, 8 * GIB));
        assert!(is_too_much(7 * GIB + 1, 7 * GIB + 1, 8 * GIB), "none is left for others");
    }
}
