//! The same rows in few and in many SSTables, each with a range of the ring of its own.

use std::fs;
use std::time::Instant;

use halcyon_oracle::Result;

use super::arguments::Arguments;
use super::page;
use crate::cage::Cage;
use crate::connection::{self, command};
use crate::dataset::{Codec, DataSet, KEYSPACE, Kind, Shape};
use crate::invocation::Invocation;
use crate::latency::{Latencies, nanos_since};
use crate::load::{Random, Table};
use crate::paced::Requests;
use crate::process::resident;
use crate::record::{Contender, Measurements};
use crate::restore::{create, replace};
use crate::server::{Plan, Server};

/// A table of a few rows beside the one that is read: what is flushed.
const EDITED: &str = "edited";

pub(super) fn run(arguments: &Arguments, invocation: &mut Invocation) -> Result<()> {
    let memory = invocation.memory(arguments.memory);
    for sstables in [arguments.few, arguments.many] {
        let kind = Kind::big(&Codec("lz4-16".to_owned()), Shape::Ranges);
        let set = DataSet::open(invocation, &kind, arguments.size, sstables)?;
        let figures = turn(arguments, invocation, memory, &set)?;
        let who = Contender::new("halcyon", &format!("{sstables} SSTables"));
        invocation.record.add(page::SSTABLES, &who, figures);
        invocation.write()?;
    }
    Ok(())
}

fn turn(
    arguments: &Arguments,
    invocation: &mut Invocation,
    memory: Option<u64>,
    set: &DataSet,
) -> Result<Measurements> {
    let cage = memory.map(|bytes| Cage::make("scale", bytes)).transpose()?;
    let dir = invocation.fresh("halcyon")?;
    let plan = Plan::halcyon("as it comes", dir.clone());
    let server = Server::start(&invocation.programs, &plan)?;
    create(server.port, set)?;
    let edited = Table { name: EDITED, rows: 1, blob: 16 };
    edited.create(server.port)?;
    server.stop()?;
    replace(&dir, set)?;
    invocation.drop_page_cache();

    let server = Server::start(&invocation.programs, &plan.cage(cage.as_ref()))?;
    let after_start = resident(server.pid);
    let read = arguments.reads(&server, Reads::of(set))?;
    let flushes = flushes(arguments, &server)?;
    let tebibytes = set.file_bytes() as f64 / (1_u64 << 40) as f64;
    let figures = read
        .with("file_bytes", set.file_bytes() as f64)
        .with("start_seconds", server.start_seconds)
        .with("start_memory_bytes", after_start as f64)
        .with("memory_by_tebibyte", after_start as f64 / tebibytes)
        .with("read_memory_bytes", resident(server.pid) as f64)
        .fields("flush_", &flushes);
    server.stop()?;
    drop(cage);
    fs::remove_dir_all(dir)?;
    Ok(figures)
}

/// A flush of one row adds an SSTable to the node's.
fn flushes(arguments: &Arguments, server: &Server) -> Result<Latencies> {
    let mut connection = connection::open(server.port)?;
    let mut nanos = Vec::new();
    for number in 0..arguments.flushes {
        let insert = format!("INSERT INTO {KEYSPACE}.{EDITED} (pk, number) VALUES (1, {number})");
        connection.query(&insert)?;
        let began = Instant::now();
        command(&mut connection, "flush", (KEYSPACE, EDITED), "")?;
        nanos.push(nanos_since(began));
    }
    Ok(Latencies::of(nanos))
}

/// Of any row, at random.
struct Reads {
    statement: String,
    keys: u64,
    random: Random,
}

impl Reads {
    fn of(set: &DataSet) -> Reads {
        let statement = format!("SELECT part_1 FROM {KEYSPACE}.{} WHERE id = ?", set.table());
        Reads { statement, keys: set.keys(), random: Random(5) }
    }
}

impl Requests for Reads {
    fn statements(&self) -> Vec<String> {
        vec![self.statement.clone()]
    }

    fn next(&mut self) -> (usize, Vec<Vec<u8>>) {
        (0, vec![self.random.below(self.keys).to_be_bytes().to_vec()])
    }
}
