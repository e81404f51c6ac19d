//! `cargo x bench`: Halcyon and Apache Cassandra at the same work, on the same files, in one run.
//!
//! | file | what |
//! |---|---|
//! | `compaction.rs` | the experiment: peers in turn, round after round |
//! | `programs.rs` | Halcyon's programs, built in release |
//! | `dataset.rs` | the inputs: made once for each compressor, hard-linked for each run |
//! | `halcyon.rs`, `cassandra.rs` (`cql.rs`) | the peers |
//! | `process.rs`, `machine.rs` | what a run cost: CPU, memory, page cache, device |
//! | `profile.rs` | where the time goes, by `perf` |
//! | `record.rs` | what is kept of a run; medians and spreads |
//! | `report.rs`, `plot.rs` | table and picture |

mod cassandra;
mod compaction;
mod cql;
mod dataset;
mod halcyon;
mod machine;
mod plot;
mod process;
mod profile;
mod programs;
mod record;
mod report;

#[cfg(test)]
mod tests;

use crate::Result;

#[derive(clap::Subcommand)]
pub(crate) enum Experiment {
    /// Major compaction: speed, CPU, page cache and memory, against Cassandra, codec and device
    Compaction(compaction::Arguments),
}

pub(crate) fn run(experiment: &Experiment) -> Result<()> {
    match experiment {
        Experiment::Compaction(arguments) => compaction::run(arguments),
    }
}
