//! Events for the operator's log, queued until the server takes them: the engine prints nothing itself.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use halcyon_io::clock::Instant;

use crate::engine::Engine;

/// Events beyond this are dropped: the server takes them every second, so more means that it has stopped.
const QUEUED_MAX: usize = 1000;
/// A repeated warning is reported once in this time.
const REPEAT_AFTER: Duration = Duration::from_secs(60);

/// A line for the operator's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub is_warning: bool,
    pub text: String,
}

impl Event {
    pub(crate) fn info(text: String) -> Event {
        Event { is_warning: false, text }
    }

    pub(crate) fn warning(text: String) -> Event {
        Event { is_warning: true, text }
    }
}

#[derive(Default)]
pub(crate) struct Events(Mutex<Queue>);

#[derive(Default)]
struct Queue {
    queue: VecDeque<Event>,
    /// When each kind of warning was reported last: a failing disk repeats itself.
    last: HashMap<&'static str, Instant>,
}

impl Events {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn push(&mut self, event: Event) {
        if self.queue.len() < QUEUED_MAX {
            self.queue.push_back(event);
        }
    }
}

impl Engine {
    pub(crate) fn report(&self, event: Event) {
        self.events.lock().push(event);
    }

    /// Reports a warning unless one of the same kind was reported during the last minute.
    pub fn warn_once(&self, kind: &'static str, text: String) {
        let now = self.disk.clock().now();
        let mut state = self.events.lock();
        let last = state.last.get(kind);
        if last.is_none_or(|last| now.saturating_since(*last) > REPEAT_AFTER) {
            state.last.insert(kind, now);
            state.push(Event::warning(text));
        }
    }

    /// The events since the last call, oldest first.
    pub fn take_events(&self) -> Vec<Event> {
        self.events.lock().queue.drain(..).collect()
    }
}
