//! `halcyon serve`: the node. Settings come from the file, the environment and the command line; `server` does the rest.

use std::path::{Path, PathBuf};

use clap::Args;
use halcyon_io::{
    BackendChoice, Disk, DiskOptions, Signal, Signals, block_on, core_count, resources, spawn,
};
use halcyon_server::settings::{Machine, Overrides, Settings};
use halcyon_server::{Line, Log};

use crate::console::{Console, Verbosity};
use crate::failure::{Failure, Result};

/// Serve CQL: a durable node for cqlsh and every Cassandra driver
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  halcyon serve                                  127.0.0.1:9042, data in ./halcyon-data, no configuration needed
  halcyon serve --data-dir /var/lib/halcyon      data elsewhere (or set HALCYON_DATA_DIR)
  halcyon serve --config cassandra.yaml          the settings of a Cassandra 4 or 5 node, by their names there
  halcyon serve --listen 0.0.0.0 --port 9043     for other machines; there is no authentication yet

Then, from another terminal:
  cqlsh 127.0.0.1 9042

Writes are durable before they are acknowledged (commitlog_sync: batch) unless the configuration says otherwise.
SIGTERM or Ctrl-C drains: requests under way are answered, memtables are flushed, and Apache Cassandra can open the directory.
A second one ends at once; the next start then replays the commit log.

Exit codes: 0 drained, 2 wrong command line or settings, 3 cannot start, or stopped by an error, 130 second signal.")]
pub(crate) struct ServeArgs {
    /// Where data, commit log and caches are kept
    #[arg(long, value_name = "DIR", env = "HALCYON_DATA_DIR")]
    data_dir: Option<PathBuf>,
    /// A cassandra.yaml; what the command line says goes before it
    #[arg(long, value_name = "FILE", env = "HALCYON_CONFIG")]
    config: Option<PathBuf>,
    /// The address to listen on (rpc_address) [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// The port to listen on (native_transport_port); 0 takes a free one [default: 9042]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Shards, each with a core, its tokens and its connections [default: one a core]
    #[arg(long, value_name = "N")]
    shards: Option<usize>,
    /// auto, uring or pool [default: auto]
    #[arg(long, value_name = "ENGINE")]
    io_engine: Option<BackendChoice>,
}

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
        rackdc: args.config.as_deref().and_then(beside),
    };
    let machine = Machine { memory: resources::available_memory(), cores: core_count() };
    let settings =
        Settings::load(text.as_deref(), &overrides, machine).map_err(|e| match &args.config {
            Some(path) => Failure::usage(format!("{}: {e}", path.display())),
            None => Failure::usage(e.to_string()),
        })?;
    let mut signals = Signals::catch()?;
    resources::raise_open_files();
    let log = Log::new(move |line| match line {
        Line::Said(text) if console.verbosity > Verbosity::Quiet => eprintln!("{text}"),
        Line::Said(_) => {}
        Line::Warning(text) => console.warn(text),
    });
    let told = log.clone();
    let stop = async move {
        let name = match signals.next().await {
            Signal::Terminate => "SIGTERM",
            Signal::Interrupt => "SIGINT",
        };
        told.say(format_args!("{name}"));
        spawn(async move {
            signals.next().await;
            // As after a kill: what was acknowledged is in the commit log.
            eprintln!("halcyon: a second signal: ending at once");
            std::process::exit(i32::from(INTERRUPTED));
        })
        .detach();
    };
    halcyon_server::serve(settings, &log, |_| (), stop)
        .map_err(|e| Failure::Unreadable(e.to_string()))
}

/// The exit code of a second signal, as shells have it.
const INTERRUPTED: u8 = 130;

/// No configuration is longer.
const CONFIG_MAX: u64 = 4 << 20;

/// Where Cassandra's snitch finds data centre and rack. Without the file there is nothing to say; whoever needs it tells.
fn beside(config: &Path) -> Option<String> {
    read(&config.with_file_name("cassandra-rackdc.properties")).ok()
}

fn read(path: &Path) -> Result<String> {
    let disk = Disk::real(DiskOptions::default());
    let bytes = block_on(disk.read(path, CONFIG_MAX))?;
    String::from_utf8(bytes).map_err(|_| Failure::usage(format!("{}: not UTF-8", path.display())))
}
