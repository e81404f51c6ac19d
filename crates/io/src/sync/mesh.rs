//! Hand-over between shards: a job goes to the thread that owns what it needs, its answer comes back.
//!
//! 1. Each thread has one mailbox. `Mesh::on` puts a job in and awaits its answer.
//! 2. `Inbox::serve` polls each job once when it arrives, and makes the rest of it a task: a job that awaits the device delays no
//!    other job.
//! 3. Work is bounded where it begins: for each mesh, a thread has at most `bound` hand-overs whose answers it awaits; the next one waits
//!    until an answer is there. A mailbox therefore never has more than `bound` jobs of each other thread, queued and running together.
//! 4. A hand-over from inside a job is not counted: it belongs to the hand-over that carries the job. So one that holds a
//!    permit never waits for another permit, and threads whose jobs call each other at the bound cannot wait for each other in a ring.
//!    A task that a job *spawns* counts again: a job must not await such a task if the task hands over.
//!
//! The bound is at the sender and not at the receiver, because the sender's count needs no shared cache line, and a full receiver
//! that its own jobs
//! wait for would never empty.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use futures_channel::{mpsc, oneshot};
use futures_util::StreamExt;
use futures_util::future::join_all;

use super::semaphore::{Permit, Semaphore};
use crate::runtime::panics::panic_point;
use crate::runtime::task::start;
use crate::runtime::yield_now::yield_now;

/// Jobs of others that are run before the thread's own tasks have their turn.
const TURN: u32 = 16;

type Job<S> = Box<dyn FnOnce(Rc<S>) -> Pin<Box<dyn Future<Output = ()>>> + Send>;

/// The job is not done: the thread has ended, or a panic has ended the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an internal error has stopped it; the log of the node has more")]
pub struct JobLost;

/// Senders to every thread; a clone for each thread.
pub struct Mesh<S> {
    id: u64,
    bound: usize,
    mailboxes: Vec<mpsc::UnboundedSender<Job<S>>>,
}

impl<S> Clone for Mesh<S> {
    fn clone(&self) -> Mesh<S> {
        Mesh { id: self.id, bound: self.bound, mailboxes: self.mailboxes.clone() }
    }
}

/// What one thread receives.
pub struct Inbox<S>(mpsc::UnboundedReceiver<Job<S>>);

thread_local! {
    /// The thread's hand-overs, for each mesh that it has used.
    static HAND_OVERS: RefCell<Vec<(u64, Rc<Semaphore>)>> = const { RefCell::new(Vec::new()) };
    static INSIDE_JOB: Cell<bool> = const { Cell::new(false) };
}

/// Polls a job's future so that what it hands over is known to be the job's.
async fn as_job(mut job: Pin<Box<dyn Future<Output = ()>>>) {
    struct Outside(bool);
    impl Drop for Outside {
        fn drop(&mut self) {
            INSIDE_JOB.set(self.0);
        }
    }
    poll_fn(|context| {
        let _outside = Outside(INSIDE_JOB.replace(true));
        job.as_mut().poll(context)
    })
    .await;
}

impl<S: 'static> Mesh<S> {
    /// A mesh between `threads` threads, each with at most `bound` hand-overs under way.
    pub fn new(threads: usize, bound: usize) -> (Mesh<S>, Vec<Inbox<S>>) {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let (mailboxes, inboxes) = (0..threads)
            .map(|_| {
                let (sender, receiver) = mpsc::unbounded();
                (sender, Inbox(receiver))
            })
            .unzip();
        (Mesh { id: NEXT.fetch_add(1, Relaxed), bound: bound.max(1), mailboxes }, inboxes)
    }

    pub fn len(&self) -> usize {
        self.mailboxes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.mailboxes.is_empty()
    }

    async fn permit(&self) -> Option<Permit> {
        if INSIDE_JOB.get() {
            return None;
        }
        let semaphore = HAND_OVERS.with_borrow_mut(|known| {
            if let Some((_, semaphore)) = known.iter().find(|(id, _)| *id == self.id) {
                return semaphore.clone();
            }
            let semaphore = Semaphore::of(self.bound);
            known.push((self.id, semaphore.clone()));
            semaphore
        });
        Some(semaphore.acquire().await)
    }

    /// Runs `job` on another thread, with that thread's state, and returns its answer.
    pub async fn on<R, F>(
        &self,
        thread: usize,
        job: impl FnOnce(Rc<S>) -> F + Send + 'static,
    ) -> Result<R, JobLost>
    where
        R: Send + 'static,
        F: Future<Output = R> + 'static,
    {
        let _permit = self.permit().await;
        self.on_urgent(thread, job).await
    }

    /// The same at once, however many hand-overs are under way: for what those may wait for.
    pub async fn on_urgent<R, F>(
        &self,
        thread: usize,
        job: impl FnOnce(Rc<S>) -> F + Send + 'static,
    ) -> Result<R, JobLost>
    where
        R: Send + 'static,
        F: Future<Output = R> + 'static,
    {
        let mailbox = self.mailboxes.get(thread).ok_or(JobLost)?;
        let (answer, answered) = oneshot::channel();
        let job: Job<S> = Box::new(move |state| {
            Box::pin(async move {
                panic_point("a job for another shard");
                // The caller may have dropped its future: then there is nothing to answer.
                let _ = answer.send(job(state).await);
            })
        });
        mailbox.unbounded_send(job).map_err(|_| JobLost)?;
        answered.await.map_err(|_| JobLost)
    }

    /// Runs `job` on every thread at once, one hand-over each; the answers are in the order of the threads. Every job runs to its end,
    /// whatever becomes of the others.
    pub async fn on_each<R, F>(
        &self,
        job: impl Fn(Rc<S>) -> F + Clone + Send + 'static,
    ) -> Vec<Result<R, JobLost>>
    where
        R: Send + 'static,
        F: Future<Output = R> + 'static,
    {
        join_all((0..self.len()).map(|thread| self.on(thread, job.clone()))).await
    }
}

impl<S: 'static> Mesh<S> {
    /// Has `job` run on a thread, without waiting for it; not counted, so for what is rare. A thread that has ended does not run it.
    pub fn post(&self, thread: usize, job: impl FnOnce(Rc<S>) + Send + 'static) {
        let job: Job<S> = Box::new(move |state| Box::pin(async move { job(state) }));
        if let Some(mailbox) = self.mailboxes.get(thread) {
            let _ = mailbox.unbounded_send(job);
        }
    }
}

impl<S: 'static> Inbox<S> {
    /// Serves until all senders are dropped.
    pub async fn serve(mut self, state: Rc<S>) {
        let mut served = 0u32;
        while let Some(job) = self.0.next().await {
            start(Box::pin(as_job(job(state.clone()))));
            served = served.wrapping_add(1);
            if served.is_multiple_of(TURN) {
                yield_now().await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Clock, ThreadPriority, block_on, spawn_thread};

    /// Proves that a job runs on its thread with that thread's state, that the answer wakes the sender, and that the answers of a job for
    /// each thread are in their order.
    #[test]
    fn jobs_go_to_their_thread_and_back() {
        let (mesh, inboxes) = Mesh::<usize>::new(2, 4);
        let threads: Vec<_> = inboxes
            .into_iter()
            .enumerate()
            .map(|(index, inbox)| {
                spawn_thread("shard", ThreadPriority::Normal, move || {
                    block_on(inbox.serve(Rc::new(index)));
                })
            })
            .collect();
        block_on(async {
            for round in 0..1000 {
                let thread = round % 2;
                let answer =
                    mesh.on(thread, move |state| async move { *state * 10_000 + round }).await;
                assert_eq!(answer, Ok(thread * 10_000 + round));
            }
            assert_eq!(mesh.on_each(|state| async move { *state }).await, [Ok(0), Ok(1)]);
            assert_eq!(mesh.on(2, |_| async {}).await, Err(JobLost));
        });
        drop(mesh);
        for thread in threads {
            thread.join().expect("ends when the senders are dropped");
        }
    }

    struct Side {
        index: usize,
        mesh: Mesh<Side>,
        running: Cell<usize>,
        most: Rc<Cell<usize>>,
    }

    /// A job that calls the other thread back, `depth` times.
    fn back_and_forth(side: Rc<Side>, depth: usize) -> Pin<Box<dyn Future<Output = usize>>> {
        Box::pin(async move {
            side.running.set(side.running.get() + 1);
            side.most.set(side.most.get().max(side.running.get()));
            yield_now().await;
            let below = match depth {
                0 => 0,
                _ => side
                    .mesh
                    .on(1 - side.index, move |side| back_and_forth(side, depth - 1))
                    .await
                    .expect("serves"),
            };
            side.running.set(side.running.get() - 1);
            below + 1
        })
    }

    /// Proves that two threads whose jobs call each other, each at its bound, end; and that the jobs of one thread at another stay
    /// within the bound, times the depth of the calls.
    #[test]
    fn the_bound_holds_and_cannot_deadlock() {
        const BOUND: usize = 4;
        const DEPTH: usize = 5;
        let done = std::sync::Arc::new(AtomicU64::new(0));
        let (mesh, inboxes) = Mesh::<Side>::new(2, BOUND);
        let threads: Vec<_> = inboxes
            .into_iter()
            .enumerate()
            .map(|(index, inbox)| {
                let (mesh, done) = (mesh.clone(), done.clone());
                spawn_thread("shard", ThreadPriority::Normal, move || {
                    block_on(async move {
                        let most = Rc::new(Cell::new(0));
                        let side = Rc::new(Side {
                            index,
                            mesh: mesh.clone(),
                            running: Cell::new(0),
                            most: most.clone(),
                        });
                        crate::spawn(inbox.serve(side)).detach();
                        let calls = (0..200)
                            .map(|_| mesh.on(1 - index, |side| back_and_forth(side, DEPTH)));
                        let answers = join_all(calls).await;
                        assert!(answers.iter().all(|answer| *answer == Ok(DEPTH + 1)));
                        // The other thread may still call this one.
                        done.fetch_add(1, Relaxed);
                        while done.load(Relaxed) < 2 {
                            Clock::system().sleep(std::time::Duration::from_millis(1)).await;
                        }
                        most.get()
                    })
                })
            })
            .collect();
        drop(mesh);
        for thread in threads {
            let most = thread.join().expect("ends");
            assert!((1..=BOUND * (DEPTH + 1)).contains(&most), "{most}");
        }
    }
}
