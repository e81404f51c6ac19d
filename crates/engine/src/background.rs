//! Background threads: they write memtables and delete replaced files.
//!
//! Each thread takes one job after the other. On a simulated runtime a thread is a task.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use futures_channel::mpsc::{UnboundedSender, unbounded};
use futures_channel::oneshot;
use futures_util::StreamExt;
use halcyon_io::{JobLost, Runtime, ThreadPriority, contained, panic_point};

pub(crate) type Job = Box<dyn FnOnce() -> Pin<Box<dyn Future<Output = ()>>> + Send>;

pub(crate) struct Background {
    /// One queue for each thread.
    queues: Vec<UnboundedSender<Job>>,
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
            let (sender, mut jobs) = unbounded::<Job>();
            let waiting = waiting.clone();
            let body = move || async move {
                while let Some(job) = jobs.next().await {
                    waiting.fetch_sub(1, Relaxed);
                    // The dropped sender tells the waiter of a panic.
                    contained(async {
                        panic_point("a background job");
                        job().await;
                    })
                    .await;
                }
            };
            // It ends when its queue is dropped.
            runtime.spawn_thread(&format!("{name}-{index}"), priority, body).detach();
            sender
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
        job: impl FnOnce() -> F + Send + 'static,
    ) -> Result<R, JobLost>
    where
        R: Send + 'static,
        F: Future<Output = R> + 'static,
    {
        let (answer, answered) = oneshot::channel();
        self.send(Box::new(move || {
            Box::pin(async move {
                let _ = answer.send(job().await);
            })
        }));
        answered.await.map_err(|_| JobLost)
    }

    /// Runs a job some time.
    pub(crate) fn later<F>(&self, job: impl FnOnce() -> F + Send + 'static)
    where
        F: Future<Output = ()> + 'static,
    {
        self.send(Box::new(move || Box::pin(job())));
    }

    /// Returns when all jobs of before are done.
    pub(crate) async fn catch_up(&self) {
        for queue in &self.queues {
            let (answer, answered) = oneshot::channel();
            let job: Job = Box::new(move || {
                Box::pin(async move {
                    let _ = answer.send(());
                })
            });
            if self.put(queue, job) {
                let _ = answered.await;
            }
        }
    }

    fn send(&self, job: Job) {
        let at = self.next.fetch_add(1, Relaxed) % self.queues.len().max(1);
        if let Some(queue) = self.queues.get(at) {
            self.put(queue, job);
        }
    }

    fn put(&self, queue: &UnboundedSender<Job>, job: Job) -> bool {
        self.waiting.fetch_add(1, Relaxed);
        queue.unbounded_send(job).is_ok()
    }
}
