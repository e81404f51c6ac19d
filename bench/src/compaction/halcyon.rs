//! Halcyon as a peer: one process for each compaction, as an operator runs it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::Run;
use crate::Result;
use crate::dataset::DataSet;
use crate::machine::{cached_bytes, drop_page_cache, files_below};
use crate::process::Watch;
use crate::profile::{self, Share};
use crate::programs::Programs;
use crate::record::Contender;

/// What may be asked of a compaction besides its access mode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Buffers {
    pub(super) read_size: u64,
    pub(super) read_depth: u64,
    pub(super) write_size: u64,
    /// Bytes of all buffers together.
    pub(super) budget: u64,
}

impl Buffers {
    pub(super) const DEFAULT: Buffers =
        Buffers { read_size: 256 << 10, read_depth: 2, write_size: 1 << 20, budget: 96 << 20 };

    pub(super) fn name(self) -> String {
        let (read, write) = (self.read_size >> 10, self.write_size >> 10);
        format!("{read} KiB × {}, {write} KiB", self.read_depth)
    }
}

/// Folders and command of one compaction.
struct Prepared {
    command: Command,
    output: PathBuf,
}

fn prepare(
    programs: &Programs,
    set: &DataSet,
    contender: &Contender,
    buffers: Buffers,
    scratch: &Path,
) -> Result<Prepared> {
    let (input, output) = (scratch.join("input"), scratch.join("output"));
    if scratch.exists() {
        fs::remove_dir_all(scratch)?;
    }
    fs::create_dir_all(&input)?;
    fs::create_dir_all(&output)?;
    set.link_into(&input, None)?;
    let mut command = programs.compact();
    command.arg(&input).arg("--output").arg(&output).args(["--access", &contender.mode]);
    for (name, bytes) in [
        ("--buffer-size", buffers.read_size),
        ("--write-buffer-size", buffers.write_size),
        ("--buffer-budget", buffers.budget),
    ] {
        command.arg(name).arg(format!("{bytes}B"));
    }
    command.arg("--read-ahead").arg(buffers.read_depth.to_string());
    Ok(Prepared { command, output })
}

/// Compacts a set once, in a folder that is gone afterwards; `cold`: with an empty page cache.
pub(super) fn run(
    programs: &Programs,
    set: &DataSet,
    contender: &Contender,
    buffers: Buffers,
    scratch: &Path,
    cold: bool,
) -> Result<Run> {
    let Prepared { mut command, output } = prepare(programs, set, contender, buffers, scratch)?;
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let was_cold = cold && drop_page_cache();
    let child = command.spawn()?;
    let watch = Watch::child(child.id(), scratch)?;
    let ended = child.wait_with_output()?;
    let cost = watch.stop()?;
    if !ended.status.success() {
        return Err(String::from_utf8_lossy(&ended.stderr).into_owned().into());
    }
    let run = Run {
        contender: contender.clone(),
        buffers: Some(buffers.name()),
        cost,
        was_cold,
        // Before `inspect` reads the files.
        cached_inputs: cached_bytes(&set.files()),
        cached_outputs: cached_bytes(&files_below(&output)),
        content: programs.measure(&["inspect".as_ref(), output.as_os_str()])?,
        summary: serde_json::from_slice(&ended.stdout).ok().map(without_paths),
    };
    fs::remove_dir_all(scratch)?;
    run.checked()
}

/// Where the time of such a compaction goes.
pub(super) fn profile(
    programs: &Programs,
    set: &DataSet,
    contender: &Contender,
    scratch: &Path,
) -> Result<Vec<Share>> {
    let prepared = prepare(programs, set, contender, Buffers::DEFAULT, scratch)?;
    let shares = profile::of(&prepared.command, &scratch.join("perf.data"))?;
    fs::remove_dir_all(scratch)?;
    Ok(shares)
}

/// Records travel; where the files lay on this machine does not.
fn without_paths(mut summary: Value) -> Value {
    match &mut summary {
        Value::Object(fields) => {
            fields.remove("outputs");
            fields.values_mut().for_each(|field| *field = without_paths(field.take()));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = without_paths(item.take())),
        _ => {}
    }
    summary
}
