//! Tasks: futures that run beside the one that started them, on the same thread.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A started task. Dropping it lets the task go on.
#[derive(Debug)]
#[must_use = "await it, or say `detach`"]
pub struct Task<T>(Option<compio::runtime::JoinHandle<T>>);

/// Starts a task on this thread; call it inside `block_on`.
pub fn spawn<T: 'static>(future: impl Future<Output = T> + 'static) -> Task<T> {
    Task(Some(compio::runtime::spawn(future)))
}

impl<T> Task<T> {
    /// Lets it run on its own.
    pub fn detach(self) {
        drop(self);
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        if let Some(handle) = self.0.take() {
            handle.detach();
        }
    }
}

/// `None` if the task panicked.
impl<T> Future for Task<T> {
    type Output = Option<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        let Some(handle) = self.0.as_mut() else { return Poll::Ready(None) };
        let outcome = std::task::ready!(Pin::new(handle).poll(context));
        self.0 = None;
        Poll::Ready(outcome.ok())
    }
}
