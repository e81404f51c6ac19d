//! Halcyon as a peer: one process for each compaction, as an operator runs it.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use halcyon_oracle::Result;
use serde_json::Value;

use super::{Bench, Run};
use crate::dataset::DataSet;
use crate::machine::{cached_bytes, drop_page_cache, files_below};
use crate::process::Watch;
use crate::profile::{self, Share};
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

impl Bench<'_> {
    fn scratch(&self) -> PathBuf {
        self.invocation.data.join("scratch")
    }

    /// The command of one compaction, and the folder of its output.
    fn command(
        &self,
        set: &DataSet,
        contender: &Contender,
        buffers: Buffers,
    ) -> Result<(Command, PathBuf)> {
        let scratch = self.invocation.fresh("scratch")?;
        let (input, output) = (scratch.join("input"), scratch.join("output"));
        fs::create_dir_all(&input)?;
        fs::create_dir_all(&output)?;
        set.link_into(&input, None)?;
        let mut command = self.invocation.programs.compact();
        command.arg(&input).arg("--output").arg(&output).args(["--access", &contender.mode]);
        for (name, bytes) in [
            ("--buffer-size", buffers.read_size),
            ("--write-buffer-size", buffers.write_size),
            ("--buffer-budget", buffers.budget),
        ] {
            command.arg(name).arg(format!("{bytes}B"));
        }
        command.arg("--read-ahead").arg(buffers.read_depth.to_string());
        Ok((command, output))
    }

    /// Compacts a set once, in a folder that is deleted afterwards.
    pub(super) fn compacted(
        &self,
        set: &DataSet,
        contender: &Contender,
        buffers: Buffers,
    ) -> Result<Run> {
        let (mut command, output) = self.command(set, contender, buffers)?;
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let was_cold = !self.invocation.tiny && drop_page_cache();
        let child = command.spawn()?;
        let watch = Watch::child(child.id(), &output)?;
        let ended = child.wait_with_output()?;
        let cost = watch.stop()?;
        if !ended.status.success() {
            return Err(String::from_utf8_lossy(&ended.stderr).into_owned().into());
        }
        let run = Run {
            buffers: Some(buffers.name()),
            cost,
            was_cold,
            // Before `inspect` reads the files.
            cached_inputs: cached_bytes(&set.files()),
            cached_outputs: cached_bytes(&files_below(&output)),
            content: self.invocation.programs.measure(&["inspect".as_ref(), output.as_os_str()])?,
            summary: serde_json::from_slice(&ended.stdout).ok().map(without_paths),
        };
        fs::remove_dir_all(self.scratch())?;
        Ok(run)
    }

    /// Where the time of such a compaction goes.
    pub(super) fn profiled(&self, set: &DataSet, contender: &Contender) -> Result<Vec<Share>> {
        let (command, _) = self.command(set, contender, Buffers::DEFAULT)?;
        let shares = profile::of(&command, &self.scratch().join("perf.data"))?;
        fs::remove_dir_all(self.scratch())?;
        Ok(shares)
    }
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
