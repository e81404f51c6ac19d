//! One conditional or counter write at a time on a partition, in the order in which they came.

use std::cell::RefCell;
use std::collections::HashMap;
use std::collections::VecDeque;
use std::rc::Rc;

use futures_channel::oneshot;
use halcyon_stream::{PartitionKey, TableId};

use crate::shard::Shard;

type Place = (TableId, Vec<u8>);

/// Who waits for each partition that is locked.
pub(crate) type Locks = Rc<RefCell<HashMap<Place, VecDeque<oneshot::Sender<()>>>>>;

/// Held: no other conditional or counter write runs on the partition.
pub struct PartitionLock {
    locks: Locks,
    place: Place,
    held: bool,
}

impl Shard {
    /// Waits until no other conditional or counter write runs on the partition.
    pub async fn lock(&self, table: TableId, key: &PartitionKey) -> PartitionLock {
        let place = (table, key.bytes.clone());
        let turn = match self.locks.borrow_mut().entry(place.clone()) {
            std::collections::hash_map::Entry::Vacant(free) => {
                free.insert(VecDeque::new());
                None
            }
            std::collections::hash_map::Entry::Occupied(mut held) => {
                let (sender, turn) = oneshot::channel();
                held.get_mut().push_back(sender);
                Some(turn)
            }
        };
        if let Some(turn) = turn {
            let lock =
                PartitionLock { locks: self.locks.clone(), place: place.clone(), held: true };
            let mut waiting = Waiting { turn, lock: Some(lock) };
            let _ = (&mut waiting.turn).await;
            if let Some(lock) = waiting.lock.take() {
                return lock;
            }
        }
        PartitionLock { locks: self.locks.clone(), place, held: true }
    }
}

/// A place in the queue. Whoever gives up waiting must not free what another holds, but pass on what was just given to it.
struct Waiting {
    turn: oneshot::Receiver<()>,
    lock: Option<PartitionLock>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let given = matches!(self.turn.try_recv(), Ok(Some(())));
        if let Some(lock) = &mut self.lock
            && !given
        {
            lock.held = false;
        }
    }
}

impl Drop for PartitionLock {
    fn drop(&mut self) {
        if !self.held {
            return;
        }
        let mut locks = self.locks.borrow_mut();
        let Some(waiting) = locks.get_mut(&self.place) else { return };
        while let Some(next) = waiting.pop_front() {
            if next.send(()).is_ok() {
                return;
            }
        }
        locks.remove(&self.place);
    }
}
