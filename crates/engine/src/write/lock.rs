//! Locks of partitions: conditional and counter writes of a partition run one at a time, in order of arrival; so do large ones with all
//! others (`large.rs`).

use std::cell::RefCell;
use std::collections::HashMap;
use std::collections::VecDeque;
use std::rc::Rc;

use futures_channel::oneshot;
use halcyon_stream::{PartitionKey, TableId};

type LockKey = (TableId, Vec<u8>);

/// The queue of waiters for each locked partition.
pub(crate) type Locks = Rc<RefCell<HashMap<LockKey, VecDeque<oneshot::Sender<()>>>>>;

/// The exclusive lock of a partition, while it is held.
pub struct PartitionLock {
    locks: Locks,
    key: LockKey,
    held: bool,
    waited: bool,
}

impl PartitionLock {
    /// Whether another write had the lock when this one wanted it.
    pub fn has_waited(&self) -> bool {
        self.waited
    }
}

/// Waits for the partition's lock.
pub(crate) async fn lock(locks: &Locks, table: TableId, key: &PartitionKey) -> PartitionLock {
    let key = (table, key.bytes.clone());
    let turn = match locks.borrow_mut().entry(key.clone()) {
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
            PartitionLock { locks: locks.clone(), key: key.clone(), held: true, waited: true };
        let mut waiting = Waiting { turn, lock: Some(lock) };
        let _ = (&mut waiting.turn).await;
        if let Some(lock) = waiting.lock.take() {
            return lock;
        }
    }
    PartitionLock { locks: locks.clone(), key, held: true, waited: false }
}

/// A waiter in the queue. A cancelled waiter must not release another one's lock, but must pass on a lock that it was just given.
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
        let Some(waiting) = locks.get_mut(&self.key) else { return };
        while let Some(next) = waiting.pop_front() {
            if next.send(()).is_ok() {
                return;
            }
        }
        locks.remove(&self.key);
    }
}
