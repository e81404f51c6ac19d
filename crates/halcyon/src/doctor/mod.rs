//! `halcyon doctor`: explains why a node reads more than its queries need, and how to cure it.
//!
//! ```text
//!   machine  /sys, /proc ─┐
//!   tables   Statistics.db ├─▶ facts ─▶ rules ─▶ findings ─▶ report
//!   live     system_views ─┘
//! ```
//!
//! 1. Collect facts. Nothing is written; no file is created, not even to probe direct I/O.
//! 2. Each rule is a pure function of the facts, so tests can invent devices and tables.
//! 3. Report the findings, the worst first, each with evidence, cost and cure.

mod facts;
mod finding;
mod live;
mod machine;
mod report;
mod rules;
mod tables;

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use halcyon_client::Credentials;
use halcyon_io::Disk;

use crate::console::Console;
use crate::failure::{Failure, Result};
use facts::Facts;
use finding::Severity;

/// Find what makes a node slow (device, chunks, filters, caches, tombstones), its cost and its cure
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  halcyon doctor --data-dir /var/lib/cassandra/data           files of Cassandra, running or not; read only
  halcyon doctor --data-dir halcyon-data --live 127.0.0.1     also the caches and queries of the running server
  halcyon doctor --live 10.0.0.5:9042                         only a remote server
  halcyon doctor --data-dir data --json | jq '.findings[].cure'

Each finding has its evidence with the source, its cost (device bytes that one query reads without need), and the statement or command
that cures it. A finding without a significant cost is a note.

Exit codes: 0 nothing to cure (perhaps notes), 1 something to cure, 2 wrong command line, 3 a file or server could not be read.")]
pub(crate) struct DoctorArgs {
    /// A data directory of Cassandra or Halcyon (with keyspaces below, or with `data` below)
    #[arg(long, value_name = "DIR", env = "HALCYON_DATA_DIR", required_unless_present = "live")]
    data_dir: Option<PathBuf>,
    /// A running Cassandra or Halcyon server to query over CQL [default port: 9042]
    #[arg(long, value_name = "HOST[:PORT]")]
    live: Option<String>,
    /// For servers that require authentication
    #[arg(long, value_name = "NAME", requires = "live")]
    username: Option<String>,
    #[arg(long, value_name = "PASSWORD", env = "HALCYON_PASSWORD", hide_env_values = true)]
    password: Option<String>,
    /// One JSON object: looked_at, not_looked_at, findings, tables
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: &DoctorArgs, disk: &Disk, console: Console) -> Result<()> {
    let mut facts = Facts::default();
    if let Some(directory) = &args.data_dir {
        let directory = std::path::absolute(directory)
            .map_err(|error| Failure::unreadable(directory, error))?;
        let file = tables::examine(disk, &directory, &mut facts, console).await?;
        facts.machine = Some(machine::examine(&directory, file.as_deref()));
    }
    if let Some(host) = &args.live {
        let (username, password) = (args.username.clone(), args.password.clone());
        live::examine(host, &Credentials { username, password }, &mut facts).await?;
    }
    let findings = rules::examine(&facts);
    let mut out = std::io::stdout().lock();
    match args.json {
        true => writeln!(out, "{:#}", report::json(&facts, &findings))?,
        false => write!(out, "{}", report::text(&facts, &findings))?,
    }
    out.flush()?;
    match findings.iter().filter(|finding| finding.severity > Severity::Note).count() {
        0 => Ok(()),
        1 => Err(Failure::Problem("1 thing to cure".to_owned())),
        n => Err(Failure::Problem(format!("{n} things to cure"))),
    }
}
