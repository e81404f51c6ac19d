//! The queue of the compaction threads, and their number.
//!
//! 1. Tables with changed SSTables are queued, each once; what lacks an index and what an operator has requested goes first.
//! 2. Adding to the queue wakes the control thread, which starts threads while fewer than `concurrent_compactors` run.
//! 3. A thread takes from the queue until it is empty or there are too many threads; then it ends.
//!
//! The queue has what is to be done and not the code that does it. So the queue needs no service, and every service may add to it.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use futures_channel::oneshot;
use halcyon_compaction::Outcome;
use halcyon_io::Mutex;

use super::selection::Selection;
use crate::Result;
use crate::tables::store::Store;

pub(crate) enum Work {
    /// Let the table's strategy pick a task.
    Pick(Arc<Store>),
    /// Build the indexes that SSTables of the table lack.
    Indexes(Arc<Store>),
    Requested(Request),
}

/// A compaction that an operator has requested.
pub(crate) struct Request {
    pub(super) store: Arc<Store>,
    pub(super) selection: Selection,
    /// Where its outcome goes; `None`: to the list of major compactions.
    pub(super) answer: Option<oneshot::Sender<Result<Vec<Outcome>>>>,
}

pub(crate) struct Schedule {
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
pub(crate) struct Slot(Arc<Schedule>);

impl Schedule {
    /// The receiver wakes the control thread.
    pub(crate) fn new(limit: usize) -> (Arc<Schedule>, UnboundedReceiver<()>) {
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

    pub(crate) fn wake(&self) {
        // An error means that the control thread has ended, and with it all compaction.
        let _ = self.wake.unbounded_send(());
    }

    /// Queues a pick for a table whose SSTables have changed.
    pub(crate) fn consider(&self, store: &Arc<Store>) {
        self.queue(
            Work::Pick(store.clone()),
            |work| matches!(work, Work::Pick(due) if due.id == store.id),
        );
    }

    /// Queues the builds of what SSTables of a table lack of its indexes.
    pub(crate) fn complete_indexes(&self, store: &Arc<Store>) {
        self.queue(
            Work::Indexes(store.clone()),
            |work| matches!(work, Work::Indexes(due) if due.id == store.id),
        );
    }

    /// Queues a compaction on request. Where nothing begins any more, its answer is dropped.
    pub(super) fn request(&self, request: Request) {
        self.queue(Work::Requested(request), |_| false);
    }

    /// Queues work unless it is known, before all picks if it is not one itself.
    fn queue(&self, work: Work, is_known: impl Fn(&Work) -> bool) {
        let is_pick = |work: &Work| matches!(work, Work::Pick(_));
        let mut state = self.state.lock();
        if state.stopped || state.due.iter().any(is_known) {
            return;
        }
        let before = state.due.iter().take_while(|work| !is_pick(work)).count();
        let at = if is_pick(&work) { state.due.len() } else { before };
        state.due.insert(at, work);
        drop(state);
        self.wake();
    }

    /// One for each thread that is to be started now.
    pub(crate) fn slots(self: &Arc<Self>) -> Vec<Slot> {
        let mut state = self.state.lock();
        let count = state.limit.saturating_sub(state.working).min(state.due.len());
        state.working += count;
        (0..count).map(|_| Slot(self.clone())).collect()
    }

    pub(crate) fn limit(&self) -> usize {
        self.state.lock().limit
    }

    /// Excess threads end after their current task.
    pub(crate) fn set_limit(&self, limit: usize) {
        self.state.lock().limit = limit.max(1);
        self.wake();
    }

    /// Tables and requests that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.state.lock().due.len()
    }

    pub(crate) fn is_working(&self) -> bool {
        self.state.lock().working > 0
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.state.lock().stopped
    }

    /// Nothing begins any more.
    pub(crate) fn stop(&self) {
        let mut state = self.state.lock();
        state.stopped = true;
        let due = std::mem::take(&mut state.due);
        drop(state);
        drop(due);
        self.wake();
    }

    /// Returns when no thread works.
    pub(crate) async fn until_idle(&self) {
        loop {
            let idle = {
                let mut state = self.state.lock();
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
    pub(crate) fn next(&self) -> Option<Work> {
        let mut state = self.0.state.lock();
        if state.working > state.limit { None } else { state.due.pop_front() }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
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
    use crate::definition::Definition;

    fn store() -> Arc<Store> {
        let system = halcyon_schema::system_tables();
        let table = system.table("system", "local").expect("known").clone();
        Store::new(Definition::of(table, &system), Vec::new(), 1)
    }

    fn request(schedule: &Schedule) {
        let selection = Selection::Whole { split_output: false };
        schedule.request(Request { store: store(), selection, answer: None });
    }

    /// Proves that there are never more threads than the limit, whenever it changes, and that what is due wakes the listener.
    #[test]
    fn threads_up_to_the_limit() {
        let (schedule, mut woken) = Schedule::new(2);
        (0..5).for_each(|_| request(&schedule));
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
        request(&schedule);
        assert!(slots.iter().all(|slot| slot.next().is_none()) && schedule.waiting() == 0);
    }

    /// Proves that a table is queued once for each kind of work, and that only picks wait for what is not one.
    #[test]
    fn picks_go_last() {
        let (schedule, _woken) = Schedule::new(1);
        let table = store();
        (0..2).for_each(|_| schedule.consider(&table));
        (0..2).for_each(|_| schedule.complete_indexes(&table));
        request(&schedule);
        let slots = schedule.slots();
        let order: Vec<Work> = std::iter::from_fn(|| slots.first()?.next()).collect();
        assert!(matches!(order[..], [Work::Indexes(_), Work::Requested(_), Work::Pick(_)]));
    }
}
