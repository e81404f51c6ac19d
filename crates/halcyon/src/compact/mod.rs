//! `halcyon compact`: a major compaction of the tables that the paths name; or, with `--node`, tables of a running Cassandra are handed
//! over (`node`).
//!
//! 1. Claim the output folders, and clean them up after interrupted compactions.
//! 2. Resolve folders to tables. Each table is compacted separately, and so are its repaired and unrepaired SSTables.
//! 3. Take settings that the command line omits from the schema, then from the inputs (`settings`).
//! 4. Compact on this thread; another thread draws the progress bar (`watch`).
//! 5. Print the outputs and the device's latencies (`summary`).

mod node;
mod service;
mod settings;
mod sidecar;
mod summary;
mod watch;

pub(crate) use service::serve;

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use halcyon_compaction::{Claim, Error, Outcome, Progress, Settings, group_inputs};
use halcyon_io::startup::{self, Severity};
use halcyon_io::{AccessMode, Disk, DiskOptions, block_on};
use halcyon_model::path_component;
use halcyon_model::schema::TableSchema;
use halcyon_sstable::format::listing::ListedSSTable;
use halcyon_sstable::{Component, OpenOptions, SSTable};

use crate::console::Console;
use crate::failure::{Failure, Result};
use crate::paths::{self, Folder};
use crate::schema_source::{self, SchemaArgs};
use halcyon_model::units::arguments;
use node::NodeArgs;
use settings::{CompressionArg, FormatArg, VersionArg};
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
}

pub(crate) fn run(args: &CompactArgs, disk: &Disk, console: Console) -> Result<()> {
    if args.node.is_asked() {
        let shown = node::Shown { dry_run: args.dry_run, json: args.json };
        return node::run(&args.node, shown, disk, console);
    }
    if args.dry_run {
        let tables = block_on(prepare(args, disk, console))?;
        return summary::plan(&tables, args.json);
    }
    let claim = block_on(claim_folders(&args.files, disk, console))?;
    let tables = block_on(prepare(args, disk, console))?;
    let progress = Progress::default();
    stop_on_signals(&progress)?;
    let total = tables.iter().flat_map(|t| &t.inputs).map(|i| i.data_length()).sum();
    let watch = watch::Watch::start(&progress, console, total, !args.json);
    let began = disk.clock().now();
    let compacted = block_on(compact_all(disk, &claim, &tables, &progress));
    watch.stop();
    let took = disk.clock().now().saturating_since(began);
    let summary = Summary { outcomes: &compacted?, took, io: disk.histograms() };
    summary.print(args.json)
}

/// Claims the output folders, cleans up after interrupted compactions there, and checks the machine.
async fn claim_folders(args: &FileArgs, disk: &Disk, console: Console) -> Result<Claim> {
    let folders = match &args.output {
        Some(output) => {
            disk.create_dir_all(output).await?;
            vec![output.clone()]
        }
        None => paths::find(disk, &args.paths).await?.into_iter().map(|f| f.directory).collect(),
    };
    let places: Vec<&std::path::Path> = folders.iter().map(PathBuf::as_path).collect();
    for finding in startup::check(disk, &places) {
        match finding.severity {
            Severity::Refusal => return Err(Failure::Unreadable(finding.to_string())),
            Severity::Warning | Severity::Note => console.detail(finding),
        }
    }
    let claim = halcyon_compaction::claim(disk, &folders).await.map_err(unattributed)?;
    for process in &claim.unseen {
        console.warn(format_args!(
            "{process} belongs to another user: whether it works in these folders cannot be seen. Stop it if it does"
        ));
    }
    for prefix in &claim.recovered {
        console.warn(format_args!("{prefix}*: deleted, left by a transaction that was cut short"));
    }
    Ok(claim)
}

/// SIGINT, SIGTERM and SIGHUP stop the compaction at the next batch and leave the inputs unchanged; a second signal ends the
/// process at once.
fn stop_on_signals(progress: &Progress) -> Result<()> {
    let progress = progress.clone();
    let handler = move || {
        if progress.is_cancelled() {
            std::process::exit(130);
        }
        progress.cancel();
    };
    ctrlc::set_handler(handler).map_err(|e| Failure::Unreadable(format!("signal handler: {e}")))
}

/// A table to compact.
struct Table {
    folder: Folder,
    inputs: Vec<Arc<SSTable>>,
    elsewhere: Vec<Arc<SSTable>>,
    settings: Settings,
    /// The reasons for settings, for the user.
    reasons: Vec<String>,
}

async fn prepare(args: &CompactArgs, disk: &Disk, console: Console) -> Result<Vec<Table>> {
    let folders = paths::find(disk, &args.files.paths).await?;
    let several = folders.len() > 1;
    let mut tables = Vec::new();
    for mut folder in folders {
        folder.left_out.iter().for_each(|why| console.warn(why));
        if let Some(dead) = folder.not_live.first() {
            return Err(Failure::usage(format!(
                "{dead}: a transaction log says that it is not live; compacting it would bring back what was replaced"
            )));
        }
        if folder.sstables.is_empty() {
            continue;
        }
        let schema = schema_source::of_folder(disk, &args.schema, &folder, console).await?;
        if let Some(schema) = &schema {
            // If the path does not name the table, take the schema's.
            folder.table.keyspace.get_or_insert_with(|| schema.keyspace.clone());
            folder.table.table.get_or_insert_with(|| schema.name.clone());
        }
        let inputs = open_all(disk, &folder.sstables, schema.as_ref()).await?;
        let (elsewhere, unknown) = open_neighbours(disk, &folder, schema.as_ref()).await;
        warn_of_extras(&folder, console);
        let chosen = settings::choose(&args.files, disk, &inputs, schema.as_deref())?;
        let (mut settings, mut reasons) = chosen;
        if let Some(why) = unknown.first() {
            console.warn(format_args!(
                "{}: nothing is purged, because tombstones may delete what is in an SSTable that cannot be opened: {why}",
                folder.table
            ));
            settings.gc_before = 0;
            reasons.push("nothing is purged: a neighbour cannot be opened".to_owned());
        }
        reasons
            .iter()
            .for_each(|reason| console.detail(format_args!("{}: {reason}", folder.table)));
        if let Some(output) = &args.files.output {
            settings.output = Some(output_folder(output, &folder, several)?);
        }
        tables.push(Table { folder, inputs, elsewhere, settings, reasons });
    }
    Ok(tables)
}

fn output_folder(output: &std::path::Path, folder: &Folder, several: bool) -> Result<PathBuf> {
    if !several {
        return Ok(output.to_path_buf());
    }
    let keyspace = folder.table.keyspace.as_deref().unwrap_or("keyspace");
    let keyspace = path_component(keyspace).map_err(Failure::Usage)?;
    let table = folder.directory.file_name().unwrap_or_default();
    Ok(output.join(keyspace).join(table))
}

async fn open_all(
    disk: &Disk,
    listed: &[ListedSSTable],
    schema: Option<&Arc<TableSchema>>,
) -> Result<Vec<Arc<SSTable>>> {
    let mut opened = Vec::with_capacity(listed.len());
    for one in listed {
        let options = OpenOptions { schema: schema.cloned() };
        opened.push(Arc::new(SSTable::open_listed(disk, one, options).await?));
    }
    Ok(opened)
}

/// The other SSTables of the folder, and what of it cannot be opened: the command did not name it, so it stops nothing.
async fn open_neighbours(
    disk: &Disk,
    folder: &Folder,
    schema: Option<&Arc<TableSchema>>,
) -> (Vec<Arc<SSTable>>, Vec<String>) {
    let mut opened = Vec::new();
    let mut unknown: Vec<String> = folder.unreadable.clone();
    for one in &folder.elsewhere {
        let options = OpenOptions { schema: schema.cloned() };
        let sstable = SSTable::open_listed(disk, one, options).await;
        match sstable {
            Ok(sstable) => opened.push(Arc::new(sstable)),
            Err(e) => unknown.push(e.to_string()),
        }
    }
    (opened, unknown)
}

fn warn_of_extras(folder: &Folder, console: Console) {
    let extra = folder.sstables.iter().flat_map(|s| &s.extra).next();
    if let Some(extra) = extra {
        console.warn(format_args!(
            "{}: has index files ({extra} …); the outputs have none, and Cassandra rebuilds its index when it opens them",
            folder.table
        ));
    }
}

/// A table's name with the outcomes of its groups.
type Compacted = (String, Vec<Outcome>);

async fn compact_all(
    disk: &Disk,
    claim: &Claim,
    tables: &[Table],
    progress: &Progress,
) -> Result<Vec<Compacted>> {
    let mut all = Vec::new();
    for table in tables {
        match (&table.settings.output, table.inputs.first()) {
            (Some(output), _) => disk.create_dir_all(output).await?,
            (None, Some(first)) => {
                disk.create_like(&first.descriptor().component_path(Component::Data)).await?;
            }
            (None, None) => {}
        }
        let mut outcomes = Vec::new();
        for task in group_inputs(&table.inputs, &table.elsewhere) {
            let sealed = halcyon_compaction::write(disk, &task, &table.settings, progress).await;
            let sealed = sealed.map_err(|e| failure(&table.folder, e))?;
            // A Cassandra may have started meanwhile: it sees no locks.
            if let Err(e) = claim.check(disk).await {
                // If this fails too, the log remains, and a later start finishes it.
                let _ = sealed.abort().await;
                return Err(unattributed(e));
            }
            outcomes.push(sealed.publish().await.map_err(|e| failure(&table.folder, e))?);
        }
        all.push((table.folder.table.to_string(), outcomes));
    }
    Ok(all)
}

fn failure(folder: &Folder, error: Error) -> Failure {
    match error {
        Error::Invalid(what) => Failure::usage(format!("{}: {what}", folder.table)),
        other => unattributed(other),
    }
}

fn unattributed(error: Error) -> Failure {
    match error {
        Error::SSTable(error) => Failure::from(error),
        Error::Io(error) => Failure::from(error),
        other => Failure::Unreadable(other.to_string()),
    }
}
