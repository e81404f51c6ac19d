//! `halcyon sstable verify`: prints what `tools::verify` finds.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use halcyon_io::Disk;
use halcyon_sstable::format::listing::ListedSSTable;
use halcyon_sstable::verify::{Finding, Severity, VerifyReport};
use halcyon_tools::verify::{Event, Request, Verdict, verify};
use indicatif::ProgressBar;
use serde_json::json;

use crate::console::Console;
use crate::failure::{Failure, Result};
use crate::schema_args::SchemaArgs;

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
    let request = Request {
        paths: args.paths.clone(),
        extended: args.extended,
        schema: args.schema.source(),
    };
    let mut bar = ProgressBar::hidden();
    let mut on = |event: Event<'_>| -> Result<()> {
        match event {
            Event::Begin(bytes) => bar = console.progress("verify", bytes, !args.json),
            Event::Position(bytes) => bar.set_position(bytes),
            Event::Verified(listed, found) => {
                bar.suspend(|| report(args.json, listed, found))?;
            }
        }
        Ok(())
    };
    let Verdict { unsound, unread } = verify(disk, &request, &console, &mut on).await?;
    bar.finish_and_clear();
    if unread > 0 {
        let what = format!("{unsound} SSTables are not sound, {unread} of them could not be read");
        return Err(Failure::unreadable(what));
    }
    match unsound {
        0 => Ok(()),
        1 => Err(Failure::problem("1 SSTable is not sound")),
        n => Err(Failure::problem(format!("{n} SSTables are not sound"))),
    }
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
