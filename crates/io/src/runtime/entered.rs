//! The simulated runtime that drives the calling thread, if one does.
//!
//! What starts tasks, sleeps or draws random numbers asks here, so it need not know the simulator, which implements
//! [`EnteredRuntime`]. An empty slot means production: compio and the system's clock, called directly. A trait object for these
//! too would box each task of each request; so production pays for one look at a local of its thread, and a simulation for
//! dynamic calls.

use std::any::Any;
use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use futures_channel::oneshot;

use super::random::Random;
use super::sim_clock::SimClock;
use super::time::Instant;

/// A task, whose outcome goes elsewhere; or a sleep.
pub(crate) type Job = Pin<Box<dyn Future<Output = ()>>>;

/// A runtime that drives a thread in place of the system's.
pub(crate) trait EnteredRuntime: Any {
    fn clock(&self) -> &SimClock;

    /// A sleep that ends when the clock shows `due`.
    fn sleep_until(&self, due: Instant) -> Job;

    /// A generator of its own.
    fn random(&self) -> Random;

    /// Starts a task; returns its number.
    fn spawn(&self, job: Job) -> u64;

    /// Drops a task where it stands.
    fn stop(&self, task: u64);
}

thread_local! {
    static ENTERED: RefCell<Option<Rc<dyn EnteredRuntime>>> = const { RefCell::new(None) };
}

/// The runtime drives this thread from now on, until [`leave`].
///
/// # Panics
/// If another does.
pub(crate) fn enter(runtime: Rc<dyn EnteredRuntime>) {
    assert!(!is_simulated(), "block_on inside block_on: await the future instead");
    ENTERED.set(Some(runtime));
}

pub(crate) fn leave() {
    ENTERED.set(None);
}

pub(crate) fn entered() -> Option<Rc<dyn EnteredRuntime>> {
    ENTERED.with_borrow(Clone::clone)
}

pub(crate) fn is_simulated() -> bool {
    ENTERED.with_borrow(Option::is_some)
}

/// A generator of the runtime that the thread has entered; see [`crate::Runtime::random`].
pub fn random() -> Random {
    entered().map_or_else(Random::from_system, |runtime| runtime.random())
}

/// A started task of an entered runtime; dropping this lets it run on.
#[derive(Debug)]
pub(crate) struct EnteredTask<T> {
    number: u64,
    outcome: oneshot::Receiver<T>,
}

/// Starts a task if the thread has entered a runtime; else gives the future back.
pub(crate) fn try_spawn<T: 'static, F: Future<Output = T> + 'static>(
    future: F,
) -> Result<EnteredTask<T>, F> {
    let Some(runtime) = entered() else { return Err(future) };
    let (answer, outcome) = oneshot::channel();
    let number = runtime.spawn(Box::pin(async move {
        // Without a receiver the task was detached.
        let _ = answer.send(future.await);
    }));
    Ok(EnteredTask { number, outcome })
}

impl<T> EnteredTask<T> {
    /// Drops the task where it stands.
    pub(crate) fn stop(self) {
        if let Some(runtime) = entered() {
            runtime.stop(self.number);
        }
    }

    /// `None` if it panicked, or was dropped with the runtime.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<T>> {
        Pin::new(&mut self.outcome).poll(context).map(Result::ok)
    }
}
