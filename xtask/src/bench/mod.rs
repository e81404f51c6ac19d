//! `cargo x bench`: Halcyon and Apache Cassandra at the same work, in one run on one machine.
//!
//! | file | what |
//! |---|---|
//! | `compaction/` | major compaction of the same files |
//! | `node/` | a server under the same requests |
//! | `programs.rs` | Halcyon's programs, built in release |
//! | `server.rs`, `jvm_node.rs`, `jmx.rs` | a server, a node of Cassandra, what is asked of it behind CQL's back |
//! | `cage.rs` | a memory cgroup |
//! | `dataset.rs`, `restore.rs` | SSTables that everybody is given, and how Cassandra gets them |
//! | `connection.rs` | one connection of the native protocol |
//! | `load.rs`, `latency.rs` | the closed loop, and quantiles |
//! | `process.rs`, `machine.rs`, `flush.rs` | what a run cost: CPU, memory, page cache, device; the device's own flush |
//! | `profile.rs` | where the time goes, by `perf` |
//! | `contender.rs` | who runs; medians and spreads |
//! | `chart.rs` | bars, drawn as SVG |

mod cage;
mod chart;
mod compaction;
mod connection;
mod contender;
mod dataset;
mod flush;
mod jmx;
mod jvm_node;
mod latency;
mod load;
mod machine;
mod node;
mod process;
mod profile;
mod programs;
mod restore;
mod server;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::{Result, call, repository};

#[derive(clap::Subcommand)]
pub(crate) enum Experiment {
    /// Major compaction: speed, CPU, page cache and memory, against Cassandra, codec and device
    Compaction(compaction::Arguments),
    /// The server: writes and reads by requests in flight, CPU, start and memory, against Cassandra and the device
    Node(node::Arguments),
}

pub(crate) fn run(experiment: &Experiment) -> Result<()> {
    match experiment {
        Experiment::Compaction(arguments) => compaction::run(arguments),
        Experiment::Node(arguments) => node::run(arguments),
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
    fn make(data: &Path, out: Option<&Path>, default_out: &str, tiny: bool) -> Result<Places> {
        let mut data = repository().join(data);
        let mut named = repository().join(out.unwrap_or(Path::new(default_out)));
        if tiny {
            data.push("tiny");
            if data.exists() {
                fs::remove_dir_all(&data)?;
            }
            if out.is_none() {
                named = data.join("out");
            }
        }
        for folder in [&data, &named] {
            fs::create_dir_all(folder)?;
        }
        Ok(Places { data, out: named, tiny })
    }

    /// Records, table and plot.
    fn write(&self, records: &Value, table: &str, plot: &str) -> Result<()> {
        fs::write(self.out.join("records.json"), format!("{records:#}\n"))?;
        fs::write(self.out.join("README.md"), table)?;
        fs::write(self.out.join("plot.svg"), plot)?;
        if self.tiny {
            return Ok(());
        }
        if let Err(error) = draw_png(&self.out) {
            eprintln!("bench: no plot.png: {error}");
        }
        Ok(())
    }
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
