//! The open loop: requests at a fixed rate, whatever becomes of those before, each timed from the moment at which it was due.
//!
//! ```text
//!   due:      │     │     │     │     │     │        one every 1/rate seconds
//!   sent:     │     │     │          ││     │        late where the machine let the sender wait: it catches up
//!   timed:    └──►  └──►  └────────────►  …          from due to received (a stall counts for all that it kept waiting)
//! ```
//! 1. One thread sends what is due; connections take turns, and lie on different shards where the server says which. Where many are
//!    asked for, some are due together, as clients that are many send them: a thread that is woken for each takes a core.
//! 2. One thread for each connection receives. A request is known by its stream; each has a slot of its own.
//! 3. These threads have little to do (some 50 µs for each request, most of it to be woken), but share the cores with the server. So
//!    that their waiting for a core is not taken for the server's, they run under `SCHED_FIFO` where that is allowed.
//! 4. After the end the answers that are still due are waited for; what never comes is counted.

use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

use halcyon_client::blocking::Connection;
use halcyon_oracle::Result;
use halcyon_protocol::client::{Answer, Client};
use halcyon_protocol::{Compression, Consistency, QueryParameters, Value, Values, Version};

use super::latency::{Outcome, Sample};
use super::load::open_on_shard;
use super::process::{own_thread_cpu, run_first};
use crate::connection::local;

const CONNECTIONS: usize = 2;
/// Streams of a connection.
const SLOTS: usize = 1 << 15;
/// For the last answers.
const PATIENCE: Duration = Duration::from_secs(15);
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// In a slot, below the request's number.
const CLASS_BITS: u32 = 4;
/// Requests a second; of more, some are due together.
const MOST_WAKES: f64 = 2000.0;

/// What to ask, request by request.
pub(super) trait Requests: Send + 'static {
    /// Prepared before the start; a request's class is a place in this list.
    fn statements(&self) -> Vec<String>;

    /// The next request: its class and its values.
    fn next(&mut self) -> (usize, Vec<Vec<u8>>);
}

/// Everything that a loop has asked.
#[derive(Default)]
pub(super) struct Asked {
    pub(super) samples: Vec<Sample>,
    /// When it was due.
    pub(super) unanswered: Vec<Duration>,
    /// Of sender and receivers.
    pub(super) cpu_seconds: f64,
    /// They ran before everybody else.
    pub(super) first: bool,
}

/// A loop on its way.
pub(super) struct Paced {
    pub(super) start: Instant,
    stop: Arc<AtomicBool>,
    sender: JoinHandle<std::result::Result<Part, String>>,
    receivers: Vec<JoinHandle<std::result::Result<Part, String>>>,
}

/// What one thread has to tell.
#[derive(Default)]
struct Part {
    samples: Vec<Sample>,
    unanswered: Vec<Duration>,
    cpu_seconds: f64,
    first: bool,
}

/// Where the sender puts what is due until it waits again: one write for all of it.
struct Outgoing {
    client: Client,
    socket: TcpStream,
    lane: Arc<Lane>,
}

/// One connection's requests under way.
struct Lane {
    /// By stream: zero, or one more than the request's number and class.
    slots: Vec<AtomicU64>,
    sent: AtomicU64,
    closed: AtomicBool,
}

#[derive(Clone, Copy)]
struct Schedule {
    start: Instant,
    rate: f64,
    consistency: Consistency,
}

impl Schedule {
    fn due(self, number: u64) -> Duration {
        let together = (self.rate / MOST_WAKES).ceil().max(1.0) as u64;
        Duration::from_secs_f64((number - number % together) as f64 / self.rate)
    }
}

impl Paced {
    /// Begins to ask, `rate` times a second.
    pub(super) fn start(port: u16, rate: f64, requests: impl Requests) -> Result<Paced> {
        Paced::at(&[local(port); CONNECTIONS], Consistency::One, rate, requests)
    }

    /// The same, on a connection to each of these servers, which may be nodes of one ring.
    pub(super) fn at(
        servers: &[SocketAddr],
        consistency: Consistency,
        rate: f64,
        requests: impl Requests,
    ) -> Result<Paced> {
        let mut connections = Vec::new();
        for (number, server) in (0..).zip(servers) {
            connections.push(open_on_shard(*server, number)?);
        }
        let (mut prepared, stop) = (Vec::new(), Arc::new(AtomicBool::new(false)));
        // Each node of a ring wants to be told, and all call a statement the same.
        for connection in &mut connections {
            let texts = requests.statements();
            let ids = texts.iter().map(|text| Ok(connection.prepare(text)?.0));
            prepared = ids.collect::<Result<_>>()?;
        }
        let schedule = Schedule { start: Instant::now(), rate, consistency };
        let mut lanes = Vec::new();
        let mut receivers = Vec::new();
        for connection in connections {
            let slots = std::iter::repeat_with(|| AtomicU64::new(0)).take(SLOTS).collect();
            let closed = AtomicBool::new(false);
            let lane = Arc::new(Lane { slots, sent: AtomicU64::new(0), closed });
            lanes.push(Outgoing {
                client: Client::new(Version::V4, Compression::None),
                socket: connection.stream.try_clone()?,
                lane: lane.clone(),
            });
            receivers.push(std::thread::spawn(move || {
                receive(connection, &lane, schedule).map_err(|e| e.to_string())
            }));
        }
        let sender = {
            let stop = stop.clone();
            std::thread::spawn(move || {
                let sent = send(&mut lanes, &prepared, requests, schedule, &stop);
                lanes.iter().for_each(|to| to.lane.closed.store(true, Release));
                sent.map_err(|e| e.to_string())
            })
        };
        Ok(Paced { start: schedule.start, stop, sender, receivers })
    }

    /// Since the start.
    pub(super) fn now(&self) -> Duration {
        self.start.elapsed()
    }

    pub(super) fn stop(self) -> Result<Asked> {
        self.stop.store(true, Relaxed);
        let mut asked = Asked { first: true, ..Asked::default() };
        for thread in std::iter::once(self.sender).chain(self.receivers) {
            let part = thread.join().map_err(|_| "a thread of the generator panicked")??;
            asked.samples.extend(part.samples);
            asked.unanswered.extend(part.unanswered);
            asked.cpu_seconds += part.cpu_seconds;
            asked.first &= part.first;
        }
        asked.samples.sort_by_key(|sample| sample.due);
        Ok(asked)
    }
}

impl Asked {
    /// What was due between two moments.
    pub(super) fn between(&self, from: Duration, until: Duration) -> impl Iterator<Item = &Sample> {
        self.samples.iter().filter(move |sample| (from..until).contains(&sample.due))
    }
}

impl Lane {
    fn unanswered(&self, schedule: Schedule) -> Vec<Duration> {
        let known = self.slots.iter().filter_map(|slot| slot.load(Relaxed).checked_sub(1));
        known.map(|known| schedule.due(known >> CLASS_BITS)).collect()
    }
}

impl Outgoing {
    fn send(&mut self) -> Result<()> {
        Ok(self.socket.write_all(&self.client.take())?)
    }
}

fn send(
    lanes: &mut [Outgoing],
    prepared: &[Vec<u8>],
    mut requests: impl Requests,
    schedule: Schedule,
    stop: &AtomicBool,
) -> Result<Part> {
    let first = run_first();
    let count = lanes.len() as u64;
    for number in 0.. {
        if stop.load(Relaxed) {
            break;
        }
        let due = schedule.due(number);
        if due > schedule.start.elapsed() {
            lanes.iter_mut().try_for_each(Outgoing::send)?;
            sleep(due.saturating_sub(schedule.start.elapsed()));
        }
        let (class, values) = requests.next();
        let to = lanes.get_mut(usize::try_from(number % count)?).ok_or("no such connection")?;
        let stream = usize::try_from(number / count)? % SLOTS;
        let known = (number << CLASS_BITS | class as u64) + 1;
        if to.lane.slots[stream].swap(known, Relaxed) != 0 {
            return Err(format!("{SLOTS} requests without an answer").into());
        }
        let mut parameters = QueryParameters::new(schedule.consistency);
        parameters.values = Values::Positional(values.iter().map(|v| Value::Bytes(v)).collect());
        parameters.skip_metadata = true;
        let id = prepared.get(class).ok_or("no such statement")?;
        to.client.execute(i16::try_from(stream)?, id, &[], &parameters);
        to.lane.sent.fetch_add(1, Relaxed);
    }
    lanes.iter_mut().try_for_each(Outgoing::send)?;
    Ok(Part { cpu_seconds: own_thread_cpu(), first, ..Part::default() })
}

fn receive(mut connection: Connection, lane: &Lane, schedule: Schedule) -> Result<Part> {
    let mut part = Part { first: run_first(), ..Part::default() };
    connection.stream.set_read_timeout(Some(LOOK_EVERY))?;
    let (mut received, mut closed_at) = (0, None);
    loop {
        match connection.receive() {
            Ok(0) => return Err("the server closed the connection".into()),
            Ok(_) => {}
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(e) => return Err(e.into()),
        }
        let now = schedule.start.elapsed();
        while let Some((stream, answer)) = connection.client.next_answer()? {
            let slot = lane.slots.get(usize::try_from(stream)?).ok_or("an unknown stream")?;
            let known = slot.swap(0, Relaxed).checked_sub(1).ok_or("an answer to nothing")?;
            let due = schedule.due(known >> CLASS_BITS);
            received += 1;
            part.samples.push(Sample {
                due,
                nanos: u64::try_from(now.saturating_sub(due).as_nanos())?,
                class: (known & ((1 << CLASS_BITS) - 1)) as u8,
                outcome: outcome(&answer),
            });
        }
        if lane.closed.load(Acquire) {
            let sent = lane.sent.load(Relaxed);
            let since = *closed_at.get_or_insert(now);
            if received == sent || now - since > PATIENCE {
                part.unanswered = lane.unanswered(schedule);
                part.cpu_seconds = own_thread_cpu();
                return Ok(part);
            }
        }
    }
}

fn outcome(answer: &Answer) -> Outcome {
    match answer {
        Answer::Rows(page) if page.rows.is_empty() => Outcome::Empty,
        Answer::Rows(_) | Answer::Void => Outcome::Rows,
        _ => Outcome::Failed,
    }
}
