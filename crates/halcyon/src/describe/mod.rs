//! `halcyon sstable describe`: the contents of an SSTable's components.
//!
//! `text` is for users, `json` for programs. `bytes` names every byte, with the notes of the decoders that read the files.

mod bytes;
mod json;
mod text;

use std::io::{BufWriter, Write};
use std::path::PathBuf;

use clap::Args;
use halcyon_io::Disk;
use halcyon_sstable::Component;
use halcyon_sstable::format::listing::ListedSSTable;
use halcyon_tools::describe::describe;
use halcyon_tools::paths;

use crate::console::Console;
use crate::failure::Result;

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

pub(crate) async fn run(args: &DescribeArgs, disk: &Disk, console: Console) -> Result<()> {
    let folders = paths::find(disk, &args.paths).await?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    for folder in &folders {
        folder.warn_of_left_out(&console);
        for listed in &folder.sstables {
            if args.bytes {
                bytes::print(&mut out, disk, listed, &wanted_components(args, listed)).await?;
                continue;
            }
            let described = describe(disk, &folder.table, listed).await?;
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
