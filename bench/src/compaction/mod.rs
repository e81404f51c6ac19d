//! `cargo x bench compaction`: major compaction of the same SSTables, by Halcyon and by Cassandra, in turn.
//!
//! 1. Programs are built, inputs made (or found), nodes started: everything that is not to be timed.
//! 2. For each compressor, round after round: each contender compacts once, page cache dropped before (A B C A B C, so that a
//!    change of the machine's mood meets all).
//! 3. The bounds of this compressor: the codec alone, the device alone, on the same files.
//! 4. One run of Halcyon under `perf`, if that is there: what bounds it.
//! 5. On the first compressor: Halcyon with other buffers.
//! 6. All outputs must hold the same partitions, rows and cells.

mod cassandra;
mod halcyon;
mod page;

use cassandra::Cassandra;
use halcyon::Buffers;
pub(crate) use page::page;
use serde::Serialize;
use serde_json::{Value, json};

use crate::Result;
use crate::dataset::{Codec, DataSet};
use crate::invocation::{Common, Invocation};
use crate::machine::{self, drop_page_cache};
use crate::parse_size;
use crate::process::Cost;
use crate::profile;
use crate::programs::Programs;
use crate::record::{Contender, Measurements, Spread};

const MIB: f64 = 1_048_576.0;
/// Raw bytes that the codec's bound is measured on: enough for a steady rate.
const CODEC_SAMPLE: u64 = 512 << 20;
const TINY_SIZE: u64 = 4 << 20;

#[derive(clap::Args, Clone, Serialize)]
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
    #[serde(skip)]
    common: Common,
}

pub(crate) fn run(mut arguments: Arguments) -> Result<()> {
    if arguments.common.tiny {
        arguments.size = TINY_SIZE;
        (arguments.rounds, arguments.other_rounds) = (1, 1);
        arguments.buffer_rounds = 0;
    }
    let mut invocation = Invocation::begin("compaction", &arguments.common, "data", &arguments)?;
    invocation.drop_page_cache();
    let mut bench = Bench::prepare(arguments, invocation)?;
    let codecs = bench.arguments.compressors.clone();
    for codec in &codecs {
        bench.codec(codec)?;
        bench.invocation.write()?;
    }
    if let Some(first) = codecs.first() {
        bench.buffers(first)?;
    }
    bench.check_content()?;
    bench.invocation.end()
}

/// One compaction, by either program.
struct Run {
    contender: Contender,
    /// Of Halcyon.
    buffers: Option<String>,
    cost: Cost,
    /// The page cache was empty.
    was_cold: bool,
    /// Bytes of inputs and outputs that are in the page cache afterwards, if it can be seen.
    cached_inputs: Option<u64>,
    cached_outputs: Option<u64>,
    /// What the statistics of the output say.
    content: Value,
    /// What the program itself says: Halcyon's counters and latencies by purpose.
    summary: Option<Value>,
}

impl Run {
    fn figures(&self, set: &DataSet) -> Measurements {
        let Run { cost, content, .. } = self;
        let bytes = |bytes: Option<u64>| bytes.map_or(f64::NAN, |bytes| bytes as f64);
        let content = |name: &str| content[name].as_f64().unwrap_or(0.0);
        let data_bytes = set.data_bytes() as f64;
        let cached = bytes(self.cached_inputs) + bytes(self.cached_outputs);
        let moved = set.file_bytes() as f64 + content("file_bytes");
        Measurements::default()
            .with("seconds", cost.seconds)
            .with("raw_mib_per_second", data_bytes / MIB / cost.seconds.max(1e-9))
            .with("cpu_seconds", cost.cpu_seconds)
            .with("cpu_seconds_per_gib", cost.cpu_seconds / (data_bytes / MIB / 1024.0))
            .with("peak_memory_bytes", cost.peak_memory as f64)
            .with("device_bytes_read", cost.device.bytes_read as f64)
            .with("device_bytes_written", cost.device.bytes_written as f64)
            .with("page_cache_growth_peak_bytes", cost.cache_peak as f64)
            .with("page_cache_growth_bytes", cost.cache_after as f64)
            .with("active_file_growth_bytes", cost.active_file_after as f64)
            .with("dirty_peak_bytes", cost.dirty_peak as f64)
            .with("cached_input_bytes", bytes(self.cached_inputs))
            .with("cached_output_bytes", bytes(self.cached_outputs))
            // Of what was read and written.
            .with("cached_share", cached / moved.max(1.0))
            .with("cold", f64::from(u8::from(self.was_cold)))
            .with("input_data_bytes", data_bytes)
            .with("input_file_bytes", set.file_bytes() as f64)
            .with("output_data_bytes", content("data_bytes"))
            .with("output_file_bytes", content("file_bytes"))
            .with("output_partitions", content("partitions"))
            .with("output_rows", content("rows"))
            .with("output_cells", content("cells"))
            .with("load_before", machine::load())
    }

    fn details(&self) -> Value {
        json!({
            "buffers": self.buffers,
            "cpu_seconds_by_thread": self.cost.threads,
            "output": self.content,
            "summary": self.summary,
        })
    }

    /// A run that wrote nothing is none.
    fn checked(self) -> Result<Run> {
        match self.content["rows"].as_u64() {
            None | Some(0) => {
                Err(format!("{}: the output has no rows", self.contender.name()).into())
            }
            Some(_) => Ok(self),
        }
    }
}

struct Bench {
    arguments: Arguments,
    invocation: Invocation,
    programs: Programs,
    halcyon: Vec<Contender>,
    cassandra: Vec<Cassandra>,
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
    fn prepare(arguments: Arguments, invocation: Invocation) -> Result<Bench> {
        let programs = Programs::build(arguments.common.tiny)?;
        let all = contenders(&arguments);
        let (halcyon, rivals): (Vec<_>, Vec<_>) = all.into_iter().partition(Contender::is_halcyon);
        let mut bench = Bench { arguments, invocation, programs, halcyon, cassandra: Vec::new() };
        for codec in &bench.arguments.compressors {
            bench.open_set(codec)?;
        }
        if !rivals.is_empty() {
            eprintln!("bench: starting {} nodes of Cassandra", rivals.len());
        }
        for rival in &rivals {
            let node = cassandra::start(&bench.programs, rival, &bench.invocation.data)?;
            bench.cassandra.push(node);
        }
        Ok(bench)
    }

    fn open_set(&self, codec: &Codec) -> Result<DataSet> {
        let Arguments { size, sstables, .. } = self.arguments;
        DataSet::open(&self.programs, &self.invocation.data, codec, size, sstables)
    }

    fn halcyon(&self, set: &DataSet, who: &Contender, buffers: Buffers) -> Result<Run> {
        let scratch = self.invocation.data.join("scratch");
        let is_cold = !self.arguments.common.tiny;
        halcyon::run(&self.programs, set, who, buffers, &scratch, is_cold)
    }

    fn note(&mut self, heading: &str, set: &DataSet, run: &Run) {
        let record = &mut self.invocation.record;
        record.add_with(heading, &run.contender, run.figures(set), run.details());
    }

    /// Everything on one compressor.
    fn codec(&mut self, codec: &Codec) -> Result<()> {
        let set = self.open_set(codec)?;
        let is_first = self.arguments.compressors.first() == Some(codec);
        let other = self.arguments.other_rounds;
        let of = |rounds: u32| if is_first { rounds } else { other };
        let (ours, theirs) = (of(self.arguments.rounds), of(self.arguments.cassandra_rounds));
        for round in 0..ours.max(theirs) {
            for who in self.halcyon.clone().iter().filter(|_| round < ours) {
                let run = self.halcyon(&set, who, Buffers::DEFAULT)?;
                self.note(&codec.0, &set, &run);
            }
            for number in (0..self.cassandra.len()).filter(|_| round < theirs) {
                let node = &mut self.cassandra[number];
                match node.run(&self.programs, &set) {
                    Ok(run) => self.note(&codec.0, &set, &run),
                    // One rival less is still a result.
                    Err(error) => {
                        let name = node.contender.name();
                        self.invocation.record.miss(format!("{name}: {error}"));
                    }
                }
            }
        }
        self.profile(&set);
        self.bounds(&set)
    }

    /// One more run, of the first of Halcyon's modes; without `perf` there is none.
    fn profile(&mut self, set: &DataSet) {
        let Some(contender) = self.halcyon.first() else { return };
        if self.arguments.common.tiny || !profile::is_available() {
            return;
        }
        let scratch = self.invocation.data.join("scratch");
        match halcyon::profile(&self.programs, set, contender, &scratch) {
            Ok(shares) => profile::keep(&mut self.invocation.record, &set.codec.0, &shares),
            Err(error) => eprintln!("bench: no profile: {error}"),
        }
    }

    /// The two limits that no compaction of a set exceeds, in MiB/s of raw rows: one core that checks and decompresses all that is
    /// read, and compresses and sums all that is written; and the device. The best of the rounds: a bound is what can be had.
    fn bounds(&mut self, set: &DataSet) -> Result<()> {
        let turns = self.invocation.record.turns.iter().filter(|turn| turn.heading == set.codec.0);
        let turns: Vec<_> = turns.collect();
        let outputs = |key: &str| Spread::of(turns.iter().filter_map(|turn| turn.get(key))).median;
        // Raw bytes written for each one read.
        let share = outputs("output_data_bytes") / set.data_bytes().max(1) as f64;
        let write = (outputs("output_file_bytes") as u64).to_string();
        let folder = set.folder.display().to_string();
        let scratch = self.invocation.data.join("device.scratch").display().to_string();
        let sample = CODEC_SAMPLE.to_string();
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
            let rate = set.data_bytes() as f64 / MIB / seconds;
            if rate > device_rate {
                (device, device_rate) = (moved, rate);
            }
        }
        let bounds = json!({
            "codec_raw_mib_per_second": codec_rate,
            "device_raw_mib_per_second": device_rate,
            "details": { "codec": codec, "device": device },
        });
        let all = self.invocation.record.beside.entry("bounds").or_insert_with(|| json!({}));
        all[&set.codec.0] = bounds;
        Ok(())
    }

    /// 256 KiB against 1 MiB: read-ahead by size and depth, writes by size.
    fn buffers(&mut self, codec: &Codec) -> Result<()> {
        /// So much that no stream has to do with less than it asks for.
        const BUDGET: u64 = 1 << 30;
        const SIZES: [u64; 2] = [256 << 10, 1 << 20];
        let set = self.open_set(codec)?;
        let direct = Contender::new("halcyon", "direct");
        for _ in 0..self.arguments.buffer_rounds {
            for read_size in SIZES {
                for read_depth in [1, 2, 4] {
                    for write_size in SIZES {
                        let buffers = Buffers { read_size, read_depth, write_size, budget: BUDGET };
                        let run = self.halcyon(&set, &direct, buffers)?;
                        self.note(&format!("buffers {}", buffers.name()), &set, &run);
                    }
                }
            }
        }
        Ok(())
    }

    /// All contenders leave the same. A release that loses rows must not win a race.
    fn check_content(&self) -> Result<()> {
        const WHAT: [&str; 3] = ["output_partitions", "output_rows", "output_cells"];
        let record = &self.invocation.record;
        for codec in &self.arguments.compressors {
            let content = |who| {
                let turn = record.rounds(&codec.0, who).turns().next();
                turn.map(|turn| WHAT.map(|key| turn.get(key)))
            };
            let contenders = record.contenders(&codec.0);
            let all: Vec<_> = contenders.iter().map(|who| (who.name(), content(who))).collect();
            if all.iter().any(|(_, content)| Some(content) != all.first().map(|(_, c)| c)) {
                return Err(format!("{}: outputs differ ({WHAT:?}): {all:?}", codec.0).into());
            }
        }
        Ok(())
    }
}
