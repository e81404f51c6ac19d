//! Tasks: futures that run beside the one that started them, on the same thread.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::clock::sleep;
use super::entered::{self, EnteredTask};
use super::panics::{caught, contained};

/// A started task. Dropping this lets the task run on.
#[derive(Debug)]
#[must_use = "await it, or say `detach`"]
pub struct Task<T>(Kind<T>);

#[derive(Debug)]
enum Kind<T> {
    System(compio::runtime::JoinHandle<Option<T>>),
    Simulated(EnteredTask<T>),
    Ended,
}

/// Starts a task on the runtime that runs on this thread; call it inside `block_on`.
pub fn spawn<T: 'static>(future: impl Future<Output = T> + 'static) -> Task<T> {
    Task(match entered::try_spawn(future) {
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

/// How long [`kept`] waits before it restarts a task.
const PAUSE: Duration = Duration::from_secs(1);

/// Runs what `begin` makes to its end. If it panics, what `begin` makes next, after a pause.
pub async fn kept<F: Future<Output = ()>>(begin: impl Fn() -> F) {
    while contained(begin()).await.is_none() {
        sleep(PAUSE).await;
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

    use futures_channel::oneshot;

    use super::*;
    use crate::runtime::thread::{ThreadPriority, spawn_thread};
    use crate::{Clock, SimRuntime, block_on, compute, yield_now};

    /// Proves that a future runs at once as far as it gets, that the rest of it is run too, and that a panic stays in it.
    #[test]
    fn started_futures_run_at_once() {
        block_on(async {
            let reached = Rc::new(Cell::new(0));
            let there = reached.clone();
            start(Box::pin(async move {
                there.set(1);
                Clock::system().sleep(Duration::from_millis(1)).await;
                there.set(2);
            }));
            assert_eq!(reached.get(), 1);
            start(Box::pin(async { panic!("stays in it") }));
            while reached.get() < 2 {
                Clock::system().sleep(Duration::from_millis(1)).await;
            }
        });
    }

    /// Proves that a task learns of a panic of what it waits for, whichever thread that runs on. Without the wakers of ours the runtime
    /// would end this process.
    #[test]
    fn who_waits_in_a_task_learns_of_a_panic() {
        block_on(async {
            let (of_thread, ended) = oneshot::channel::<()>();
            spawn_thread("panics", ThreadPriority::Normal, move || {
                // The task is to wait before the thread panics.
                std::thread::sleep(Duration::from_millis(20));
                let _dropped = of_thread;
                panic!("stays in the thread");
            });
            assert_eq!(spawn(async { ended.await.is_err() }).await, Some(true));

            let of_job = async {
                let slow: fn() = || {
                    std::thread::sleep(Duration::from_millis(20));
                    panic!("stays in the job");
                };
                compute(slow).await.is_err()
            };
            assert_eq!(spawn(of_job).await, Some(true));

            let (of_task, ended) = oneshot::channel::<()>();
            let waiting = spawn(async { ended.await.is_err() });
            let panicking = spawn(async {
                yield_now().await;
                let _dropped = of_task;
                panic!("stays in the task");
            });
            assert_eq!(panicking.await, None::<()>);
            assert_eq!(waiting.await, Some(true));
        });
    }

    /// Proves that a task of a thread that panics as a whole, and what it holds, do not end the process either.
    #[test]
    fn a_thread_ends_with_its_tasks() {
        block_on(async {
            let (held, ended) = oneshot::channel::<()>();
            let waiting = spawn(async { ended.await.is_err() });
            let thread = spawn_thread("panics", ThreadPriority::Normal, move || {
                block_on(async move {
                    spawn(async move {
                        let _held = held;
                        std::future::pending::<()>().await;
                    })
                    .detach();
                    yield_now().await;
                    panic!("ends the thread");
                });
            });
            assert!(thread.join().is_err());
            drop(waiting);
        });
    }

    /// Proves that a kept task is restarted, with a simulated runtime too, whose time passes at once.
    #[test]
    fn what_is_kept_begins_anew() {
        SimRuntime::seeded(1).block_on(async {
            let begun = Cell::new(0);
            kept(|| async {
                begun.set(begun.get() + 1);
                assert!(begun.get() > 2, "not yet");
            })
            .await;
            assert_eq!(begun.get(), 3);
        });
    }
}
