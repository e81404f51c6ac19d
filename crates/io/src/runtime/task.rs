//! Tasks: futures that run beside the one that started them, on the same thread.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use super::panics::{caught, contained};
use crate::sim::executor::{self, SimTask};

/// A started task. Dropping this lets the task run on.
#[derive(Debug)]
#[must_use = "await it, or say `detach`"]
pub struct Task<T>(Kind<T>);

#[derive(Debug)]
enum Kind<T> {
    System(compio::runtime::JoinHandle<Option<T>>),
    Simulated(SimTask<T>),
    Ended,
}

/// Starts a task on the runtime that runs on this thread; call it inside `block_on`.
pub fn spawn<T: 'static>(future: impl Future<Output = T> + 'static) -> Task<T> {
    Task(match executor::try_spawn(future) {
        Ok(task) => Kind::Simulated(task),
        Err(future) => Kind::System(compio::runtime::spawn(contained(future))),
    })
}

/// Runs a future as far as it gets at once, and the rest of it as a task: most requests for what is in memory never become one.
/// A panic ends it and nothing else, as a task's does.
pub fn start(mut future: Pin<Box<dyn Future<Output = ()>>>) {
    // The task polls again, with the waker that counts.
    let mut context = Context::from_waker(Waker::noop());
    let outcome = caught(|| future.as_mut().poll(&mut context));
    if let Ok(Poll::Pending) = outcome {
        spawn(future).detach();
    }
}

impl<T> Task<T> {
    /// Lets it run on its own.
    pub fn detach(self) {
        drop(self);
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        if let Kind::System(handle) = std::mem::replace(&mut self.0, Kind::Ended) {
            handle.detach();
        }
    }
}

/// Lets the thread's other tasks run before this one continues.
pub async fn yield_now() {
    let mut yielded = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// `None` if the task panicked.
impl<T> Future for Task<T> {
    type Output = Option<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        let outcome = match &mut self.0 {
            Kind::System(handle) => {
                Pin::new(handle).poll(context).map(|ended| ended.ok().flatten())
            }
            Kind::Simulated(task) => task.poll(context),
            Kind::Ended => return Poll::Ready(None),
        };
        if outcome.is_ready() {
            self.0 = Kind::Ended;
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;
    use crate::{Clock, block_on};

    /// Proves that a future runs at once as far as it gets, that the rest of it is run too, and that a panic stays in it.
    #[test]
    fn started_futures_run_at_once() {
        block_on(async {
            let reached = Rc::new(Cell::new(0));
            let there = reached.clone();
            start(Box::pin(async move {
                there.set(1);
                Clock::system().sleep(std::time::Duration::from_millis(1)).await;
                there.set(2);
            }));
            assert_eq!(reached.get(), 1);
            start(Box::pin(async { panic!("stays in it") }));
            while reached.get() < 2 {
                Clock::system().sleep(std::time::Duration::from_millis(1)).await;
            }
        });
    }
}
