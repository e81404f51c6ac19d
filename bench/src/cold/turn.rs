//! One turn: the rows that are read before, the device's own read, the rows that are measured, and some of those again, from memory.

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use halcyon_oracle::Result;
use serde_json::Value;

use super::page;
use super::rows::{Reads, Rows, statement};
use crate::chunks::aligned;
use crate::connection;
use crate::dataset::DataSet;
use crate::device_read;
use crate::gauge::{Gauge, UserReads};
use crate::latency::{Latencies, Outcome};
use crate::machine::{self, Device};
use crate::paced::{Asked, Paced};
use crate::record::Measurements;
use crate::server::Server;

/// What the page cache reads and keeps.
const PAGE: u64 = 4096;

/// What is asked, and how long.
pub(super) struct Schedule {
    /// Reads a second that are measured.
    pub(super) rate: f64,
    pub(super) time: Duration,
    /// Reads a second before.
    pub(super) sweep_rate: f64,
    /// At most until the device has no more reads.
    pub(super) quiet: Duration,
    /// Of the device's own reads.
    pub(super) own: Duration,
}

/// What was measured in a turn.
pub(super) struct Turn {
    /// Its own reads.
    pub(super) device: Latencies,
    /// Its own reads, as far apart as the server's.
    pub(super) device_paced: Latencies,
    asked: Asked,
    /// Of the same rows, which are in memory now.
    again: Latencies,
    /// Of the machine and the server, while rows were read.
    cost: Measurements,
    pub(super) details: Value,
    /// None of Cassandra: not a number.
    user_reads: UserReads,
    /// What the server can read least.
    block: u64,
    /// Of the machine, before.
    load: f64,
}

impl Turn {
    pub(super) fn run(
        server: &Server,
        set: &DataSet,
        rows: &Rows,
        schedule: &Schedule,
        home: &Path,
        seed: u64,
    ) -> Result<Turn> {
        let Schedule { rate, time, sweep_rate, quiet, own } = *schedule;
        let load = machine::load();
        check_parts(server, set, rows)?;
        let once = Duration::from_secs_f64(rows.before.len() as f64 / sweep_rate);
        sweep(server, set, rows, sweep_rate, once)?;
        let disk = Device::of(home)?;
        wait_until_quiet(&disk, quiet);
        let mut files = set.files();
        files.retain(|path| is_data(path));
        let device = device_read::measure(&files, own, Duration::ZERO, seed)?;
        let pause = Duration::from_secs_f64(1.0 / rate);
        let device_paced = device_read::measure(&files, own, pause, seed + 1)?;
        let block = if server.is_halcyon() { disk.block() } else { PAGE };

        let user_reads = UserReads::of(server)?;
        let gauge = Gauge::begin(server, home, None)?;
        let asked = ask(server, Reads::of(set, &rows.measured, seed), rate, time)?;
        let (cost, details) = gauge.end(server, None)?;
        let user_reads = UserReads::of(server)?.since(user_reads);
        if asked.samples.len() > rows.measured.len() {
            let (wanted, there) = (asked.samples.len(), rows.measured.len());
            return Err(format!(
                "{wanted} cold reads, but rows for {there}: a larger --size, a lower --rate or fewer --seconds"
            )
            .into());
        }
        // The same order; fewer, so that none of them is read first.
        let again = ask(server, Reads::of(set, &rows.measured, seed), rate, time / 2)?;
        let again = Latencies::of_samples(&again.samples);
        Ok(Turn { device, device_paced, asked, again, cost, details, user_reads, block, load })
    }

    pub(super) fn measurements(&self, set: &DataSet) -> Measurements {
        let Turn { device, device_paced, asked, again, cost, user_reads, .. } = self;
        let queries = asked.samples.len().max(1) as f64;
        let by_query = |name: &str| cost.get(name).unwrap_or(f64::NAN) / queries;
        let latencies = Latencies::of_samples(&asked.samples);
        let bytes = by_query("device_bytes_read");
        let chunk = self.chunk_bytes(set);
        Measurements::default()
            .fields("", &latencies)
            .with(page::BY_DEVICE, latencies.p50 / device.p50)
            .with(page::BY_DEVICE_PACED, latencies.p50 / device_paced.p50)
            .with("again_p50_us", again.p50)
            .with(page::BEYOND_MEMORY, (latencies.p50 - again.p50) / device_paced.p50)
            .with("device_p50_us", device.p50)
            .with(page::READS, by_query("device_reads"))
            .with("own_reads_per_query", user_reads.operations / queries)
            .with(page::KIB, bytes / 1024.0)
            .with("own_kib_per_query", user_reads.bytes / queries / 1024.0)
            .with("aligned_chunk_kib", chunk / 1024.0)
            .with(page::BY_CHUNK, bytes / chunk)
            .with("sstables_per_row", copies(set))
            .with("server_cpu_us", 1e6 * by_query("server_cpu_seconds"))
            .with("block_bytes", self.block as f64)
            .with("generator_ran_first", f64::from(u8::from(asked.first)))
            .with("load", self.load)
    }

    /// What has to be read of a row, by the blocks that the server reads.
    fn chunk_bytes(&self, set: &DataSet) -> f64 {
        let chunk = set.kind.codec.chunk();
        let data = set.data_bytes().max(1) as f64;
        let stored = set.file_bytes() as f64 * chunk as f64 / data;
        let row = data / set.partitions().max(1) as f64;
        copies(set) * aligned(stored, row, chunk, self.block)
    }
}

/// SSTables that a row is in.
fn copies(set: &DataSet) -> f64 {
    set.partitions() as f64 / set.keys().max(1) as f64
}

fn is_data(path: &Path) -> bool {
    path.to_string_lossy().ends_with("-Data.db")
}

/// Reads rows that are not measured.
pub(super) fn sweep(
    server: &Server,
    set: &DataSet,
    rows: &Rows,
    rate: f64,
    time: Duration,
) -> Result<()> {
    ask(server, Reads::of(set, &rows.before, 1), rate, time).map(drop)
}

/// Every read has to find its row.
fn ask(server: &Server, reads: Reads, rate: f64, time: Duration) -> Result<Asked> {
    let paced = Paced::start(server.port, rate, reads)?;
    sleep(time);
    let asked = paced.stop()?;
    let failed = asked.samples.iter().filter(|sample| sample.outcome != Outcome::Rows).count();
    if failed > 0 || !asked.unanswered.is_empty() || asked.samples.is_empty() {
        return Err(format!("{failed} wrong answers, {} missing", asked.unanswered.len()).into());
    }
    Ok(asked)
}

/// Of some rows every part is there.
fn check_parts(server: &Server, set: &DataSet, rows: &Rows) -> Result<()> {
    const SOME: usize = 20;
    let mut connection = connection::open(server.port)?;
    for key in rows.before.iter().take(SOME) {
        let page = connection.page(&statement(set, &key.to_string()))?;
        if !matches!(&page.rows[..], [row] if row.len() == 4 && row.iter().all(Option::is_some)) {
            return Err(format!("{}: row {key} lacks a part", set.table()).into());
        }
    }
    Ok(())
}

/// What a server reads on its own after its start, it should have read before; but others may read from the device for ever.
fn wait_until_quiet(device: &Device, within: Duration) {
    const LOOK_EVERY: Duration = Duration::from_millis(250);
    let began = Instant::now();
    let reads = || device.counters().of("device_reads");
    let mut before = reads();
    while began.elapsed() < within {
        sleep(LOOK_EVERY);
        let now = reads();
        if now == before {
            return;
        }
        before = now;
    }
}
