//! `halcyon sstable dump`: prints the rows of SSTables, as JSON or as statements, fragment by fragment.

mod cql;
mod cql_range;
mod cql_value;
mod json;
mod json_writer;

use std::io::{BufWriter, IsTerminal, Write};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use halcyon_io::Disk;
use halcyon_sstable::SSTableScanner;
use halcyon_stream::{Fragment, FragmentStream, PartitionKey, RowBuf};
use halcyon_tools::dump::{Partitions, Request, Source, each_sstable};

use crate::console::Console;
use crate::failure::Result;
use crate::schema_args::SchemaArgs;
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
    let now = u32::try_from(disk.clock().unix_seconds()).unwrap_or(u32::MAX);
    let times = Times { raw: args.raw_timestamps, now: args.now.unwrap_or(now) };
    let request = Request {
        paths: args.paths.clone(),
        // JSON follows the header, as sstabledump does.
        schema: (args.format == DumpFormat::Cql).then(|| args.schema.source()),
        partitions: Partitions {
            only: args.key.iter().cloned().collect(),
            not: args.exclude_key.iter().cloned().collect(),
        },
    };
    let stdout = std::io::stdout();
    let mut out = BufWriter::with_capacity(1 << 16, stdout.lock());
    let mut is_first = true;
    let dumped = each_sstable(disk, &request, &console, async |source: Source<'_>| {
        if !is_first {
            writeln!(out)?;
        }
        is_first = false;
        match args.format {
            DumpFormat::Cql => statements(disk, &source, times, &mut out).await,
            DumpFormat::Json | DumpFormat::JsonLines => {
                json(args, disk, &source, times, &mut out).await
            }
        }
    });
    let dumped = dumped.await;
    // Print the rows before the error too.
    let flushed = out.flush();
    dumped?;
    flushed?;
    if std::io::stdout().is_terminal() {
        writeln!(out)?;
    }
    Ok(out.flush()?)
}

async fn json<W: Write>(
    args: &DumpArgs,
    disk: &Disk,
    source: &Source<'_>,
    times: Times,
    out: &mut W,
) -> Result<()> {
    let style = match args.format {
        DumpFormat::JsonLines if !args.enumerate_keys => Style::Lines,
        _ => Style::Pretty,
    };
    let kind = if source.table.index.is_some() { "INDEX" } else { "REGULAR" };
    let json = JsonWriter::new(out, style);
    let mut dump = JsonDump::new(json, source.sstable.layout(), times, kind);
    if style == Style::Pretty {
        dump.start_all();
    }
    let each = async |scanner: &mut SSTableScanner| match scanner.fragment() {
        Fragment::Start(start) if args.enumerate_keys => Ok(dump.key(&start.key.bytes)?),
        _ => partition(scanner, &mut dump).await,
    };
    let dumped = source.look_up(disk, each).await;
    if style == Style::Pretty && dumped.is_ok() {
        dump.end_all()?;
    }
    let finished = dump.finish();
    dumped?;
    Ok(finished?)
}

async fn statements<W: Write>(
    disk: &Disk,
    source: &Source<'_>,
    times: Times,
    out: &mut W,
) -> Result<()> {
    let schema = source.schema_or_neutral();
    let mut dump = CqlDump::new(out, source.sstable.layout(), &schema, times.now)?;
    dump.head(source.sstable.descriptor())?;
    let each = async |scanner: &mut SSTableScanner| -> Result<()> {
        loop {
            let fragment = scanner.fragment();
            dump.fragment(fragment)?;
            if matches!(fragment, Fragment::End) || !scanner.advance().await? {
                return Ok(());
            }
        }
    };
    source.scan(disk, each).await
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
