//! The pool's budget, its lines of waiters, and its refusals.

use std::{rc::Rc, time::Duration};

use super::*;
use crate::runtime::backend::block_on;

const KIB: usize = 1024;

fn pool(budget: usize) -> BufferPool {
    BufferPool::with_budget(budget, Patience::Turns(50))
}

/// Two futures on one thread, polled in turn until both are done.
async fn both<A, B>(a: impl Future<Output = A>, b: impl Future<Output = B>) -> (A, B) {
    let (mut a, mut b) = (pin!(a), pin!(b));
    let (mut from_a, mut from_b) = (None, None);
    poll_fn(|cx| {
        if from_a.is_none()
            && let Poll::Ready(done) = a.as_mut().poll(cx)
        {
            from_a = Some(done);
        }
        if from_b.is_none()
            && let Poll::Ready(done) = b.as_mut().poll(cx)
        {
            from_b = Some(done);
        }
        if from_a.is_some() && from_b.is_some() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    (from_a.unwrap(), from_b.unwrap())
}

/// Proves alignment, length, zeroing and reuse of the same memory.
#[test]
fn aligned_and_reused() {
    let pool = pool(1024 * KIB);
    let mut first = pool.take_if_free(5000, Tenure::Short).unwrap();
    assert_eq!(first.as_ptr() as usize % BUFFER_ALIGNMENT, 0);
    assert_eq!(first.len(), 8192);
    assert!(first.iter().all(|byte| *byte == 0));
    first[7] = 9;
    let address = first.as_ptr() as usize;
    drop(first);
    assert_eq!(pool.held(), 0);
    let second = pool.take_if_free(8192, Tenure::Short).unwrap();
    assert_eq!((second.as_ptr() as usize, second[7]), (address, 9));
    let stream = pool.take_if_free(5000, Tenure::Stream).unwrap();
    assert_eq!(stream.len(), 8192);
}

/// Proves that a request above the budget fails at once and names the option.
#[test]
fn larger_than_the_budget() {
    let pool = pool(64 * KIB);
    let refused = block_on(pool.take_or_wait(65 * KIB, Tenure::Short)).unwrap_err();
    assert!(refused.to_string().contains("io_buffer_budget"), "{refused}");
    assert!(block_on(pool.take_or_wait(60 * KIB, Tenure::Stream)).is_err());
    assert!(block_on(pool.take_or_wait(usize::MAX, Tenure::Short)).is_err());
    assert!(block_on(pool.take_or_wait(64 * KIB, Tenure::Short)).is_ok());
}

/// Proves that one who holds everything and asks for more is refused instead of hanging, in turns and
/// in time.
#[test]
fn only_holder() {
    for patience in [Patience::Turns(50), Patience::Time(Duration::from_millis(20))] {
        let pool = BufferPool::with_budget(64 * KIB, patience);
        block_on(async {
            let held = pool.take_or_wait(64 * KIB, Tenure::Short).await.unwrap();
            let refused = pool.take_or_wait(4 * KIB, Tenure::Short).await.unwrap_err();
            assert!(matches!(refused, Error::BufferBudget { held: 65536, .. }), "{refused}");
            drop(held);
            pool.take_or_wait(4 * KIB, Tenure::Short).await.unwrap();
        });
    }
}

/// Proves that streams leave a quarter of the budget to short reads.
#[test]
fn streams_leave_room() {
    let pool = pool(64 * KIB);
    let streams: Vec<_> =
        std::iter::from_fn(|| pool.take_if_free(4 * KIB, Tenure::Stream)).collect();
    assert_eq!(streams.len(), 12);
    let short: Vec<_> = std::iter::from_fn(|| pool.take_if_free(4 * KIB, Tenure::Short)).collect();
    assert_eq!(short.len(), 4);
}

/// Proves that what streams can do without stops at half of their share, and that a first buffer is
/// still to be had then.
#[test]
fn further_buffers() {
    let pool = pool(64 * KIB);
    let further: Vec<_> = std::iter::from_fn(|| pool.take_further(4 * KIB)).collect();
    assert_eq!(further.len(), 6);
    assert!(block_on(pool.take_or_wait(4 * KIB, Tenure::Stream)).is_ok());
}

/// Proves that a waiter is served when a buffer comes back, also from another thread, and that cached
/// buffers of other sizes make room.
#[test]
fn waiters_are_served() {
    let pool = BufferPool::with_budget(64 * KIB, Patience::Time(Duration::from_secs(60)));
    for _ in 0..20 {
        let small: Vec<_> =
            (0..16).map(|_| pool.take_if_free(4 * KIB, Tenure::Short).unwrap()).collect();
        let other = std::thread::spawn(move || drop(small));
        let large = block_on(pool.take_or_wait(64 * KIB, Tenure::Short)).unwrap();
        assert_eq!(large.len(), 64 * KIB);
        other.join().unwrap();
    }
    let state = pool.lock();
    assert!(state.short_line.is_empty() && state.held + state.free_bytes <= 64 * KIB);
}

/// Proves first come, first served: a large request is not starved by small ones behind it.
#[test]
fn first_come_first_served() {
    let pool = pool(64 * KIB);
    let order = Rc::new(std::cell::RefCell::new(Vec::new()));
    let held = std::cell::RefCell::new(pool.take_if_free(32 * KIB, Tenure::Short));
    let take = async |len: usize| {
        let _buffer = pool.take_or_wait(len, Tenure::Short).await.unwrap();
        order.borrow_mut().push(len);
    };
    block_on(both(both(take(64 * KIB), async { take(32 * KIB).await }), async {
        drop(held.borrow_mut().take());
    }));
    assert_eq!(*order.borrow(), [64 * KIB, 32 * KIB]);
}

/// Proves that a waiter who gives up leaves the line, and the next one is served.
#[test]
fn leaving_the_line() {
    let pool = pool(64 * KIB);
    block_on(async {
        let held = pool.take_or_wait(32 * KIB, Tenure::Short).await.unwrap();
        {
            let mut gives_up = pin!(pool.take_or_wait(64 * KIB, Tenure::Short));
            poll_fn(|cx| {
                assert!(gives_up.as_mut().poll(cx).is_pending());
                Poll::Ready(())
            })
            .await;
            assert!(pool.take_if_free(4 * KIB, Tenure::Short).is_none());
        }
        assert!(pool.take_if_free(4 * KIB, Tenure::Short).is_some());
        drop(held);
    });
}

/// Proves that a thread that reads again and again takes the pool's lock only for its first buffers, also where many threads do.
#[test]
fn threads_keep_to_their_shares() {
    const THREADS: usize = 8;
    let pool = BufferPool::with_budget(64 << 20, Patience::Turns(50));
    let barrier = std::sync::Barrier::new(THREADS);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let warm: Vec<_> =
                    (0..4).map(|_| pool.take_if_free(16 * KIB, Tenure::Short)).collect();
                drop(warm);
                barrier.wait();
                let before = pool.times_locked();
                barrier.wait();
                for _ in 0..1000 {
                    let pair = [(); 2].map(|()| pool.take_if_free(16 * KIB, Tenure::Short));
                    assert!(pair.iter().all(Option::is_some));
                }
                barrier.wait();
                // Each thread's own question counts once.
                assert!(pool.times_locked() <= before + 2 * THREADS as u64);
            });
        }
    });
    assert_eq!(pool.held(), 0);
}

/// Proves that what other threads keep free is there for one that needs the whole budget, whether it waits or not.
#[test]
fn shares_are_taken_back() {
    let pool = BufferPool::with_budget(1024 * KIB, Patience::Turns(50));
    let fill = || drop(pool.take_if_free(16 * KIB, Tenure::Short));
    std::thread::scope(|scope| {
        scope.spawn(fill);
    });
    assert_eq!(pool.held(), 0);
    assert!(pool.lock().held > 0);
    let all = pool.take_if_free(1024 * KIB, Tenure::Short).expect("nothing is handed out");
    drop(all);
    std::thread::scope(|scope| {
        scope.spawn(fill);
    });
    assert!(block_on(pool.take_or_wait(1024 * KIB, Tenure::Short)).is_ok());
    assert!(!pool.0.central.waiting.load(Relaxed));
}
