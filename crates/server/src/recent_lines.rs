//! Which lines of the log were written lately: a text that many requests cause is not written for each (`NoSpamLogger`).

use std::collections::HashMap;
use std::time::Duration;

use halcyon_io::Mutex;
use halcyon_io::clock::{Instant, now};

/// Cassandra's for guardrails.
const PAUSE: Duration = Duration::from_secs(600);
/// Texts that are remembered. Values of clients are in them, so there may be any number.
const MOST: usize = 1_000;

#[derive(Default)]
pub(crate) struct RecentLines(Mutex<HashMap<String, Instant>>);

impl RecentLines {
    /// Whether a text was not written in the last ten minutes. It is taken for written then.
    pub(crate) fn is_new(&self, text: &str) -> bool {
        let (mut told, time) = (self.0.lock(), now());
        if told.get(text).is_some_and(|last| time - *last < PAUSE) {
            return false;
        }
        if told.len() >= MOST {
            told.retain(|_, last| time - *last < PAUSE);
        }
        if told.len() < MOST {
            told.insert(text.to_owned(), time);
        }
        true
    }
}
