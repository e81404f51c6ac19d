//! The tables of a message store, as an engineer would make them, and the requests that a message's life consists of.
//!
//! ```text
//!   messages  ((queue, window), id)   state, body       work under way: all rows are deleted soon
//!   log       ((queue, window), id)   state, body       what was sent, for ever: searched, never changed
//! ```
//!
//! - *A window of time is part of the key.* A message's insert, updates and delete all fall into its window, so one partition has a
//!   bounded size, and nothing that is written later lies beside it in older SSTables.
//! - *TimeWindowCompactionStrategy with the same window, and a default TTL*: what was missed by its delete expires, and SSTables of a
//!   window that is past go as a whole, without being read again.
//! - *`gc_grace_seconds` is short*: on one node no replica can have missed a delete. In a cluster it has to be longer than the time in
//!   which a replica that was away is repaired, and windows longer likewise.
//! - *A poll starts behind the last message seen* (`id > ?`), so it does not walk over the tombstones of what is done.
//! - *Chunks of 4 KiB*, since single messages are read.
//! - *The log is never updated*: large windows, no tombstones, searched by window and newest first.

use crate::load::Random;
use crate::paced::Requests;

pub(super) const QUEUES: u64 = 8;
/// Before these seconds, and this many later, a message is received, transformed, sent, done.
const STEP_SECONDS: f64 = 1.0;

/// What is asked, in the order of a message's life; a class of requests each.
pub(super) const CLASSES: [&str; 8] = [
    "receive (insert)",
    "poll (10 after the last)",
    "transform (update)",
    "send (update)",
    "log (insert)",
    "done (delete; every second message is left to its TTL)",
    "search the log (20 of a window)",
    "look at a message that is under way",
];

/// The default TTL is two windows: a message that takes longer is lost.
pub(super) fn statements_of_tables(window_seconds: u64) -> [String; 3] {
    let minutes = (window_seconds / 60).max(1);
    let chunks = "compression = {'class': 'LZ4Compressor', 'chunk_length_in_kb': 4}";
    [
        "CREATE KEYSPACE bench WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
            .to_owned(),
        format!(
            "CREATE TABLE bench.messages (queue bigint, window bigint, id bigint, state text, body blob, \
             PRIMARY KEY ((queue, window), id)) WITH default_time_to_live = {} AND gc_grace_seconds = {} AND {chunks} AND compaction = \
             {{'class': 'TimeWindowCompactionStrategy', 'compaction_window_unit': 'MINUTES', 'compaction_window_size': {minutes}, \
             'expired_sstable_check_frequency_seconds': {}}}",
            2 * window_seconds,
            window_seconds,
            (window_seconds / 2).max(1)
        ),
        format!(
            "CREATE TABLE bench.log (queue bigint, window bigint, id bigint, state text, body blob, \
             PRIMARY KEY ((queue, window), id)) WITH CLUSTERING ORDER BY (id DESC) AND {chunks} AND compaction = \
             {{'class': 'TimeWindowCompactionStrategy', 'compaction_window_unit': 'MINUTES', 'compaction_window_size': {}}}",
            10 * minutes
        ),
    ]
}

/// Messages one after the other: each request of a round is about another one, as old as its step of life.
pub(super) struct Messages {
    pub(super) per_second: f64,
    pub(super) window_seconds: u64,
    pub(super) body: usize,
    pub(super) bytes: Vec<u8>,
    pub(super) random: Random,
    pub(super) asked: u64,
}

impl Messages {
    /// The window of a message, by the time at which it came.
    fn window(&self, id: u64) -> u64 {
        (id as f64 / self.per_second / self.window_seconds as f64) as u64
    }

    /// The message that was received `steps` ago.
    fn before(&self, id: u64, steps: f64) -> u64 {
        id.saturating_sub((self.per_second * STEP_SECONDS * steps) as u64)
    }

    fn key(&self, id: u64) -> Vec<Vec<u8>> {
        [id % QUEUES, self.window(id), id].map(|n| n.to_be_bytes().to_vec()).into()
    }

    fn body(&mut self) -> Vec<u8> {
        let room = self.bytes.len().saturating_sub(self.body).max(1);
        let at = self.random.below(room as u64) as usize;
        self.bytes.iter().skip(at).take(self.body).copied().collect()
    }

    fn row(&mut self, id: u64, state: &str) -> Vec<Vec<u8>> {
        let mut values = self.key(id);
        values.push(state.as_bytes().to_vec());
        values.push(self.body());
        values
    }

    fn update(&self, id: u64, state: &str) -> Vec<Vec<u8>> {
        let mut values = vec![state.as_bytes().to_vec()];
        values.extend(self.key(id));
        values
    }
}

impl Requests for Messages {
    fn statements(&self) -> Vec<String> {
        let key = "queue = ? AND window = ? AND id = ?";
        let insert = |table| {
            format!(
                "INSERT INTO bench.{table} (queue, window, id, state, body) VALUES (?, ?, ?, ?, ?)"
            )
        };
        let update = format!("UPDATE bench.messages SET state = ? WHERE {key}");
        vec![
            insert("messages"),
            "SELECT id, state, body FROM bench.messages WHERE queue = ? AND window = ? AND id > ? LIMIT 10"
                .to_owned(),
            update.clone(),
            update,
            insert("log"),
            format!("DELETE FROM bench.messages WHERE {key}"),
            "SELECT id, state, body FROM bench.log WHERE queue = ? AND window = ? AND id < ? LIMIT 20"
                .to_owned(),
            format!("SELECT state, body FROM bench.messages WHERE {key}"),
        ]
    }

    fn next(&mut self) -> (usize, Vec<Vec<u8>>) {
        let class = (self.asked % CLASSES.len() as u64) as usize;
        let id = self.asked / CLASSES.len() as u64;
        self.asked += 1;
        let values = match class {
            0 => self.row(id, "received"),
            1 => self.key(self.before(id, 0.5)),
            2 => self.update(self.before(id, 1.0), "transformed"),
            3 => self.update(self.before(id, 2.0), "sent"),
            4 => {
                let sent = self.before(id, 2.0);
                self.row(sent, "sent")
            }
            5 => {
                let done = self.before(id, 3.0);
                // Every second is left: its look-up is of one that is done by time.
                self.key(done / (2 * QUEUES) * (2 * QUEUES) + done % QUEUES)
            }
            6 => {
                let found = self.random.below(self.before(id, 2.0).max(1));
                self.key(found)
            }
            _ => self.key(self.before(id, 1.5)),
        };
        (class, values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every request of a message has the values that its statement asks for.
    #[test]
    fn values_fit_their_statements() {
        let mut messages = Messages {
            per_second: 10.0,
            window_seconds: 60,
            body: 5,
            bytes: vec![1; 64],
            random: Random(1),
            asked: 80_000,
        };
        let statements = messages.statements();
        assert_eq!(statements.len(), CLASSES.len());
        for _ in 0..64 {
            let (class, values) = messages.next();
            assert_eq!(values.len(), statements[class].matches('?').count(), "{}", CLASSES[class]);
        }
        assert_eq!(messages.window(6000), 10);
    }
}
