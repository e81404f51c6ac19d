//! The queue of the compaction threads, and their number.
//!
//! 1. Tables with changed SSTables are queued, each once; requested compactions go first.
//! 2. Adding to the queue wakes the control thread, which starts threads while fewer than `concurrent_compactors` run.
//! 3. A thread takes from the queue until it is empty or there are too many threads; then it ends.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use futures_channel::oneshot;

use crate::engine::Engine;
use crate::store::Store;

pub(crate) type Job = Box<dyn FnOnce(Arc<Engine>) -> Pin<Box<dyn Future<Output = ()>>> + Send>;

pub(super) enum Work {
    /// Let the table's strategy pick a task.
    Look(Arc<Store>),
    Job(Job),
}

pub(super) struct Schedule {
    state: Mutex<WorkQueue>,
    wake: UnboundedSender<()>,
}

struct WorkQueue {
    due: VecDeque<Work>,
    working: usize,
    /// `concurrent_compactors`
    limit: usize,
    stopped: bool,
    waiting: Vec<oneshot::Sender<()>>,
}

/// The right to be one of the compaction threads.
pub(super) struct Slot(Arc<Schedule>);

impl Schedule {
    /// The receiver wakes the control thread.
    pub(super) fn new(limit: usize) -> (Arc<Schedule>, UnboundedReceiver<()>) {
        let (wake, woken) = unbounded();
        let state = WorkQueue {
            due: VecDeque::new(),
            working: 0,
            limit,
            stopped: false,
            waiting: Vec::new(),
        };
        (Arc::new(Schedule { state: Mutex::new(state), wake }), woken)
    }

    fn lock(&self) -> MutexGuard<'_, WorkQueue> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn wake(&self) {
        // An error means that the control thread has ended, and with it all compaction.
        let _ = self.wake.unbounded_send(());
    }

    pub(super) fn look_at(&self, store: &Arc<Store>) {
        let mut state = self.lock();
        let known = |work: &Work| matches!(work, Work::Look(due) if due.id == store.id);
        if !state.stopped && !state.due.iter().any(known) {
            state.due.push_back(Work::Look(store.clone()));
            drop(state);
            self.wake();
        }
    }

    pub(super) fn add(&self, job: Job) {
        let mut state = self.lock();
        if !state.stopped {
            let behind = state.due.iter().take_while(|work| matches!(work, Work::Job(_))).count();
            state.due.insert(behind, Work::Job(job));
            drop(state);
            self.wake();
        }
    }

    /// One for each thread that is to be started now.
    pub(super) fn slots(self: &Arc<Self>) -> Vec<Slot> {
        let mut state = self.lock();
        let count = state.limit.saturating_sub(state.working).min(state.due.len());
        state.working += count;
        (0..count).map(|_| Slot(self.clone())).collect()
    }

    pub(super) fn limit(&self) -> usize {
        self.lock().limit
    }

    /// Excess threads end after their current task.
    pub(super) fn set_limit(&self, limit: usize) {
        self.lock().limit = limit.max(1);
        self.wake();
    }

    /// Tables and jobs that wait.
    pub(super) fn waiting(&self) -> usize {
        self.lock().due.len()
    }

    pub(super) fn is_working(&self) -> bool {
        self.lock().working > 0
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.lock().stopped
    }

    /// Nothing begins any more.
    pub(super) fn stop(&self) {
        let mut state = self.lock();
        state.stopped = true;
        let due = std::mem::take(&mut state.due);
        drop(state);
        drop(due);
        self.wake();
    }

    /// Returns when no thread works.
    pub(super) async fn until_idle(&self) {
        loop {
            let idle = {
                let mut state = self.lock();
                if state.working == 0 {
                    return;
                }
                let (sender, receiver) = oneshot::channel();
                state.waiting.push(sender);
                receiver
            };
            let _ = idle.await;
        }
    }
}

impl Slot {
    /// What to do next; `None`: end.
    pub(super) fn next(&self) -> Option<Work> {
        let mut state = self.0.lock();
        if state.working > state.limit { None } else { state.due.pop_front() }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.working -= 1;
        for waiting in state.waiting.drain(..) {
            let _ = waiting.send(());
        }
        let more = !state.due.is_empty();
        drop(state);
        if more {
            self.0.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt, StreamExt};

    use super::*;

    fn job() -> Job {
        Box::new(|_| Box::pin(async {}))
    }

    /// Proves that there are never more threads than the limit, whenever it changes, and that what is due wakes the listener.
    #[test]
    fn threads_up_to_the_limit() {
        let (schedule, mut woken) = Schedule::new(2);
        (0..5).for_each(|_| schedule.add(job()));
        assert_eq!(std::iter::from_fn(|| woken.next().now_or_never().flatten()).count(), 5);
        let mut slots = schedule.slots();
        assert_eq!((slots.len(), schedule.slots().len()), (2, 0));
        assert!(slots.iter().all(|slot| slot.next().is_some()));
        schedule.set_limit(1);
        assert!(slots.iter().all(|slot| slot.next().is_none()));
        slots.pop();
        assert_eq!((schedule.slots().len(), schedule.waiting()), (0, 3));
        schedule.set_limit(3);
        slots.extend(schedule.slots());
        assert_eq!(slots.len(), 3);
        schedule.stop();
        schedule.add(job());
        assert!(slots.iter().all(|slot| slot.next().is_none()) && schedule.waiting() == 0);
    }
}
