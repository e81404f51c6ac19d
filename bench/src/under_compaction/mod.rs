//! `cargo x bench E1`: read latency while a major compaction runs, in Halcyon and in Cassandra, and (E2) who made a read wait.
//!
//! 1. Programs are built, the inputs made (or found).
//! 2. Round after round, each mode has its turn (`turn.rs`): a server in a cage, reads at a fixed rate, idle, compacting at full speed,
//!    and throttled.
//! 3. After it, in some modes, turns in which `latte` reads, a client that is not ours (`by_latte.rs`).
//! 4. Latency targets: Halcyon holds the p99 of its reads a number of milliseconds above its idle value.
//!
//! One server lives at a time: two would share the memory that the page cache takes.

mod by_latte;
mod modes;
mod page;
mod subject;
mod turn;

use std::time::Duration;

use by_latte::Warmth;
use halcyon_model::units::arguments::size;
use halcyon_oracle::Result;
use modes::Mode;
use serde::Serialize;
use subject::Making;

use crate::dataset::{Codec, DataSet, Shape};
use crate::invocation::{Experiment, Invocation, Listed};
use crate::keys::Keys;
use crate::latte::Latte;
use crate::stretch::{Phase, Schedule, Stretch};

const CODEC: &str = "lz4-4";
/// So that a target has something to hold.
const COLD_EVERY_WITH_TARGET: u64 = 2;

#[derive(clap::Args, Serialize)]
pub(crate) struct Arguments {
    /// Uncompressed bytes of the inputs
    #[arg(long, default_value = "6GiB", value_parser = size)]
    size: u64,
    #[arg(long, default_value_t = 24)]
    sstables: u32,
    /// Reads per second
    #[arg(long, default_value_t = 2000.0)]
    rate: f64,
    #[arg(long, default_value_t = 8000)]
    hot_rows: u64,
    /// One read in this many is of a row that no cache has
    #[arg(long, default_value_t = 20)]
    cold_every: u64,
    /// Seconds of the idle stretch
    #[arg(long, default_value_t = 12.0)]
    idle: f64,
    /// Seconds that are looked at after the compaction
    #[arg(long, default_value_t = 10.0)]
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
    /// Only: direct, auto, quarter, auto-quarter, many, wide, uncached, standard (Halcyon), direct, many, wide, direct-reads,
    /// buffered (Cassandra)
    #[arg(long, value_delimiter = ',')]
    modes: Vec<String>,
    /// Latency targets in ms above the idle p99; none: `--targets ''`
    #[arg(long, value_delimiter = ',', default_value = "1,2,5")]
    targets: Vec<String>,
    /// Read with `latte` too; where it is not on the path it is built, once
    #[arg(long, default_value_t = true, action = clap::ArgAction::Set)]
    latte: bool,
    /// Memory of the cgroup
    #[arg(long, default_value = "2400MiB", value_parser = size)]
    memory: u64,
    /// Of Cassandra
    #[arg(long, default_value = "1200m")]
    heap: String,
}

impl Experiment for Arguments {
    const LISTED: Listed = Listed {
        name: "E1",
        asks: "How long do reads take while it compacts (E1), and who made them wait (E2)?",
        page: page::page,
    };
    const DATA: &'static str = "";
    const EXAMPLES: &'static [(&'static str, &'static str)] = &[("halcyon-compaction", "measure")];

    fn shrink(&mut self) {
        self.size = 8 << 20;
        (self.sstables, self.rate, self.hot_rows, self.cold_every) = (4, 200.0, 50, 4);
        (self.idle, self.afterwards, self.throttled) = (0.5, 0.5, 0.5);
        self.rounds = 1;
        self.modes = vec!["direct".to_owned()];
        self.targets = vec!["5".to_owned()];
    }

    fn run(self, invocation: &mut Invocation) -> Result<()> {
        let memory = invocation.memory(self.memory);
        let latte = Latte::wanted(self.latte, invocation);
        let mut bench = Bench { arguments: &self, invocation, sets: Vec::new(), memory, latte };
        bench.open_sets()?;
        bench.invocation.drop_page_cache();
        bench.rounds()?;
        bench.targets()
    }
}

struct Bench<'a> {
    arguments: &'a Arguments,
    invocation: &'a mut Invocation,
    /// One for each shape of rows that is read.
    sets: Vec<DataSet>,
    /// None where there can be no cgroup.
    memory: Option<u64>,
    latte: Option<Latte>,
}

impl Bench<'_> {
    /// Latency targets are held on `Rows`, whatever the modes read.
    fn open_sets(&mut self) -> Result<()> {
        let codec: Codec = CODEC.parse()?;
        let mut shapes = vec![Shape::Rows];
        if self.modes().iter().any(|(mode, _)| mode.shape == Shape::Wide) {
            shapes.push(Shape::Wide);
        }
        let Arguments { size, sstables, .. } = *self.arguments;
        self.sets = DataSet::open_all(self.invocation, &codec, &shapes, size, sstables)?;
        Ok(())
    }

    fn set(&self, mode: &Mode) -> Result<&DataSet> {
        let set = self.sets.iter().find(|set| set.kind.shape == mode.shape);
        Ok(set.ok_or("no such rows")?)
    }

    fn schedule(&self, mode: &Mode) -> Result<Schedule> {
        let Arguments { hot_rows, cold_every, rate, .. } = *self.arguments;
        let seconds = Duration::from_secs_f64;
        let partitions = self.set(mode)?.keys();
        let hot = mode.hot_rows.unwrap_or(hot_rows).min(partitions / 2);
        Ok(Schedule {
            keys: Keys { partitions, hot, cold_every, sweeps: false },
            rate,
            cold: !self.invocation.tiny,
            idle: seconds(self.arguments.idle),
            afterwards: seconds(self.arguments.afterwards),
            throttled: seconds(self.arguments.throttled),
            warm_up: seconds(self.arguments.warm_up),
            step: Duration::from_millis(500),
        })
    }

    /// The modes that take part, with the number of their turns.
    fn modes(&self) -> Vec<(Mode, u32)> {
        let wanted = &self.arguments.modes;
        let takes_part = |mode: &Mode| {
            self.invocation.takes_part(&mode.contender.peer)
                && (wanted.is_empty() || wanted.iter().any(|listed| listed == mode.short))
        };
        let Arguments { rounds, cassandra_rounds, .. } = *self.arguments;
        let rounds = |mode: &Mode| if mode.version.is_none() { rounds } else { cassandra_rounds };
        let all = modes::all().into_iter().filter(takes_part);
        all.map(|mode| (mode.clone(), rounds(&mode))).collect()
    }

    /// In which latte reads, if a warmth is given.
    fn turn(
        &self,
        mode: &Mode,
        schedule: &Schedule,
        latte: Option<(&Latte, Warmth)>,
    ) -> Result<Vec<Stretch>> {
        let memory = self.memory.map(|bytes| bytes / mode.share);
        let making = Making {
            programs: &self.invocation.programs,
            set: self.set(mode)?,
            home: &self.invocation.data,
            memory,
            heap: &self.arguments.heap,
        };
        let mut stretches = match latte {
            None => turn::run(&making, mode, schedule)?,
            Some((latte, warmth)) => by_latte::run(&making, mode, schedule, latte, warmth)?,
        };
        let memory = memory.map_or(f64::NAN, |bytes| bytes as f64);
        for Stretch { figures, .. } in &mut stretches {
            figures.add("memory_bytes", memory);
        }
        Ok(stretches)
    }

    fn rounds(&mut self) -> Result<()> {
        let modes = self.modes();
        for round in 0..modes.iter().map(|(_, rounds)| *rounds).max().unwrap_or(0) {
            for (mode, _) in modes.iter().filter(|(_, rounds)| round < *rounds) {
                let schedule = self.schedule(mode)?;
                self.note_or_miss(mode, "", self.turn(mode, &schedule, None))?;
                for warmth in Warmth::ALL.into_iter().filter(|_| mode.has_latte()) {
                    let Some(latte) = &self.latte else { continue };
                    let turn = self.turn(mode, &schedule, Some((latte, warmth)));
                    self.note_or_miss(mode, warmth.suffix(), turn)?;
                }
            }
        }
        Ok(())
    }

    fn note_or_miss(
        &mut self,
        mode: &Mode,
        suffix: &str,
        turn: Result<Vec<Stretch>>,
    ) -> Result<()> {
        let who = format!("{}{suffix}", mode.contender.name());
        match self.invocation.or_missing(mode.version.is_some(), &who, turn)? {
            Some(stretches) => self.note(mode, suffix, stretches),
            None => Ok(()),
        }
    }

    fn note(&mut self, mode: &Mode, suffix: &str, stretches: Vec<Stretch>) -> Result<()> {
        let heading = |phase: Phase| format!("{}{suffix}", phase.name());
        self.invocation.note(&mode.contender, stretches, heading)
    }

    fn targets(&mut self) -> Result<()> {
        let takes_part = self.invocation.takes_part("halcyon");
        let Some(direct) = modes::all().into_iter().next().filter(|_| takes_part) else {
            return Ok(());
        };
        let mut schedule = self.schedule(&direct)?;
        schedule.keys.cold_every = COLD_EVERY_WITH_TARGET;
        schedule.throttled = Duration::ZERO;
        let mut idle_p99_us = None;
        for above_ms in self.arguments.targets.iter().filter(|word| !word.is_empty()) {
            let above_ms: u64 = above_ms.parse().map_err(|_| format!("{above_ms}: no number"))?;
            let idle = match idle_p99_us {
                Some(idle) => idle,
                // How slow such reads are while nothing compacts.
                None => {
                    let stretches = self.turn(&direct, &schedule, None)?;
                    let idle = stretches.iter().find(|stretch| stretch.phase == Phase::Idle);
                    idle.and_then(|idle| idle.figures.get("all_p99_us")).ok_or("no idle reads")?
                }
            };
            idle_p99_us = Some(idle);
            let target_us = above_ms * 1000 + idle.ceil() as u64;
            let target_ms = target_us as f64 / 1000.0;
            let mode =
                direct.with_target(&format!("target {target_ms:.2} ms"), &format!("{target_us}us"));
            let mut stretches = self.turn(&mode, &schedule, None)?;
            for Stretch { figures, .. } in &mut stretches {
                figures.add("above_idle_ms", above_ms as f64);
                figures.add("target_ms", target_ms);
                figures.add("idle_p99_ms", idle / 1000.0);
            }
            self.note(&mode, &page::with_target(above_ms), stretches)?;
        }
        Ok(())
    }
}
