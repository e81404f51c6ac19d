//! The queue between shards and the writer, bounded in bytes (`WeightedQueue`).

use std::collections::VecDeque;
use std::time::Duration;

use halcyon_io::{Condvar, Mutex};

/// Bytes of a record beside its own: its place in the queue and what the allocator adds.
const OVERHEAD: u64 = 64;

#[derive(Debug, Default)]
struct Waiting {
    records: VecDeque<Vec<u8>>,
    weight: u64,
    is_ending: bool,
    has_ended: bool,
}

#[derive(Debug)]
pub(crate) struct Queue {
    most: u64,
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

fn weight(record: &[u8]) -> u64 {
    record.len() as u64 + OVERHEAD
}

impl Queue {
    pub(crate) fn new(most: u64) -> Queue {
        Queue { most, waiting: Mutex::default(), changed: Condvar::new() }
    }

    /// Whether a record could ever be admitted.
    pub(crate) fn fits(&self, record: &[u8]) -> bool {
        weight(record) <= self.most
    }

    /// Returns the record while the queue is full, and drops it once the queue has ended.
    pub(crate) fn push(&self, record: Vec<u8>) -> Result<(), Vec<u8>> {
        let mut waiting = self.waiting.lock();
        if waiting.is_ending {
            return Ok(());
        }
        let after = waiting.weight.saturating_add(weight(&record));
        if after > self.most {
            return Err(record);
        }
        waiting.weight = after;
        waiting.records.push_back(record);
        drop(waiting);
        self.changed.notify_all();
        Ok(())
    }

    /// The records that wait, at most about `most` bytes of them, after a wait if there are none; `None` at the end.
    pub(crate) fn take(&self, most: u64, pause: Duration) -> Option<Vec<Vec<u8>>> {
        let is_idle = |waiting: &mut Waiting| waiting.records.is_empty() && !waiting.is_ending;
        let (mut waiting, _) = self.changed.wait_timeout_while(self.waiting.lock(), pause, is_idle);
        if waiting.records.is_empty() && waiting.is_ending {
            return None;
        }
        let (mut taken, mut bytes) = (Vec::new(), 0);
        while bytes < most
            && let Some(record) = waiting.records.pop_front()
        {
            bytes += weight(&record);
            taken.push(record);
        }
        waiting.weight = waiting.weight.saturating_sub(bytes);
        Some(taken)
    }

    /// Bytes that wait.
    pub(crate) fn weight(&self) -> u64 {
        self.waiting.lock().weight
    }

    /// No more records are taken; those that wait are still written.
    pub(crate) fn end(&self) {
        self.waiting.lock().is_ending = true;
        self.changed.notify_all();
    }

    pub(crate) fn ended(&self) {
        self.waiting.lock().has_ended = true;
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.waiting.lock().has_ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the queue is bounded in bytes, gives room back, and that what waits at the end is still taken.
    #[test]
    fn the_queue_is_bounded_in_bytes() {
        let queue = Queue::new(2 * (OVERHEAD + 10));
        assert!(queue.push(vec![1; 10]).is_ok() && queue.push(vec![2; 10]).is_ok());
        assert_eq!(queue.push(vec![3; 10]), Err(vec![3; 10]));
        assert!(!queue.fits(&[0; 1000]));
        assert_eq!(queue.take(1, Duration::ZERO), Some(vec![vec![1; 10]]));
        assert!(queue.push(vec![4; 10]).is_ok());
        queue.end();
        assert!(queue.push(vec![5; 10]).is_ok());
        assert_eq!(queue.take(u64::MAX, Duration::ZERO), Some(vec![vec![2; 10], vec![4; 10]]));
        assert_eq!((queue.take(1, Duration::ZERO), queue.weight()), (None, 0));
    }
}
