//! `halcyon compact`: a major compaction of the tables that the paths name; or, with `--node`, tables of a running Cassandra are handed
//! over (`node`).
//!
//! `tools::compact` does the work on this thread; another thread draws the progress bar (`watch`). `summary` prints the outputs and the
//! device's latencies.

mod node;
mod output;
mod service;
mod sidecar;
mod summary;
mod watch;

pub(crate) use service::serve;

use std::path::PathBuf;

use clap::Args;
use halcyon_compaction::Progress;
use halcyon_io::{AccessMode, Disk, DiskOptions, block_on, on_stop};
use halcyon_model::units::arguments;
use halcyon_tools::compact::{Request, claim, prepare};

use crate::console::Console;
use crate::failure::{Failure, Result};
use crate::schema_args::SchemaArgs;
use node::NodeArgs;
use output::{CompressionArg, FormatArg, VersionArg};
use summary::Summary;

/// Merge the SSTables of tables into fewer, without what is deleted or expired and past its grace; --node: have a running Cassandra hand
/// its compactions over
#[derive(Debug, Args)]
#[command(
    disable_version_flag = true,
    override_usage = "halcyon compact [OPTIONS] PATH...\n       halcyon compact --node HOST[:PORT] [--tables NAMES] [--watch | --remove]",
    after_help = "Examples:
  halcyon compact data/ks/t-…/                                   one table, in place
  halcyon compact data/ks/t-…/ --output /tmp/out --dry-run       what would be done
  halcyon compact data/ks/t-…/ --access direct --throughput 128MiB/s
  halcyon compact snapshot/ --output new/ --schema schema.cql --format bti --compression ZstdCompressor,compression_level=6
  halcyon compact data/ks/t-…/ --gc-grace 10d --split-size 10GiB --json
  halcyon compact --node 127.0.0.1 --tables ks.t --dry-run       which strategy a running Cassandra would get
  halcyon compact --node 127.0.0.1 --watch                       all its tables, and again after restarts and ALTER TABLE

No node may run on folders that are compacted in place: stop it, or write to another folder with --output. A running
Halcyon is refused by its locks, a running Cassandra by the SSTables that it has open, which only its own user and
root can see, and not from within another container.
Outputs become live at once and together, through Cassandra's own transaction log; until then the inputs are
untouched, whatever happens. Tombstones are purged only if they are older than gc_grace_seconds and no SSTable that
is left out could hold what they delete; without a schema or --gc-grace nothing is purged."
)]
pub(crate) struct CompactArgs {
    #[command(flatten)]
    files: FileArgs,
    /// Print the plan and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Print the summary as JSON, and no progress
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    schema: SchemaArgs,
    #[command(flatten)]
    node: NodeArgs,
}

/// Files that no node has. As a group they conflict with `--node`, and a group has no part of what it flattens.
#[derive(Debug, Args)]
pub(crate) struct FileArgs {
    /// Folders of tables or keyspaces, data directories, or single Data.db files
    #[arg(required_unless_present_any = ["service", "node"], value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Compact what an Apache Cassandra asks for on standard input, for its plug-in (docs/operate/cassandra-plugin.md)
    #[arg(long, exclusive = true)]
    service: bool,
    /// Write to this folder and keep the inputs; several tables get subfolders [default: replace the inputs]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Keep the inputs, although the outputs are in the same folder
    #[arg(long)]
    keep_inputs: bool,
    /// The kind of SSTable to write [default: that of the inputs]
    #[arg(long, value_enum)]
    format: Option<FormatArg>,
    /// The version to write: nb (Cassandra 4), oa, da (5.0), pa, ea (6.0) [default: the newest of the inputs]
    #[arg(long, value_enum)]
    version: Option<VersionArg>,
    /// Access mode of reads and writes: auto, direct, uncached, standard
    #[arg(long, value_name = "MODE", default_value = "auto")]
    access: AccessMode,
    /// Like --access, for reads only
    #[arg(long, value_name = "MODE")]
    read_access: Option<AccessMode>,
    /// Like --access, for writes only
    #[arg(long, value_name = "MODE")]
    write_access: Option<AccessMode>,
    /// The largest rate of reads; 0MiB/s is unlimited
    #[arg(long, value_name = "RATE", value_parser = arguments::rate)]
    throughput: Option<u64>,
    /// Tombstones from before this time can be purged: seconds since 1970 or an instant
    #[arg(long, value_name = "INSTANT", value_parser = arguments::instant, conflicts_with = "gc_grace")]
    gc_before: Option<u32>,
    /// Tombstones older than this can be purged: 864000, 10d [default: gc_grace_seconds of the schema]
    #[arg(long, value_name = "DURATION", value_parser = arguments::duration)]
    gc_grace: Option<std::time::Duration>,
    /// The time at which expiry is decided: seconds since 1970 or an instant [default: now]
    #[arg(long, value_name = "INSTANT", value_parser = arguments::instant)]
    now: Option<u32>,
    /// Start another output after this much compressed data
    #[arg(long, value_name = "SIZE", value_parser = arguments::size)]
    split_size: Option<u64>,
    /// CLASS[,option=value…], or `none` [default: that of the schema, else of the inputs]
    #[arg(long, value_name = "CLASS[,OPTION=VALUE…]")]
    compression: Option<CompressionArg>,
    /// Uncompressed bytes of one compressed chunk: 4KiB, 16KiB …
    #[arg(long, value_name = "SIZE", value_parser = arguments::size)]
    chunk_length: Option<u64>,
    /// Bytes of one read
    #[arg(long, value_name = "SIZE", value_parser = arguments::size, default_value = "256KiB")]
    buffer_size: u64,
    /// Reads in flight for each input
    #[arg(long, value_name = "N", default_value_t = 2)]
    read_ahead: usize,
    /// Bytes of one write
    #[arg(long, value_name = "SIZE", value_parser = arguments::size, default_value = "1MiB")]
    write_buffer_size: u64,
    /// Bytes of all I/O buffers together
    #[arg(long, value_name = "SIZE", value_parser = arguments::size, default_value = "96MiB")]
    buffer_budget: u64,
}

impl CompactArgs {
    pub(crate) fn is_service(&self) -> bool {
        self.files.service
    }

    pub(crate) fn disk_options(&self) -> DiskOptions {
        let buffer_budget = usize::try_from(self.files.buffer_budget).unwrap_or(usize::MAX);
        DiskOptions { buffer_budget, ..DiskOptions::default() }
    }

    fn request(&self) -> Request {
        let files = &self.files;
        Request {
            paths: files.paths.clone(),
            schema: self.schema.source(),
            output: files.output.clone(),
            keep_inputs: files.keep_inputs,
            format: files.format.map(FormatArg::format),
            version: files.version.map(VersionArg::version),
            read_mode: files.read_access.unwrap_or(files.access),
            write_mode: files.write_access.unwrap_or(files.access),
            throughput: files.throughput,
            gc_before: files.gc_before,
            gc_grace: files.gc_grace,
            now: files.now,
            split_size: files.split_size,
            compression: files.compression.as_ref().map(|given| given.0.clone()),
            chunk_length: files.chunk_length,
            buffer_size: files.buffer_size,
            read_ahead: files.read_ahead,
            write_buffer_size: files.write_buffer_size,
            buffer_budget: files.buffer_budget,
        }
    }
}

pub(crate) fn run(args: &CompactArgs, disk: &Disk, console: Console) -> Result<()> {
    if args.node.is_asked() {
        let shown = node::Shown { dry_run: args.dry_run, json: args.json };
        return node::run(&args.node, shown, disk, console);
    }
    let request = args.request();
    if args.dry_run {
        let tables = block_on(prepare(disk, &request, &console))?;
        return summary::plan(&tables, args.json);
    }
    let claim = block_on(claim(disk, &request, &console))?;
    let tables = block_on(prepare(disk, &request, &console))?;
    let progress = Progress::default();
    stop_on_signals(&progress)?;
    let total = tables.iter().flat_map(|t| &t.inputs).map(|i| i.data_length()).sum();
    let watch = watch::Watch::start(&progress, console, total, !args.json);
    let began = disk.clock().now();
    let compacted = block_on(halcyon_tools::compact::run(disk, &claim, &tables, &progress));
    watch.stop();
    let took = disk.clock().now().saturating_since(began);
    let summary = Summary { outcomes: &compacted?, took, io: disk.histograms() };
    summary.print(args.json)
}

/// SIGINT, SIGTERM and SIGHUP stop the compaction at the next batch and leave the inputs unchanged; a second signal ends the
/// process at once.
fn stop_on_signals(progress: &Progress) -> Result<()> {
    let progress = progress.clone();
    let stop = move || {
        if progress.is_cancelled() {
            std::process::exit(130);
        }
        progress.cancel();
    };
    on_stop(stop).map_err(|e| Failure::unreadable(format!("signal handler: {e}")))
}
