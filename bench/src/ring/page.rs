//! The page: latencies by phase and the price of the compaction, for each data set and size of ring; and the timelines.

use std::collections::BTreeMap;

use halcyon_oracle::Result;
use serde_json::json;

use super::nodes::contenders;
use crate::dataset::Shape;
use crate::page::Page;
use crate::record::{Contender, Record, Spread, Target, Turn};
use crate::stretch::{Phase, about_reads, added_by_compaction};
use crate::timeline::{self, Layout};

const SPEED: &str = "raw_mib_per_second";
const HOT_P99: &str = "hot_p99_us";
const ADDED_CPU: &str = "added_cpu_seconds";
/// What a contender may use less than, and by how much.
const THIRD: f64 = 1.0 / 3.0;
const HALF: f64 = 0.5;
/// Of what the compaction reads and writes, in per cent.
const MOST_CACHED: f64 = 2.0;

const PHASES: [(Phase, &str); 4] = [
    (Phase::Idle, "idle"),
    (Phase::FullSpeed, "major compaction"),
    (Phase::Afterwards, "seconds after it"),
    (Phase::SwitchIncluded, "both"),
];

/// One data set and a number of nodes: `rows, 3`.
struct Part<'a> {
    name: &'a str,
    set: &'a str,
    nodes: &'a str,
}

impl<'a> Part<'a> {
    fn all(record: &'a Record) -> Vec<Part<'a>> {
        let idle = format!(": {}", Phase::Idle.name());
        let mut parts: Vec<Part<'_>> = Vec::new();
        for heading in record.headings() {
            let Some(name) = heading.strip_suffix(&idle) else { continue };
            let Some((set, nodes)) = name.split_once(", ") else { continue };
            parts.push(Part { name, set, nodes });
        }
        parts.sort_by_key(|part| (part.nodes, part.set));
        parts
    }

    fn heading(&self, phase: Phase) -> String {
        format!("{}: {}", self.name, phase.name())
    }

    fn title(&self) -> String {
        let set = if self.set == "wide" { "Wide values" } else { "Rows" };
        let nodes =
            if self.nodes == "1" { "one node".to_owned() } else { format!("{} nodes", self.nodes) };
        format!("{set}, {nodes}")
    }

    /// How many times Cassandra's own speed.
    fn least_speed(&self) -> f64 {
        if self.set == "wide" { 1.5 } else { 3.0 }
    }
}

pub(super) fn page(record: &mut Record) -> Result<Page> {
    for (added, of) in [
        (ADDED_CPU, "server_cpu_seconds"),
        ("added_ring_cpu_seconds", "ring_cpu_seconds"),
        ("added_gc_pauses", "gc_pauses"),
        ("added_gc_ms", "gc_ms"),
    ] {
        record.derive(added, |rounds| {
            let part = rounds.heading.strip_suffix(&format!(": {}", Phase::FullSpeed.name()))?;
            let heading = |phase: Phase| format!("{part}: {}", phase.name());
            added_by_compaction(rounds.record, rounds.who, heading, of)
        });
    }
    let parts = Part::all(record);
    let drawn = parts.iter().flat_map(|part| timelines(record, part));
    let plot = timeline::drawn(&drawn.collect::<Vec<_>>(), &Layout::Page)?;
    let mut names = about_reads(&record.turns.iter().collect::<Vec<_>>());
    let all = |key: &'static str| record.turns.iter().filter_map(move |turn| turn.get(key));
    let load = Spread::of(all("load_before"));
    names["unanswered"] = json!(Spread::of(all("unanswered")).max);
    names["load"] = json!([load.median, load.min, load.max]);
    names["parts"] = parts
        .iter()
        .map(|part| {
            let phases = PHASES.map(|(phase, title)| (part.heading(phase), title));
            json!({ "title": part.title(), "phases": phases })
        })
        .collect();
    let full_speed = parts.iter().map(|part| (part.heading(Phase::FullSpeed), part.title()));
    names["compactions"] = json!(full_speed.collect::<Vec<_>>());
    names["inputs"] = [Shape::Rows, Shape::Wide]
        .into_iter()
        .filter_map(|set| {
            Some(json!({ "set": set.name(), "has": record.beside.get(&set.inputs())? }))
        })
        .collect();
    Ok(Page {
        template: include_str!("../../ring/page.md"),
        targets: parts.iter().flat_map(|part| targets(record, part)).collect(),
        names,
        plots: BTreeMap::from([("timeline.svg".to_owned(), plot)]),
    })
}

fn timelines<'a>(record: &'a Record, part: &Part<'_>) -> Vec<(String, &'a Turn)> {
    let full_speed = part.heading(Phase::FullSpeed);
    let of = |who: &'a Contender| {
        let turn = timeline::typical(record, &full_speed, who)?;
        Some((format!("{}: {}", part.title(), who.name()), turn))
    };
    record.contenders(&full_speed).into_iter().filter_map(of).collect()
}

fn targets(record: &Record, part: &Part<'_>) -> Vec<Target> {
    let [stock, ours] = contenders();
    let (full_speed, whole) = (part.heading(Phase::FullSpeed), part.heading(Phase::SwitchIncluded));
    let both = |heading: &str, key: &str| {
        let of = |who| record.median(heading, who, key);
        Some((of(&ours)?, of(&stock)?))
    };
    let mut found = Vec::new();
    let mut ratio = |heading: &str, key: &str, what: &str, sign: char, bound: f64| {
        let Some((ours, stock)) = both(heading, key) else { return };
        let ratio = ours / stock;
        let reached = if sign == '≤' { ratio <= bound } else { ratio >= bound };
        found.push(Target::new(
            format!("{}: {what}, by Cassandra's alone", part.title()),
            format!("{sign} {bound:.2}"),
            format!("{ratio:.2}"),
            reached,
        ));
    };
    ratio(&full_speed, HOT_P99, "p99 of hot reads during the compaction", '≤', THIRD);
    ratio(&whole, HOT_P99, "p99 of hot reads until some seconds after its end", '≤', THIRD);
    ratio(&full_speed, SPEED, "speed of the compaction", '≥', part.least_speed());
    ratio(&full_speed, ADDED_CPU, "CPU time that the compaction adds", '≤', HALF);
    if let Some(grown) = record.median(&full_speed, &ours, "cached_growth_share") {
        let what =
            format!("{}: growth of the page cache, of what is read and written", part.title());
        let (bound, measured) =
            (format!("< {MOST_CACHED:.0} %"), format!("{:.2} %", 100.0 * grown));
        found.push(Target::new(what, bound, measured, 100.0 * grown < MOST_CACHED));
    }
    let added = (both(&full_speed, "added_gc_pauses"), both(&full_speed, "added_gc_ms"));
    if let (Some(count), Some(ms)) = added {
        found.push(Target::new(
            format!("{}: collector's pauses that the compaction adds", part.title()),
            "fewer",
            format!("{:.0} ({:.0} ms) against {:.0} ({:.0} ms)", count.0, ms.0, count.1, ms.1),
            count.0 < count.1,
        ));
    }
    found
}
