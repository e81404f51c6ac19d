//! `cargo x bench E1`: read latency while a major compaction runs, in Halcyon and in Cassandra, and (E2) who made a read wait.
//!
//! 1. Programs are built, the inputs made (or found).
//! 2. Round after round, each mode has its turn (`turn.rs`): a server in a cage, reads at a fixed rate, idle, compacting at full speed,
//!    and throttled.
//! 3. Latency targets: Halcyon, told to hold the p99 of its reads so and so far above what it is when idle.
//! 4. Tables, pictures and records are written.
//!
//! One server lives at a time: two would share the memory that the page cache takes.

mod gauge;
mod keys;
mod modes;
mod plot;
mod record;
mod report;
mod subject;
mod turn;

use std::time::Duration;

use keys::Keys;
use modes::Mode;
use record::{Held, Record};
use serde_json::json;
use subject::Making;
use turn::{Phase, Schedule, Turn};

use super::cage::Cage;
use super::contender::Spread;
use super::dataset::{Codec, DataSet};
use super::machine::{self, drop_page_cache};
use super::programs::Programs;
use super::{Common, Places, parse_size};
use crate::Result;

const CODEC: &str = "lz4-4";
/// So that a target has something to hold.
const COLD_EVERY_WITH_TARGET: u64 = 2;

#[derive(clap::Args, Clone)]
pub(crate) struct Arguments {
    /// Uncompressed bytes of the inputs
    #[arg(long, default_value = "6GiB", value_parser = parse_size)]
    size: u64,
    #[arg(long, default_value_t = 24)]
    sstables: u32,
    /// Reads per second
    #[arg(long, default_value_t = 2000.0)]
    rate: f64,
    #[arg(long, default_value_t = 8000)]
    hot_rows: u64,
    /// One read in so many is of a row that no cache has
    #[arg(long, default_value_t = 20)]
    cold_every: u64,
    /// Seconds of the idle stretch
    #[arg(long, default_value_t = 12.0)]
    idle: f64,
    /// Seconds that are looked at after the compaction
    #[arg(long, default_value_t = 5.0)]
    afterwards: f64,
    /// Seconds of a throttled compaction that are looked at; 0: none
    #[arg(long, default_value_t = 15.0)]
    throttled: f64,
    /// Seconds of reads before, for a JVM's compiler
    #[arg(long, default_value_t = 20.0)]
    warm_up: f64,
    /// Turns of each mode of Halcyon
    #[arg(long, default_value_t = 2)]
    rounds: u32,
    /// Turns of each mode of Cassandra
    #[arg(long, default_value_t = 1)]
    cassandra_rounds: u32,
    /// Only these of: direct, quarter, uncached, standard (Halcyon), direct, direct-reads, buffered (Cassandra)
    #[arg(long, value_delimiter = ',')]
    modes: Vec<String>,
    /// Latency targets in ms above the idle p99; none: `--targets ''`
    #[arg(long, value_delimiter = ',', default_value = "1,2,5")]
    targets: Vec<String>,
    /// Memory of the cgroup
    #[arg(long, default_value = "2400MiB", value_parser = parse_size)]
    memory: u64,
    /// Of Cassandra
    #[arg(long, default_value = "1200m")]
    heap: String,
    #[command(flatten)]
    common: Common,
}

impl Arguments {
    fn shrink(&mut self) {
        self.size = 8 << 20;
        (self.sstables, self.rate, self.hot_rows, self.cold_every) = (4, 200.0, 50, 4);
        (self.idle, self.afterwards, self.throttled) = (0.5, 0.5, 0.5);
        self.rounds = 1;
        self.modes = vec!["direct".to_owned()];
        self.targets = vec!["5".to_owned()];
    }

    fn schedule(&self, set: &DataSet) -> Schedule {
        let seconds = Duration::from_secs_f64;
        let hot = self.hot_rows.min(set.keys() / 2);
        Schedule {
            keys: Keys { partitions: set.keys(), hot, cold_every: self.cold_every, sweeps: false },
            rate: self.rate,
            cold: !self.common.tiny,
            idle: seconds(self.idle),
            afterwards: seconds(self.afterwards),
            throttled: seconds(self.throttled),
            warm_up: seconds(self.warm_up),
            step: Duration::from_millis(500),
        }
    }

    /// The modes that take part, with the number of their turns.
    fn modes(&self) -> Vec<(Mode, u32)> {
        let wanted = |list: &[String], word: &str| list.iter().any(|listed| listed == word);
        let takes_part = |mode: &Mode| {
            let short = match mode.contender.mode.as_str() {
                modes::QUARTER => "quarter",
                name => name,
            };
            self.common.takes_part(&mode.contender.peer)
                && (self.modes.is_empty() || wanted(&self.modes, short))
        };
        let rounds = |mode: &Mode| {
            if mode.version.is_none() { self.rounds } else { self.cassandra_rounds }
        };
        let all = modes::all().into_iter().filter(takes_part);
        all.map(|mode| (mode.clone(), rounds(&mode))).collect()
    }
}

pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let mut arguments = arguments.clone();
    if arguments.common.tiny {
        arguments.shrink();
    }
    let places = Places::make(&arguments.common, "bench/data", "bench/E1")?;
    let programs = Programs::build(arguments.common.tiny)?;
    let codec: Codec = CODEC.parse()?;
    let set = DataSet::open(&programs, &places.data, &codec, arguments.size, arguments.sstables)?;
    let mut bench = Bench::new(arguments, places, set)?;
    bench.rounds(&programs)?;
    bench.targets(&programs)?;
    bench.write()?;
    bench.places.show()
}

struct Bench {
    arguments: Arguments,
    places: Places,
    set: DataSet,
    record: Record,
    /// None where there can be no cgroup.
    memory: Option<u64>,
}

impl Bench {
    fn new(arguments: Arguments, places: Places, set: DataSet) -> Result<Bench> {
        let settings = json!({
            "rate": arguments.rate,
            "hot_rows": arguments.schedule(&set).keys.hot,
            "cold_every": arguments.cold_every,
            "idle_seconds": arguments.idle,
            "afterwards_seconds": arguments.afterwards,
            "throttled_seconds": arguments.throttled,
            "warm_up_seconds": arguments.warm_up,
            "rounds": arguments.rounds,
            "cassandra_rounds": arguments.cassandra_rounds,
            "memory_mib": arguments.memory >> 20,
            "heap": arguments.heap,
        });
        let mut record = Record {
            machine: machine::describe(),
            settings,
            inputs: set.content.clone(),
            turns: Vec::new(),
            held: Vec::new(),
            missing: Vec::new(),
        };
        let memory = match Cage::make("try", arguments.memory) {
            Ok(_) => Some(arguments.memory),
            Err(error) => {
                record
                    .miss(format!("memory limits, and what depends on them: no cgroup ({error})"));
                None
            }
        };
        if !arguments.common.tiny && !drop_page_cache() {
            record.miss("an empty page cache at the start: not allowed to drop it".to_owned());
        }
        Ok(Bench { arguments, places, set, record, memory })
    }

    fn making<'a>(&'a self, programs: &'a Programs) -> Making<'a> {
        Making {
            programs,
            set: &self.set,
            home: &self.places.data,
            memory: self.memory,
            heap: &self.arguments.heap,
        }
    }

    fn rounds(&mut self, programs: &Programs) -> Result<()> {
        let schedule = self.arguments.schedule(&self.set);
        let modes = self.arguments.modes();
        for round in 0..modes.iter().map(|(_, rounds)| *rounds).max().unwrap_or(0) {
            for (mode, _) in modes.iter().filter(|(_, rounds)| round < *rounds) {
                match turn::run(&self.making(programs), mode, &schedule) {
                    Ok(turn) => {
                        say(&turn);
                        self.record.turns.push(turn);
                        self.write()?;
                    }
                    // One rival less is still a result.
                    Err(error) if mode.version.is_some() => {
                        self.record.miss(format!("{}: {error}", mode.contender.name()));
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    fn targets(&mut self, programs: &Programs) -> Result<()> {
        let takes_part = self.arguments.common.takes_part("halcyon");
        let Some(direct) = modes::all().into_iter().next().filter(|_| takes_part) else {
            return Ok(());
        };
        let mut schedule = self.arguments.schedule(&self.set);
        schedule.keys.cold_every = COLD_EVERY_WITH_TARGET;
        schedule.throttled = Duration::ZERO;
        let words: Vec<String> = self.arguments.targets.clone();
        let mut idle: Vec<f64> = Vec::new();
        for above_ms in words.iter().filter(|word| !word.is_empty()) {
            let above_ms: u64 = above_ms.parse().map_err(|_| format!("{above_ms}: no number"))?;
            if idle.is_empty() {
                // How slow such reads are when nothing else goes on.
                let turn = turn::run(&self.making(programs), &direct, &schedule)?;
                say(&turn);
                idle.extend(turn.of(Phase::Idle).map(|s| s.all.p99 / 1e3));
            }
            let idle_p99 = Spread::of(idle.iter().copied()).median;
            let target_us = above_ms * 1000 + (idle_p99 * 1000.0).ceil() as u64;
            let target_ms = target_us as f64 / 1000.0;
            let mode = direct.with_target(&format!("target {target_ms:.2} ms"), target_us);
            let turn = turn::run(&self.making(programs), &mode, &schedule)?;
            say(&turn);
            self.record.held.push(Held { above_ms, target_ms, idle_p99, turn });
        }
        Ok(())
    }

    fn write(&self) -> Result<()> {
        let Bench { record, places, .. } = self;
        let mut plots = vec![
            ("timeline.svg", plot::timelines(record)),
            ("purposes.svg", plot::purposes(record)),
        ];
        if !record.held.is_empty() {
            plots.push(("targets.svg", plot::targets(&record.held)));
        }
        places.write_plots(&record.to_json(), &report::markdown(record), &plots)
    }
}

impl Record {
    fn miss(&mut self, what: String) {
        eprintln!("bench: missing: {what}");
        self.missing.push(what);
    }
}

fn say(turn: &Turn) {
    for stretch in &turn.stretches {
        let (hot, cold) = (&stretch.hot.latencies, &stretch.cold.latencies);
        eprintln!(
            "bench: {:40} {:10} {:6.1} s  hot p50 {:6.0} p99 {:7.0} p99.9 {:7.0} max {:8.0} µs  cold p50 {:6.0} p99 {:7.0}  CPU {:5.1} s  failed {}",
            turn.contender.name(),
            stretch.phase.name(),
            stretch.seconds,
            hot.p50,
            hot.p99,
            hot.p999,
            hot.max,
            cold.p50,
            cold.p99,
            stretch.measured.cost.cpu_seconds,
            stretch.hot.failed + stretch.cold.failed,
        );
    }
    eprintln!(
        "bench: {:40} {:.0} MiB/s of raw rows; generator {:.1} % of a core; load before {:.1}",
        turn.contender.name(),
        turn.rate(),
        100.0 * turn.generator_cpu,
        turn.load
    );
}
