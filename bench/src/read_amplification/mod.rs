//! `cargo x bench E3`: what a single-row read takes from the device, by chunk length and by the device's read-ahead.
//!
//! 1. One server at a time has three tables of the same rows, in SSTables with chunks of 64, 16 and 4 KiB (`subject.rs`). All keys are
//!    read once, so that the index is in the key cache; then it is put into a cage that leaves it a tenth of a table of page cache
//!    (Halcyon: of chunk cache).
//! 2. For each chunk length and read-ahead: page cache dropped, the device's read-ahead set (`read_ahead.rs` puts it back, whatever
//!    happens), and random rows are read at the same rate by everybody.
//! 3. The device's own counters, before and after, by the queries answered; Halcyon also counts itself. Beside it, what one aligned
//!    chunk is.

mod read_ahead;
mod subject;

use std::thread::sleep;
use std::time::Duration;

use serde::Serialize;

use crate::Result;
use crate::connection::Connection;
use crate::invocation::{Common, Invocation};
use crate::latency::Latencies;
use crate::load::Random;
use crate::machine::Device;
use crate::paced::{Outcome, Paced, Requests};
use crate::page::{Column, Page, plain, table};
use crate::plot::{Bars, Section};
use crate::programs::Programs;
use crate::record::{Contender, Measurements, Record, Target};
use read_ahead::ReadAhead;
use subject::{Subject, chunk_table, stored};

const READ: &str = "device_kib_per_query";
const CHUNK: &str = "aligned_chunk_kib";

const COLUMNS: &[Column] = &[
    Column::new("device KiB a query", READ, 1),
    Column::new("by its own count", "own_kib_per_query", 1),
    Column::new("one aligned chunk, KiB", CHUNK, 1),
    Column::new("the row, KiB", "row_kib", 1),
    Column::new("device MiB/s", "device_mib_per_second", 1),
    Column::new("device reads/s", "device_reads_per_second", 0),
    Column::new("device busy %", "utilisation_percent", 0),
    Column::new("queries/s", "per_second", 0),
    Column::new("p50 µs", "p50_us", 0),
    Column::new("p99 µs", "p99_us", 0),
];
const DRAWN: &[Column] = &[COLUMNS[0], COLUMNS[4], COLUMNS[5], COLUMNS[6], COLUMNS[9]];

#[derive(clap::Args, Clone, Serialize)]
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
    #[command(flatten)]
    #[serde(skip)]
    common: Common,
}

pub(crate) fn run(mut arguments: Arguments) -> Result<()> {
    if arguments.common.tiny {
        (arguments.seconds, arguments.rounds, arguments.rows) = (0.5, 1, 2000);
        (arguments.chunks, arguments.cache) = (vec![64, 4], 1);
    }
    let invocation =
        Invocation::begin("E3", &arguments.common, "data/read_amplification", &arguments)?;
    let mut bench = Bench::prepare(arguments, invocation)?;
    bench.all()?;
    bench.invocation.end()
}

struct Bench {
    arguments: Arguments,
    invocation: Invocation,
    programs: Programs,
    /// None where it cannot be set.
    read_ahead: Option<ReadAhead>,
    halcyon_is_filled: bool,
}

/// Random rows of a table.
struct Rows {
    statement: String,
    rows: u64,
    random: Random,
}

impl Requests for Rows {
    fn statements(&self) -> Vec<String> {
        vec![self.statement.clone()]
    }

    fn next(&mut self) -> (usize, Vec<Vec<u8>>) {
        (0, vec![self.random.below(self.rows).to_be_bytes().to_vec()])
    }
}

impl Bench {
    fn prepare(arguments: Arguments, mut invocation: Invocation) -> Result<Bench> {
        let programs = Programs::build_server(arguments.common.tiny)?;
        let record = &mut invocation.record;
        let read_ahead = match arguments.common.tiny {
            true => None,
            false => ReadAhead::of(&invocation.data)
                .map_err(|error| record.miss(format!("read-ahead is left as it is: {error}")))
                .ok(),
        };
        Ok(Bench { arguments, invocation, programs, read_ahead, halcyon_is_filled: false })
    }

    fn all(&mut self) -> Result<()> {
        if self.arguments.common.takes_part("halcyon") {
            for mode in ["direct", "standard"] {
                let subject = self.halcyon(mode);
                self.turns(subject, mode)?;
            }
        }
        if self.arguments.common.takes_part("5.0.9") {
            let mode = "mmap_index_only";
            let subject = self.cassandra(mode);
            self.turns(subject, mode)?;
        }
        Ok(())
    }

    /// What a machine cannot do (a mode that its file system refuses) is said, and the others go on.
    fn turns(&mut self, subject: Result<Subject>, mode: &str) -> Result<()> {
        let subject = match subject {
            Ok(subject) => subject,
            Err(error) => {
                self.invocation.record.miss(format!("{mode}: {error}"));
                return Ok(());
            }
        };
        for chunk in self.arguments.chunks.clone() {
            let read_aheads = match &self.read_ahead {
                Some(_) => self.arguments.read_ahead.iter().map(|kib| Some(*kib)).collect(),
                None => vec![None],
            };
            for _ in 0..self.arguments.rounds {
                for kib in &read_aheads {
                    self.turn(&subject, chunk, *kib)?;
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
        let of = chunk_table(chunk, &self.arguments);
        let requests = Rows {
            statement: format!("SELECT number, word, data FROM bench.{} WHERE pk = ?", of.name),
            rows: of.rows,
            random: Random(self.invocation.record.turns.len() as u64),
        };
        let server = &subject.server;
        let device = Device::of(&self.invocation.data)?;
        let own_before = own_bytes(subject)?;
        let before = device.counters();
        let paced = Paced::start(server.port, self.arguments.rate, requests)?;
        sleep(Duration::from_secs_f64(self.arguments.seconds));
        let asked = paced.stop()?;
        let (after, own_after) = (device.counters(), own_bytes(subject)?);
        let failed = asked.samples.iter().filter(|sample| sample.outcome != Outcome::Rows).count();
        if failed > 0 || asked.unanswered > 0 || asked.samples.is_empty() {
            return Err(format!("{failed} wrong answers, {} missing", asked.unanswered).into());
        }
        let (queries, seconds) = (asked.samples.len() as f64, self.arguments.seconds);
        let latencies = Latencies::of(asked.samples.iter().map(|sample| sample.nanos).collect());
        let read = (after.bytes_read - before.bytes_read) as f64;
        let (stored, row) = stored(&subject.tables, of.name).unwrap_or((f64::NAN, f64::NAN));
        let own = own_after.zip(own_before).map_or(f64::NAN, |(a, b)| (a - b) as f64);
        let figures = Measurements::default()
            .with(READ, read / queries / 1024.0)
            .with("own_kib_per_query", own / queries / 1024.0)
            .with(CHUNK, aligned_chunk(stored, row, chunk << 10) / 1024.0)
            .with("row_kib", row / 1024.0)
            .with("device_mib_per_second", read / seconds / 1_048_576.0)
            .with("device_reads_per_second", (after.reads - before.reads) as f64 / seconds)
            .with("utilisation_percent", 0.1 * (after.busy_ms - before.busy_ms) as f64 / seconds)
            .with("per_second", queries / seconds)
            .latencies("", &latencies);
        self.invocation.record.add(&heading(chunk, read_ahead), &server.contender, figures);
        Ok(())
    }
}

pub(crate) fn page(record: &Record) -> Result<Page> {
    let headings = record.headings();
    let bars = Bars {
        title: "device bytes of a single-row read",
        columns: DRAWN,
        sections: headings.iter().map(|heading| Section::plain(heading)).collect(),
    };
    Ok(Page {
        title: "E3: device bytes of a single-row read",
        targets: targets(record),
        sections: vec![format!(
            "## Measurements\n\n{}",
            table(record, Some(""), plain(&headings), COLUMNS)
        )],
        method: include_str!("../../E3/method.md"),
        computed: Vec::new(),
        plots: vec![("plot.svg", bars.svg(record)?)],
    })
}

fn targets(record: &Record) -> Vec<Target> {
    /// Other programs read from the device too.
    const NOISE: f64 = 1.1;
    let ours = Contender::new("halcyon", "direct");
    let by_chunk = |heading| {
        let median = |key| record.median(heading, &ours, key);
        Some((heading, median(READ)? / median(CHUNK)?))
    };
    let ratios: Vec<(&str, f64)> = record.headings().into_iter().filter_map(by_chunk).collect();
    if ratios.is_empty() {
        return Vec::new();
    }
    let shown = ratios.iter().map(|(heading, ratio)| format!("{ratio:.2} ({heading})"));
    vec![Target {
        what: "Halcyon direct: device bytes a query by the aligned size of its chunk".to_owned(),
        to_reach: "≤ 1, at any read-ahead".to_owned(),
        measured: shown.collect::<Vec<_>>().join(", "),
        reached: ratios.iter().all(|(_, ratio)| *ratio <= NOISE),
    }]
}

fn heading(chunk: u64, read_ahead: Option<u64>) -> String {
    match read_ahead {
        Some(kib) => format!("chunks of {chunk} KiB, read-ahead {kib} KiB"),
        None => format!("chunks of {chunk} KiB, read-ahead as it is"),
    }
}

/// Device bytes that a row's chunk has.
fn aligned_chunk(stored: f64, row: f64, chunk: u64) -> f64 {
    const BLOCK: f64 = 512.0;
    stored * (1.0 + row / chunk as f64) + BLOCK
}

/// What Halcyon has read for users.
fn own_bytes(subject: &Subject) -> Result<Option<u64>> {
    if !subject.server.is_halcyon() {
        return Ok(None);
    }
    let page = Connection::open(subject.server.port)?
        .rows("SELECT bytes FROM halcyon_views.io_operations WHERE purpose = 'user_read'")?;
    let cell = page.rows.first().and_then(|row| row.first()?.as_ref());
    Ok(cell.and_then(|bytes| Some(u64::from_be_bytes(*bytes.first_chunk::<8>()?))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_across_two_chunks_costs_both() {
        assert_eq!(aligned_chunk(2048.0, 1024.0, 4096), 2048.0 * 1.25 + 512.0);
    }
}
