//! `cargo x bench cold`: E8, what a read of a row costs that no cache has.
//!
//! 1. Data sets are made (or found) in both formats of SSTables: each row in one SSTable, with chunks of several lengths; each row in four,
//!    of which each has another part of it, with chunks of the first length.
//! 2. One server at a time has all sets as its tables, in a cage (`subject.rs`).
//! 3. A turn for each table (`turn.rs`): rows are read until every part of the index is known; the device's own read is measured; then
//!    other rows are read at a modest rate, each of a chunk of which nothing was read before (`rows.rs`).
//! 4. The tables whose chunks have the first length have a turn in each round. The others are about bytes: a short one, in the first round.

mod page;
mod rows;
mod subject;
mod turn;

use std::time::Duration;

use halcyon_model::units::arguments::size;
use halcyon_oracle::{Result, Version};
use rows::Rows;
use serde::Serialize;
use serde_json::json;
use subject::{Making, Subject};
use turn::{Schedule, Turn};

use crate::dataset::{Codec, DataSet, Format, Kind, Shape};
use crate::invocation::{Experiment, Invocation, Listed};
use crate::record::{Contender, Measurements};

/// Of each set: a row of four parts is in as many.
const SSTABLES: u32 = 4;
/// What a server reads on its own after its start is read by then.
const QUIET: Duration = Duration::from_secs(5);

#[derive(clap::Args, Serialize)]
pub(crate) struct Arguments {
    /// Uncompressed bytes of each data set
    #[arg(long, default_value = "1536MiB", value_parser = size)]
    size: u64,
    /// KiB of a chunk; with the first, latency is measured, with the others bytes only
    #[arg(long, value_delimiter = ',', default_value = "4,16,64")]
    chunks: Vec<u64>,
    /// Of SSTables
    #[arg(long, value_enum, value_delimiter = ',', default_value = "big,bti")]
    formats: Vec<Format>,
    /// Cold reads a second
    #[arg(long, default_value_t = 500.0)]
    rate: f64,
    /// Seconds of a turn
    #[arg(long, default_value_t = 8.0)]
    seconds: f64,
    /// Seconds of a turn that is about bytes
    #[arg(long, default_value_t = 3.0)]
    brief: f64,
    /// Of this many neighbours in an SSTable one row is read before, so that no part of the index is left out, and one may be measured
    #[arg(long, default_value_t = 128)]
    apart: u64,
    /// Reads a second of those that are read before
    #[arg(long, default_value_t = 4000.0)]
    sweep_rate: f64,
    /// Seconds of such reads more, once after the start, for a JVM's compiler
    #[arg(long, default_value_t = 15.0)]
    warm_up: f64,
    /// Seconds of the device's own reads, in each turn
    #[arg(long, default_value_t = 1.0)]
    own: f64,
    #[arg(long, default_value_t = 2)]
    rounds: u32,
    /// Memory of the cgroup
    #[arg(long, default_value = "1200MiB", value_parser = size)]
    memory: u64,
    /// Of Cassandra
    #[arg(long, default_value = "600m")]
    heap: String,
}

impl Experiment for Arguments {
    const LISTED: Listed = Listed {
        name: "cold",
        asks: "What does a cold read cost, by the device's own read (E8)?",
        page: page::page,
    };
    const DATA: &'static str = "cold";
    const EXAMPLES: &'static [(&'static str, &'static str)] = &[("halcyon-compaction", "measure")];

    fn shrink(&mut self) {
        (self.size, self.chunks, self.apart) = (4 << 20, vec![4, 16], 16);
        (self.rate, self.sweep_rate, self.warm_up) = (100.0, 400.0, 1.0);
        (self.seconds, self.brief, self.own, self.rounds) = (0.5, 0.2, 0.1, 1);
    }

    fn run(self, invocation: &mut Invocation) -> Result<()> {
        let tables = self.tables(invocation)?;
        let inputs: Vec<_> =
            tables.iter().map(|table| (table.set.table(), table.set.content.clone())).collect();
        invocation.record.beside.insert("inputs".to_owned(), json!(inputs));
        let memory = invocation.memory(self.memory);
        let mut bench = Bench { arguments: &self, invocation, memory };
        for round in 0..self.rounds {
            let of_round = |table: &&Table| round == 0 || !table.is_brief;
            let tables: Vec<&Table> = tables.iter().filter(of_round).collect();
            for version in [None, Some(Version::V5), Some(Version::V6)] {
                let outcome = bench.turns(version, &tables);
                bench.invocation.or_missing(version.is_some(), &name(version), outcome)?;
                bench.invocation.write()?;
            }
        }
        Ok(())
    }
}

/// A set, as every server has it.
struct Table {
    set: DataSet,
    rows: Rows,
    heading: String,
    /// Its turn is short, and about bytes.
    is_brief: bool,
}

impl Arguments {
    fn tables(&self, invocation: &Invocation) -> Result<Vec<Table>> {
        let mut tables = Vec::new();
        for (number, kib) in self.chunks.iter().enumerate() {
            let shapes: &[Shape] =
                if number == 0 { &[Shape::Single, Shape::Split] } else { &[Shape::Single] };
            for (shape, format) in shapes.iter().flat_map(|s| self.formats.iter().map(|f| (*s, *f)))
            {
                let kind = Kind { format, ..Kind::big(&Codec(format!("lz4-{kib}")), shape) };
                let set = DataSet::open(invocation, &kind, self.size, SSTABLES)?;
                let rows = Rows::of(&set, self.apart);
                let heading = page::heading(shape, *kib);
                tables.push(Table { set, rows, heading, is_brief: number > 0 });
            }
        }
        Ok(tables)
    }

    fn schedule(&self, is_brief: bool, is_tiny: bool) -> Schedule {
        let seconds = if is_brief { self.brief } else { self.seconds };
        Schedule {
            rate: self.rate,
            time: Duration::from_secs_f64(seconds),
            sweep_rate: self.sweep_rate,
            quiet: if is_tiny { Duration::ZERO } else { QUIET },
            own: Duration::from_secs_f64(self.own),
        }
    }
}

/// Of a server's turns.
fn name(version: Option<Version>) -> String {
    format!("Cassandra {}", version.map_or("", Version::name))
}

struct Bench<'a> {
    arguments: &'a Arguments,
    invocation: &'a mut Invocation,
    /// None where there can be no cgroup.
    memory: Option<u64>,
}

impl Bench<'_> {
    /// A server's turns, in one life of it. None: of Halcyon.
    fn turns(&mut self, version: Option<Version>, tables: &[&Table]) -> Result<()> {
        if !self.invocation.takes_part(version.map_or("halcyon", Version::name)) {
            return Ok(());
        }
        let sets: Vec<&DataSet> = tables.iter().map(|table| &table.set).collect();
        let Arguments { heap, warm_up, sweep_rate, .. } = self.arguments;
        let making = Making { invocation: &*self.invocation, memory: self.memory, heap };
        let subject = Subject::start(&making, version, &sets)?;
        let is_cold = self.invocation.drop_page_cache();
        if let (Some(table), true) = (tables.first(), version.is_some()) {
            let time = Duration::from_secs_f64(*warm_up);
            turn::sweep(&subject.server, &table.set, &table.rows, *sweep_rate, time)?;
        }
        for table in tables {
            let outcome = self.turn(&subject, table);
            let who = format!("{}: {}", name(version), table.set.table());
            let done = self.invocation.or_missing(version.is_some(), &who, outcome)?;
            let Some((figures, turn)) = done else { continue };
            let record = &mut self.invocation.record;
            let Contender { peer, mode } = &subject.server.contender;
            let mode = format!("{mode}, {}", table.set.kind.format.title());
            let figures = figures.with("page_cache_dropped", f64::from(u8::from(is_cold)));
            if !table.is_brief {
                let device =
                    [("4 KiB", &turn.device), ("4 KiB, at the same rate", &turn.device_paced)];
                for (mode, own) in device {
                    let figures = Measurements::default().fields("", own);
                    record.add(&table.heading, &Contender::new("device", mode), figures);
                }
            }
            record.add_with(&table.heading, &Contender::new(peer, &mode), figures, turn.details);
        }
        subject.stop()
    }

    fn turn(&self, subject: &Subject, table: &Table) -> Result<(Measurements, Turn)> {
        let schedule = self.arguments.schedule(table.is_brief, self.invocation.tiny);
        let seed = self.invocation.record.turns.len() as u64;
        let Table { set, rows, .. } = table;
        let turn = Turn::run(&subject.server, set, rows, &schedule, &self.invocation.data, seed)?;
        let figures = turn.measurements(set);
        let figures = match subject.holds() {
            Some((cached, all)) => {
                figures.with("cage_page_cache_bytes", cached as f64).with("cage_bytes", all as f64)
            }
            None => figures,
        };
        Ok((figures, turn))
    }
}
