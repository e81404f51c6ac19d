//! Background threads: they write memtables and delete replaced files.
//!
//! Each thread takes one job after the other, and beside it some brief ones at once: they wait for the device most of their time. On a
//! simulated runtime a thread is a task.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use futures_channel::mpsc::{UnboundedSender, unbounded};
use futures_channel::oneshot;
use futures_util::future::join;
use futures_util::{FutureExt, StreamExt};
use halcyon_io::{JobLost, Runtime, ThreadPriority, contained, panic_point};

pub(crate) type Job = Box<dyn FnOnce() -> Pin<Box<dyn Future<Output = ()>>> + Send>;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum JobKind {
    /// One after the other.
    Long,
    /// Beside others.
    Brief,
}

/// Brief jobs of one thread: each may have buffers for a file of every kind.
const BRIEF_AT_ONCE: usize = 8;

/// Of one thread.
struct Queues {
    in_turn: UnboundedSender<Job>,
    brief: UnboundedSender<Job>,
}

pub(crate) struct Background {
    /// One for each thread.
    queues: Vec<Queues>,
    next: AtomicUsize,
    /// Jobs that have not begun.
    waiting: Arc<AtomicUsize>,
}

impl Background {
    pub(crate) fn start(
        runtime: &Runtime,
        name: &str,
        count: usize,
        priority: ThreadPriority,
    ) -> Background {
        let waiting = Arc::<AtomicUsize>::default();
        let start = |index: usize| {
            let ((in_turn, jobs), (brief, brief_jobs)) = (unbounded::<Job>(), unbounded::<Job>());
            let waiting = waiting.clone();
            let body = move || async move {
                let do_it = |job: Job| {
                    waiting.fetch_sub(1, Relaxed);
                    // The dropped sender tells the waiter of a panic.
                    let done = contained(async {
                        panic_point("a background job");
                        job().await;
                    });
                    done.map(drop)
                };
                let brief = brief_jobs.for_each_concurrent(BRIEF_AT_ONCE, do_it);
                join(jobs.for_each(do_it), brief).await;
            };
            // It ends when its queues are dropped.
            runtime.spawn_thread(&format!("{name}-{index}"), priority, body).detach();
            Queues { in_turn, brief }
        };
        let queues = (0..count.max(1)).map(start).collect();
        Background { queues, next: AtomicUsize::new(0), waiting }
    }

    /// How many jobs wait for a thread.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Relaxed)
    }

    /// Runs a job to its end, also if its caller does not wait for the answer any more.
    pub(crate) async fn run<R, F>(
        &self,
        kind: JobKind,
        job: impl FnOnce() -> F + Send + 'static,
    ) -> Result<R, JobLost>
    where
        R: Send + 'static,
        F: Future<Output = R> + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let job: Job = Box::new(move || {
            Box::pin(async move {
                let _ = answer.send(job().await);
            })
        });
        self.send(kind, job);
        answered.await.map_err(|_| JobLost)
    }

    /// Runs a job some time.
    pub(crate) fn later<F>(&self, job: impl FnOnce() -> F + Send + 'static)
    where
        F: Future<Output = ()> + 'static,
    {
        self.send(JobKind::Long, Box::new(move || Box::pin(job())));
    }

    /// Returns when all jobs of before are done, but for brief ones.
    pub(crate) async fn catch_up(&self) {
        for queue in &self.queues {
            let (answer, answered) = oneshot::channel();
            let job: Job = Box::new(move || {
                Box::pin(async move {
                    let _ = answer.send(());
                })
            });
            if self.put(&queue.in_turn, job) {
                let _ = answered.await;
            }
        }
    }

    fn send(&self, kind: JobKind, job: Job) {
        let at = self.next.fetch_add(1, Relaxed) % self.queues.len().max(1);
        let Some(queues) = self.queues.get(at) else { return };
        match kind {
            JobKind::Long => self.put(&queues.in_turn, job),
            JobKind::Brief => self.put(&queues.brief, job),
        };
    }

    fn put(&self, queue: &UnboundedSender<Job>, job: Job) -> bool {
        self.waiting.fetch_add(1, Relaxed);
        queue.unbounded_send(job).is_ok()
    }
}
