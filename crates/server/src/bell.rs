//! A signal between two tasks of one thread: it stays rung until somebody has waited for it.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::task::{Poll, Waker};

#[derive(Debug, Default)]
pub(crate) struct Bell {
    rung: Cell<bool>,
    waiter: RefCell<Option<Waker>>,
}

impl Bell {
    pub(crate) fn ring(&self) {
        self.rung.set(true);
        if let Some(waiter) = self.waiter.take() {
            waiter.wake();
        }
    }

    /// For one task at a time.
    pub(crate) async fn wait(&self) {
        poll_fn(|context| {
            if self.rung.take() {
                return Poll::Ready(());
            }
            *self.waiter.borrow_mut() = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }
}
