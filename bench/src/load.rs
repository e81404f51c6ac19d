//! The generator: a closed loop, a fixed number of requests in flight, and their outcomes.
//!
//! 1. One thread for each connection, and at most [`CONNECTIONS`] of them if nothing else is said. Each connection keeps its share of
//!    the requests in flight: as one is answered, the next is sent. Where the server says which shard a connection came to, connections are
//!    opened until they lie on different ones.
//! 2. A request's time runs from before it is written until its answer is decoded. Every answer is checked.
//! 3. At the end of the time nothing more is sent, and what is under way is waited for.
//!
//! What it is not: an open loop. No client waits in a queue in front of it, so a stall counts once for each request in flight and
//! not for those that would have come meanwhile; quantiles are of service at that many in flight, not at a rate.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use halcyon_client::blocking::Connection;
use halcyon_model::token::murmur3_token;
use halcyon_oracle::Result;
use halcyon_protocol::client::Answer;
use halcyon_protocol::{Consistency, QueryParameters, Value, Values};

use super::latency::{Latencies, nanos_since};
use crate::connection::{self, create_keyspace, local};
use crate::process::CpuOf;
use crate::record::Measurements;

pub(super) const CONNECTIONS: usize = 2;
/// Requests in flight while tables are filled and servers warmed up.
const BUSY: usize = 50;
/// Of bytes that values are cut from: so long that no compressor finds one twice in a chunk.
pub(super) const POOL: usize = 1 << 20;
pub(super) const KEYSPACE: &str = "bench";

/// A table with one row in each partition: `pk bigint`, an int, a short text, a blob.
#[derive(Clone, Copy)]
pub(super) struct Table {
    pub(super) name: &'static str,
    pub(super) rows: u64,
    pub(super) blob: usize,
}

impl Table {
    pub(super) fn create(self, port: u16) -> Result<()> {
        let mut connection = connection::open(port)?;
        create_keyspace(&mut connection, KEYSPACE)?;
        connection.query(&format!(
            "CREATE TABLE IF NOT EXISTS {KEYSPACE}.{} (pk bigint PRIMARY KEY, number int, word text, data blob)",
            self.name
        ))?;
        Ok(())
    }
}

/// A row of such a table.
pub(super) struct Row<'a> {
    key: [u8; 8],
    number: [u8; 4],
    word: String,
    data: &'a [u8],
}

impl<'a> Row<'a> {
    /// `blob`: how many bytes its value has, cut from the pool.
    pub(super) fn of(key: u64, blob: usize, pool: &'a [u8], random: &mut Random) -> Row<'a> {
        let at = random.below((pool.len() - blob) as u64) as usize;
        Row {
            key: key.to_be_bytes(),
            number: (key as u32).to_be_bytes(),
            word: format!("row {key}"),
            data: &pool[at..at + blob],
        }
    }

    /// In the order of `INSERT`; of `SELECT` the first.
    pub(super) fn cells(&self) -> [&[u8]; 4] {
        [&self.key, &self.number, self.word.as_bytes(), self.data]
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Request {
    /// OPTIONS: what a round trip costs.
    Empty,
    Write,
    Read,
}

impl Request {
    pub(super) fn statement(self, table: &str) -> Option<String> {
        match self {
            Request::Empty => None,
            Request::Write => Some(format!(
                "INSERT INTO {KEYSPACE}.{table} (pk, number, word, data) VALUES (?, ?, ?, ?)"
            )),
            Request::Read => {
                Some(format!("SELECT number, word, data FROM {KEYSPACE}.{table} WHERE pk = ?"))
            }
        }
    }
}

#[derive(Clone, Copy)]
pub(super) enum Until {
    Elapsed(Duration),
    /// Every key once, in order.
    EveryKey,
    /// The same, from one on.
    KeysFrom(u64),
}

#[derive(Clone, Copy)]
pub(super) struct Load {
    pub(super) request: Request,
    pub(super) table: Table,
    pub(super) in_flight: usize,
    /// At most; no more than there are requests in flight.
    pub(super) connections: usize,
    pub(super) until: Until,
    /// Each connection asks for the keys of its own shard only, as drivers that know shards do.
    pub(super) shard_aware: bool,
    pub(super) seed: u64,
}

/// What became of a load.
pub(super) struct Completed {
    pub(super) operations: u64,
    pub(super) seconds: f64,
    pub(super) latencies: Latencies,
    pub(super) client_cpu_seconds: f64,
}

impl Completed {
    pub(super) fn figures(&self, server_cpu_seconds: f64) -> Measurements {
        let by_operation = |seconds: f64| 1e6 * seconds / self.operations.max(1) as f64;
        Measurements::default()
            .with("per_second", self.operations as f64 / self.seconds.max(1e-9))
            .fields("", &self.latencies)
            .with("server_cpu_us", by_operation(server_cpu_seconds))
            .with("client_cpu_us", by_operation(self.client_cpu_seconds))
            .with("seconds", self.seconds)
    }
}

impl Load {
    /// As much as keeps a server busy.
    pub(super) fn new(request: Request, table: Table, until: Until) -> Load {
        let (in_flight, connections) = (BUSY, CONNECTIONS);
        Load { request, table, in_flight, connections, until, shard_aware: false, seed: 1 }
    }

    pub(super) fn lasting(request: Request, table: Table, seconds: f64) -> Load {
        Load::new(request, table, Until::Elapsed(Duration::from_secs_f64(seconds)))
    }

    pub(super) fn run(&self, port: u16) -> Result<Completed> {
        let count = self.in_flight.min(self.connections).max(1);
        let pool = random_bytes(self.seed, POOL);
        let mut lanes = Vec::new();
        for number in 0..count {
            lanes.push(Lane::open(self, port, number, count, &pool)?);
        }
        let own = CpuOf::Process(std::process::id());
        let (cpu_before, began) = (own.seconds(), Instant::now());
        let ended: Vec<std::result::Result<Vec<u64>, String>> = std::thread::scope(|scope| {
            // An error of any kind is passed on as its text: a boxed one may not cross threads.
            let run = |mut lane: Lane<'_>| lane.run().map_err(|e| e.to_string());
            let running: Vec<_> =
                lanes.into_iter().map(|lane| scope.spawn(move || run(lane))).collect();
            let panicked = |_| Err("a thread of the generator panicked".to_owned());
            running.into_iter().map(|lane| lane.join().unwrap_or_else(panicked)).collect()
        });
        let seconds = began.elapsed().as_secs_f64();
        let client_cpu_seconds = own.seconds() - cpu_before;
        let mut nanos = Vec::new();
        for lane in ended {
            nanos.extend(lane.map_err(|e| format!("{:?}: {e}", self.request))?);
        }
        Ok(Completed {
            operations: nanos.len() as u64,
            seconds,
            latencies: Latencies::of(nanos),
            client_cpu_seconds,
        })
    }
}

/// One connection and its share of the work.
struct Lane<'a> {
    load: Load,
    connection: Connection,
    statement: Option<Vec<u8>>,
    shard: Option<Shard>,
    pool: &'a [u8],
    in_flight: usize,
    random: Random,
    /// The key after the last one, and how far apart this lane's are, where every key is written once.
    next_key: u64,
    step: u64,
    deadline: Option<Instant>,
    /// By stream, when it was asked.
    asked: Vec<Instant>,
    nanos: Vec<u64>,
}

#[derive(Clone, Copy)]
pub(super) struct Shard {
    number: u64,
    of: u64,
}

impl Shard {
    /// As ARCHITECTURE.md says.
    fn owns(self, key: u64) -> bool {
        let token = murmur3_token(&key.to_be_bytes()).0;
        let biased = (token as u64).wrapping_add(1 << 63);
        (u128::from(biased) * u128::from(self.of)) >> 64 == u128::from(self.number)
    }
}

impl<'a> Lane<'a> {
    fn open(load: &Load, port: u16, number: usize, of: usize, pool: &'a [u8]) -> Result<Lane<'a>> {
        let (mut connection, shard) = open_on_shard(local(port), number as u64)?;
        let statement = load.request.statement(load.table.name);
        let statement =
            statement.map(|text| connection.prepare(&text)).transpose()?.map(|(id, _)| id);
        let share = load.in_flight / of + usize::from(number < load.in_flight % of);
        let first = if let Until::KeysFrom(first) = load.until { first } else { 0 };
        Ok(Lane {
            load: *load,
            connection,
            statement,
            shard: shard.filter(|_| load.shard_aware),
            pool,
            in_flight: share,
            random: Random(load.seed ^ (number as u64) << 32),
            next_key: first + number as u64,
            step: of as u64,
            deadline: None,
            asked: vec![Instant::now(); share],
            nanos: Vec::new(),
        })
    }

    fn run(&mut self) -> Result<Vec<u64>> {
        if let Until::Elapsed(time) = self.load.until {
            self.deadline = Some(Instant::now() + time);
        }
        let mut waiting = 0;
        for stream in 0..self.in_flight {
            waiting += usize::from(self.ask(stream)?);
        }
        self.connection.send()?;
        while waiting > 0 {
            self.connection.receive()?;
            while let Some((stream, answer)) = self.connection.client.next_answer()? {
                check(self.load.request, &answer)?;
                let stream = usize::try_from(stream)?;
                let asked = self.asked.get(stream).ok_or("an answer to nothing")?;
                self.nanos.push(nanos_since(*asked));
                waiting -= 1;
                waiting += usize::from(self.ask(stream)?);
            }
            self.connection.send()?;
        }
        Ok(std::mem::take(&mut self.nanos))
    }

    /// Appends a request, unless it is time to end.
    fn ask(&mut self, stream: usize) -> Result<bool> {
        let now = Instant::now();
        if self.deadline.is_some_and(|deadline| now >= deadline) {
            return Ok(false);
        }
        let Some(key) = self.key() else { return Ok(false) };
        self.asked[stream] = now;
        let stream = i16::try_from(stream)?;
        let Some(id) = &self.statement else {
            self.connection.client.options(stream);
            return Ok(true);
        };
        let row = Row::of(key, self.load.table.blob, self.pool, &mut self.random);
        let asked = if self.load.request == Request::Write { 4 } else { 1 };
        let cells = row.cells().into_iter().take(asked);
        let mut parameters = QueryParameters::new(Consistency::One);
        parameters.values = Values::Positional(cells.map(Value::Bytes).collect());
        parameters.skip_metadata = true;
        self.connection.client.execute(stream, id, &[], &parameters);
        Ok(true)
    }

    fn key(&mut self) -> Option<u64> {
        if self.deadline.is_none() {
            let key = self.next_key;
            self.next_key += self.step;
            return (key < self.load.table.rows).then_some(key);
        }
        loop {
            let key = self.random.below(self.load.table.rows);
            if self.shard.is_none_or(|shard| shard.owns(key)) {
                return Some(key);
            }
        }
    }
}

/// A connection, on shard `number` if the server has shards and says so.
pub(super) fn open_on_shard(
    server: SocketAddr,
    number: u64,
) -> Result<(Connection, Option<Shard>)> {
    const ATTEMPTS: u32 = 200;
    for _ in 0..ATTEMPTS {
        let mut connection = connection::to(server)?;
        let mut of = |name: &str| -> Result<Option<u64>> {
            Ok(connection.supported(name)?.and_then(|value| value.parse().ok()))
        };
        let (Some(shard), Some(shards @ 1..)) = (of("SCYLLA_SHARD")?, of("SCYLLA_NR_SHARDS")?)
        else {
            return Ok((connection, None));
        };
        if shard == number % shards {
            return Ok((connection, Some(Shard { number: shard, of: shards })));
        }
    }
    Err(format!("{ATTEMPTS} connections, and none on shard {number}").into())
}

fn check(request: Request, answer: &Answer) -> Result<()> {
    let is_right = match (request, answer) {
        (Request::Empty, Answer::Supported(_)) | (Request::Write, Answer::Void) => true,
        (Request::Read, Answer::Rows(page)) => {
            matches!(&page.rows[..], [row] if row.len() == 3 && row.iter().all(Option::is_some))
        }
        _ => false,
    };
    if is_right { Ok(()) } else { Err(format!("a wrong answer: {answer:?}").into()) }
}

/// SplitMix64.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}

pub(super) fn random_bytes(seed: u64, count: usize) -> Vec<u8> {
    let mut random = Random(seed);
    (0..count.div_ceil(8)).flat_map(|_| random.next().to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_one_shard() {
        for key in 0..1000 {
            let owners = (0..3).filter(|number| Shard { number: *number, of: 3 }.owns(key));
            assert_eq!(owners.count(), 1, "key {key}");
        }
    }
}
