//! Background threads: they flush memtables, compact, and delete obsolete files.
//!
//! Each thread has a runtime of its own and takes one job after the other. On a simulated disk there are none: a job runs
//! where it is asked for, so that the same seed gives the same history.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};

use futures_channel::oneshot;
use halcyon_io::{Gone, ThreadPriority, block_on, spawn_thread};

type Job = Box<dyn FnOnce() -> Pin<Box<dyn Future<Output = ()>>> + Send>;

pub(crate) struct Background {
    /// One queue per thread.
    queues: Vec<Sender<Job>>,
    next: AtomicUsize,
    /// Without threads: what is to be done at the next occasion.
    deferred: Mutex<Vec<Job>>,
}

impl Background {
    pub(crate) fn threads(name: &str, count: usize, priority: ThreadPriority) -> Background {
        let start = |index: usize| {
            let (sender, receiver) = channel::<Job>();
            let thread = spawn_thread(&format!("{name}-{index}"), priority, move || {
                while let Ok(job) = receiver.recv() {
                    block_on(job());
                }
            });
            // The thread ends when its queue is dropped.
            drop(thread);
            sender
        };
        Background {
            queues: (0..count.max(1)).map(start).collect(),
            next: AtomicUsize::new(0),
            deferred: Mutex::default(),
        }
    }

    /// Everything in place.
    pub(crate) fn none() -> Background {
        Background { queues: Vec::new(), next: AtomicUsize::new(0), deferred: Mutex::default() }
    }

    /// Runs a job to its end, even if the caller's future is dropped.
    pub(crate) async fn run<R, F>(
        &self,
        job: impl FnOnce() -> F + Send + 'static,
    ) -> Result<R, Gone>
    where
        R: Send + 'static,
        F: Future<Output = R> + 'static,
    {
        if self.queues.is_empty() {
            return Ok(job().await);
        }
        let (answer, answered) = oneshot::channel();
        self.send(Box::new(move || {
            Box::pin(async move {
                let _ = answer.send(job().await);
            })
        }));
        answered.await.map_err(|_| Gone)
    }

    /// Does a job some time.
    pub(crate) fn later<F>(&self, job: impl FnOnce() -> F + Send + 'static)
    where
        F: Future<Output = ()> + 'static,
    {
        let job: Job = Box::new(move || Box::pin(job()));
        if self.queues.is_empty() {
            self.deferred.lock().unwrap_or_else(PoisonError::into_inner).push(job);
        } else {
            self.send(job);
        }
    }

    /// Returns when everything that was asked for until now is done.
    pub(crate) async fn catch_up(&self) {
        for queue in &self.queues {
            let (answer, answered) = oneshot::channel();
            let job: Job = Box::new(move || {
                Box::pin(async move {
                    let _ = answer.send(());
                })
            });
            if queue.send(job).is_ok() {
                let _ = answered.await;
            }
        }
        loop {
            let jobs =
                std::mem::take(&mut *self.deferred.lock().unwrap_or_else(PoisonError::into_inner));
            if jobs.is_empty() {
                return;
            }
            for job in jobs {
                job().await;
            }
        }
    }

    fn send(&self, job: Job) {
        let at = self.next.fetch_add(1, Relaxed) % self.queues.len().max(1);
        if let Some(queue) = self.queues.get(at) {
            // A thread ends only by a panic, which the job's caller learns from the dropped answer.
            let _ = queue.send(job);
        }
    }
}
