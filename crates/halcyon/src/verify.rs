//! `halcyon sstable verify`: runs the checks of `halcyon_sstable::verify` on all SSTables that the paths name.
//!
//! A finding does not end the run: the user wants the whole list.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use halcyon_io::{AccessMode, Disk};
use halcyon_sstable::Component;
use halcyon_sstable::format::listing::ListedSSTable;
use halcyon_sstable::verify::{
    Extent, Finding, Progress, Severity, Step, VerifyOptions, VerifyReport, verify,
};
use serde_json::json;

use crate::console::Console;
use crate::failure::{Failure, Result};
use crate::paths;
use crate::schema_source::{self, SchemaArgs};

/// Check SSTables: components, checksums and, with --extended, every row and index entry
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  halcyon sstable verify data/                       all tables: components present, Statistics and digests right
  halcyon sstable verify --extended data/ks/t-…/     every chunk, row, index entry and Bloom filter bit
  halcyon sstable verify --json oa-1-big-Data.db     one line of JSON per SSTable

An SSTable is sound, sound with remarks (`remarks`: its rows are read rightly, something that only helps is not as it should be), or has a
problem (`PROBLEM`).

Exit codes: 0 all sound, with or without remarks, 1 a problem was found, 2 wrong command line, 3 something could not be read.")]
pub(crate) struct VerifyArgs {
    /// Data.db files, folders of tables or keyspaces, or data directories
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Decode all rows and compare index, filter, summary and statistics with them
    #[arg(short, long)]
    extended: bool,
    /// One JSON object a line on standard output: sstable, sound, problems, remarks
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    schema: SchemaArgs,
}

/// Findings printed per SSTable (JSON has all): one damaged block can cause thousands.
const MAX_SHOWN: usize = 20;

pub(crate) async fn run(args: &VerifyArgs, disk: &Disk, console: Console) -> Result<()> {
    let folders = paths::find(disk, &args.paths).await?;
    let passes = if args.extended { 2 } else { 1 };
    let mut total = 0;
    for listed in folders.iter().flat_map(|folder| &folder.sstables) {
        total += passes * stored_length(disk, listed).await;
    }
    let bar = console.progress("verify", total, !args.json);
    let (mut unsound, mut unread) = (0, 0);
    let mut before = 0;
    for folder in &folders {
        folder.left_out.iter().for_each(|why| console.warn(why));
        let unreadable = folder.unreadable.iter().filter(|one| folder.left_out.contains(one));
        let unreadable = unreadable.count();
        unsound += unreadable;
        unread += unreadable;
        let schema = schema_source::of_folder(disk, &args.schema, folder, console).await?;
        for listed in &folder.sstables {
            let options = VerifyOptions {
                extent: if args.extended { Extent::Rows } else { Extent::Digest },
                schema: schema.clone(),
                mode: AccessMode::Auto,
            };
            let length = stored_length(disk, listed).await;
            // Each step is one pass over Data.db.
            let mut tell = |progress: Progress| {
                let share = progress.done as f64 / progress.total.max(1) as f64;
                let pass = if progress.step == Step::Content { 1.0 } else { 0.0 };
                bar.set_position(before + ((pass + share) * length as f64) as u64);
            };
            let found = verify(disk, &listed.descriptor, &options, &mut tell).await;
            unsound += usize::from(found.has_problems());
            unread += usize::from(found.unreadable);
            bar.suspend(|| report(args.json, listed, &found))?;
            before += passes * length;
            bar.set_position(before);
        }
    }
    bar.finish_and_clear();
    if unread > 0 {
        let what = format!("{unsound} SSTables are not sound, {unread} of them could not be read");
        return Err(Failure::Unreadable(what));
    }
    match unsound {
        0 => Ok(()),
        1 => Err(Failure::Problem("1 SSTable is not sound".into())),
        n => Err(Failure::Problem(format!("{n} SSTables are not sound"))),
    }
}

async fn stored_length(disk: &Disk, listed: &ListedSSTable) -> u64 {
    let path = listed.descriptor.component_path(Component::Data);
    disk.stat(&path).await.map_or(0, |stat| stat.len)
}

/// Findings of one severity, as text without it.
fn texts(found: &VerifyReport, severity: Severity) -> Vec<String> {
    let text = |finding: &Finding| match finding.offset {
        Some(offset) => format!("{} at offset {offset}: {}", finding.component, finding.what),
        None => format!("{}: {}", finding.component, finding.what),
    };
    found.findings.iter().filter(|f| f.severity == severity).map(text).collect()
}

fn report(as_json: bool, listed: &ListedSSTable, found: &VerifyReport) -> Result<()> {
    let mut out = std::io::stdout().lock();
    let problems = texts(found, Severity::Problem);
    let remarks = texts(found, Severity::Remark);
    if as_json {
        let line = json!({
            "sstable": listed.descriptor.to_string(),
            "sound": !found.has_problems(),
            "problems": problems,
            "remarks": remarks,
            "omitted": found.omitted,
            "checked": {
                "bytes": found.checked.bytes,
                "chunks": found.checked.chunks,
                "partitions": found.checked.partitions,
                "rows": found.checked.rows,
                "cells": found.checked.cells,
            },
        });
        writeln!(out, "{line}")?;
        return Ok(());
    }
    let verdict = match found.severity() {
        None => "sound  ",
        Some(Severity::Remark) => "remarks",
        Some(Severity::Problem) => "PROBLEM",
    };
    writeln!(out, "{verdict} {}", listed.descriptor)?;
    for problem in problems.iter().take(MAX_SHOWN) {
        writeln!(out, "          {problem}")?;
    }
    let more = problems.len().saturating_sub(MAX_SHOWN) as u64 + found.omitted;
    if more > 0 {
        writeln!(out, "          and {more} more")?;
    }
    for remark in remarks.iter().take(MAX_SHOWN) {
        writeln!(out, "          reads are right, but: {remark}")?;
    }
    Ok(())
}
