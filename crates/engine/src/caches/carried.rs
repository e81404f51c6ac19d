//! What is hot of new SSTables goes into the shards' caches before the SSTables are live (`sstable/src/write/carry.rs`).

use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use halcyon_sstable::read::Budget;
use halcyon_sstable::{Carried, Carry, Descriptor, Heat};
use halcyon_stream::PartitionKey;

use crate::engine::Engine;
use crate::heat::Hot;
use crate::shard::Shard;
use crate::store::Store;
use crate::version::LiveSSTable;

/// Of one compaction or flush.
pub(crate) struct Carrier {
    hot: Hot,
    room: Arc<Budget>,
    /// Of the room; given back with the carrier.
    used: AtomicU64,
    taken: Mutex<Vec<(Descriptor, Carried)>>,
}

impl Drop for Carrier {
    fn drop(&mut self) {
        self.room.give_back(*self.used.get_mut());
    }
}

impl Carry for Carrier {
    fn heat(&self, key: &PartitionKey) -> Heat {
        self.hot.of(key)
    }

    fn is_hot(&self, key: &PartitionKey, clustering: &[u8]) -> bool {
        self.hot.has_row(key, clustering)
    }

    fn reserve(&self, bytes: usize) -> bool {
        let has_room = self.room.take(bytes as u64);
        if has_room {
            self.used.fetch_add(bytes as u64, Relaxed);
        }
        has_room
    }

    fn take(&self, of: &Descriptor, carried: Carried) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.push((of.clone(), carried));
    }
}

impl Carrier {
    fn of(&self, descriptor: &Descriptor) -> Option<Carried> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let at = taken.iter().position(|(of, _)| of == descriptor)?;
        Some(taken.swap_remove(at).1)
    }
}

impl Engine {
    /// `None` if nothing of the table is hot.
    pub(crate) fn carrier(&self, store: &Store) -> Option<Arc<Carrier>> {
        let hot = store.heat.hot();
        let (used, taken) = Default::default();
        (!hot.is_empty())
            .then(|| Arc::new(Carrier { hot, room: self.carry_room.clone(), used, taken }))
    }

    /// Gives the shards what was carried over of an SSTable that is about to be live.
    pub(crate) async fn hand_over(
        &self,
        store: &Store,
        live: &LiveSSTable,
        carrier: Option<&Arc<Carrier>>,
    ) {
        let carried = carrier.and_then(|carrier| carrier.of(live.descriptor()));
        let Some(carried) = carried else { return };
        let keys = store.definition.load().caching.keys;
        let parts = carried.by_owner(self.shard_count(), |token| self.owner(token));
        for (index, part) in parts.into_iter().enumerate().filter(|(_, part)| !part.is_empty()) {
            let table = live.table.clone();
            let job = move |shard: Rc<Shard>| async move {
                let caches = if keys { &shard.caches } else { &shard.caches_without_keys };
                table.keep_carried(caches, part).await;
            };
            // A shard that has ended needs no caches.
            let _ = self.mesh.on(index, job).await;
        }
    }
}
