//! What is kept of a run.

use serde_json::{Value, json};

use super::turn::{Answers, Phase, Point, Stretch, Turn};
use crate::block_trace::ByKind;
use crate::contender::{Contender, Spread};

/// A turn that held a target.
pub(super) struct Held {
    pub(super) above_ms: u64,
    pub(super) target_ms: f64,
    /// Of all reads, in the idle stretch, in ms.
    pub(super) idle_p99: f64,
    pub(super) turn: Turn,
}

/// Everything of one invocation.
pub(super) struct Record {
    pub(super) machine: Value,
    pub(super) settings: Value,
    pub(super) inputs: Value,
    pub(super) turns: Vec<Turn>,
    pub(super) held: Vec<Held>,
    /// What could not be measured, and why.
    pub(super) missing: Vec<String>,
}

impl Record {
    /// The turns by contender, in the order of their first one.
    pub(super) fn contenders(&self) -> Vec<(Contender, Vec<&Turn>)> {
        let mut grouped: Vec<(Contender, Vec<&Turn>)> = Vec::new();
        for turn in &self.turns {
            match grouped.iter_mut().find(|(contender, _)| *contender == turn.contender) {
                Some((_, turns)) => turns.push(turn),
                None => grouped.push((turn.contender.clone(), vec![turn])),
            }
        }
        grouped
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "experiment": "E1",
            "machine": self.machine,
            "settings": self.settings,
            "inputs": self.inputs,
            "turns": self.turns.iter().map(turn).collect::<Vec<_>>(),
            "targets": self.held.iter().map(|held| json!({
                "above_idle_ms": held.above_ms,
                "target_ms": held.target_ms,
                "idle_p99_ms": held.idle_p99,
                "turn": turn(&held.turn),
            })).collect::<Vec<_>>(),
            "missing": self.missing,
        })
    }
}

/// The median over turns of something in a phase.
pub(super) fn median(turns: &[&Turn], phase: Phase, of: impl Fn(&Stretch) -> f64) -> Option<f64> {
    let values: Vec<f64> = turns.iter().filter_map(|turn| turn.of(phase)).map(of).collect();
    (!values.is_empty()).then(|| Spread::of(values).median)
}

fn turn(turn: &Turn) -> Value {
    json!({
        "peer": turn.contender.peer,
        "mode": turn.contender.mode,
        "memory_bytes": turn.memory,
        "raw_mib_per_second": turn.rate(),
        "stretches": turn.stretches.iter().map(stretch).collect::<Vec<_>>(),
        "timeline": turn.timeline.iter().map(point).collect::<Vec<_>>(),
        "generator_cpu_share": turn.generator_cpu,
        "generator_ran_first": turn.generator_first,
        "unanswered": turn.unanswered,
        "cold": turn.was_cold,
        "load_before": turn.load,
    })
}

fn stretch(stretch: &Stretch) -> Value {
    let Stretch { phase, seconds, hot, cold, all, undisturbed, standstill, measured, held } =
        stretch;
    let cost = &measured.cost;
    json!({
        "phase": phase.name(),
        "seconds": seconds,
        "hot": answers(hot),
        "cold_set": answers(cold),
        "all": all.to_json(),
        "hot_undisturbed": undisturbed.to_json(),
        "core_stood_still_ms": standstill,
        "server_cpu_seconds": cost.cpu_seconds,
        "server_cpu_seconds_by_thread": cost.threads,
        "server_peak_memory_bytes": cost.peak_memory,
        "page_cache_growth_peak_bytes": cost.cache_peak,
        "page_cache_growth_bytes": cost.cache_after,
        "dirty_peak_bytes": cost.dirty_peak,
        "cage_page_cache_bytes": held.map(|(cached, _)| cached),
        "cage_bytes": held.map(|(_, all)| all),
        "device": {
            "reads": cost.device.reads,
            "bytes_read": cost.device.bytes_read,
            "read_ms": cost.device.read_ms,
            "writes": cost.device.writes,
            "bytes_written": cost.device.bytes_written,
            "write_ms": cost.device.write_ms,
            "busy_ms": cost.device.busy_ms,
            "latency": by_kind(&measured.device),
        },
        "purposes": by_kind(&measured.purposes),
        "pressure": measured.pressure.to_json(),
    })
}

fn by_kind(all: &ByKind) -> Value {
    all.iter().map(|(kind, counted)| (kind.clone(), counted.to_json())).collect()
}

fn answers(answers: &Answers) -> Value {
    let mut value = answers.latencies.to_json();
    value["share_over_2ms"] = answers.slow.into();
    value["failed"] = answers.failed.into();
    value["empty"] = answers.empty.into();
    value
}

fn point(point: &Point) -> Value {
    let rounded = |value: f64| (value * 10.0).round() / 10.0;
    json!([
        (point.at * 100.0).round() / 100.0,
        rounded(point.hot_p99),
        rounded(point.cold_p99),
        rounded(point.all_p99),
        rounded(point.max),
        rounded(point.device),
    ])
}
