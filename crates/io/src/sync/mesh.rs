//! Hand-over between shards: a job goes to the thread that owns what it needs, its answer comes back.
//!
//! 1. Each thread has one bounded inbox. `Mesh::on` puts a job in and awaits its answer.
//! 2. `Inbox::serve` runs each job as far as it gets at once, and the rest of it as a task of its own, so that one that awaits the
//!    device holds up nobody.
//! 3. A full inbox makes the sender wait: work in flight is bounded. A shard must therefore never await `on` itself.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use futures_channel::{mpsc, oneshot};
use futures_util::{SinkExt, StreamExt};

use crate::runtime::task::{start, yield_now};

/// Jobs of others that are run before the thread's own tasks have their turn.
const TURN: u32 = 16;

type Job<S> = Box<dyn FnOnce(Rc<S>) -> Pin<Box<dyn Future<Output = ()>>> + Send>;

/// The thread has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the shard has stopped")]
pub struct Gone;

/// Senders to every thread; a clone for each thread.
pub struct Mesh<S>(Vec<mpsc::Sender<Job<S>>>);

impl<S> Clone for Mesh<S> {
    fn clone(&self) -> Mesh<S> {
        Mesh(self.0.clone())
    }
}

/// What one thread receives.
pub struct Inbox<S>(mpsc::Receiver<Job<S>>);

impl<S: 'static> Mesh<S> {
    /// A mesh of `threads` inboxes with room for `capacity` jobs each (and one more per sender).
    pub fn new(threads: usize, capacity: usize) -> (Mesh<S>, Vec<Inbox<S>>) {
        let (senders, inboxes) = (0..threads)
            .map(|_| {
                let (sender, receiver) = mpsc::channel(capacity);
                (sender, Inbox(receiver))
            })
            .unzip();
        (Mesh(senders), inboxes)
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Runs `job` on another thread, with that thread's state, and returns its answer.
    pub async fn on<R, F>(
        &self,
        thread: usize,
        job: impl FnOnce(Rc<S>) -> F + Send + 'static,
    ) -> Result<R, Gone>
    where
        R: Send + 'static,
        F: Future<Output = R> + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let job: Job<S> = Box::new(move |state| {
            Box::pin(async move {
                // Nobody waits for the answer any more: nothing to do.
                let _ = answer.send(job(state).await);
            })
        });
        let mut sender = self.0.get(thread).ok_or(Gone)?.clone();
        sender.send(job).await.map_err(|_| Gone)?;
        answered.await.map_err(|_| Gone)
    }
}

impl<S: 'static> Inbox<S> {
    /// Serves until all senders are gone.
    pub async fn serve(mut self, state: Rc<S>) {
        let mut served = 0u32;
        while let Some(job) = self.0.next().await {
            start(job(state.clone()));
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
    use crate::{ThreadPriority, block_on, spawn_thread};

    /// Proves that a job runs on its thread with that thread's state, and that the answer wakes the sender.
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
            assert_eq!(mesh.on(2, |_| async {}).await, Err(Gone));
        });
        drop(mesh);
        for thread in threads {
            thread.join().expect("ends when the senders are gone");
        }
    }
}
