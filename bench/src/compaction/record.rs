//! What is kept of each run, and medians of it.

use serde_json::{Value, json};

use crate::Result;
use crate::contender::Contender;
use crate::process::Cost;
use crate::profile::Share;

#[derive(Clone)]
pub(super) struct Run {
    pub(super) codec: String,
    pub(super) contender: Contender,
    /// Of Halcyon, when they are not the default ones.
    pub(super) buffers: Option<String>,
    pub(super) cost: Cost,
    /// The page cache was empty.
    pub(super) was_cold: bool,
    /// Bytes of inputs and outputs that are in the page cache afterwards, if it can be seen.
    pub(super) cached_inputs: Option<u64>,
    pub(super) cached_outputs: Option<u64>,
    /// What the statistics of the output say.
    pub(super) content: Value,
    /// What the program itself says: Halcyon's counters and latencies by purpose.
    pub(super) summary: Option<Value>,
    /// Of the inputs.
    pub(super) data_bytes: u64,
    pub(super) file_bytes: u64,
}

const MIB: f64 = 1_048_576.0;
const GIB: f64 = 1024.0 * MIB;

impl Run {
    /// MiB of uncompressed input per second.
    pub(super) fn rate(&self) -> f64 {
        self.data_bytes as f64 / MIB / self.cost.seconds.max(1e-9)
    }

    pub(super) fn cpu_per_gib(&self) -> f64 {
        self.cost.cpu_seconds / (self.data_bytes as f64 / GIB)
    }

    fn output_bytes(&self, name: &str) -> u64 {
        self.content[name].as_u64().unwrap_or(0)
    }

    /// Pages of inputs and outputs left behind, as a share of what was read and written.
    pub(super) fn cached_share(&self) -> Option<f64> {
        let moved = self.file_bytes + self.output_bytes("file_bytes");
        let cached = self.cached_inputs? + self.cached_outputs?;
        Some(cached as f64 / moved.max(1) as f64)
    }

    /// What must be equal whoever compacted: partitions, rows, cells.
    pub(super) fn content_key(&self) -> [u64; 3] {
        ["partitions", "rows", "cells"].map(|name| self.output_bytes(name))
    }

    /// A run that wrote nothing is none.
    pub(super) fn checked(self) -> Result<Run> {
        match self.content_key() {
            [_, 0, _] => Err(format!("{}: the output has no rows", self.contender.name()).into()),
            _ => Ok(self),
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let cost = &self.cost;
        json!({
            "codec": self.codec,
            "peer": self.contender.peer,
            "mode": self.contender.mode,
            "buffers": self.buffers,
            "seconds": cost.seconds,
            "raw_mib_per_second": self.rate(),
            "cpu_seconds": cost.cpu_seconds,
            "cpu_seconds_per_gib": self.cpu_per_gib(),
            "cpu_seconds_by_thread": cost.threads,
            "peak_memory_bytes": cost.peak_memory,
            "device_bytes_read": cost.device.bytes_read,
            "device_bytes_written": cost.device.bytes_written,
            "page_cache_growth_peak_bytes": cost.cache_peak,
            "page_cache_growth_bytes": cost.cache_after,
            "active_file_growth_bytes": cost.active_file_after,
            "dirty_peak_bytes": cost.dirty_peak,
            "cached_input_bytes": self.cached_inputs,
            "cached_output_bytes": self.cached_outputs,
            "cold": self.was_cold,
            "input_data_bytes": self.data_bytes,
            "input_file_bytes": self.file_bytes,
            "output": self.content,
            "summary": self.summary,
        })
    }
}

/// The two limits that no compaction of a set gets past, in MiB/s of raw rows.
#[derive(Clone)]
pub(super) struct Bounds {
    pub(super) codec: String,
    /// One core: check and decompress all that is read, compress and sum all that is written.
    pub(super) codec_rate: f64,
    pub(super) device_rate: f64,
    /// As `measure` gave them.
    pub(super) details: Value,
}

impl Bounds {
    pub(super) fn nearer(&self) -> (&'static str, f64) {
        if self.codec_rate <= self.device_rate {
            ("codec", self.codec_rate)
        } else {
            ("device", self.device_rate)
        }
    }
}

/// Everything of one invocation.
pub(super) struct Record {
    pub(super) machine: Value,
    pub(super) runs: Vec<Run>,
    pub(super) bounds: Vec<Bounds>,
    /// Halcyon with other buffers.
    pub(super) buffer_runs: Vec<Run>,
    /// Of Halcyon's first mode, by codec.
    pub(super) profiles: Vec<(String, Vec<Share>)>,
}

impl Record {
    pub(super) fn codecs(&self) -> Vec<String> {
        let mut codecs: Vec<String> = Vec::new();
        for run in &self.runs {
            if !codecs.contains(&run.codec) {
                codecs.push(run.codec.clone());
            }
        }
        codecs
    }

    pub(super) fn bounds_of(&self, codec: &str) -> Option<&Bounds> {
        self.bounds.iter().find(|bounds| bounds.codec == codec)
    }

    /// The runs of a codec by contender, in the order of their first run.
    pub(super) fn contenders(&self, codec: &str) -> Vec<(Contender, Vec<&Run>)> {
        let mut grouped: Vec<(Contender, Vec<&Run>)> = Vec::new();
        for run in self.runs.iter().filter(|run| run.codec == codec) {
            match grouped.iter_mut().find(|(contender, _)| *contender == run.contender) {
                Some((_, runs)) => runs.push(run),
                None => grouped.push((run.contender.clone(), vec![run])),
            }
        }
        grouped
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "experiment": "compaction",
            "machine": self.machine,
            "bounds": self.bounds.iter().map(|bounds| json!({
                "codec": bounds.codec,
                "codec_raw_mib_per_second": bounds.codec_rate,
                "device_raw_mib_per_second": bounds.device_rate,
                "details": bounds.details,
            })).collect::<Vec<_>>(),
            "runs": self.runs.iter().map(Run::to_json).collect::<Vec<_>>(),
            "profiles": self.profiles.iter().map(|(codec, shares)| json!({
                "codec": codec,
                "shares": shares.iter().map(Share::to_json).collect::<Vec<_>>(),
            })).collect::<Vec<_>>(),
            "buffers": self.buffer_runs.iter().map(Run::to_json).collect::<Vec<_>>(),
        })
    }
}
