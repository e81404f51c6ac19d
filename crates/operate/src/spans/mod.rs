//! Spans of sampled requests, sent to a collector of OpenTelemetry: OTLP over HTTP, in JSON.
//!
//! ```text
//! request ─ offer ─► queue, at most QUEUED_MAX requests ─► thread `otlp`: batch ─► encode ─► POST /v1/traces
//! ```
//!
//! 1. A request never waits: with a full queue its spans are dropped and counted.
//! 2. A batch that the collector does not take within [`SEND_MAX`] is lost and counted; the pause before the next one grows up to
//!    [`PAUSE_MAX`].
//! 3. The operator's log says at most once a minute how many were lost, and why.
//!
//! Why not the `opentelemetry` crates: their exporter (0.33, HTTP) brings 54 crates that nothing else here links, and its own pipeline of
//! spans; what is needed here is the JSON of one message, which the specification fixes, on the HTTP library that is linked anyway.

mod encode;
mod send;
mod span;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use halcyon_io::clock::{Instant, now};
use halcyon_io::{Condvar, Mutex, ThreadPriority, spawn_thread};

pub use send::Collector;
pub use span::Span;

/// Requests that may wait. Chosen: with bounded texts they take some megabytes.
const QUEUED_MAX: usize = 1_000;
/// Requests of a batch.
const BATCH_MAX: usize = 200;
/// How long a batch is collected, so that a collector gets few messages.
const COLLECTED: Duration = Duration::from_millis(500);
/// The time in which a collector has to take a batch.
const SEND_MAX: Duration = Duration::from_secs(10);
/// The longest pause after a failure.
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// How often losses are reported.
const REPORTED: Duration = Duration::from_secs(60);

/// What the thread says for the operator's log.
pub type Tell = Box<dyn Fn(String) + Send>;

#[derive(Default)]
struct Waiting {
    requests: VecDeque<Vec<Span>>,
    dropped: u64,
    is_ending: bool,
}

#[derive(Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

/// The way to the thread; it ends when this is dropped.
pub struct Exporter(Arc<Queue>);

impl Exporter {
    /// Starts the thread. `node`: what names the node in each message.
    ///
    /// # Errors
    /// If the thread's runtime cannot be built.
    pub fn start(
        collector: Collector,
        node: Vec<(String, String)>,
        tell: Tell,
    ) -> std::io::Result<Exporter> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let queue = Arc::<Queue>::default();
        let taken = queue.clone();
        let body = move || {
            let mut sender = Sender { pause: Duration::ZERO, lost: 0, told: None, tell };
            while let Some((batch, dropped)) = taken.next(sender.pause) {
                sender.lost += dropped;
                let body = encode::message(&node, batch.iter().flatten());
                let sent = runtime.block_on(async {
                    let sending = collector.post(body);
                    let late = || Err(format!("no answer within {} s", SEND_MAX.as_secs()));
                    tokio::time::timeout(SEND_MAX, sending).await.unwrap_or_else(|_| late())
                });
                sender.note(&collector, batch.len() as u64, sent);
            }
        };
        drop(spawn_thread("otlp", ThreadPriority::Batch, body));
        Ok(Exporter(queue))
    }

    /// Hands the spans of a request over.
    pub fn offer(&self, spans: Vec<Span>) {
        let mut waiting = self.0.waiting.lock();
        match waiting.requests.len() < QUEUED_MAX {
            true => waiting.requests.push_back(spans),
            false => waiting.dropped += 1,
        }
        let count = waiting.requests.len();
        drop(waiting);
        // Each wake-up is a call of the kernel; the thread waits for a first request, and then for a whole batch.
        if count == 1 || count == BATCH_MAX {
            self.0.changed.notify_all();
        }
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.0.waiting.lock().is_ending = true;
        self.0.changed.notify_all();
    }
}

impl Queue {
    /// The next batch, and how many requests were dropped since the last one; `None` at the end. Requests that wait at the end are lost.
    fn next(&self, pause: Duration) -> Option<(Vec<Vec<Span>>, u64)> {
        let is_idle = |waiting: &mut Waiting| waiting.requests.is_empty() && !waiting.is_ending;
        drop(self.changed.wait_while(self.waiting.lock(), is_idle));
        let is_short =
            |waiting: &mut Waiting| !waiting.is_ending && waiting.requests.len() < BATCH_MAX;
        let collected = self.waiting.lock();
        let (mut waiting, _) = match pause.is_zero() {
            true => self.changed.wait_timeout_while(collected, COLLECTED, is_short),
            false => {
                self.changed.wait_timeout_while(collected, pause, |waiting| !waiting.is_ending)
            }
        };
        if waiting.is_ending {
            return None;
        }
        let count = waiting.requests.len().min(BATCH_MAX);
        let batch = waiting.requests.drain(..count).collect();
        Some((batch, std::mem::take(&mut waiting.dropped)))
    }
}

/// What the thread remembers from batch to batch.
struct Sender {
    pause: Duration,
    lost: u64,
    told: Option<Instant>,
    tell: Tell,
}

impl Sender {
    fn note(&mut self, collector: &Collector, requests: u64, sent: Result<(), String>) {
        let why = match sent {
            Ok(()) => {
                self.pause = Duration::ZERO;
                "requests come faster than the collector takes them".to_owned()
            }
            Err(why) => {
                self.lost += requests;
                self.pause = (self.pause * 2).clamp(Duration::from_secs(1), PAUSE_MAX);
                why
            }
        };
        if self.lost > 0 && self.told.is_none_or(|told| now() - told > REPORTED) {
            (self.tell)(format!(
                "the spans of {} requests were not sent to {collector}: {why}; check the collector, or lower tracing_otlp_sampling_ratio",
                self.lost
            ));
            (self.lost, self.told) = (0, Some(now()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a collector that accepts no connection, or never answers, delays no request, and that what is lost is reported.
    #[test]
    fn a_collector_that_is_down_delays_no_request() {
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let (silent_port, closed_port) =
            (silent.local_addr().unwrap().port(), closed.local_addr().unwrap().port());
        drop(closed);
        let (tell, told) = std::sync::mpsc::channel();
        let start = |port: u16| {
            let collector = Collector::parse(&format!("http://127.0.0.1:{port}"), None).unwrap();
            let tell = tell.clone();
            let tell = Box::new(move |text| drop(tell.send(text)));
            Exporter::start(collector, Vec::new(), tell).unwrap()
        };
        let exporters = [start(silent_port), start(closed_port)];
        for exporter in &exporters {
            (0..2 * QUEUED_MAX).for_each(|_| exporter.offer(Vec::new()));
        }
        let text: String = told.recv_timeout(REPORTED).unwrap();
        assert!(
            text.contains(&format!("were not sent to http://127.0.0.1:{closed_port}/v1/traces: ")),
            "{text}"
        );
    }

    /// Proves that a full queue drops and counts, that a batch is bounded, and that the end wakes the thread.
    #[test]
    fn a_full_queue_drops() {
        let queue = Arc::<Queue>::default();
        let exporter = Exporter(queue.clone());
        for _ in 0..QUEUED_MAX + 7 {
            exporter.offer(Vec::new());
        }
        let (batch, dropped) = queue.next(Duration::ZERO).unwrap();
        assert_eq!((batch.len(), dropped), (BATCH_MAX, 7));
        drop(exporter);
        assert!(queue.next(PAUSE_MAX).is_none());
    }
}
