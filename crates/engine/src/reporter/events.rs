//! Events for the operator's log, queued until the server takes them: the engine prints nothing itself.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use halcyon_io::Mutex;
use halcyon_io::clock::Instant;

use super::event::Event;

/// Events beyond this are dropped: the server takes them every second, so more means that it has stopped.
const QUEUED_MAX: usize = 1000;
/// An event that repeats itself is reported once in this time.
const REPEAT_AFTER: Duration = Duration::from_secs(60);

#[derive(Default)]
pub(super) struct Events(Mutex<Queue>);

#[derive(Default)]
struct Queue {
    queue: VecDeque<Event>,
    /// When each kind of event was reported last: a failing disk repeats itself.
    last: HashMap<&'static str, Instant>,
}

impl Events {
    /// Queues an event, unless one of the same kind was queued during the last minute.
    pub(super) fn push(&self, event: Event, now: Instant) {
        let mut state = self.0.lock();
        if let Some(kind) = event.kind() {
            let last = state.last.get(kind);
            if last.is_some_and(|last| now.saturating_since(*last) <= REPEAT_AFTER) {
                return;
            }
            state.last.insert(kind, now);
        }
        if state.queue.len() < QUEUED_MAX {
            state.queue.push_back(event);
        }
    }

    /// Those since the last call, oldest first.
    pub(super) fn take(&self) -> Vec<Event> {
        self.0.lock().queue.drain(..).collect()
    }
}
