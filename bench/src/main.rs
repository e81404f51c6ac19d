//! `cargo x bench`: Halcyon and Apache Cassandra at the same work, in one run on one machine.
//!
//! | file | what |
//! |---|---|
//! | `compaction/` | major compaction of the same files |
//! | `node/` | a server under the same requests |
//! | `under_compaction/` | E1, E2: reads while it compacts |
//! | `read_amplification/` | E3: device bytes of a single-row read |
//! | `commit_log/` | E4: durable mutations by shards, segments, blocks, modes |
//! | `clients/` | E5: durable writes by clients |
//! | `messaging/` | E6: a message store over time |
//! | `programs.rs` | Halcyon's programs, built in release |
//! | `server.rs`, `jvm_node.rs`, `jmx.rs` | a server, a node of Cassandra, what is asked of it behind CQL's back |
//! | `cage.rs` | a memory cgroup |
//! | `dataset.rs`, `restore.rs` | SSTables that everybody is given, and how Cassandra gets them |
//! | `connection.rs` | one connection of the native protocol |
//! | `load.rs`, `paced.rs`, `latency.rs` | the closed loop, the open loop, quantiles |
//! | `process.rs`, `machine.rs`, `flush.rs` | what a run cost: CPU, memory, page cache, device; the device's own flush |
//! | `pressure.rs`, `block_trace.rs`, `histogram.rs` | stalls, and each request as the device saw it |
//! | `profile.rs` | where the time goes, by `perf` |
//! | `contender.rs` | who runs; medians and spreads |
//! | `standstill.rs` | when the host took a core away |
//! | `sheet.rs` | rows of figures: records, table and bars of an experiment |
//! | `report.rs` | one page of all experiments |
//! | `chart.rs`, `panels.rs` | bars; small panels with lines or bars: drawn as SVG |

mod block_trace;
mod cage;
mod chart;
mod clients;
mod commit_log;
mod compaction;
mod connection;
mod contender;
mod dataset;
mod flush;
mod histogram;
mod jmx;
mod jvm_node;
mod latency;
mod load;
mod machine;
mod messaging;
mod node;
mod paced;
mod panels;
mod pressure;
mod process;
mod profile;
mod programs;
mod read_amplification;
mod report;
mod restore;
mod server;
mod sheet;
mod standstill;
mod under_compaction;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use serde_json::Value;

use clap::{Parser, Subcommand};
use halcyon_oracle::{Result, call, repository};

#[derive(Parser)]
#[command(
    name = "cargo x bench",
    about = "Experiments against Apache Cassandra, on this machine, in one run"
)]
struct Arguments {
    #[command(subcommand)]
    experiment: Experiment,
}

#[derive(Subcommand)]
enum Experiment {
    /// Major compaction: speed, CPU, page cache and memory, against Cassandra, codec and device
    Compaction(compaction::Arguments),
    /// E1, E2: read latency while a major compaction runs, and who made a read wait, against Cassandra 5.0 and 6.0
    #[command(name = "E1")]
    ReadsUnderCompaction(under_compaction::Arguments),
    /// Write docs/experiments.md from what the experiments have left in bench/
    Report,
    /// The server: writes and reads by requests in flight, CPU, start and memory, against Cassandra and the device
    Node(node::Arguments),
    /// Device bytes of a single-row read by chunk length and read-ahead, against Cassandra
    #[command(name = "E3")]
    ReadAmplification(read_amplification::Arguments),
    /// The commit log: durable mutations by shards, segments, blocks and modes, against Cassandra and the device
    #[command(name = "E4")]
    CommitLog(commit_log::Arguments),
    /// Durable writes by the number of clients, against Cassandra and PostgreSQL
    #[command(name = "E5")]
    Clients(clients::Arguments),
    /// A message store over time: latency, disk, tombstones, against Cassandra
    #[command(name = "E6")]
    Messaging(messaging::Arguments),
}

fn main() -> ExitCode {
    match run(&Arguments::parse().experiment) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cargo x bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(experiment: &Experiment) -> Result<()> {
    match experiment {
        Experiment::Compaction(arguments) => compaction::run(arguments),
        Experiment::ReadsUnderCompaction(arguments) => under_compaction::run(arguments),
        Experiment::Report => report::run(),
        Experiment::Node(arguments) => node::run(arguments),
        Experiment::ReadAmplification(arguments) => read_amplification::run(arguments),
        Experiment::CommitLog(arguments) => commit_log::run(arguments),
        Experiment::Clients(arguments) => clients::run(arguments),
        Experiment::Messaging(arguments) => messaging::run(arguments),
    }
}

/// What every experiment is asked.
#[derive(clap::Args, Clone)]
struct Common {
    /// Only these: halcyon, 5.0.9, 6.0-alpha2, postgresql [default: all that the experiment knows]
    #[arg(long, value_delimiter = ',')]
    peers: Vec<String>,
    /// Where records, tables and plots go [default: a folder in bench; of a tiny run: among the data]
    #[arg(long)]
    out: Option<PathBuf>,
    /// Where inputs are kept and servers have their data: on the device to be measured [default: in bench/data]
    #[arg(long)]
    data: Option<PathBuf>,
    /// Seconds, Halcyon only, dev build: does it still work?
    #[arg(long)]
    tiny: bool,
}

impl Common {
    fn takes_part(&self, peer: &str) -> bool {
        match self.tiny {
            true => peer == "halcyon",
            false => self.peers.is_empty() || self.peers.iter().any(|listed| listed == peer),
        }
    }
}

/// Folders of one invocation.
struct Places {
    /// Where servers and runs write: on the device that is measured.
    data: PathBuf,
    out: PathBuf,
    tiny: bool,
}

impl Places {
    /// Of a tiny run both are made anew below the data, so that nobody's results are overwritten.
    fn make(common: &Common, data: &str, out: &str) -> Result<Places> {
        let tiny = common.tiny;
        let mut data = repository().join(common.data.as_deref().unwrap_or(Path::new(data)));
        let mut named = repository().join(common.out.as_deref().unwrap_or(Path::new(out)));
        if tiny {
            data.push("tiny");
            if data.exists() {
                fs::remove_dir_all(&data)?;
            }
            if common.out.is_none() {
                named = data.join("out");
            }
        }
        for folder in [&data, &named] {
            fs::create_dir_all(folder)?;
        }
        Ok(Places { data, out: named, tiny })
    }

    /// An empty folder for a server.
    fn fresh(&self, name: &str) -> Result<PathBuf> {
        let folder = self.data.join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        Ok(folder)
    }

    /// Records, tables, and plots by their names.
    fn write_plots(&self, records: &Value, tables: &str, plots: &[(&str, String)]) -> Result<()> {
        fs::write(self.out.join("records.json"), format!("{records:#}\n"))?;
        fs::write(self.out.join("README.md"), tables)?;
        for (name, plot) in plots {
            fs::write(self.out.join(name), plot)?;
        }
        Ok(())
    }

    /// The tables that were written last.
    fn show(&self) -> Result<()> {
        println!("{}", fs::read_to_string(self.out.join("README.md"))?);
        eprintln!("bench: written to {}", self.out.display());
        Ok(())
    }

    /// Records, tables, and one plot, which is drawn as PNG too.
    fn write(&self, records: &Value, tables: &str, plot: String) -> Result<()> {
        self.write_plots(records, tables, &[("plot.svg", plot)])?;
        if self.tiny {
            return Ok(());
        }
        if let Err(error) = draw_png(&self.out) {
            eprintln!("bench: no plot.png: {error}");
        }
        Ok(())
    }
}

/// `512MiB`, in bytes.
fn parse_size(text: &str) -> std::result::Result<u64, String> {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let found = units.iter().find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, shift)));
    let (number, shift) = found.ok_or("a size expected, such as 512MiB or 4GiB")?;
    number.parse::<u64>().map(|n| n << shift).map_err(|e| format!("{text}: {e}"))
}

/// By a package of its own, so that nothing else has to build a rasterizer.
fn draw_png(out: &Path) -> Result<()> {
    let manifest = repository().join("bench/png/Cargo.toml");
    let mut cargo = Command::new("cargo");
    cargo.args(["run", "--quiet", "--release", "--manifest-path"]).arg(manifest).arg("--");
    call(cargo.arg(out.join("plot.svg")).arg(out.join("plot.png")))
}

/// The sentence on commit and machine that opens a report.
fn taken_where(machine: &Value) -> String {
    let word = |name: &str| machine[name].as_str().unwrap_or("?").to_owned();
    let number = |name: &str| machine[name].as_u64().unwrap_or(0);
    format!(
        "Commit {}{}, {}; {} × {}, {} MiB of memory, Linux {}",
        word("commit"),
        if machine["uncommitted"] == true { " (and uncommitted changes)" } else { "" },
        word("taken_at"),
        number("cores"),
        word("cpu"),
        number("memory_mib"),
        word("kernel"),
    )
}
