//! `halcyon serve`: the command line of the node. `server` runs it.

use std::path::{Path, PathBuf};

use clap::Args;
use halcyon_io::{
    BackendChoice, Disk, DiskOptions, Signal, Signals, block_on, core_count, descriptors,
    resources, spawn,
};
use halcyon_server::settings::{Machine, Overrides, Settings};
use halcyon_server::{Level, Log, Threshold};

use crate::allocator;
use crate::console::{Console, Verbosity};
use crate::failure::{Failure, Result};

/// Serve CQL: a durable node for cqlsh and every Cassandra driver
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  halcyon serve                                  127.0.0.1:9042, data in ./halcyon-data, no configuration needed
  halcyon serve --data-dir /var/lib/halcyon      another data directory (or set HALCYON_DATA_DIR)
  halcyon serve --config cassandra.yaml          settings under the names of Cassandra 4 and 5
  halcyon serve --listen 0.0.0.0 --port 9043     for remote clients: set authenticator first, or anyone who reaches the port can change all data

Then, from another terminal:
  cqlsh 127.0.0.1 9042

Writes are durable before they are acknowledged (commitlog_sync: batch) unless the configuration says otherwise.
The log is on standard error, or in files (log_destination): INFO  [main] 2026-05-04T12:00:00,123 node.rs:142 - text. New files and directories are private (0600, 0700).
SIGTERM, SIGHUP or Ctrl-C drains the node: it answers requests in flight and flushes memtables; Apache Cassandra can then open the directory.
A second signal ends the process at once; the next start replays the commit log.

Exit codes: 0 drained, 2 wrong command line or settings, 3 cannot start, or stopped by an error, 130 second signal.")]
pub(crate) struct ServeArgs {
    /// Directory of data, commit log and saved caches
    #[arg(long, value_name = "DIR", env = "HALCYON_DATA_DIR")]
    data_dir: Option<PathBuf>,
    /// A cassandra.yaml; the command line overrides it
    #[arg(long, value_name = "FILE", env = "HALCYON_CONFIG")]
    config: Option<PathBuf>,
    /// The address to listen on (rpc_address) [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// The port to listen on (native_transport_port); 0 takes a free one [default: 9042]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Number of shards, each with its own core, tokens and connections [default: one per core]
    #[arg(long, value_name = "N")]
    shards: Option<usize>,
    /// auto, uring or pool [default: auto]
    #[arg(long, value_name = "ENGINE")]
    io_engine: Option<BackendChoice>,
    /// Level of the log: off, error, warn, info, debug, trace or all (log_level) [default: info]
    #[arg(long, value_name = "LEVEL", env = "HALCYON_LOG_LEVEL")]
    log_level: Option<Threshold>,
}

/// Memory that is not counted, which the shares of caches, memtables and requests leave free: code, stacks, filters and summaries of
/// SSTables, and what the allocator keeps between uses.
const UNCOUNTED: u64 = 96 << 20;

pub(crate) fn run(args: &ServeArgs, console: Console) -> Result<()> {
    let text = match &args.config {
        Some(path) => Some(read(path)?),
        None => None,
    };
    let overrides = Overrides {
        data_dir: args.data_dir.clone(),
        listen: args.listen.clone(),
        port: args.port,
        shards: args.shards,
        io_engine: args.io_engine,
        log_level: args.log_level.or(usual(console).map(Threshold::from)),
        rackdc: args.config.as_deref().and_then(beside),
    };
    let available = resources::available_memory();
    let memory = available - UNCOUNTED.min(available / 8 * 3);
    let machine = Machine { memory, cores: core_count() };
    let settings =
        Settings::load(text.as_deref(), &overrides, machine).map_err(|e| match &args.config {
            Some(path) => Failure::usage(format!("{}: {e}", path.display())),
            None => Failure::usage(e.to_string()),
        })?;
    let mut signals = Signals::catch()?;
    descriptors::raise_limit();
    let is_journal = std::env::var_os("JOURNAL_STREAM").is_some();
    let (log, _writer) = Log::open(&settings.log, is_journal).map_err(Failure::unreadable)?;
    log.take_panics();
    let told = log.clone();
    let stop = async move {
        let name = stop_signal(&mut signals, &told).await;
        told.say(format_args!("{name}"));
        spawn(async move {
            stop_signal(&mut signals, &told).await;
            // Safe, like a kill: acknowledged writes are in the commit log.
            eprintln!("halcyon: second signal: ending at once");
            std::process::exit(i32::from(INTERRUPTED));
        })
        .detach();
    };
    allocator::give_back_aside(available);
    halcyon_server::serve(settings, &log, |_| (), stop)
        .map_err(|e| Failure::unreadable(e.to_string()))
}

/// The name of the next signal that stops the server.
async fn stop_signal(signals: &mut Signals, log: &Log) -> &'static str {
    loop {
        match signals.next().await {
            Signal::Stop(name) => return name,
            Signal::Threads => log.say(format_args!(
                "SIGQUIT: this is not a JVM, it has no dump of its threads; `halcyon nodetool tpstats` and system_views show what runs"
            )),
        }
    }
}

/// The level that `--quiet` and `--verbose` ask for.
fn usual(console: Console) -> Option<Level> {
    match console.verbosity {
        Verbosity::Quiet => Some(Level::Error),
        Verbosity::Normal => None,
        Verbosity::Verbose => Some(Level::Debug),
    }
}

/// The exit code after a second signal, by the shells' convention.
const INTERRUPTED: u8 = 130;

/// Far larger than any real configuration.
const CONFIG_MAX: u64 = 4 << 20;

/// The file in which Cassandra's snitch finds data centre and rack. A missing file is not an error here: a snitch that needs it reports
/// that.
fn beside(config: &Path) -> Option<String> {
    read(&config.with_file_name("cassandra-rackdc.properties")).ok()
}

fn read(path: &Path) -> Result<String> {
    let disk = Disk::real(DiskOptions::default());
    let bytes = block_on(disk.read(path, CONFIG_MAX))?;
    String::from_utf8(bytes).map_err(|_| Failure::usage(format!("{}: not UTF-8", path.display())))
}
