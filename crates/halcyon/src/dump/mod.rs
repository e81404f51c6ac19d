//! `halcyon sstable dump`: the rows of SSTables, as JSON or as statements.
//!
//! One pass over the data, fragment by fragment: memory does not grow with the size of a partition.

mod cql;
mod cql_range;
mod cql_value;
mod json;
mod json_writer;

use std::collections::BTreeSet;
use std::io::{BufWriter, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use halcyon_io::{AccessMode, Disk};
use halcyon_model::schema::TableSchema;
use halcyon_model::value::to_string;
use halcyon_sstable::{IndexWalk, OpenOptions, SSTable, SSTableScanner, ScanOptions};
use halcyon_stream::{Fragment, FragmentStream, PartitionKey, RowBuf};

use crate::console::Console;
use crate::failure::Result;
use crate::paths::{self, Folder};
use crate::schema_source::{self, SchemaArgs};
use cql::CqlDump;
use halcyon_model::units::arguments;
use json::{JsonDump, PartitionHead, Times};
use json_writer::{JsonWriter, Style};

/// Print the rows of SSTables, as Cassandra's sstabledump does, or as CQL
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  halcyon sstable dump data/ks/t-…/oa-1-big-Data.db                   what sstabledump prints, byte for byte
  halcyon sstable dump data/ks/t-…/ --format json-lines | jq .rows    one partition a line, all SSTables of the table
  halcyon sstable dump oa-1-big-Data.db --key 42 --key 43             two partitions
  halcyon sstable dump oa-1-big-Data.db --format cql --schema t.cql   statements that write the same again

Keys are given as the dump shows them; the parts of a composite key are joined by a colon: --key a:1.")]
pub(crate) struct DumpArgs {
    /// Data.db files, folders of tables or keyspaces, or data directories
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Only this partition (may be given again)
    #[arg(short, long, value_name = "KEY")]
    key: Vec<String>,
    /// All partitions but this one (may be given again)
    #[arg(short = 'x', long, value_name = "KEY")]
    exclude_key: Vec<String>,
    /// Only the partition keys
    #[arg(short, long, conflicts_with = "key")]
    enumerate_keys: bool,
    /// Times as numbers: microseconds for writes, seconds for deletions and expiry
    #[arg(short = 't', long)]
    raw_timestamps: bool,
    /// What to print: `json` and `json-lines` as sstabledump does, or CQL statements
    #[arg(short, long, value_enum, default_value_t = DumpFormat::Json)]
    format: DumpFormat,
    /// The time at which expiry is decided: seconds since 1970 or an instant [default: now]
    #[arg(long, value_name = "INSTANT", value_parser = arguments::instant)]
    now: Option<u32>,
    #[command(flatten)]
    schema: SchemaArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DumpFormat {
    Json,
    JsonLines,
    Cql,
}

pub(crate) async fn run(args: &DumpArgs, disk: &Disk, console: Console) -> Result<()> {
    let folders = paths::find(disk, &args.paths).await?;
    let now = u32::try_from(disk.clock().unix_seconds()).unwrap_or(u32::MAX);
    let times = Times { raw: args.raw_timestamps, now: args.now.unwrap_or(now) };
    let stdout = std::io::stdout();
    let mut out = BufWriter::with_capacity(1 << 16, stdout.lock());
    let dumped = dump_all(args, disk, console, &folders, times, &mut out).await;
    // Print the rows before the error too.
    let flushed = out.flush();
    dumped?;
    flushed?;
    if std::io::stdout().is_terminal() {
        writeln!(out)?;
    }
    Ok(out.flush()?)
}

async fn dump_all<W: Write>(
    args: &DumpArgs,
    disk: &Disk,
    console: Console,
    folders: &[Folder],
    times: Times,
    out: &mut W,
) -> Result<()> {
    let mut is_first = true;
    for folder in folders {
        folder.left_out.iter().for_each(|why| console.warn(why));
        let schema = match args.format {
            DumpFormat::Cql => {
                schema_source::of_folder(disk, &args.schema, folder, console).await?
            }
            // JSON follows the header, as sstabledump does.
            _ => None,
        };
        for listed in &folder.sstables {
            if !is_first {
                writeln!(out)?;
            }
            is_first = false;
            let sstable = {
                // With a schema, cells of dropped columns are omitted, as in a read.
                let options = OpenOptions { schema: schema.clone() };
                SSTable::open_listed(disk, listed, options).await?
            };
            let one = One { args, folder, sstable: &sstable, times };
            one.dump(disk, schema.clone(), out).await?;
        }
    }
    Ok(())
}

/// One SSTable to dump.
struct One<'a> {
    args: &'a DumpArgs,
    folder: &'a Folder,
    sstable: &'a SSTable,
    times: Times,
}

impl One<'_> {
    async fn dump<W: Write>(
        &self,
        disk: &Disk,
        schema: Option<Arc<TableSchema>>,
        out: &mut W,
    ) -> Result<()> {
        let mut scanner = self.sstable.scan(disk, ScanOptions::default()).await?;
        let wanted = Wanted::of(self.args);
        if self.args.format == DumpFormat::Cql {
            let schema = schema.unwrap_or_else(|| {
                Arc::new(schema_source::neutral(self.sstable.statistics(), &self.folder.table))
            });
            return self.statements(&mut scanner, &wanted, &schema, out).await;
        }
        let style = match self.args.format {
            DumpFormat::JsonLines if !self.args.enumerate_keys => Style::Lines,
            _ => Style::Pretty,
        };
        let kind = if self.folder.table.index.is_some() { "INDEX" } else { "REGULAR" };
        let json = JsonWriter::new(out, style);
        let mut dump = JsonDump::new(json, self.sstable.layout(), self.times, kind);
        if style == Style::Pretty {
            dump.start_all();
        }
        let dumped = match wanted.only.is_empty() {
            true => self.json(&mut scanner, &wanted, &mut dump).await,
            false => self.json_of_keys(disk, &wanted, &mut dump).await,
        };
        if style == Style::Pretty && dumped.is_ok() {
            dump.end_all()?;
        }
        let finished = dump.finish();
        dumped?;
        Ok(finished?)
    }

    async fn json<W: Write>(
        &self,
        scanner: &mut SSTableScanner,
        wanted: &Wanted,
        dump: &mut JsonDump<'_, W>,
    ) -> Result<()> {
        let key_type = &self.sstable.layout().key_type;
        while scanner.advance().await? {
            let Fragment::Start(start) = scanner.fragment() else { continue };
            let is_wanted =
                wanted.is_everything() || wanted.has(&to_string(key_type, &start.key.bytes));
            if !is_wanted {
                continue;
            }
            if self.args.enumerate_keys {
                dump.key(&start.key.bytes)?;
                continue;
            }
            partition(scanner, dump).await?;
        }
        Ok(())
    }

    /// Looks the partitions up in the index, so that other partitions are not read.
    async fn json_of_keys<W: Write>(
        &self,
        disk: &Disk,
        wanted: &Wanted,
        dump: &mut JsonDump<'_, W>,
    ) -> Result<()> {
        let key_type = &self.sstable.layout().key_type;
        let index = IndexWalk::open(disk, self.sstable, AccessMode::Auto).await?;
        let sources = index.sources();
        let mut keys = index.keys(&sources);
        while let Some(entry) = keys.next().await? {
            if !wanted.has(&to_string(key_type, entry.key)) {
                continue;
            }
            let position = entry.data_position;
            let options = ScanOptions::default();
            let mut scanner = self.sstable.partition_at(disk, position, options).await?;
            if scanner.advance().await? {
                partition(&mut scanner, dump).await?;
            }
        }
        Ok(())
    }

    async fn statements<W: Write>(
        &self,
        scanner: &mut SSTableScanner,
        wanted: &Wanted,
        schema: &TableSchema,
        out: &mut W,
    ) -> Result<()> {
        let layout = self.sstable.layout().clone();
        let mut dump = CqlDump::new(out, &layout, schema, self.times.now)?;
        dump.head(self.sstable.descriptor())?;
        let mut is_wanted = false;
        while scanner.advance().await? {
            let fragment = scanner.fragment();
            if let Fragment::Start(start) = fragment {
                is_wanted = wanted.has(&to_string(&layout.key_type, &start.key.bytes));
            }
            if is_wanted {
                dump.fragment(fragment)?;
            }
        }
        Ok(())
    }
}

/// Prints the partition at whose start the scanner is, and moves to its end.
async fn partition<W: Write>(
    scanner: &mut SSTableScanner,
    dump: &mut JsonDump<'_, W>,
) -> Result<()> {
    let Fragment::Start(start) = scanner.fragment() else { return Ok(()) };
    let mut key = PartitionKey::empty();
    key.copy_from(start.key);
    let deletion = start.deletion;
    scanner.advance().await?;
    let mut static_row = None;
    if let Fragment::Static(row) = scanner.fragment() {
        let mut kept = RowBuf::new();
        kept.copy_from(row);
        static_row = Some(kept);
        scanner.advance().await?;
    }
    let position = scanner.fragment_position();
    dump.start_partition(PartitionHead { key: &key.bytes, deletion, position })?;
    if let Some(row) = &static_row {
        dump.static_row(row.row(), position)?;
    }
    loop {
        match scanner.fragment() {
            Fragment::Row(row) => dump.row(row, scanner.fragment_position())?,
            Fragment::Marker(marker) => dump.marker(marker)?,
            Fragment::End => break,
            Fragment::Start(_) | Fragment::Static(_) => {}
        }
        scanner.advance().await?;
    }
    Ok(dump.end_partition()?)
}

/// The selected partitions.
struct Wanted {
    only: BTreeSet<String>,
    not: BTreeSet<String>,
}

impl Wanted {
    fn of(args: &DumpArgs) -> Wanted {
        Wanted {
            only: args.key.iter().cloned().collect(),
            not: args.exclude_key.iter().cloned().collect(),
        }
    }

    fn is_everything(&self) -> bool {
        self.only.is_empty() && self.not.is_empty()
    }

    fn has(&self, key: &str) -> bool {
        (self.only.is_empty() || self.only.contains(key)) && !self.not.contains(key)
    }
}
