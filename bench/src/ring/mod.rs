//! `cargo x bench ring`: E7, a major compaction inside an unmodified Cassandra while it is read, with the plug-in's jar and without.
//!
//! 1. Programs, jar and data sets are made (or found); each node of a ring has files of its own.
//! 2. Round after round, on one node and on a ring: Cassandra as it is, then Cassandra with the jar (A B A B). Each has its turn with
//!    every data set (`turn.rs`) in nodes that are started for it and stopped after it (`nodes.rs`).
//! 3. All outputs of a data set must hold the same partitions, rows and cells.

mod nodes;
mod page;
mod turn;

use std::path::PathBuf;
use std::time::Duration;

use halcyon_model::units::arguments::size;
use halcyon_oracle::Result;
use nodes::{Making, Ring, contenders};
use serde::Serialize;

use crate::dataset::{Codec, DataSet, Shape};
use crate::invocation::{Experiment, Invocation, Listed};
use crate::keys::Keys;
use crate::read_ahead::ReadAhead;
use crate::record::Contender;
use crate::stretch::{Phase, Schedule};

const CODEC: &str = "lz4-4";

#[derive(clap::Args, Serialize)]
pub(crate) struct Arguments {
    /// Uncompressed bytes of each data set
    #[arg(long, default_value = "6GiB", value_parser = size)]
    size: u64,
    #[arg(long, default_value_t = 24)]
    sstables: u32,
    /// Data sets: rows (those of the other experiments), wide (one row of 8 KiB in a partition)
    #[arg(long, value_delimiter = ',', default_value = "rows,wide")]
    sets: Vec<Shape>,
    /// Nodes of a ring, each of which holds all rows
    #[arg(long, value_delimiter = ',', default_value = "1,3", value_parser = clap::value_parser!(u8).range(1..=9))]
    nodes: Vec<u8>,
    /// Reads per second of a node that is alone
    #[arg(long, default_value_t = 2000.0)]
    rate: f64,
    /// Reads per second of a ring of several nodes, at QUORUM
    #[arg(long, default_value_t = 300.0)]
    ring_rate: f64,
    #[arg(long, default_value_t = 8000)]
    hot_rows: u64,
    /// One read in this many is of a row that no cache has
    #[arg(long, default_value_t = 20)]
    cold_every: u64,
    /// Seconds of the idle stretch
    #[arg(long, default_value_t = 10.0)]
    idle: f64,
    /// Seconds that are looked at after the compaction
    #[arg(long, default_value_t = 10.0)]
    afterwards: f64,
    /// Seconds of reads before, for the JVM's compiler; of nodes that have just started, for each of them
    #[arg(long, default_value_t = 40.0)]
    warm_up: f64,
    /// Turns of each contender
    #[arg(long, default_value_t = 2)]
    rounds: u32,
    /// Memory of the cgroup of each node and its child
    #[arg(long, default_value = "2400MiB", value_parser = size)]
    memory: u64,
    #[arg(long, default_value = "1200m")]
    heap: String,
    /// KiB of the device's read-ahead, put back at the end: Cassandra asks for 8 to 64, machines come with more
    #[arg(long, default_value_t = 64)]
    read_ahead: u64,
    /// Options of the plug-in beside `binary`, as latency_target=10ms
    #[arg(long, value_delimiter = ',')]
    plugin: Vec<String>,
}

impl Experiment for Arguments {
    const LISTED: Listed = Listed {
        name: "ring",
        asks: "What does the plug-in change for an unmodified Cassandra that compacts, alone and in a ring (E7)?",
        page: page::page,
    };
    const DATA: &'static str = "";
    const EXAMPLES: &'static [(&'static str, &'static str)] = &[("halcyon-compaction", "measure")];

    fn shrink(&mut self) {
        self.size = 8 << 20;
        (self.sstables, self.rate, self.hot_rows, self.cold_every) = (4, 200.0, 50, 4);
        (self.idle, self.afterwards, self.warm_up) = (0.5, 0.5, 0.5);
        (self.rounds, self.nodes) = (1, vec![1]);
    }

    fn run(self, invocation: &mut Invocation) -> Result<()> {
        let codec: Codec = CODEC.parse()?;
        let sets = DataSet::open_all(invocation, &codec, &self.sets, self.size, self.sstables)?;
        let memory = invocation.memory(self.memory);
        // Lives until the end. A tiny run leaves the machine as it is.
        let _read_ahead = (!invocation.tiny).then(|| self.set_read_ahead(invocation));
        invocation.drop_page_cache();
        let jar = invocation.programs.plugin()?;
        let mut bench = Bench { arguments: &self, invocation, sets, memory, jar };
        bench.rounds()?;
        bench.check_content()
    }
}

impl Arguments {
    /// None where it is not permitted.
    fn set_read_ahead(&self, invocation: &mut Invocation) -> Option<ReadAhead> {
        let set = ReadAhead::of(&invocation.data).and_then(|read_ahead| {
            read_ahead.set(self.read_ahead)?;
            Ok(read_ahead)
        });
        let missed = |error| invocation.record.miss(format!("read-ahead of the device: {error}"));
        set.map_err(missed).ok()
    }
}

/// What a turn is listed under.
fn heading(set: Shape, nodes: u8, phase: Phase) -> String {
    format!("{}, {nodes}: {}", set.name(), phase.name())
}

struct Bench<'a> {
    arguments: &'a Arguments,
    invocation: &'a mut Invocation,
    sets: Vec<DataSet>,
    /// None where there can be no cgroup.
    memory: Option<u64>,
    jar: PathBuf,
}

impl Bench<'_> {
    fn schedule(&self, set: &DataSet, nodes: u8) -> Schedule {
        let Arguments { hot_rows, cold_every, rate, ring_rate, .. } = *self.arguments;
        let seconds = Duration::from_secs_f64;
        let partitions = set.keys();
        Schedule {
            keys: Keys { partitions, hot: hot_rows.min(partitions / 2), cold_every, sweeps: false },
            rate: if nodes == 1 { rate } else { ring_rate },
            cold: !self.invocation.tiny,
            idle: seconds(self.arguments.idle),
            afterwards: seconds(self.arguments.afterwards),
            throttled: Duration::ZERO,
            warm_up: seconds(self.arguments.warm_up),
            step: Duration::from_millis(500),
        }
    }

    fn rounds(&mut self) -> Result<()> {
        let takes_part = |who: &Contender| self.invocation.takes_part(&who.peer);
        let contenders: Vec<Contender> = contenders().into_iter().filter(takes_part).collect();
        for _ in 0..self.arguments.rounds {
            for nodes in &self.arguments.nodes {
                for who in &contenders {
                    let outcome = self.turns(who, *nodes);
                    self.invocation.or_missing(!who.is_halcyon(), &who.name(), outcome)?;
                }
            }
        }
        Ok(())
    }

    /// Those of one contender with every data set.
    fn turns(&mut self, who: &Contender, nodes: u8) -> Result<()> {
        let making = Making {
            home: &self.invocation.data,
            jar: &self.jar,
            binary: self.invocation.programs.halcyon(),
            options: &self.arguments.plugin,
            memory: self.memory,
            heap: &self.arguments.heap,
        };
        let mut ring = Ring::start(&making, who, nodes, &self.invocation.programs)?;
        let mut turns = Vec::new();
        for set in &self.sets {
            let mut copies = vec![set.clone()];
            for number in 2..=nodes {
                copies.push(set.copy(number)?);
            }
            let mut schedule = self.schedule(set, nodes);
            if turns.is_empty() {
                // One node in this many coordinates a read.
                schedule.warm_up *= u32::from(nodes);
            }
            let stretches = turn::run(&mut ring, &copies, &schedule, &self.invocation.programs)?;
            turns.push((set.kind.shape, stretches));
        }
        ring.stop();
        for (shape, stretches) in turns {
            self.invocation.note(who, stretches, |phase| heading(shape, nodes, phase))?;
        }
        Ok(())
    }

    /// All contenders leave the same: who loses rows must not win a race.
    fn check_content(&self) -> Result<()> {
        const WHAT: [&str; 3] = ["output_partitions", "output_rows", "output_cells"];
        let full_speed = format!(": {}", Phase::FullSpeed.name());
        for set in &self.sets {
            let is_of = |heading: &str| {
                heading.starts_with(set.kind.shape.name()) && heading.ends_with(&full_speed)
            };
            let turns = self.invocation.record.turns.iter().filter(|turn| is_of(&turn.heading));
            let content = turns.map(|turn| WHAT.map(|key| turn.get(key)));
            let all: Vec<_> = content.collect();
            if all.iter().any(|content| Some(content) != all.first()) {
                let set = set.kind.shape.name();
                return Err(format!("{set}: outputs differ ({WHAT:?}): {all:?}").into());
            }
        }
        Ok(())
    }
}
