//! `cargo x bench E3`: what a single-row read takes from the device, by chunk length and by the device's read-ahead.
//!
//! 1. One server at a time has three tables of the same rows, in SSTables with chunks of 64, 16 and 4 KiB (`subject.rs`). All keys are read once, so
//!    that the index is in the key cache; then it is put into a cage that leaves it a tenth of a table of page cache (Halcyon: of chunk cache).
//! 2. For each chunk length and read-ahead: page cache dropped, the device's read-ahead set (`read_ahead.rs` puts it back, whatever happens), and
//!    random rows are read at the same rate by everybody.
//! 3. The device's own counters, before and after, by the queries answered; Halcyon also counts itself. Beside it, what one aligned chunk is.

mod read_ahead;
mod subject;

use std::thread::sleep;
use std::time::Duration;

use serde_json::json;

use super::connection::Connection;
use super::contender::Contender;
use super::latency::Latencies;
use super::load::Random;
use super::machine::{Device, drop_page_cache};
use super::paced::{Outcome, Paced, Requests};
use super::programs::Programs;
use super::sheet::{Column, Sheet, Target};
use super::{Common, Places};
use crate::Result;
use read_ahead::ReadAhead;
use subject::{Subject, stored, table};

const COLUMNS: &[Column] = &[
    Column {
        key: "device_kib_per_query",
        title: "device KiB a query",
        decimals: 1,
        is_drawn: true,
    },
    Column { key: "own_kib_per_query", title: "by its own count", decimals: 1, is_drawn: false },
    Column {
        key: "aligned_chunk_kib",
        title: "one aligned chunk, KiB",
        decimals: 1,
        is_drawn: false,
    },
    Column { key: "row_kib", title: "the row, KiB", decimals: 1, is_drawn: false },
    Column { key: "device_mib_per_second", title: "device MiB/s", decimals: 1, is_drawn: true },
    Column { key: "device_reads_per_second", title: "device reads/s", decimals: 0, is_drawn: true },
    Column { key: "utilisation_percent", title: "device busy %", decimals: 0, is_drawn: true },
    Column { key: "per_second", title: "queries/s", decimals: 0, is_drawn: false },
    Column { key: "p50_us", title: "p50 µs", decimals: 0, is_drawn: false },
    Column { key: "p99_us", title: "p99 µs", decimals: 0, is_drawn: true },
];

#[derive(clap::Args, Clone)]
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
    common: Common,
}

pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let mut arguments = arguments.clone();
    if arguments.common.tiny {
        (arguments.seconds, arguments.rounds, arguments.rows) = (0.5, 1, 2000);
        (arguments.chunks, arguments.cache) = (vec![64, 4], 1);
    }
    let places = Places::make(&arguments.common, "bench/data/read_amplification", "bench/E3")?;
    let mut bench = Bench::prepare(arguments, places)?;
    bench.all()?;
    bench.places.show()
}

struct Bench {
    arguments: Arguments,
    places: Places,
    programs: Programs,
    sheet: Sheet,
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
    fn prepare(arguments: Arguments, places: Places) -> Result<Bench> {
        let programs = Programs::build_server(arguments.common.tiny)?;
        let mut sheet = Sheet::new(
            "E3",
            "device bytes of a single-row read",
            COLUMNS,
            json!({
                "rate": arguments.rate,
                "seconds": arguments.seconds,
                "rounds": arguments.rounds,
                "rows": arguments.rows,
                "cache_mib": arguments.cache,
            }),
        );
        let read_ahead = match arguments.common.tiny {
            true => None,
            false => ReadAhead::of(&places.data)
                .map_err(|error| sheet.miss(format!("read-ahead is left as it is: {error}")))
                .ok(),
        };
        Ok(Bench { arguments, places, programs, sheet, read_ahead, halcyon_is_filled: false })
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
                self.sheet.miss(format!("{mode}: {error}"));
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
        self.write()
    }

    fn turn(&mut self, subject: &Subject, chunk: u64, read_ahead: Option<u64>) -> Result<()> {
        if let (Some(setting), Some(kib)) = (&self.read_ahead, read_ahead) {
            setting.set(kib)?;
        }
        if !self.arguments.common.tiny && !drop_page_cache() {
            self.sheet.miss("the page cache cannot be dropped: be root".to_owned());
        }
        let of = table(chunk, &self.arguments);
        let requests = Rows {
            statement: format!("SELECT number, word, data FROM bench.{} WHERE pk = ?", of.name),
            rows: of.rows,
            random: Random(self.sheet.taken() as u64),
        };
        let server = &subject.server;
        let device = Device::of(&self.places.data)?;
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
        let figures = vec![
            read / queries / 1024.0,
            own / queries / 1024.0,
            aligned_chunk(stored, row, chunk << 10) / 1024.0,
            row / 1024.0,
            read / seconds / 1_048_576.0,
            (after.reads - before.reads) as f64 / seconds,
            0.1 * (after.busy_ms - before.busy_ms) as f64 / seconds,
            queries / seconds,
            latencies.p50,
            latencies.p99,
        ];
        self.sheet.add(&heading(chunk, read_ahead), &server.contender, figures);
        Ok(())
    }

    fn write(&self) -> Result<()> {
        let (targets, method) = (self.targets(), self.method());
        self.sheet.write(&self.places, &targets, &method)
    }

    fn targets(&self) -> Vec<Target> {
        /// Other programs read from the device too.
        const NOISE: f64 = 1.1;
        let ours = Contender::new("halcyon", "direct");
        let mut ratios = Vec::new();
        for heading in self.sheet.headings() {
            let median = |key| self.sheet.median(heading, &ours, key);
            if let (Some(read), Some(chunk)) =
                (median("device_kib_per_query"), median("aligned_chunk_kib"))
            {
                ratios.push((heading, read / chunk));
            }
        }
        if ratios.is_empty() {
            return Vec::new();
        }
        let shown = ratios.iter().map(|(heading, ratio)| format!("{ratio:.2} ({heading})"));
        vec![Target {
            what: "Halcyon direct: device bytes a query by the aligned size of its chunk"
                .to_owned(),
            wanted: "≤ 1, at any read-ahead".to_owned(),
            measured: shown.collect::<Vec<_>>().join(", "),
            is_met: ratios.iter().all(|(_, ratio)| *ratio <= NOISE),
        }]
    }

    fn method(&self) -> String {
        format!(
            "- Random rows at {} a second (open loop), {} s, {} rounds; one server at a time. Tables of {} rows with blobs of {} bytes that do not compress, \
             LZ4, no compaction; all keys read once before, so that the index is in the key cache.\n\
             - Cache: {} MiB of chunk cache (Halcyon) or page cache (all, by a memory cgroup), about a tenth of a table; page cache dropped before each turn. Cassandra without its chunk cache.\n\
             - Device: `/sys/dev/block/*/stat`, all programs' reads, by queries answered. Its own count: `halcyon_views.io_operations` of `user_read`.\n\
             - One aligned chunk: the mean chunk as stored, the second one where a row lies across two, and one block of 512 bytes more, since chunks begin anywhere.\n\
             - `mmap_index_only` is Cassandra 5.0's default. `mmap`, that of the versions before, is left out: what a process has mapped cannot be dropped from the page cache, so it would \
             read from memory.\n\
             - Read-ahead: `read_ahead_kb` of the device, put back afterwards.",
            self.arguments.rate,
            self.arguments.seconds,
            self.arguments.rounds,
            self.arguments.rows,
            self.arguments.blob,
            self.arguments.cache
        )
    }
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
