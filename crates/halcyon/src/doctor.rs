//! `halcyon doctor`: why does this node read more than it is asked for, and what cures it?
//!
//! ```text
//!   machine  /sys, /proc ─┐
//!   tables   Statistics.db ├─▶ facts ─▶ rules ─▶ findings ─▶ report
//!   live     system_views ─┘
//! ```
//!
//! 1. Facts are gathered; nothing is written, and no file is created, not even to try direct I/O.
//! 2. Each rule is a pure function of the facts, so that devices and tables can be made up in tests.
//! 3. Findings are told, the worst first, each with its evidence, its cost and its cure.

mod facts;
mod finding;
mod live;
mod machine;
mod report;
mod rules;
mod session;
mod tables;

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use halcyon_io::Disk;

use crate::console::Console;
use crate::failure::{Failure, Result};
use facts::Facts;
use finding::Severity;
use session::Credentials;

/// Look for what makes a node slow: device, chunks, filters, caches, tombstones; say what it costs and what cures it
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  halcyon doctor --data-dir /var/lib/cassandra/data           a Cassandra's files; it may run or not, nothing is touched
  halcyon doctor --data-dir halcyon-data --live 127.0.0.1     and what the running server says of caches and queries
  halcyon doctor --live 10.0.0.5:9042                         only what a server elsewhere says
  halcyon doctor --data-dir data --json | jq '.findings[].cure'

Each finding has its evidence (and where it was read), its cost (device bytes that one query reads in vain), and the statement
or command that cures it. What has little data or costs nothing yet is a note.

Exit codes: 0 nothing to cure (there may be notes), 1 something to cure, 2 wrong command line, 3 something could not be read.")]
pub(crate) struct DoctorArgs {
    /// A data directory of Cassandra or Halcyon (with keyspaces below, or with `data` below)
    #[arg(long, value_name = "DIR", env = "HALCYON_DATA_DIR", required_unless_present = "live")]
    data_dir: Option<PathBuf>,
    /// A running server, Cassandra or Halcyon, to be asked by CQL [default port: 9042]
    #[arg(long, value_name = "HOST[:PORT]")]
    live: Option<String>,
    /// For servers that want to know who asks
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
        let file = tables::look(disk, &directory, &mut facts, console).await?;
        facts.machine = Some(machine::look(&directory, file.as_deref()));
    }
    if let Some(host) = &args.live {
        let (username, password) = (args.username.clone(), args.password.clone());
        live::look(host, &Credentials { username, password }, &mut facts).await?;
    }
    let findings = rules::look(&facts);
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
