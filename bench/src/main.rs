//! `cargo x bench`: Halcyon and Apache Cassandra at the same work, in one run on one machine.
//!
//! | file | what |
//! |---|---|
//! | `under_compaction/` | E1, E2: reads during a compaction |
//! | `ring/` | E7: the same inside Cassandra, with the plug-in's jar and without |
//! | `access/` | what passwords, permissions and TLS cost, and reads beside logins |
//! | `observers/` | reads while metrics are scraped, pages are open, `top` and `nodetool` run |
//! | `scale/` | many SSTables, tables, connections, statements and shards |
//! | `cold/` | E8: reads that no cache answers, by the device's own read |
//! | `messaging/` | E6: a message store over time |
//! | `mixed/` | reads of hot rows while others are written: what stalls, and why |
//! | `steps/` | reads under compactions, step by step more and fewer, and beside ingestion, with nothing set |
//! | `chores/` | reads while an operator takes snapshots, truncates, drops and changes the schema |
//! | `experiments.rs`, `invocation.rs` | the list of experiments; one run of one |
//! | `record.rs`, `page.rs`, `column.rs`, `plot.rs` | what was measured; its page; a figure on it; its plots |
//! | `programs.rs`, `server.rs`, `jmx.rs` | Halcyon's programs in release; the servers; Cassandra's commands over JMX |
//! | `cage.rs` | a memory cgroup |
//! | `dataset.rs`, `restore.rs` | SSTables that all contenders are given, and how Cassandra gets them |
//! | `major.rs` | major compactions of Halcyon |
//! | `connection.rs` | one connection of the native protocol |
//! | `load.rs`, `paced.rs`, `rows.rs`, `latency.rs` | the closed loop, the open loop, what it asks of a table, quantiles |
//! | `latte.rs` | a load generator of others |
//! | `process.rs`, `machine.rs` | what a run cost: CPU, memory, page cache, device |
//! | `direct.rs`, `device_read.rs` | requests past the page cache: the device's own read |
//! | `chunks.rs` | what a row's chunk is at the device |
//! | `pressure.rs`, `block_trace.rs`, `histogram.rs` | stalls, and each request as the device saw it |
//! | `keys.rs`, `stretch.rs`, `timeline.rs` | reads while something compacts: which rows, what became of them |
//! | `gauge.rs` | what a server cost in a stretch of time |
//! | `setting.rs`, `read_ahead.rs`, `volume.rs` | temporary settings of the kernel: read-ahead, a rented volume's limits (E9) |
//! | `standstill.rs` | when the host took a core away, and who waited for it |

mod access;
mod block_trace;
mod cage;
mod chores;
mod chunks;
mod cold;
mod column;
mod connection;
mod dataset;
mod device_read;
mod direct;
mod experiments;
mod gauge;
mod histogram;
mod invocation;
mod jmx;
mod keys;
mod latency;
mod latte;
mod load;
mod machine;
mod major;
mod messaging;
mod mixed;
mod observers;
mod paced;
mod page;
mod plot;
mod pressure;
mod process;
mod programs;
mod queries;
mod read_ahead;
mod record;
mod restore;
mod ring;
mod rows;
mod scale;
mod server;
mod setting;
mod standstill;
mod steps;
mod stretch;
mod timeline;
mod under_compaction;
mod volume;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use invocation::Asked;

#[derive(Parser)]
#[command(
    name = "cargo x bench",
    about = "Experiments against Apache Cassandra, on this machine, in one run"
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Writes with indexes and views, queries through indexes, the search for vectors, against Cassandra
    #[command(name = "cql")]
    Queries(Asked<queries::Arguments>),
    /// E1, E2: read latency during a major compaction, and who made a read wait, against Cassandra 5.0 and 6.0
    #[command(name = "E1")]
    ReadsUnderCompaction(Asked<under_compaction::Arguments>),
    /// E7: the same inside Cassandra 5.0, with the plug-in's jar and without, on one node and on a ring of three
    #[command(name = "ring")]
    Ring(Asked<ring::Arguments>),
    /// A message store over time: latency, disk, tombstones, against Cassandra
    #[command(name = "E6")]
    Messaging(Asked<messaging::Arguments>),
    /// Reads of hot rows while others are written, flushed and compacted: each stall by its cause, against Cassandra
    Mixed(Asked<mixed::Arguments>),
    /// Reads that come in steps while one major compaction follows another, and beside ingestion, at the default target
    Steps(Asked<steps::Arguments>),
    /// Reads while an operator takes snapshots, flushes, truncates, drops and changes the schema, against Cassandra
    Chores(Asked<chores::Arguments>),
    /// What passwords, permissions and TLS cost a request, and reads beside logins and password changes, against Cassandra
    Access(Asked<access::Arguments>),
    /// Reads while metrics are scraped, pages are open, `top` and `nodetool` run
    Observers(Asked<observers::Arguments>),
    /// What grows with SSTables, tables (against Cassandra), connections, prepared statements and shards
    Scale(Asked<scale::Arguments>),
    /// E8: reads of rows that no cache has, in one SSTable and in four: latency by the device's own read, device bytes, against Cassandra
    Cold(Asked<cold::Arguments>),
    /// Make all pages, plots and their index again from the records in bench/
    Report,
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Queries(asked) => asked.run(),
        Command::ReadsUnderCompaction(asked) => asked.run(),
        Command::Ring(asked) => asked.run(),
        Command::Messaging(asked) => asked.run(),
        Command::Mixed(asked) => asked.run(),
        Command::Steps(asked) => asked.run(),
        Command::Scale(asked) => asked.run(),
        Command::Chores(asked) => asked.run(),
        Command::Access(asked) => asked.run(),
        Command::Observers(asked) => asked.run(),
        Command::Cold(asked) => asked.run(),
        Command::Report => experiments::report(),
    };
    if let Err(error) = done {
        eprintln!("cargo x bench: {error}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
