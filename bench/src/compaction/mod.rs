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
use halcyon_model::units::arguments::size;
use halcyon_oracle::Result;
use serde::Serialize;
use serde_json::{Value, json};

use crate::dataset::{Codec, DataSet, Kind, Shape};
use crate::invocation::{Experiment, Invocation, Listed};
use crate::machine::{self, drop_page_cache};
use crate::page::Page;
use crate::process::Cost;
use crate::profile;
use crate::record::{Contender, Measurements, Record, Spread};

const MIB: f64 = 1_048_576.0;
/// Raw bytes that the codec's bound is measured on: enough for a steady rate.
const CODEC_SAMPLE: u64 = 512 << 20;

/// In the order of their turns.
const CONTENDERS: [(&str, &str); 7] = [
    ("halcyon", "direct"),
    ("halcyon", "uncached"),
    ("halcyon", "standard"),
    ("5.0.9", "buffered"),
    ("6.0-alpha2", "buffered"),
    ("6.0-alpha2", "direct-reads"),
    ("6.0-alpha2", "direct"),
];

#[derive(clap::Args, Serialize)]
pub(crate) struct Arguments {
    /// Uncompressed bytes of the inputs
    #[arg(long, default_value = "4GiB", value_parser = size)]
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
}

impl Experiment for Arguments {
    const LISTED: Listed = Listed {
        name: "compaction",
        asks: "How fast is a major compaction, and what does it cost?",
        page: Self::page,
    };
    const DATA: &'static str = "";
    const EXAMPLES: &'static [(&'static str, &'static str)] = &[("halcyon-compaction", "measure")];

    fn shrink(&mut self) {
        self.size = 4 << 20;
        (self.rounds, self.other_rounds, self.buffer_rounds) = (1, 1, 0);
    }

    fn run(self, invocation: &mut Invocation) -> Result<()> {
        invocation.drop_page_cache();
        let mut bench = Bench::prepare(&self, invocation)?;
        for codec in &self.compressors {
            bench.codec(codec)?;
            bench.invocation.write()?;
        }
        if let Some(first) = self.compressors.first() {
            bench.buffers(first)?;
        }
        bench.check_content()
    }

    fn page(record: &mut Record) -> Result<Page> {
        page::page(record)
    }
}

/// One compaction, by either program.
struct Run {
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
            .with("raw_mib_per_second", data_bytes / MIB / cost.seconds.max(1e-9))
            .with("cpu_seconds_per_gib", cost.cpu_seconds / (data_bytes / MIB / 1024.0))
            .fields("", cost)
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
}

struct Bench<'a> {
    arguments: &'a Arguments,
    invocation: &'a mut Invocation,
    halcyon: Vec<Contender>,
    cassandra: Vec<Cassandra>,
}

impl<'a> Bench<'a> {
    /// Everything that is not to be timed.
    fn prepare(arguments: &'a Arguments, invocation: &'a mut Invocation) -> Result<Bench<'a>> {
        let is_wanted =
            |mode: &str| arguments.modes.is_empty() || arguments.modes.iter().any(|m| m == mode);
        let (halcyon, rivals): (Vec<_>, Vec<_>) = CONTENDERS
            .into_iter()
            .filter(|(peer, mode)| invocation.takes_part(peer) && is_wanted(mode))
            .map(|(peer, mode)| Contender::new(peer, mode))
            .partition(Contender::is_halcyon);
        let mut bench = Bench { arguments, invocation, halcyon, cassandra: Vec::new() };
        for codec in &arguments.compressors {
            bench.open_set(codec)?;
        }
        for rival in &rivals {
            eprintln!("bench: starting {}", rival.name());
            let node = cassandra::start(bench.invocation, rival)?;
            bench.cassandra.push(node);
        }
        Ok(bench)
    }

    fn open_set(&self, codec: &Codec) -> Result<DataSet> {
        let Arguments { size, sstables, .. } = *self.arguments;
        DataSet::open(self.invocation, &Kind::big(codec, Shape::Rows), size, sstables)
    }

    /// A run that wrote nothing does not count.
    fn note(&mut self, heading: &str, set: &DataSet, who: &Contender, run: &Run) -> Result<()> {
        if run.content["rows"].as_u64().is_none_or(|rows| rows == 0) {
            return Err(format!("{}: the output has no rows", who.name()).into());
        }
        let details = json!({
            "buffers": run.buffers,
            "cpu_seconds_by_thread": run.cost.threads,
            "output": run.content,
            "summary": run.summary,
        });
        self.invocation.record.add_with(heading, who, run.figures(set), details);
        Ok(())
    }

    /// Everything on one compressor.
    fn codec(&mut self, codec: &Codec) -> Result<()> {
        let set = self.open_set(codec)?;
        let is_first = self.arguments.compressors.first() == Some(codec);
        let of = |rounds: u32| if is_first { rounds } else { self.arguments.other_rounds };
        let (ours, theirs) = (of(self.arguments.rounds), of(self.arguments.cassandra_rounds));
        for round in 0..ours.max(theirs) {
            for who in self.halcyon.clone().iter().filter(|_| round < ours) {
                let run = self.compacted(&set, who, Buffers::DEFAULT)?;
                self.note(&codec.0, &set, who, &run)?;
            }
            for number in (0..self.cassandra.len()).filter(|_| round < theirs) {
                let node = &mut self.cassandra[number];
                let who = node.server.contender.clone();
                let run = node.run(&self.invocation.programs, &set);
                // One rival less is still a result.
                if let Err(error) = run.and_then(|run| self.note(&codec.0, &set, &who, &run)) {
                    self.invocation.record.miss(format!("{}: {error}", who.name()));
                }
            }
        }
        self.profile(&set);
        self.bounds(&set)
    }

    /// One more run, of the first of Halcyon's modes; needs `perf`.
    fn profile(&mut self, set: &DataSet) {
        let Some(contender) = self.halcyon.first() else { return };
        if self.invocation.tiny || !profile::is_available() {
            return;
        }
        match self.profiled(set, contender) {
            Ok(shares) => profile::keep(&mut self.invocation.record, &set.kind.codec.0, &shares),
            Err(error) => eprintln!("bench: no profile: {error}"),
        }
    }

    /// The two limits that no compaction of a set exceeds, in MiB/s of raw rows: one core that checks and decompresses all that is
    /// read, and compresses and sums all that is written; and the device. The best of the rounds: a bound is what can be had.
    fn bounds(&mut self, set: &DataSet) -> Result<()> {
        let turns =
            self.invocation.record.turns.iter().filter(|turn| turn.heading == set.kind.codec.0);
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
            let measured =
                self.invocation.programs.measure(&["codec", &folder, "--bytes", &sample])?;
            let rate = |name: &str| measured[name].as_f64().unwrap_or(f64::NAN);
            let both = 1.0 / (1.0 / rate("read_side") + share / rate("write_side"));
            if both > codec_rate {
                (codec, codec_rate) = (measured, both);
            }
            if !self.invocation.tiny {
                drop_page_cache();
            }
            let arguments = ["device", &folder, "--write", &write, "--output", &scratch];
            let moved = self.invocation.programs.measure(&arguments)?;
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
        all[&set.kind.codec.0] = bounds;
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
                for (read_depth, write_size) in
                    [1, 2, 4].into_iter().flat_map(|d| SIZES.map(|w| (d, w)))
                {
                    let buffers = Buffers { read_size, read_depth, write_size, budget: BUDGET };
                    let run = self.compacted(&set, &direct, buffers)?;
                    self.note(&format!("buffers {}", buffers.name()), &set, &direct, &run)?;
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
