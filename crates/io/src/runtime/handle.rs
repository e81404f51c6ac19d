//! The handle to what runs code: time, randomness, threads. A real one, or one that a seed drives.
//!
//! 1. What starts threads, or lives longer than one request, holds a [`Runtime`]; a disk has the one that it belongs to.
//! 2. A thread that runs a runtime has *entered* it: `spawn`, `yield_now`, `clock::now`, `clock::sleep` and `random` mean that one. So
//!    what runs inside needs no handle for these, and does the same in production and under simulation.
//! 3. A simulated runtime has one thread. Its `spawn_thread` starts a task.

use std::future::Future;
use std::thread::JoinHandle;
use std::time::Duration;

use super::backend;
use super::clock::Clock;
use super::entered::{self, EnteredTask};
use super::random::Random;
use super::thread::{ThreadPriority, core_count, spawn_thread};
use crate::resources;
use crate::sim::SimRuntime;

const SIMULATED_CORES: usize = 4;

/// Clones are the same runtime.
#[derive(Debug, Clone)]
pub struct Runtime {
    clock: Clock,
    simulated: Option<SimRuntime>,
}

/// A started thread. Dropping this lets it run on.
#[derive(Debug)]
#[must_use = "join it, or say `detach`"]
pub struct Thread<T>(Kind<T>);

#[derive(Debug)]
enum Kind<T> {
    System { thread: JoinHandle<T>, ended: futures_channel::oneshot::Receiver<()> },
    Simulated(EnteredTask<T>),
}

impl Runtime {
    pub fn system() -> Runtime {
        Runtime { clock: Clock::system(), simulated: None }
    }

    pub fn simulated(simulation: &SimRuntime) -> Runtime {
        Runtime { clock: simulation.clock().clock(), simulated: Some(simulation.clone()) }
    }

    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Of the machine. A simulated runtime has the same on all machines: what a seed does depends on it.
    pub fn core_count(&self) -> usize {
        match &self.simulated {
            None => core_count(),
            Some(_) => SIMULATED_CORES,
        }
    }

    /// As `resources::processors_withheld`. A simulated machine withholds none.
    pub fn processors_withheld(&self) -> Duration {
        match &self.simulated {
            None => resources::processors_withheld(core_count()),
            Some(_) => Duration::ZERO,
        }
    }

    /// A generator of its own, seeded by the kernel or by the simulation.
    pub fn random(&self) -> Random {
        match &self.simulated {
            None => Random::from_system(),
            Some(simulation) => simulation.random(),
        }
    }

    /// Runs a future on the calling thread until it is done.
    ///
    /// # Panics
    /// Inside a runtime.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        match &self.simulated {
            None => backend::block_on(future),
            Some(simulation) => simulation.block_on(future),
        }
    }

    /// Starts a thread that runs a future to its end; see [`spawn_thread`] about its priority.
    ///
    /// # Panics
    /// If the system starts no more threads; on a simulated runtime, outside its `block_on`.
    pub fn spawn_thread<T, F>(
        &self,
        name: &str,
        priority: ThreadPriority,
        body: impl FnOnce() -> F + Send + 'static,
    ) -> Thread<T>
    where
        T: Send + 'static,
        F: Future<Output = T> + 'static,
    {
        if self.simulated.is_some() {
            return match entered::try_spawn(async move { body().await }) {
                Ok(task) => Thread(Kind::Simulated(task)),
                Err(_) => panic!("{name} was started outside its simulated runtime's block_on"),
            };
        }
        let (ends, ended) = futures_channel::oneshot::channel::<()>();
        let thread = spawn_thread(name, priority, move || {
            // Dropped at the end, by return or by panic.
            let _ends = ends;
            backend::block_on(body())
        });
        Thread(Kind::System { thread, ended })
    }
}

impl<T> Thread<T> {
    /// Lets it run on its own.
    pub fn detach(self) {
        drop(self);
    }

    /// Waits for its end. `None` if it panicked.
    pub async fn join(self) -> Option<T> {
        match self.0 {
            Kind::System { thread, ended } => {
                // An error is the end: the sender was dropped.
                let _ = ended.await;
                thread.join().ok()
            }
            Kind::Simulated(mut task) => std::future::poll_fn(|context| task.poll(context)).await,
        }
    }

    /// For destructors, which cannot await: does not return before the thread has ended. A simulated one, which cannot
    /// run meanwhile, is dropped where it stands.
    pub fn end(self) {
        match self.0 {
            Kind::System { thread, .. } => {
                // A caller that ends it this way does not want the outcome.
                let _ = thread.join();
            }
            Kind::Simulated(task) => task.stop(),
        }
    }
}
