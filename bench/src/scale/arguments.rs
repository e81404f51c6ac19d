//! How large each part is, and the reads that several of them ask.

use std::thread::sleep;
use std::time::Duration;

use halcyon_model::units::arguments::size;
use halcyon_oracle::Result;
use serde::Serialize;

use crate::latency::about;
use crate::paced::{Paced, Requests};
use crate::process::CpuOf;
use crate::record::Measurements;
use crate::server::Server;

#[derive(Clone, Copy, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(super) enum Part {
    Sstables,
    Tables,
    Clients,
    Shards,
}

#[derive(clap::Args, Serialize)]
pub(crate) struct Arguments {
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "sstables,tables,clients,shards"
    )]
    pub(super) parts: Vec<Part>,
    /// Uncompressed bytes of the rows that few and many SSTables have: twice as much room is needed
    #[arg(long, default_value = "8GiB", value_parser = size)]
    pub(super) size: u64,
    #[arg(long, default_value_t = 10)]
    pub(super) few: u32,
    #[arg(long, default_value_t = 10_000)]
    pub(super) many: u32,
    /// Memory of the cgroup, with few and with many SSTables
    #[arg(long, default_value = "1GiB", value_parser = size)]
    pub(super) memory: u64,
    /// Flushes of one row, beside few and beside many SSTables
    #[arg(long, default_value_t = 30)]
    pub(super) flushes: u32,
    #[arg(long, default_value_t = 3000)]
    pub(super) tables: u32,
    #[arg(long, default_value_t = 10_000)]
    pub(super) connections: u32,
    #[arg(long, default_value_t = 100_000)]
    pub(super) statements: u32,
    /// Compared with as many as there are cores
    #[arg(long, default_value_t = 16)]
    pub(super) shards: u32,
    /// Turns of both numbers of shards
    #[arg(long, default_value_t = 5)]
    pub(super) rounds: u32,
    /// Rows that clients of shards write and read
    #[arg(long, default_value_t = 100_000)]
    pub(super) rows: u64,
    /// Reads a second, where a rate is fixed
    #[arg(long, default_value_t = 1000.0)]
    pub(super) reads: f64,
    /// Of each stretch of requests
    #[arg(long, default_value_t = 10.0)]
    pub(super) seconds: f64,
}

impl Arguments {
    pub(super) fn stretch(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }

    /// Reads at the fixed rate for a stretch: their latencies, and the server's CPU for each.
    pub(super) fn reads(&self, server: &Server, reads: impl Requests) -> Result<Measurements> {
        let cpu = CpuOf::Process(server.pid);
        let before = cpu.seconds();
        let paced = Paced::start(server.port, self.reads, reads)?;
        sleep(self.stretch());
        let asked = paced.stop()?;
        let samples: Vec<_> = asked.samples.iter().collect();
        let by_read = (cpu.seconds() - before) / samples.len().max(1) as f64;
        let figures = Measurements::default()
            .with("read_cpu_us", 1e6 * by_read)
            .with("unanswered", asked.unanswered.len() as f64);
        Ok(about(figures, "read_", &samples))
    }
}
