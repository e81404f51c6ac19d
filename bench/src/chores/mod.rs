//! `cargo x bench chores`: what an operator does to a server now and then, and whether reads of other rows wait for it.
//!
//! ```text
//!   reads of hot rows, at a fixed rate  ────────────────────────────────────────────────────────────────────────────►
//!   warm-up │ at rest │ pause │ a chore ┊ afterwards │ pause │ the next ┊ afterwards │ …
//!                             └───── measured ───────┘       └────── measured ──────┘
//! ```
//! 1. One server at a time, in a cage, as its maker configures it. Its large tables are written before anything is read.
//! 2. Each chore (`chore.rs`) is started over a connection that exists before (`operator.rs`), and is done when the server answers.
//! 3. A stretch (`stretch.rs`) is all reads that were due from the command until some seconds after the answer, for much of what a chore
//!    costs comes behind it.

mod chore;
mod operator;
mod page;
mod stretch;

use std::thread::sleep;
use std::time::Duration;

use chore::{Chore, DROPPED, FLUSHED, HOT, INDEXED, SCRATCH, TRUNCATED};
use halcyon_model::units::arguments::size;
use halcyon_oracle::{Result, Version};
use operator::Operator;
use page::AT_REST;
use serde::Serialize;
use serde_json::json;
use stretch::{Stretch, Timeline};

use crate::cage::Cage;
use crate::connection::{self, create_keyspace};
use crate::gauge::Gauge;
use crate::invocation::{Experiment, Invocation, Listed};
use crate::load::{KEYSPACE, Table, Until, write};
use crate::paced::Paced;
use crate::restore::{sstables_in, table_folder};
use crate::rows::{Reads, WARMS, make_hot};
use crate::server::{Plan, Server};
use crate::standstill::{Standstill, since};

#[derive(clap::Args, Serialize)]
pub(crate) struct Arguments {
    /// Reads a second of hot rows
    #[arg(long, default_value_t = 2000.0)]
    reads: f64,
    #[arg(long, default_value_t = 50_000)]
    hot_rows: u64,
    /// Bytes of a row's value
    #[arg(long, default_value_t = 1024)]
    value: usize,
    /// Of each of the two tables that lose all their rows
    #[arg(long, default_value_t = 1_000_000)]
    rows: u64,
    /// While each of these tables is written; of each there is an SSTable, or several
    #[arg(long, default_value_t = 8)]
    flushes: u64,
    /// Rows in the memtable that is flushed
    #[arg(long, default_value_t = 100_000)]
    memtable_rows: u64,
    /// Tables that are created, and dropped with their keyspace
    #[arg(long, default_value_t = 1000)]
    tables: u32,
    /// Columns that are added, one at a time
    #[arg(long, default_value_t = 20)]
    columns: u32,
    /// Seconds of reads before anything is measured
    #[arg(long, default_value_t = 20.0)]
    warm_up: f64,
    /// Seconds at rest
    #[arg(long, default_value_t = 10.0)]
    rest: f64,
    /// Seconds that are measured behind the end of a chore
    #[arg(long, default_value_t = 3.0)]
    afterwards: f64,
    /// Seconds before a chore that are not measured
    #[arg(long, default_value_t = 3.0)]
    pause: f64,
    /// Turns of each server
    #[arg(long, default_value_t = 1)]
    rounds: u32,
    /// Memory of the cgroup
    #[arg(long, default_value = "2400MiB", value_parser = size)]
    memory: u64,
    /// Of Cassandra
    #[arg(long, default_value = "1200m")]
    heap: String,
}

impl Experiment for Arguments {
    const LISTED: Listed = Listed {
        name: "chores",
        asks: "Do an operator's chores keep reads waiting?",
        page: page::page,
    };
    const DATA: &'static str = "chores";

    fn shrink(&mut self) {
        (self.reads, self.hot_rows, self.rows, self.memtable_rows) = (100.0, 200, 800, 400);
        (self.tables, self.columns, self.rounds) = (5, 2, 1);
        (self.warm_up, self.rest, self.afterwards, self.pause) = (0.2, 0.5, 0.2, 0.1);
    }

    fn run(self, invocation: &mut Invocation) -> Result<()> {
        let memory = invocation.memory(self.memory);
        invocation.turns(self.rounds, |invocation, version| self.turn(invocation, memory, version))
    }
}

impl Arguments {
    fn table(&self, name: &'static str, rows: u64) -> Table {
        Table { name, rows, blob: self.value }
    }

    /// None: of Halcyon.
    fn turn(
        &self,
        invocation: &mut Invocation,
        memory: Option<u64>,
        version: Option<Version>,
    ) -> Result<()> {
        let cage = memory.map(|bytes| Cage::make("chores", bytes)).transpose()?;
        let dir = invocation.fresh(version.map_or("halcyon", |_| "cassandra"))?;
        // Everybody's default, which the oracle does without.
        let plan = Plan::as_it_comes(version, dir, &self.heap).set("auto_snapshot: true");
        let server = Server::start(&invocation.programs, &plan.cage(cage.as_ref()))?;
        self.fill(&server)?;
        let hot = self.table(HOT, self.hot_rows);
        make_hot(&server, hot, WARMS)?;
        let sstables = sstables(&server, TRUNCATED)?;

        let reads = Paced::start(server.port, self.reads, Reads::at_random(hot, 1))?;
        let still = Standstill::watch();
        let stretches = self.stretches(invocation, &server, &reads);
        let (start, asked) = (reads.start, reads.stop());
        let gaps = since(start, still.stop());
        let (stretches, asked) = (stretches?, asked?);
        let timeline = Timeline::of(&stretches, &asked, &gaps);
        for stretch in stretches {
            let heading = stretch.heading;
            let (mut figures, mut details) = stretch.measured(&asked, &gaps);
            if heading == AT_REST {
                figures.add("sstables", sstables as f64);
                details["timeline"] = json!(timeline);
            }
            invocation.record.add_with(heading, &server.contender, figures, details);
        }
        server.stop()?;
        invocation.write()
    }

    /// All tables but the one that is read.
    fn fill(&self, server: &Server) -> Result<()> {
        for name in [FLUSHED, INDEXED] {
            self.table(name, 0).create(server.port)?;
        }
        let mut connection = connection::open(server.port)?;
        create_keyspace(&mut connection, SCRATCH)?;
        for name in [TRUNCATED, DROPPED] {
            let table = self.table(name, self.rows);
            table.create(server.port)?;
            connection.query(&format!(
                "ALTER TABLE {KEYSPACE}.{name} WITH compaction = {{'class': 'SizeTieredCompactionStrategy', 'enabled': false}}"
            ))?;
            for number in 0..self.flushes {
                let part = |number: u64| self.rows * number / self.flushes.max(1);
                let rows = Table { rows: part(number + 1), ..table };
                write(rows, Until::KeysFrom(part(number)), server.port)?;
                server.flush(KEYSPACE)?;
            }
        }
        Ok(())
    }

    /// At rest, and then around each chore. A chore that a rival does not do is missing.
    fn stretches(
        &self,
        invocation: &mut Invocation,
        server: &Server,
        reads: &Paced,
    ) -> Result<Vec<Stretch>> {
        let mut operator = Operator::of(server)?;
        sleep(Duration::from_secs_f64(self.warm_up));
        let rest = || {
            sleep(Duration::from_secs_f64(self.rest));
            Ok(())
        };
        let mut stretches = vec![self.stretch(invocation, server, reads, (AT_REST, 0.0), rest)?];
        for chore in Chore::ALL {
            if chore == Chore::Flush {
                let rows = self.table(FLUSHED, self.memtable_rows);
                write(rows, Until::EveryKey, server.port)?;
            }
            sleep(Duration::from_secs_f64(self.pause));
            let told = || chore.run(&mut operator, self.tables, self.columns);
            let heading = chore.heading();
            let stretch = self.stretch(invocation, server, reads, (heading, self.afterwards), told);
            let who = format!("{}: {heading}", server.contender.name());
            stretches.extend(invocation.or_missing(!server.is_halcyon(), &who, stretch)?);
        }
        Ok(stretches)
    }

    fn stretch(
        &self,
        invocation: &Invocation,
        server: &Server,
        reads: &Paced,
        (heading, afterwards): (&'static str, f64),
        work: impl FnOnce() -> Result<()>,
    ) -> Result<Stretch> {
        let gauge = Gauge::begin(server, &invocation.data, None)?;
        let from = reads.now();
        work()?;
        let done = reads.now();
        sleep(Duration::from_secs_f64(afterwards));
        let until = reads.now();
        let (figures, details) = gauge.end(server, None)?;
        Ok(Stretch { heading, from, done, until, figures, details })
    }
}

fn sstables(server: &Server, table: &str) -> Result<usize> {
    let data = if server.is_halcyon() { "data" } else { "data/data" };
    let folder = table_folder(&server.dir.join(data).join(KEYSPACE), table)?;
    Ok(sstables_in(&folder).len())
}
