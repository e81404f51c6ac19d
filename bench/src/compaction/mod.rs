//! `cargo x bench compaction`: major compaction of the same SSTables, by Halcyon and by Cassandra, in turn.
//!
//! 1. Programs are built, inputs made (or found), nodes started: everything that is not to be timed.
//! 2. For each compressor, round after round: each contender compacts once, page cache dropped before (A B C A B C, so that a
//!    change of the machine's mood meets all).
//! 3. The bounds of this compressor: the codec alone, the device alone, on the same files.
//! 4. One run of Halcyon under `perf`, if that is there: what bounds it.
//! 5. On the first compressor: Halcyon with other buffers.
//! 6. All outputs must hold the same partitions, rows and cells. Then table, plot and records are written.

mod cassandra;
mod halcyon;
mod plot;
mod record;
mod report;

use cassandra::Cassandra;
use halcyon::{Buffers, Place};
use record::{Bounds, Record, Run};
use serde_json::Value;

use super::contender::{Contender, Spread};
use super::dataset::{Codec, DataSet};
use super::machine::{self, drop_page_cache};
use super::programs::Programs;
use super::{Common, Places, parse_size, profile};
use crate::Result;

/// Raw bytes that the codec's bound is measured on: enough for a steady rate.
const CODEC_SAMPLE: u64 = 512 << 20;
const TINY_SIZE: u64 = 4 << 20;

#[derive(clap::Args, Clone)]
pub(crate) struct Arguments {
    /// Uncompressed bytes of the inputs
    #[arg(long, default_value = "4GiB", value_parser = parse_size)]
    size: u64,
    #[arg(long, default_value_t = 24)]
    sstables: u32,
    /// Times that each mode of Halcyon runs, on the first compressor
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// Times that each mode of Cassandra runs, on the first compressor
    #[arg(long, default_value_t = 2)]
    cassandra_rounds: u32,
    /// Times that everything runs on the other compressors
    #[arg(long, default_value_t = 1)]
    other_rounds: u32,
    /// Only these of: direct, uncached, standard (Halcyon), buffered, direct-reads, direct (Cassandra)
    #[arg(long, value_delimiter = ',')]
    modes: Vec<String>,
    #[arg(long, value_delimiter = ',', default_value = "lz4-4,lz4-16,zstd-16")]
    compressors: Vec<Codec>,
    /// Also Halcyon with 256 KiB against 1 MiB, read-ahead 1, 2 and 4 deep, this many times each
    #[arg(long, default_value_t = 0)]
    buffer_rounds: u32,
    #[command(flatten)]
    common: Common,
}

pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let mut arguments = arguments.clone();
    if arguments.common.tiny {
        arguments.size = TINY_SIZE;
        (arguments.rounds, arguments.other_rounds) = (1, 1);
        arguments.buffer_rounds = 0;
    }
    let places = Places::make(&arguments.common, "bench/data", "bench/compaction")?;
    if !arguments.common.tiny && !drop_page_cache() {
        eprintln!(
            "bench: the page cache cannot be dropped between runs; be root to compare them cold"
        );
    }
    let mut bench = Bench::prepare(arguments, places)?;
    let codecs = bench.arguments.compressors.clone();
    for codec in &codecs {
        bench.codec(codec)?;
        bench.write()?;
    }
    if let Some(first) = codecs.first() {
        bench.buffers(first)?;
    }
    bench.write()?;
    println!("{}", report::markdown(&bench.record));
    eprintln!("bench: written to {}", bench.places.out.display());
    bench.check_content()
}

struct Bench {
    arguments: Arguments,
    places: Places,
    programs: Programs,
    halcyon: Vec<Contender>,
    cassandra: Vec<Cassandra>,
    record: Record,
}

fn contenders(arguments: &Arguments) -> Vec<Contender> {
    let all = [
        ("halcyon", "direct"),
        ("halcyon", "uncached"),
        ("halcyon", "standard"),
        ("5.0.9", "buffered"),
        ("6.0-alpha2", "buffered"),
        ("6.0-alpha2", "direct-reads"),
        ("6.0-alpha2", "direct"),
    ];
    let wanted = |list: &[String], word: &str| list.iter().any(|listed| listed == word);
    all.into_iter()
        .filter(|(peer, _)| arguments.common.takes_part(peer))
        .filter(|(_, mode)| arguments.modes.is_empty() || wanted(&arguments.modes, mode))
        .map(|(peer, mode)| Contender::new(peer, mode))
        .collect()
}

impl Bench {
    fn prepare(arguments: Arguments, places: Places) -> Result<Bench> {
        let programs = Programs::build(arguments.common.tiny)?;
        let all = contenders(&arguments);
        let (halcyon, rivals): (Vec<_>, Vec<_>) = all.into_iter().partition(Contender::is_halcyon);
        for codec in &arguments.compressors {
            open_set(&programs, &places, &arguments, codec)?;
        }
        if !rivals.is_empty() {
            eprintln!("bench: starting {} nodes of Cassandra", rivals.len());
        }
        let mut cassandra = Vec::new();
        for (number, rival) in (0u16..).zip(&rivals) {
            cassandra.push(cassandra::start(rival, &places.data, number)?);
        }
        let record = Record {
            machine: machine::describe(),
            runs: Vec::new(),
            bounds: Vec::new(),
            buffer_runs: Vec::new(),
            profiles: Vec::new(),
        };
        Ok(Bench { arguments, places, programs, halcyon, cassandra, record })
    }

    fn place(&self) -> Place {
        Place { scratch: self.places.data.join("scratch"), cold: !self.arguments.common.tiny }
    }

    fn codec(&mut self, codec: &Codec) -> Result<()> {
        let set = open_set(&self.programs, &self.places, &self.arguments, codec)?;
        let place = self.place();
        let Arguments { rounds, cassandra_rounds, other_rounds, .. } = self.arguments;
        let is_first = self.arguments.compressors.first() == Some(codec);
        let (rounds, cassandra_rounds) =
            if is_first { (rounds, cassandra_rounds) } else { (other_rounds, other_rounds) };
        for round in 0..rounds.max(cassandra_rounds) {
            for contender in self.halcyon.iter().filter(|_| round < rounds) {
                let run = halcyon::run(&self.programs, &set, contender, Buffers::DEFAULT, &place)?;
                say(&run);
                self.record.runs.push(run);
            }
            for node in self.cassandra.iter_mut().filter(|_| round < cassandra_rounds) {
                match node.run(&self.programs, &set) {
                    Ok(run) => {
                        say(&run);
                        self.record.runs.push(run);
                    }
                    // One rival less is still a result.
                    Err(error) => eprintln!("bench: {}: {error}", node.contender.name()),
                }
            }
        }
        let bounds = self.bounds(&set)?;
        self.record.bounds.push(bounds);
        self.profile(&set, &place);
        Ok(())
    }

    /// One more run, of the first of Halcyon's modes; without `perf` there is none.
    fn profile(&mut self, set: &DataSet, place: &Place) {
        let Some(contender) = self.halcyon.first() else { return };
        if self.arguments.common.tiny || !profile::is_available() {
            return;
        }
        match halcyon::profile(&self.programs, set, contender, place) {
            Ok(shares) => self.record.profiles.push((set.codec.0.clone(), shares)),
            Err(error) => eprintln!("bench: no profile: {error}"),
        }
    }

    /// Best of the rounds: a bound is what can be had.
    fn bounds(&self, set: &DataSet) -> Result<Bounds> {
        let outputs = |name: &str| {
            let runs = self.record.runs.iter().filter(|run| run.codec == set.codec.0);
            Spread::of(runs.map(|run| run.content[name].as_f64().unwrap_or(0.0))).median
        };
        // Raw bytes written for each one read.
        let share = outputs("data_bytes") / set.data_bytes().max(1) as f64;
        let folder = set.folder.display().to_string();
        let scratch = self.places.data.join("device.scratch").display().to_string();
        let sample = CODEC_SAMPLE.to_string();
        let write = (outputs("file_bytes") as u64).to_string();
        let (mut codec, mut codec_rate) = (Value::Null, 0.0);
        let (mut device, mut device_rate) = (Value::Null, 0.0);
        for _ in 0..self.arguments.rounds.max(1) {
            let measured = self.programs.measure(&["codec", &folder, "--bytes", &sample])?;
            let rate = |name: &str| measured[name].as_f64().unwrap_or(f64::NAN);
            let both = 1.0 / (1.0 / rate("read_side") + share / rate("write_side"));
            if both > codec_rate {
                (codec, codec_rate) = (measured, both);
            }
            if !self.arguments.common.tiny {
                drop_page_cache();
            }
            let arguments = ["device", &folder, "--write", &write, "--output", &scratch];
            let moved = self.programs.measure(&arguments)?;
            let seconds = moved["seconds"].as_f64().unwrap_or(f64::INFINITY);
            let rate = set.data_bytes() as f64 / 1_048_576.0 / seconds;
            if rate > device_rate {
                (device, device_rate) = (moved, rate);
            }
        }
        let details = serde_json::json!({ "codec": codec, "device": device });
        Ok(Bounds { codec: set.codec.0.clone(), codec_rate, device_rate, details })
    }

    /// 256 KiB against 1 MiB: read-ahead by size and depth, writes by size.
    fn buffers(&mut self, codec: &Codec) -> Result<()> {
        /// So much that no stream has to do with less than it asks for.
        const BUDGET: u64 = 1 << 30;
        const SIZES: [u64; 2] = [256 << 10, 1 << 20];
        let set = open_set(&self.programs, &self.places, &self.arguments, codec)?;
        let direct = Contender::new("halcyon", "direct");
        let place = self.place();
        for _ in 0..self.arguments.buffer_rounds {
            for read_size in SIZES {
                for read_depth in [1, 2, 4] {
                    for write_size in SIZES {
                        let buffers = Buffers { read_size, read_depth, write_size, budget: BUDGET };
                        let run = halcyon::run(&self.programs, &set, &direct, buffers, &place)?;
                        say(&run);
                        self.record.buffer_runs.push(run);
                    }
                }
            }
        }
        Ok(())
    }

    fn write(&self) -> Result<()> {
        let Bench { record, places, .. } = self;
        places.write(&record.to_json(), &report::markdown(record), plot::svg(record))
    }

    /// Whoever compacted, the same is left. A release that loses rows must not win a race.
    fn check_content(&self) -> Result<()> {
        for codec in self.record.codecs() {
            let contenders = self.record.contenders(&codec);
            let keys = contenders.iter().filter_map(|(contender, runs)| {
                Some((contender.name(), runs.first()?.content_key()))
            });
            let keys: Vec<(String, [u64; 3])> = keys.collect();
            let differs = keys.iter().any(|(_, key)| Some(key) != keys.first().map(|(_, key)| key));
            if differs {
                let shown = format!("{codec}: outputs differ (partitions, rows, cells): {keys:?}");
                return Err(shown.into());
            }
        }
        Ok(())
    }
}

fn open_set(
    programs: &Programs,
    places: &Places,
    arguments: &Arguments,
    codec: &Codec,
) -> Result<DataSet> {
    DataSet::open(programs, &places.data, codec, arguments.size, arguments.sstables)
}

fn say(run: &Run) {
    let buffers = run.buffers.as_deref().unwrap_or_default();
    eprintln!(
        "bench: {:8} {:34} {:18} {:7.2} s {:6.0} MiB/s {:6.2} CPU s/GiB {:5} MiB{}  load {:.1}",
        run.codec,
        run.contender.name(),
        buffers,
        run.cost.seconds,
        run.rate(),
        run.cpu_per_gib(),
        run.cost.peak_memory >> 20,
        if run.was_cold { "" } else { "  (page cache not dropped)" },
        machine::load(),
    );
}
