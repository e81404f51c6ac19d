//! Wake-ups between the tasks of one thread.
//!
//! 1. [`Notify::notify_one`] leaves a permit. The first task that waits takes it, now or later; two permits are one.
//! 2. [`Notify::notify_all`] completes every wait that began before it, and leaves nothing behind.
//! 3. A wait that is dropped loses no permit: the permit is taken by the poll that returns `Ready`, and every task that waits is woken
//!    to try.
//!
//! It has no atomic. A wake-up that crosses threads goes through a channel or the mesh, whose wakers know the other thread.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

#[derive(Debug, Default)]
pub struct Notify {
    permit: Cell<bool>,
    /// Counts `notify_all`.
    broadcasts: Cell<u64>,
    /// Counts how often `waiting` was emptied: a waiter's index holds only until then.
    wakes: Cell<u64>,
    waiting: RefCell<Vec<Waker>>,
}

/// One wait; see [`Notify::notified`].
#[derive(Debug)]
#[must_use = "await it"]
pub struct Notified<'a> {
    notify: &'a Notify,
    broadcasts: u64,
    /// `wakes` when the waker was stored, and its index. Polled again, it is not stored twice.
    stored: Option<(u64, usize)>,
}

impl Notify {
    pub fn notify_one(&self) {
        if !self.permit.replace(true) {
            self.wake();
        }
    }

    pub fn notify_all(&self) {
        self.broadcasts.set(self.broadcasts.get() + 1);
        self.wake();
    }

    /// Waits for a permit, or for the next `notify_all` from this call on.
    pub fn notified(&self) -> Notified<'_> {
        Notified { notify: self, broadcasts: self.broadcasts.get(), stored: None }
    }

    fn wake(&self) {
        self.wakes.set(self.wakes.get() + 1);
        self.waiting.take().into_iter().for_each(Waker::wake);
    }
}

impl Future for Notified<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let notify = self.notify;
        if notify.broadcasts.get() != self.broadcasts || notify.permit.take() {
            return Poll::Ready(());
        }
        let mut waiting = notify.waiting.borrow_mut();
        let wakes = notify.wakes.get();
        match self.stored.filter(|stored| stored.0 == wakes).and_then(|(_, at)| waiting.get_mut(at))
        {
            Some(waker) => waker.clone_from(context.waker()),
            None => {
                self.stored = Some((wakes, waiting.len()));
                waiting.push(context.waker().clone());
            }
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn poll(waiting: &mut Notified<'_>) -> bool {
        Pin::new(waiting).poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    /// Proves that a permit is kept for one waiter, and that two are one.
    #[test]
    fn a_permit_is_kept() {
        let notify = Notify::default();
        notify.notify_one();
        notify.notify_one();
        assert!(poll(&mut notify.notified()));
        let (mut first, mut second) = (notify.notified(), notify.notified());
        assert!(!poll(&mut first) && !poll(&mut second));
        notify.notify_one();
        assert!(poll(&mut second) && !poll(&mut first));
    }

    /// Proves that a broadcast completes the waits that began before it and no others, and that polling again stores no second waker.
    #[test]
    fn a_broadcast_reaches_all_that_wait() {
        let notify = Notify::default();
        let (mut first, mut second) = (notify.notified(), notify.notified());
        assert!(!poll(&mut first) && !poll(&mut first));
        assert_eq!(notify.waiting.borrow().len(), 1);
        notify.notify_all();
        assert!(poll(&mut first) && poll(&mut second));
        assert!(!poll(&mut notify.notified()));
    }
}
