//! `cargo x bench steps`: does `compaction_latency_target: auto`, the default, hold, whatever the load?
//!
//! 1. *Steps*: a server in a cage has one table in several SSTables. Reads of hot rows come at a rate that goes up and down in
//!    steps, and stops: first while nothing is compacted, then while one major compaction follows another, without a throttle.
//! 2. *Ingestion*: for each strategy a server of its own, told at first not to compact. The most inserts that it takes are found; then
//!    a part of that many come, beside reads of hot rows, for a while without compaction, which says what the load itself costs, then with
//!    it, and for a while with next to none again: there is more to read by then, and the machine may have changed.
//!
//! Both are Halcyon's alone: no other server takes from its reads what it may compact.

mod pace;
mod page;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::sleep;
use std::time::Duration;

use halcyon_model::units::arguments::size;
use halcyon_oracle::Result;
use pace::Pace;
use page::{AT_REST, COMPACTING, STEP};
use serde::Serialize;
use serde_json::json;

use crate::cage::Cage;
use crate::connection;
use crate::gauge::Gauge;
use crate::invocation::{Experiment, Invocation, Listed};
use crate::latency::{Latencies, Sample, about};
use crate::load::{KEYSPACE, Table, Until, write};
use crate::machine;
use crate::major;
use crate::paced::{Asked, Paced};
use crate::record::Contender;
use crate::rows::{Inserts, Reads, WARMS, make_hot, read_twice};
use crate::server::{Plan, Server};

/// A compaction that runs cannot be told to stop.
const NEXT_TO_NONE: &str = "1MiB/s";

#[derive(clap::Args, Serialize)]
pub(crate) struct Arguments {
    /// Reads a second, step by step; none: `--rates ''`
    #[arg(long, value_delimiter = ',', default_value = "0,2000,20000,2000,0,2000")]
    rates: Vec<String>,
    /// Seconds of a step
    #[arg(long, default_value_t = 20.0)]
    seconds: f64,
    /// Seconds of a step that are not in its figures: caches, and a controller, settle
    #[arg(long, default_value_t = 5.0)]
    settles: f64,
    #[arg(long, default_value_t = 600_000)]
    rows: u64,
    /// Those that are read
    #[arg(long, default_value_t = 50_000)]
    hot_rows: u64,
    /// Bytes of a row's value
    #[arg(long, default_value_t = 1024)]
    value: usize,
    /// Each with all rows, which the first compaction overwrites
    #[arg(long, default_value_t = 2)]
    sstables: u32,
    /// Compaction strategies of which each has its ingestion; none: `--strategies ''`
    #[arg(long, value_delimiter = ',', default_value = "SizeTiered,Leveled,TimeWindow,Unified")]
    strategies: Vec<String>,
    /// Seconds of an ingestion
    #[arg(long, default_value_t = 120.0)]
    ingests: f64,
    /// Reads a second beside it
    #[arg(long, default_value_t = 2000)]
    reads: u64,
    /// Of the most inserts that are taken
    #[arg(long, default_value_t = 0.8)]
    share: f64,
    /// Memory of the cgroup
    #[arg(long, default_value = "2400MiB", value_parser = size)]
    memory: u64,
}

impl Experiment for Arguments {
    const LISTED: Listed = Listed {
        name: "steps",
        asks: "Does compaction take only what the reads leave it, with nothing set, whatever the load?",
        page: page::page,
    };
    const DATA: &'static str = "steps";

    fn shrink(&mut self) {
        self.rates = ["0", "200"].map(str::to_owned).to_vec();
        (self.seconds, self.settles, self.sstables) = (1.5, 0.5, 2);
        (self.rows, self.hot_rows, self.reads) = (2000, 500, 100);
        self.strategies.truncate(1);
        (self.ingests, self.share) = (2.0, 0.1);
    }

    fn run(mut self, invocation: &mut Invocation) -> Result<()> {
        self.rates.retain(|rate| !rate.is_empty());
        self.strategies.retain(|strategy| !strategy.is_empty());
        if !invocation.takes_part("halcyon") {
            return Ok(());
        }
        let memory = invocation.memory(self.memory);
        let cage = memory.map(|bytes| Cage::make("steps", bytes)).transpose()?;
        if !self.rates.is_empty() {
            self.steps(invocation, cage.as_ref())?;
        }
        for strategy in &self.strategies {
            self.ingestion(invocation, cage.as_ref(), strategy)?;
        }
        Ok(())
    }
}

impl Arguments {
    fn plan<'a>(&self, invocation: &Invocation, cage: Option<&'a Cage>) -> Result<Plan<'a>> {
        let plan = Plan::halcyon("as it comes", invocation.fresh("halcyon")?);
        // A throttle would hold a target that the others do not hold.
        Ok(plan.set("compaction_throughput: 0MiB/s").cage(cage))
    }

    fn hot(&self) -> Table {
        Table { name: "steps", rows: self.hot_rows, blob: self.value }
    }

    fn steps(&self, invocation: &mut Invocation, cage: Option<&Cage>) -> Result<()> {
        let server = Server::start(&invocation.programs, &self.plan(invocation, cage)?)?;
        let table = Table { rows: self.rows, ..self.hot() };
        table.create(server.port)?;
        compaction(
            server.port,
            table,
            "'class': 'SizeTieredCompactionStrategy', 'enabled': false",
        )?;
        for _ in 0..self.sstables {
            write(table, Until::EveryKey, server.port)?;
            server.flush(KEYSPACE)?;
        }
        for name in [AT_REST, COMPACTING] {
            read_twice(server.port, self.hot(), WARMS)?;
            let contender = Contender::new("halcyon", name);
            let going = (name == COMPACTING).then(|| Majors::begin(server.port, table.name));
            let stretch = self.step_by_step(invocation, &server, &contender);
            going.map(Majors::end).transpose()?;
            stretch?;
        }
        server.stop()?;
        invocation.write()
    }

    fn step_by_step(
        &self,
        invocation: &mut Invocation,
        server: &Server,
        contender: &Contender,
    ) -> Result<()> {
        let hot = self.hot();
        for (number, rate) in (1..).zip(&self.rates) {
            let a_second: f64 = rate.parse().map_err(|e| format!("--rates {rate}: {e}"))?;
            let paced = match a_second > 0.0 {
                true => Some(Paced::start(server.port, a_second, Reads::at_random(hot, 1))?),
                false => None,
            };
            let pace = Pace::watch(server.port)?;
            sleep(Duration::from_secs_f64(self.settles));
            let gauge = Gauge::begin(server, &invocation.data, None)?;
            let from = paced.as_ref().map(Paced::now).unwrap_or_default();
            sleep(Duration::from_secs_f64(self.seconds - self.settles));
            let until = paced.as_ref().map(Paced::now).unwrap_or_default();
            let (figures, mut details) = gauge.end(server, None)?;
            let asked = paced.map(Paced::stop).transpose()?;
            let asked = asked.unwrap_or(Asked { first: true, ..Asked::default() });
            let samples: Vec<&Sample> = asked.between(from, until).collect();
            let seconds = self.seconds - self.settles;
            let written = figures.get("device_bytes_written").unwrap_or(f64::NAN);
            let figures = figures
                .with("load", machine::load())
                .with("generator_ran_first", f64::from(u8::from(asked.first)))
                .with("unanswered", asked.unanswered.len() as f64)
                .with("compacted_mib_per_second", written / seconds / 1_048_576.0);
            details["p99"] = json!(over_time(&asked.samples.iter().collect::<Vec<_>>(), 0.0));
            details["looks"] = json!(pace.stop()?);
            let heading = format!("step {number}: {rate} reads/s");
            let figures = about(figures, "read_", &samples);
            invocation.record.add_with(&heading, contender, figures, details);
        }
        Ok(())
    }

    fn ingestion(
        &self,
        invocation: &mut Invocation,
        cage: Option<&Cage>,
        strategy: &str,
    ) -> Result<()> {
        let server = Server::start(&invocation.programs, &self.plan(invocation, cage)?)?;
        let (hot, port) = (self.hot(), server.port);
        hot.create(port)?;
        let class = match strategy {
            "TimeWindow" => {
                "'class': 'TimeWindowCompactionStrategy', 'compaction_window_unit': 'MINUTES', 'compaction_window_size': 1".to_owned()
            }
            other => format!("'class': '{other}CompactionStrategy'"),
        };
        compaction(port, hot, &format!("{class}, 'enabled': false"))?;
        make_hot(&server, hot, WARMS)?;
        let most = self.most(port)?;
        let inserts = Paced::start(port, most * self.share, Inserts::after(hot))?;
        let reads = Paced::start(port, self.reads as f64, Reads::at_random(hot, 1))?;
        sleep(Duration::from_secs_f64(self.settles));
        let stretch = |seconds: f64| {
            let from = (reads.now(), inserts.now());
            sleep(Duration::from_secs_f64(seconds));
            Stretch { reads: from.0..reads.now(), inserts: from.1..inserts.now() }
        };
        let before = stretch(self.seconds);
        compaction(port, hot, &format!("{class}, 'enabled': true"))?;
        let pace = Pace::watch(port)?;
        let gauge = Gauge::begin(&server, &invocation.data, None)?;
        let beside = stretch(self.ingests);
        let (figures, mut details) = gauge.end(&server, None)?;
        let (looks, sstables) = (pace.stop()?, sstables(port, hot)?);
        throttle(port, NEXT_TO_NONE)?;
        sleep(Duration::from_secs_f64(self.settles));
        let after = stretch(self.seconds);
        let (reads, inserts) = (reads.stop()?, inserts.stop()?);
        let of_reads: Vec<&Sample> = beside.reads(&reads).collect();
        let of_inserts: Vec<&Sample> = beside.inserts(&inserts).collect();
        details["p99"] = json!(over_time(&of_reads, beside.reads.start.as_secs_f64()));
        details["looks"] = json!(looks);
        let mut figures = figures
            .with("most_per_second", most)
            .with("sstables", sstables)
            .with("load", machine::load())
            .with("generator_ran_first", f64::from(u8::from(reads.first && inserts.first)))
            .with("unanswered", (reads.unanswered.len() + inserts.unanswered.len()) as f64);
        for (name, rests) in
            [("rest", &[&before, &after][..]), ("before", &[&before]), ("after", &[&after])]
        {
            let of_reads = rests.iter().flat_map(|rest| rest.reads(&reads));
            let of_inserts = rests.iter().flat_map(|rest| rest.inserts(&inserts));
            figures = figures
                .fields(&format!("{name}_read_"), &Latencies::of_samples(of_reads))
                .fields(&format!("{name}_insert_"), &Latencies::of_samples(of_inserts));
        }
        let figures = about(about(figures, "read_", &of_reads), "insert_", &of_inserts);
        let heading = format!("{strategy}CompactionStrategy");
        invocation.record.add_with(&heading, &server.contender, figures, details);
        server.stop()?;
        invocation.write()
    }

    /// Inserts a second, as many as are taken.
    fn most(&self, port: u16) -> Result<f64> {
        // A table of its own, for its rows are others.
        let table = Table { name: "most", rows: u64::MAX >> 1, blob: self.value };
        table.create(port)?;
        let time = Duration::from_secs_f64(self.seconds / 2.0);
        let per_second = write(table, Until::Elapsed(time), port)?;
        connection::open(port)?.query(&format!("DROP TABLE {KEYSPACE}.{}", table.name))?;
        Ok(per_second)
    }
}

/// From when to when, by the clock of each loop.
struct Stretch {
    reads: Range<Duration>,
    inserts: Range<Duration>,
}

impl Stretch {
    fn reads<'a>(&self, asked: &'a Asked) -> impl Iterator<Item = &'a Sample> + use<'a> {
        asked.between(self.reads.start, self.reads.end)
    }

    fn inserts<'a>(&self, asked: &'a Asked) -> impl Iterator<Item = &'a Sample> + use<'a> {
        asked.between(self.inserts.start, self.inserts.end)
    }
}

/// One major compaction after another.
struct Majors {
    port: u16,
    table: &'static str,
    ends: Arc<AtomicBool>,
    going: std::thread::JoinHandle<std::result::Result<(), String>>,
}

impl Majors {
    fn begin(port: u16, table: &'static str) -> Majors {
        let ends = Arc::new(AtomicBool::new(false));
        let going = std::thread::spawn({
            let ends = ends.clone();
            move || {
                while !ends.load(Relaxed) {
                    major::run(port, KEYSPACE, table).map_err(|e| e.to_string())?;
                }
                Ok(())
            }
        });
        Majors { port, table, ends, going }
    }

    fn end(self) -> Result<()> {
        self.ends.store(true, Relaxed);
        major::stop(self.port, KEYSPACE, self.table)?;
        Ok(self.going.join().map_err(|_| "the thread that compacts panicked")??)
    }
}

/// Chunks of 4 KiB: of larger ones almost all have a hot row, and what is hot does not fit the caches twice, which a switch needs.
fn compaction(port: u16, table: Table, options: &str) -> Result<()> {
    let alter = format!(
        "ALTER TABLE {KEYSPACE}.{} WITH compaction = {{{options}}} \
         AND compression = {{'class': 'LZ4Compressor', 'chunk_length_in_kb': 4}}",
        table.name
    );
    connection::open(port)?.query(&alter)?;
    Ok(())
}

/// Of all compactions that run, and those that begin.
fn throttle(port: u16, throughput: &str) -> Result<()> {
    let update = format!(
        "UPDATE system_views.settings SET value = '{throughput}' WHERE name = 'compaction_throughput'"
    );
    connection::open(port)?.query(&update)?;
    Ok(())
}

fn sstables(port: u16, table: Table) -> Result<f64> {
    let select = format!(
        "SELECT sstables FROM halcyon_views.compaction_backlog WHERE keyspace_name = '{KEYSPACE}' AND table_name = '{}'",
        table.name
    );
    let page = connection::open(port)?.page(&select)?;
    let cell = page.rows.first().and_then(|row| row.first()?.as_ref()?.first_chunk());
    Ok(cell.map_or(f64::NAN, |bytes| f64::from(i32::from_be_bytes(*bytes))))
}

/// The p99 of each `STEP`, in µs.
fn over_time(samples: &[&Sample], from: f64) -> Vec<f64> {
    let mut steps: Vec<Vec<u64>> = Vec::new();
    for sample in samples {
        let step = ((sample.due.as_secs_f64() - from) / STEP) as usize;
        if steps.len() <= step {
            steps.resize(step + 1, Vec::new());
        }
        steps[step].push(sample.nanos);
    }
    steps.into_iter().map(|nanos| Latencies::of(nanos).p99.round()).collect()
}
