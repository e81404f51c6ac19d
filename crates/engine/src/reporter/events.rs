//! Events for the operator's log, queued until the server takes them: the engine prints nothing itself.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use halcyon_io::Mutex;
use halcyon_io::clock::Instant;

/// Events beyond this are dropped: the server takes them every second, so more means that it has stopped.
const QUEUED_MAX: usize = 1000;
/// A repeated warning is reported once in this time.
const REPEAT_AFTER: Duration = Duration::from_secs(60);

/// A line for the operator's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub is_warning: bool,
    /// Worse than a warning.
    pub is_error: bool,
    pub text: String,
}

impl Event {
    pub(crate) fn info(text: String) -> Event {
        Event { is_warning: false, is_error: false, text }
    }

    pub(crate) fn warning(text: String) -> Event {
        Event { is_warning: true, is_error: false, text }
    }

    pub(crate) fn error(text: String) -> Event {
        Event { is_warning: true, is_error: true, text }
    }
}

#[derive(Default)]
pub(super) struct Events(Mutex<Queue>);

#[derive(Default)]
struct Queue {
    queue: VecDeque<Event>,
    /// When each kind of warning was reported last: a failing disk repeats itself.
    last: HashMap<&'static str, Instant>,
}

impl Events {
    pub(super) fn push(&self, event: Event) {
        self.0.lock().push(event);
    }

    /// Queues a warning unless one of the same kind was queued during the last minute.
    pub(super) fn warn_once(&self, kind: &'static str, text: String, now: Instant) {
        let mut state = self.0.lock();
        let last = state.last.get(kind);
        if last.is_none_or(|last| now.saturating_since(*last) > REPEAT_AFTER) {
            state.last.insert(kind, now);
            state.push(Event::warning(text));
        }
    }

    /// Those since the last call, oldest first.
    pub(super) fn take(&self) -> Vec<Event> {
        self.0.lock().queue.drain(..).collect()
    }
}

impl Queue {
    fn push(&mut self, event: Event) {
        if self.queue.len() < QUEUED_MAX {
            self.queue.push_back(event);
        }
    }
}
