//! The requests of one shard that are executed now, for `system_views.queries`. What they ask is read from their messages when it is
//! looked at, so that a request costs an entry and no text.

use std::cell::RefCell;
use std::fmt::Write;
use std::rc::Rc;
use std::time::Duration;

use halcyon_io::clock::{Instant, now};
use halcyon_model::hex;
use halcyon_protocol::{BatchQuery, Envelope, Request};

use halcyon_query::password;

/// Letters of a task that are shown.
const SHOWN_MAX: usize = 10_000;

#[derive(Default)]
pub(crate) struct Running {
    places: RefCell<Places>,
}

#[derive(Default)]
struct Places {
    taken: Vec<Option<Task>>,
    free: Vec<usize>,
}

#[derive(Clone)]
struct Task {
    envelope: Rc<Envelope>,
    arrived: Instant,
    began: Instant,
}

/// A task at one time.
pub(crate) struct Shown {
    /// Which of the tasks that run at once.
    pub(crate) place: usize,
    pub(crate) queued: Duration,
    pub(crate) running: Duration,
    pub(crate) task: String,
}

impl Running {
    /// The task's place, which it leaves at its end.
    pub(crate) fn enter(&self, envelope: Rc<Envelope>, arrived: Instant, began: Instant) -> usize {
        let task = Some(Task { envelope, arrived, began });
        let mut places = self.places.borrow_mut();
        match places.free.pop() {
            Some(place) => {
                places.taken[place] = task;
                place
            }
            None => {
                places.taken.push(task);
                places.taken.len() - 1
            }
        }
    }

    pub(crate) fn leave(&self, place: usize) {
        let mut places = self.places.borrow_mut();
        places.taken[place] = None;
        places.free.push(place);
    }

    pub(crate) fn shown(&self) -> Vec<Shown> {
        let places = self.places.borrow();
        let tasks = places.taken.iter().enumerate();
        let shown = tasks.filter_map(|(place, task)| task.as_ref().map(|task| (place, task)));
        shown.map(|(place, task)| task.shown(place)).collect()
    }
}

impl Task {
    fn shown(&self, place: usize) -> Shown {
        let mut task = described(&self.envelope);
        if let Some((end, _)) = task.char_indices().nth(SHOWN_MAX) {
            task.truncate(end);
            task.push_str("...");
        }
        let (queued, running) = (self.began - self.arrived, now() - self.began);
        Shown { place, queued, running, task }
    }
}

/// In the words of Cassandra's messages (`QueryMessage.toString` and others).
fn described(envelope: &Envelope) -> String {
    let Ok(body) = Request::decode(envelope) else { return envelope.opcode.to_string() };
    match body.request {
        Request::Query { text, parameters } => format!(
            "QUERY {} [pageSize = {}] at consistency {}",
            password::hidden(text),
            parameters.page_size.unwrap_or(-1),
            parameters.consistency
        ),
        Request::Execute { id, parameters, .. } => format!(
            "EXECUTE {} with {} values at consistency {}",
            hex::encode(id),
            parameters.values.len(),
            parameters.consistency
        ),
        Request::Prepare { text, .. } => format!("PREPARE {}", password::hidden(text)),
        Request::Batch { entries, parameters, .. } => {
            let mut out = "BATCH of [".to_owned();
            for (index, (query, values)) in entries.iter().enumerate() {
                let query = match query {
                    BatchQuery::Text(text) => password::hidden(text),
                    BatchQuery::Prepared(id) => hex::encode(id).into(),
                };
                let comma = if index == 0 { "" } else { ", " };
                // Writing to a string cannot fail.
                let _ = write!(out, "{comma}{query} with {} values", values.len());
                if out.len() > 4 * SHOWN_MAX {
                    break;
                }
            }
            let _ = write!(out, "] at consistency {}", parameters.consistency);
            out
        }
        _ => envelope.opcode.to_string(),
    }
}
