//! The closed loop that fills tables, or reads them: a fixed number of requests in flight.
//!
//! 1. One thread for each of [`CONNECTIONS`] connections, which are opened until they lie on different shards, where the server says which
//!    shard a connection came to. Each keeps its share of the requests in flight: as one is answered, the next is sent.
//! 2. At the end nothing more is sent, and what is under way is waited for.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use halcyon_client::blocking::Connection;
use halcyon_oracle::Result;
use halcyon_protocol::client::Answer;
use halcyon_protocol::{Consistency, QueryParameters, Value, Values};

use crate::connection::{self, create_keyspace, local};

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

/// `INSERT` of the four cells of a row, in a table of the keyspace.
pub(super) fn insert(table: &str) -> String {
    format!("INSERT INTO {KEYSPACE}.{table} (pk, number, word, data) VALUES (?, ?, ?, ?)")
}

/// `SELECT` of the other three cells by the key.
pub(super) fn select(table: &str) -> String {
    format!("SELECT number, word, data FROM {KEYSPACE}.{table} WHERE pk = ?")
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Does {
    Write,
    Read,
}

#[derive(Clone, Copy)]
pub(super) enum Until {
    /// Of random keys.
    Elapsed(Duration),
    /// Every key once, in order.
    EveryKey,
    /// The same, from one on.
    KeysFrom(u64),
}

/// Writes rows of a table. Returns the writes in a second.
pub(super) fn write(table: Table, until: Until, port: u16) -> Result<f64> {
    run(Does::Write, table, until, port)
}

/// Reads random rows of a table. Returns the reads in a second.
pub(super) fn read(table: Table, time: Duration, port: u16) -> Result<f64> {
    run(Does::Read, table, Until::Elapsed(time), port)
}

fn run(does: Does, table: Table, until: Until, port: u16) -> Result<f64> {
    let pool = random_bytes(1, POOL);
    let mut lanes = Vec::new();
    for number in 0..CONNECTIONS {
        lanes.push(Lane::open(does, table, until, port, number as u64, &pool)?);
    }
    let began = Instant::now();
    let ended: Vec<std::result::Result<u64, String>> = std::thread::scope(|scope| {
        // An error of any kind is passed on as its text: a boxed one may not cross threads.
        let run = |mut lane: Lane<'_>| lane.run().map_err(|e| e.to_string());
        let running: Vec<_> =
            lanes.into_iter().map(|lane| scope.spawn(move || run(lane))).collect();
        let panicked = |_| Err("a thread of the generator panicked".to_owned());
        running.into_iter().map(|lane| lane.join().unwrap_or_else(panicked)).collect()
    });
    let seconds = began.elapsed().as_secs_f64();
    let mut answered = 0;
    for lane in ended {
        answered += lane.map_err(|e| format!("{}: {e}", table.name))?;
    }
    Ok(answered as f64 / seconds)
}

/// One connection and its share of the keys.
struct Lane<'a> {
    does: Does,
    table: Table,
    connection: Connection,
    statement: Vec<u8>,
    pool: &'a [u8],
    random: Random,
    /// The key after the last one, where every key is written once.
    next_key: u64,
    /// Until then random keys are written.
    deadline: Option<Instant>,
}

impl<'a> Lane<'a> {
    fn open(
        does: Does,
        table: Table,
        until: Until,
        port: u16,
        number: u64,
        pool: &'a [u8],
    ) -> Result<Lane<'a>> {
        let mut connection = open_on_shard(local(port), number)?;
        let text = match does {
            Does::Write => insert(table.name),
            Does::Read => select(table.name),
        };
        let (statement, _) = connection.prepare(&text)?;
        let (first, deadline) = match until {
            Until::Elapsed(time) => (0, Some(Instant::now() + time)),
            Until::EveryKey => (0, None),
            Until::KeysFrom(first) => (first, None),
        };
        let (random, next_key) = (Random(1 ^ number << 32), first + number);
        Ok(Lane { does, table, connection, statement, pool, random, next_key, deadline })
    }

    /// The requests that were answered.
    fn run(&mut self) -> Result<u64> {
        let (mut waiting, mut answered) = (0, 0);
        for stream in 0..BUSY / CONNECTIONS {
            waiting += usize::from(self.ask(i16::try_from(stream)?)?);
        }
        self.connection.send()?;
        while waiting > 0 {
            self.connection.receive()?;
            while let Some((stream, answer)) = self.connection.client.next_answer()? {
                let is_right = match &answer {
                    Answer::Void => self.does == Does::Write,
                    Answer::Rows(page) => self.does == Does::Read && page.rows.len() == 1,
                    _ => false,
                };
                if !is_right {
                    return Err(format!("a wrong answer: {answer:?}").into());
                }
                answered += 1;
                waiting -= 1;
                waiting += usize::from(self.ask(stream)?);
            }
            self.connection.send()?;
        }
        Ok(answered)
    }

    /// Appends a request, unless it is time to end.
    fn ask(&mut self, stream: i16) -> Result<bool> {
        let Some(key) = self.key() else { return Ok(false) };
        let row = Row::of(key, self.table.blob, self.pool, &mut self.random);
        let cells = row.cells();
        let values = if self.does == Does::Write { &cells[..] } else { &cells[..1] };
        let mut parameters = QueryParameters::new(Consistency::One);
        parameters.values = Values::Positional(values.iter().copied().map(Value::Bytes).collect());
        parameters.skip_metadata = true;
        self.connection.client.execute(stream, &self.statement, &[], &parameters);
        Ok(true)
    }

    fn key(&mut self) -> Option<u64> {
        if let Some(deadline) = self.deadline {
            return (Instant::now() < deadline).then(|| self.random.below(self.table.rows));
        }
        let key = self.next_key;
        self.next_key += CONNECTIONS as u64;
        (key < self.table.rows).then_some(key)
    }
}

/// A connection, on shard `number` if the server has shards and says so.
pub(super) fn open_on_shard(server: SocketAddr, number: u64) -> Result<Connection> {
    const ATTEMPTS: u32 = 200;
    for _ in 0..ATTEMPTS {
        let mut connection = connection::to(server)?;
        let mut of = |name: &str| -> Result<Option<u64>> {
            Ok(connection.supported(name)?.and_then(|value| value.parse().ok()))
        };
        match (of("SCYLLA_SHARD")?, of("SCYLLA_NR_SHARDS")?) {
            (Some(shard), Some(shards @ 1..)) if shard != number % shards => {}
            _ => return Ok(connection),
        }
    }
    Err(format!("{ATTEMPTS} connections, and none on shard {number}").into())
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
