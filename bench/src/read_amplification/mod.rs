//! `cargo x bench E3`: what a single-row read takes from the device, by chunk length and by the device's read-ahead.
//!
//! 1. One server at a time has three tables of the same rows, in SSTables with chunks of 64, 16 and 4 KiB (`subject.rs`). All keys are
//!    read once, so that the index is in the key cache; then it is put into a cage that leaves it a tenth of a table of page cache
//!    (Halcyon: of chunk cache).
//! 2. For each chunk length and read-ahead: page cache dropped, the device's read-ahead set (`read_ahead.rs` puts it back, whatever
//!    happens), and random rows are read at the same rate by everybody.
//! 3. The device's own counters, before and after, by the queries answered; Halcyon also counts itself. Beside it, what one aligned
//!    chunk is.

mod subject;

use std::thread::sleep;
use std::time::Duration;

use halcyon_oracle::{Result, Version};
use serde::Serialize;

use crate::chunks::aligned;
use crate::gauge::UserReads;
use crate::invocation::{Experiment, Invocation, Listed};
use crate::latency::{Latencies, Outcome};
use crate::machine::Device;
use crate::paced::Paced;
use crate::page::Page;
use crate::read_ahead::ReadAhead;
use crate::record::{Contender, Measurements, Record, Target, listed};
use crate::rows::Reads;
use subject::{Subject, chunk_table, stored};

const READ: &str = "device_kib_per_query";
const CHUNK: &str = "aligned_chunk_kib";
/// Of the device.
const BLOCK: u64 = 512;

#[derive(clap::Args, Serialize)]
pub(crate) struct Arguments {
    /// KiB of a chunk
    #[arg(long, value_delimiter = ',', default_value = "64,16,4")]
    chunks: Vec<u64>,
    /// KiB that the device reads ahead
    #[arg(long, value_delimiter = ',', default_value = "4096,0")]
    read_ahead: Vec<u64>,
    /// Queries a second, of everybody
    #[arg(long, default_value_t = 200.0)]
    rate: f64,
    /// Seconds of each turn
    #[arg(long, default_value_t = 8.0)]
    seconds: f64,
    #[arg(long, default_value_t = 2)]
    rounds: u32,
    /// Rows of each table
    #[arg(long, default_value_t = 300_000)]
    rows: u64,
    /// Bytes of a row's blob
    #[arg(long, default_value_t = 1000)]
    blob: usize,
    /// MiB of cache
    #[arg(long, default_value_t = 32)]
    cache: u64,
}

impl Experiment for Arguments {
    const LISTED: Listed = Listed {
        name: "E3",
        asks: "What does a single-row read cost at the device?",
        page: Self::page,
    };
    const DATA: &'static str = "read_amplification";

    fn shrink(&mut self) {
        (self.seconds, self.rounds, self.rows) = (0.5, 1, 2000);
        (self.chunks, self.cache) = (vec![64, 4], 1);
    }

    fn run(self, invocation: &mut Invocation) -> Result<()> {
        let read_ahead = match invocation.tiny {
            true => None,
            false => ReadAhead::of(&invocation.data)
                .map_err(|e| invocation.record.miss(format!("read-ahead is left as it is: {e}")))
                .ok(),
        };
        let mut bench =
            Bench { arguments: &self, invocation, read_ahead, halcyon_is_filled: false };
        if bench.invocation.takes_part("halcyon") {
            for mode in ["direct", "standard"] {
                let subject = bench.halcyon(mode);
                bench.turns(subject, mode)?;
            }
        }
        if bench.invocation.takes_part(Version::V5.name()) {
            let mode = "mmap_index_only";
            let subject = bench.cassandra(mode);
            bench.turns(subject, mode)?;
        }
        Ok(())
    }

    fn page(record: &mut Record) -> Result<Page> {
        Ok(Page {
            template: include_str!("../../E3/page.md"),
            targets: target(record).into_iter().collect(),
            ..Page::default()
        })
    }
}

struct Bench<'a> {
    arguments: &'a Arguments,
    invocation: &'a mut Invocation,
    /// None where it cannot be set.
    read_ahead: Option<ReadAhead>,
    halcyon_is_filled: bool,
}

impl Bench<'_> {
    /// What a machine cannot do (a mode that its file system refuses) is reported, and the others still run.
    fn turns(&mut self, subject: Result<Subject>, mode: &str) -> Result<()> {
        let subject = match subject {
            Ok(subject) => subject,
            Err(error) => {
                self.invocation.record.miss(format!("{mode}: {error}"));
                return Ok(());
            }
        };
        for chunk in &self.arguments.chunks {
            let read_aheads = match &self.read_ahead {
                Some(_) => self.arguments.read_ahead.iter().map(|kib| Some(*kib)).collect(),
                None => vec![None],
            };
            for _ in 0..self.arguments.rounds {
                for kib in &read_aheads {
                    self.turn(&subject, *chunk, *kib)?;
                }
            }
        }
        self.invocation.write()
    }

    fn turn(&mut self, subject: &Subject, chunk: u64, read_ahead: Option<u64>) -> Result<()> {
        if let (Some(setting), Some(kib)) = (&self.read_ahead, read_ahead) {
            setting.set(kib)?;
        }
        self.invocation.drop_page_cache();
        let of = chunk_table(chunk, self.arguments);
        let seed = self.invocation.record.turns.len() as u64;
        let server = &subject.server;
        let device = Device::of(&self.invocation.data)?;
        let own_before = UserReads::of(server)?;
        let before = device.counters();
        let paced = Paced::start(server.port, self.arguments.rate, Reads::at_random(of, seed))?;
        sleep(Duration::from_secs_f64(self.arguments.seconds));
        let asked = paced.stop()?;
        let device = device.counters().since(&before);
        let own = UserReads::of(server)?.since(own_before);
        let failed = asked.samples.iter().filter(|sample| sample.outcome != Outcome::Rows).count();
        if failed > 0 || !asked.unanswered.is_empty() || asked.samples.is_empty() {
            return Err(
                format!("{failed} wrong answers, {} missing", asked.unanswered.len()).into()
            );
        }
        let (queries, seconds) = (asked.samples.len() as f64, self.arguments.seconds);
        let read = device.of("device_bytes_read") as f64;
        let (stored, row) = stored(&subject.tables, of.name).unwrap_or((f64::NAN, f64::NAN));
        let figures = Measurements::default()
            .with(READ, read / queries / 1024.0)
            .with("own_kib_per_query", own.bytes / queries / 1024.0)
            .with(CHUNK, aligned(stored, row, chunk << 10, BLOCK) / 1024.0)
            .with("row_kib", row / 1024.0)
            .with("device_mib_per_second", read / seconds / 1_048_576.0)
            .with("device_reads_per_second", device.of("device_reads") as f64 / seconds)
            .with("utilisation_percent", 0.1 * device.of("device_busy_ms") as f64 / seconds)
            .with("per_second", queries / seconds)
            .fields("", &Latencies::of_samples(&asked.samples));
        self.invocation.record.add(&heading(chunk, read_ahead), &server.contender, figures);
        Ok(())
    }
}

fn target(record: &Record) -> Option<Target> {
    /// Other programs read from the device too.
    const NOISE: f64 = 1.1;
    let ours = Contender::new("halcyon", "direct");
    let by_chunk = |heading| {
        let median = |key| record.median(heading, &ours, key);
        Some((heading, median(READ)? / median(CHUNK)?))
    };
    let ratios: Vec<(&str, f64)> = record.headings().into_iter().filter_map(by_chunk).collect();
    let reached = ratios.iter().all(|(_, ratio)| *ratio <= NOISE);
    let what = "Halcyon direct: device bytes a query by the aligned size of its chunk";
    let target = Target::new(what, "≤ 1, at any read-ahead", listed(&ratios, 2), reached);
    (!ratios.is_empty()).then_some(target)
}

fn heading(chunk: u64, read_ahead: Option<u64>) -> String {
    match read_ahead {
        Some(kib) => format!("chunks of {chunk} KiB, read-ahead {kib} KiB"),
        None => format!("chunks of {chunk} KiB, read-ahead as it is"),
    }
}
