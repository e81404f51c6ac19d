//! The slow query log: Cassandra's `MonitoringTask`.
//!
//! ```text
//!  request ends ─ one comparison: longer than slow_query_log_timeout? ─ no ─► nothing more
//!                                                                     └ yes ─► kept ─ every 5 s ─► DEBUG lines, system_views.slow_queries
//! ```
//!
//! 1. At most [`OPERATIONS_MAX`] operations are kept between two reports; others are counted as dropped, as in Cassandra.
//! 2. Operations with the same text are one line, with average, minimum and maximum.
//! 3. All statements of clients that read or write a table count, where Cassandra has reads only. A time is from the socket to the
//!    outcome. Prepared statements are shown with their markers, and no text has a password.
//! 4. The last [`ROWS_MAX`] requests are kept with their parts for `halcyon_views.slow_requests`.

pub(crate) mod noting;

use std::collections::VecDeque;
use std::fmt::{self, Write};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use halcyon_io::Mutex;
use halcyon_io::clock::Instant;
use halcyon_io::spent::Spent;

use crate::log::{Level, Log};
use crate::recent_lines::RecentLines;

/// `cassandra.monitoring_max_operations`
const OPERATIONS_MAX: usize = 50;
/// Rows of each table. Chosen: with texts of [`TEXT_MAX`] letters they take some megabytes.
const ROWS_MAX: usize = 1_000;
/// Letters of a text that are kept.
const TEXT_MAX: usize = 2_000;
/// No request is slow.
const OFF: u64 = u64::MAX;
const LOGGER: &str = "server.slow_queries";

/// Where the time of a request went.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parts {
    /// Between its arrival at the socket and its start.
    pub(crate) waited: Duration,
    /// Between its start and its outcome.
    pub(crate) executed: Duration,
    /// What it waited for meanwhile.
    pub(crate) waits: Spent,
}

impl Parts {
    fn total(&self) -> Duration {
        self.waited + self.executed
    }
}

/// A slow request of a client.
#[derive(Debug, Clone)]
pub(crate) struct SlowRequest {
    pub(crate) keyspace: String,
    pub(crate) table: String,
    pub(crate) text: String,
    pub(crate) client: IpAddr,
    pub(crate) shard: usize,
    /// Milliseconds since 1970, at its end.
    pub(crate) ended_ms: i64,
    pub(crate) parts: Parts,
}

/// Slow requests with one text.
#[derive(Debug, Clone)]
pub(crate) struct SlowQuery {
    pub(crate) keyspace: String,
    pub(crate) table: String,
    pub(crate) text: String,
    /// Milliseconds since 1970, of the first one.
    pub(crate) at_ms: i64,
    pub(crate) times: i32,
    total: Duration,
    pub(crate) min: Duration,
    pub(crate) slowest: Parts,
}

impl SlowQuery {
    pub(crate) fn max(&self) -> Duration {
        self.slowest.total()
    }

    pub(crate) fn average(&self) -> Duration {
        self.total / u32::try_from(self.times.max(1)).unwrap_or(1)
    }
}

#[derive(Default)]
struct Kept {
    /// Since the last report.
    waiting: Vec<SlowRequest>,
    dropped: u64,
    requests: VecDeque<SlowRequest>,
    queries: VecDeque<SlowQuery>,
}

/// The slow requests of a node.
pub(crate) struct SlowQueries {
    /// Nanoseconds.
    timeout: AtomicU64,
    kept: Mutex<Kept>,
}

fn push_bounded<T>(queue: &mut VecDeque<T>, item: T) {
    if queue.len() >= ROWS_MAX {
        queue.pop_front();
    }
    queue.push_back(item);
}

impl SlowQueries {
    /// Zero turns it off.
    pub(crate) fn new(timeout: Duration) -> SlowQueries {
        let slow = SlowQueries { timeout: OFF.into(), kept: Mutex::default() };
        slow.set_timeout(timeout);
        slow
    }

    pub(crate) fn set_timeout(&self, timeout: Duration) {
        let nanos = u64::try_from(timeout.as_nanos()).unwrap_or(OFF);
        self.timeout.store(if nanos == 0 { OFF } else { nanos }, Relaxed);
    }

    /// Whether a request that arrived and ended at these times, in nanoseconds of the clock, is slow.
    #[inline]
    pub(crate) fn is_slow(&self, arrived: Instant, ended: u64) -> bool {
        ended.saturating_sub(arrived.as_nanos()) > self.timeout.load(Relaxed)
    }

    #[cold]
    pub(crate) fn note(&self, mut request: SlowRequest) {
        if let Some((end, _)) = request.text.char_indices().nth(TEXT_MAX) {
            request.text.truncate(end);
            request.text.push_str("...");
        }
        let mut kept = self.kept.lock();
        push_bounded(&mut kept.requests, request.clone());
        match kept.waiting.len() < OPERATIONS_MAX {
            true => kept.waiting.push(request),
            false => kept.dropped += 1,
        }
    }

    /// The last requests, the oldest first.
    pub(crate) fn requests(&self) -> Vec<SlowRequest> {
        self.kept.lock().requests.iter().cloned().collect()
    }

    /// What was reported, the oldest first.
    pub(crate) fn queries(&self) -> Vec<SlowQuery> {
        self.kept.lock().queries.iter().cloned().collect()
    }

    /// Takes what has come since the last report.
    fn take(&self) -> Option<Report> {
        let mut kept = self.kept.lock();
        if kept.waiting.is_empty() && kept.dropped == 0 {
            return None;
        }
        let dropped = std::mem::take(&mut kept.dropped);
        let queries = aggregated(std::mem::take(&mut kept.waiting));
        for query in &queries {
            push_bounded(&mut kept.queries, query.clone());
        }
        Some(Report { queries, dropped, timeout: self.timeout.load(Relaxed) })
    }

    fn report(&self, log: &Log, told: &RecentLines, elapsed: Duration) {
        let Some(report) = self.take() else { return };
        let hint = "Some operations were slow, details available at debug level (debug.log)";
        if told.is_new(hint) {
            log.event(Level::Info, LOGGER, &hint);
        }
        let count = report.queries.len() as u64 + report.dropped;
        let head =
            format!("{count} operations were slow in the last {} msecs:", elapsed.as_millis());
        log.list(Level::Debug, LOGGER, &head, report.lines());
    }
}

/// One query for each text, in the order of their first requests.
fn aggregated(requests: Vec<SlowRequest>) -> Vec<SlowQuery> {
    let mut queries: Vec<SlowQuery> = Vec::new();
    for request in requests {
        let parts = request.parts;
        let took = parts.total();
        match queries.iter_mut().find(|query| query.text == request.text) {
            Some(query) => {
                query.times += 1;
                query.total += took;
                query.min = query.min.min(took);
                if took > query.max() {
                    query.slowest = parts;
                }
            }
            None => queries.push(SlowQuery {
                keyspace: request.keyspace,
                table: request.table,
                text: request.text,
                at_ms: request.ended_ms,
                times: 1,
                total: took,
                min: took,
                slowest: parts,
            }),
        }
    }
    queries
}

struct Report {
    queries: Vec<SlowQuery>,
    dropped: u64,
    /// Nanoseconds.
    timeout: u64,
}

impl Report {
    /// In the words of `MonitoringTask.SlowOperation`.
    fn lines(&self) -> Vec<String> {
        let timeout = Duration::from_nanos(self.timeout).as_millis();
        let line = |query: &SlowQuery| {
            let mut out = format!("<{}>, ", query.text);
            let average = query.average().as_millis();
            let _: fmt::Result = match query.times {
                1 => write!(out, "time {average} msec"),
                times => write!(
                    out,
                    "was slow {times} times: avg/min/max {average}/{}/{} msec",
                    query.min.as_millis(),
                    query.max().as_millis()
                ),
            };
            out + &format!(" - slow timeout {timeout} msec")
        };
        let mut lines: Vec<String> = self.queries.iter().map(line).collect();
        if self.dropped > 0 {
            lines.push(format!("... ({} were dropped)", self.dropped));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use halcyon_io::clock::now;

    use super::*;

    fn request(text: &str, waited: u64, executed: u64) -> SlowRequest {
        SlowRequest {
            keyspace: "ks".to_owned(),
            table: "t".to_owned(),
            text: text.to_owned(),
            client: Ipv4Addr::LOCALHOST.into(),
            shard: 0,
            ended_ms: 1,
            parts: Parts {
                waited: Duration::from_millis(waited),
                executed: Duration::from_millis(executed),
                waits: Spent { sstables: executed, ..Spent::default() },
            },
        }
    }

    /// Proves Cassandra's words, for one operation, for several with one text, and for dropped ones.
    #[test]
    fn reports_have_the_words_of_monitoring_task() {
        let slow = SlowQueries::new(Duration::from_millis(500));
        slow.note(request("SELECT * FROM ks.t", 100, 501));
        slow.note(request("SELECT * FROM ks.u", 0, 700));
        slow.note(request("SELECT * FROM ks.u", 0, 900));
        for _ in 0..OPERATIONS_MAX {
            slow.note(request("SELECT * FROM ks.t", 100, 501));
        }
        let lines = slow.take().unwrap().lines();
        let expected = [
            "<SELECT * FROM ks.t>, was slow 48 times: avg/min/max 601/601/601 msec - slow timeout 500 msec",
            "<SELECT * FROM ks.u>, was slow 2 times: avg/min/max 800/700/900 msec - slow timeout 500 msec",
            "... (3 were dropped)",
        ];
        assert_eq!(lines, expected);
        assert!(slow.take().is_none());
        slow.note(request("SELECT 'a", 0, 600));
        assert_eq!(
            slow.take().unwrap().lines(),
            ["<SELECT 'a>, time 600 msec - slow timeout 500 msec"]
        );
        assert_eq!((slow.queries().len(), slow.requests().len()), (3, 54));
        // The parts are those of the slowest request.
        assert_eq!(slow.queries()[1].slowest.waits.sstables, 900);
    }

    /// Proves that zero turns it off, that a request of exactly the timeout is not slow, and that a change is obeyed.
    #[test]
    fn the_timeout_decides() {
        let arrived = now();
        let after = |ms: u64| arrived.as_nanos() + ms * 1_000_000;
        let slow = SlowQueries::new(Duration::ZERO);
        assert!(!slow.is_slow(arrived, after(1 << 40)));
        slow.set_timeout(Duration::from_millis(5));
        assert!(!slow.is_slow(arrived, after(5)) && slow.is_slow(arrived, after(6)));
        assert!(!slow.is_slow(arrived, 0));
    }

    /// Proves that long texts and old requests are not kept.
    #[test]
    fn what_is_kept_is_bounded() {
        let slow = SlowQueries::new(Duration::from_millis(1));
        for _ in 0..ROWS_MAX + 5 {
            slow.note(request(&"é".repeat(TEXT_MAX + 1), 0, 2));
        }
        let kept = slow.requests();
        assert_eq!(kept.len(), ROWS_MAX);
        assert_eq!(kept[0].text.chars().count(), TEXT_MAX + 3);
    }
}
