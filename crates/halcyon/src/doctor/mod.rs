//! `halcyon doctor`: prints what `tools::doctor` finds.

mod report;

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use halcyon_client::Credentials;
use halcyon_io::Disk;
use halcyon_tools::doctor::{Request, Severity, examine};

use crate::console::Console;
use crate::encryption::{self, EncryptionArgs};
use crate::failure::{Failure, Result};

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
    #[command(flatten)]
    encryption: EncryptionArgs,
    /// One JSON object: looked_at, not_looked_at, findings, tables
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: &DoctorArgs, disk: &Disk, console: Console) -> Result<()> {
    let credentials = Credentials {
        username: args.username.clone(),
        password: args.password.clone(),
        encryption: encryption::client(disk, &args.encryption)
            .await
            .map_err(Failure::unreadable)?,
    };
    let request = Request {
        data_directory: args.data_dir.clone(),
        live: args.live.clone().map(|host| (host, credentials)),
    };
    let (facts, findings) = examine(disk, &request, &console).await?;
    let mut out = std::io::stdout().lock();
    match args.json {
        true => writeln!(out, "{:#}", report::json(&facts, &findings))?,
        false => write!(out, "{}", report::text(&facts, &findings))?,
    }
    out.flush()?;
    match findings.iter().filter(|finding| finding.severity > Severity::Note).count() {
        0 => Ok(()),
        1 => Err(Failure::problem("1 thing to cure")),
        n => Err(Failure::problem(format!("{n} things to cure"))),
    }
}
