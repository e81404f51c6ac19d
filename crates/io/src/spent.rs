//! What a request waits for, told apart: the parts of a slow one.
//!
//! 1. [`measured`] polls a request's future. Whatever notes a wait meanwhile, in any crate, notes it for this request.
//! 2. A wait is noted behind its `await`, when the request is polled again, so a thread with many requests needs no more than one record
//!    that is exchanged at each poll.
//! 3. Work on another thread is measured there, and [`add`]ed here.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::time::Duration;

/// The waits of a request. Reads of the device run side by side, so their sum can be longer than the request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spent {
    /// Until the commit log was durable.
    pub log: Duration,
    /// SSTables that had a partition that was read.
    pub sstables: u64,
    pub device_reads: u64,
    pub device: Duration,
}

thread_local! {
    /// Of the request that is polled. What is noted outside of requests is not read.
    static SPENT: Cell<Spent> = Cell::default();
}

/// Runs a request, and says what it waited for.
pub async fn measured<F: Future>(request: F) -> (F::Output, Spent) {
    let mut request = pin!(request);
    let mut spent = Spent::default();
    let outcome = poll_fn(|context| {
        let outside = SPENT.replace(spent);
        let polled = request.as_mut().poll(context);
        spent = SPENT.replace(outside);
        polled
    })
    .await;
    (outcome, spent)
}

/// Adds the waits of a part of the request.
pub fn add(part: Spent) {
    note(|spent| {
        spent.log += part.log;
        spent.sstables += part.sstables;
        spent.device_reads += part.device_reads;
        spent.device += part.device;
    });
}

/// A wait for the commit log.
pub fn log(time: Duration) {
    note(|spent| spent.log += time);
}

pub fn sstables(count: u64) {
    note(|spent| spent.sstables += count);
}

/// A read of the device.
pub(crate) fn device(time: Duration) {
    note(|spent| {
        spent.device_reads += 1;
        spent.device += time;
    });
}

fn note(change: impl FnOnce(&mut Spent)) {
    let mut spent = SPENT.get();
    change(&mut spent);
    SPENT.set(spent);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{block_on, yield_now};

    /// Proves that requests that take turns on a thread have their own waits, and that a part is counted once, where it is added.
    #[test]
    fn requests_have_their_own_waits() {
        let request = |reads: u64| async move {
            for _ in 0..reads {
                device(Duration::from_millis(1));
                yield_now().await;
            }
            let (_, part) = measured(async { log(Duration::from_millis(5)) }).await;
            add(part);
            sstables(reads);
        };
        let of = |reads: u64| Spent {
            log: Duration::from_millis(5),
            sstables: reads,
            device_reads: reads,
            device: Duration::from_millis(reads),
        };
        let both = futures_util::future::join(measured(request(3)), measured(request(7)));
        let (((), first), ((), second)) = block_on(both);
        assert_eq!((first, second), (of(3), of(7)));
    }
}
