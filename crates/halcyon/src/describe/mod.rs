//! `halcyon sstable describe`: the contents of an SSTable's components.
//!
//! `text` is for users, `json` for programs. `bytes` names every byte, with the notes of the decoders that read the files.

mod bytes;
mod data_bytes;
mod json;
mod text;

use std::io::{BufWriter, Write};
use std::path::PathBuf;

use clap::Args;
use halcyon_io::Disk;
use halcyon_sstable::format::filter::Filter;
use halcyon_sstable::format::listing::ListedSSTable;
use halcyon_sstable::format::toc::Toc;
use halcyon_sstable::{Component, OpenOptions, SSTable};

use crate::console::Console;
use crate::failure::Result;
use crate::paths::{self, TableName};

/// Show the contents of SSTables' components: sizes, versions, bounds, histograms, schema of the header
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  halcyon sstable describe data/ks/t-…/                 all SSTables of a table
  halcyon sstable describe oa-1-big-Data.db --json      for programs
  halcyon sstable describe oa-1-big-Data.db --bytes     every byte of every component: offset, bytes, meaning
  halcyon sstable describe oa-1-big-Statistics.db --bytes   of one component alone")]
pub(crate) struct DescribeArgs {
    /// Data.db files (any component will do), folders of tables or keyspaces, or data directories
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Name every byte: offset, bytes in hexadecimal, meaning; of one component, if PATH names one other than Data.db
    #[arg(short, long)]
    bytes: bool,
    /// One JSON object a line
    #[arg(long, conflicts_with = "bytes")]
    json: bool,
}

/// The description of one SSTable.
pub(super) struct Described<'a> {
    table: &'a TableName,
    listed: &'a ListedSSTable,
    sstable: &'a SSTable,
    /// Components (and files of indexes) with their sizes.
    files: Vec<(String, u64)>,
    /// The lines of TOC.txt; `None` without the file.
    toc: Option<Vec<String>>,
    /// `None` without a filter.
    filter: Option<Filter>,
    now: u32,
}

pub(crate) async fn run(args: &DescribeArgs, disk: &Disk, console: Console) -> Result<()> {
    let folders = paths::find(disk, &args.paths).await?;
    let now = u32::try_from(disk.clock().unix_seconds()).unwrap_or(u32::MAX);
    let mut out = BufWriter::new(std::io::stdout().lock());
    for folder in &folders {
        folder.left_out.iter().for_each(|why| console.warn(why));
        for listed in &folder.sstables {
            if args.bytes {
                bytes::print(&mut out, disk, listed, &wanted_components(args, listed)).await?;
                continue;
            }
            let sstable = SSTable::open_listed(disk, listed, OpenOptions::default()).await?;
            let described = describe(disk, &folder.table, listed, &sstable, now).await?;
            if args.json {
                writeln!(out, "{}", json::of(&described))?;
            } else {
                writeln!(out, "{}", text::of(&described))?;
            }
        }
    }
    Ok(out.flush()?)
}

/// The components that the paths name; all, if a path names Data.db or a folder.
fn wanted_components(args: &DescribeArgs, listed: &ListedSSTable) -> Vec<Component> {
    let named = |component: &Component| {
        let name = listed.descriptor.file_name(*component);
        args.paths.iter().any(|path| path.file_name().is_some_and(|n| n == name.as_str()))
    };
    let chosen: Vec<Component> = listed.components.iter().copied().filter(named).collect();
    if chosen.is_empty() || chosen.contains(&Component::Data) {
        return listed.components.clone();
    }
    chosen
}

async fn describe<'a>(
    disk: &Disk,
    table: &'a TableName,
    listed: &'a ListedSSTable,
    sstable: &'a SSTable,
    now: u32,
) -> Result<Described<'a>> {
    let descriptor = &listed.descriptor;
    let names = listed.components.iter().map(|c| c.to_string()).chain(listed.extra.iter().cloned());
    let mut files = Vec::new();
    for name in names {
        let size = disk.stat(&descriptor.path_of(&name)).await?.len;
        files.push((name, size));
    }
    let toc = match listed.has(Component::Toc) {
        false => None,
        true => {
            let path = descriptor.component_path(Component::Toc);
            let bytes = disk.read(&path, 1 << 20).await?;
            let toc = Toc::decode(&mut halcyon_model::Cursor::new(&bytes))
                .map_err(|e| halcyon_sstable::Error::corrupt(path, Component::Toc, e))?;
            Some(toc.names)
        }
    };
    let filter = match listed.has(Component::Filter) {
        true => Some(sstable.filter(disk).await?),
        false => None,
    };
    Ok(Described { table, listed, sstable, files, toc, filter, now })
}

impl Described<'_> {
    /// Bits of the filter; 0 if it lets every key pass.
    fn filter_bits(&self) -> Option<u64> {
        self.filter.as_ref().map(|filter| 8 * filter.memory() as u64)
    }

    /// Tombstones that could be purged now with gc_grace_seconds = 0, per cell.
    fn droppable_ratio(&self) -> f64 {
        let stats = &self.sstable.statistics().stats;
        let cells = &stats.cells_per_partition;
        let all = (cells.mean() * cells.count() as f64).trunc();
        if all > 0.0 { stats.tombstone_drop_times.sum(self.now) / all } else { 0.0 }
    }
}
