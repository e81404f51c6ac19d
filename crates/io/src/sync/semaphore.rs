//! A bound on what one thread has under way.

use std::cell::Cell;
use std::rc::Rc;

use super::notify::Notify;

#[derive(Debug)]
pub(crate) struct Semaphore {
    free: Cell<usize>,
    freed: Notify,
}

/// Gives its place back when it is dropped.
#[derive(Debug)]
pub(crate) struct Permit(Rc<Semaphore>);

impl Semaphore {
    pub(crate) fn of(permits: usize) -> Rc<Semaphore> {
        Rc::new(Semaphore { free: Cell::new(permits), freed: Notify::default() })
    }

    pub(crate) async fn acquire(self: &Rc<Semaphore>) -> Permit {
        while self.free.get() == 0 {
            self.freed.notified().await;
        }
        self.free.set(self.free.get() - 1);
        if self.free.get() > 0 {
            // Two permits that came back before anyone looked were one notification.
            self.freed.notify_one();
        }
        Permit(self.clone())
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.free.set(self.0.free.get() + 1);
        self.0.freed.notify_one();
    }
}
