//! Computations that would hold a thread of many tasks for long: threads of their own do them.
//!
//! 1. A thread takes one job after the other. [`compute`] has half as many threads as cores, one at least: an expensive request waits only
//!    for other expensive requests. Jobs that may take seconds have a [`Pool`] of their own.
//! 2. They are batch threads: they have a full share of the cores, but never preempt a thread that wakes up.
//! 3. A job cannot be interrupted. What could run for very long looks at the clock itself.
//! 4. On a simulated runtime a job is done by the task that asks, after other tasks have run.

use std::collections::VecDeque;
use std::sync::LazyLock;

use super::entered::is_simulated;
use super::panics::{caught, panic_point};
use super::thread::{ThreadPriority, core_count, spawn_thread};
use super::yield_now::yield_now;
use crate::JobLost;
use crate::sync::mutex::{Condvar, Mutex};

type Job = Box<dyn FnOnce() + Send>;

struct Queue {
    jobs: Mutex<VecDeque<Job>>,
    arrived: Condvar,
}

static COMPUTE: LazyLock<Pool> = LazyLock::new(|| Pool::start("compute", core_count().div_ceil(2)));

/// Threads that do jobs, for as long as the process runs.
#[derive(Clone, Copy)]
pub struct Pool(&'static Queue);

impl Pool {
    pub fn start(name: &str, threads: usize) -> Pool {
        let queue = Queue { jobs: Mutex::default(), arrived: Condvar::new() };
        let queue: &Queue = Box::leak(Box::new(queue));
        for index in 0..threads.max(1) {
            drop(spawn_thread(&format!("{name}-{index}"), ThreadPriority::Batch, || queue.work()));
        }
        Pool(queue)
    }

    /// Does a job on one of its threads; an error if it panicked. The job is done also if its caller has dropped the future.
    pub async fn run<T: Send + 'static>(
        self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, JobLost> {
        if is_simulated() {
            yield_now().await;
            return Ok(job());
        }
        let (answer, answered) = futures_channel::oneshot::channel();
        self.0.take(Box::new(move || {
            panic_point("a computation");
            drop(answer.send(job()));
        }));
        answered.await.map_err(|_| JobLost)
    }
}

impl Queue {
    fn take(&self, job: Job) {
        self.jobs.lock().push_back(job);
        self.arrived.notify_one();
    }

    fn work(&self) {
        loop {
            let mut jobs = self.jobs.lock();
            let job = loop {
                match jobs.pop_front() {
                    Some(job) => break job,
                    None => jobs = self.arrived.wait(jobs),
                }
            };
            drop(jobs);
            // Who waits for it learns of a panic by the dropped sender.
            let _ = caught(job);
        }
    }
}

/// Does a job on a thread for computations, as [`Pool::run`].
pub async fn compute<T: Send + 'static>(
    job: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JobLost> {
    COMPUTE.run(job).await
}

/// Drops what has very many parts, which takes its time too.
pub fn drop_apart<T: Send + 'static>(large: T) {
    match is_simulated() {
        true => drop(large),
        false => COMPUTE.0.take(Box::new(move || drop(large))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block_on;

    /// Proves that a job is done on another thread, and that one that panics is an error and the end of no thread.
    #[test]
    fn jobs_are_done_elsewhere() {
        block_on(async {
            let here = std::thread::current().id();
            for _ in 0..2 * core_count() {
                let failed: Result<(), JobLost> = compute(|| panic!("stays in it")).await;
                assert!(failed.is_err());
            }
            assert!(compute(move || std::thread::current().id() != here).await.unwrap());
        });
    }

    /// Proves that what is dropped apart is dropped by another thread.
    #[test]
    fn large_things_are_dropped_elsewhere() {
        struct Large(std::sync::mpsc::Sender<std::thread::ThreadId>);
        impl Drop for Large {
            fn drop(&mut self) {
                self.0.send(std::thread::current().id()).unwrap();
            }
        }
        let (dropped, by) = std::sync::mpsc::channel();
        drop_apart(Large(dropped));
        assert_ne!(by.recv().unwrap(), std::thread::current().id());
    }

    /// Proves that a simulation does it in its own order, without a thread.
    #[test]
    fn a_simulation_stays_on_its_thread() {
        let here = std::thread::current().id();
        let simulation = crate::SimRuntime::seeded(1);
        let same = simulation.block_on(async move {
            compute(move || std::thread::current().id() == here).await.unwrap()
        });
        assert!(same);
    }
}
