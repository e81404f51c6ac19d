//! The page: latencies by phase, the price of the compaction, who made reads wait, latency targets; and the three plots.

use std::collections::BTreeMap;

use halcyon_oracle::{Result, Version};
use plotters::style::RGBColor;
use serde_json::{Value, json};

use super::by_latte::Warmth;
use super::modes::{self, THROTTLE_MIB};
use crate::dataset::Shape;
use crate::histogram::{ByKind, Histogram};
use crate::page::Page;
use crate::plot::{Axis, Grid, HALCYON, Panel, color_of};
use crate::record::{Contender, Record, Spread, Target, Turn};
use crate::stretch::{Phase, about_reads, added_by_compaction};
use crate::timeline::{self, LEAST, Layout, MOST, Point, line, seconds};

/// Whom README's picture shows: Halcyon as it comes, and Cassandra's newest release in its best mode.
const README: [&str; 2] = ["Halcyon direct, auto", "Cassandra 6.0-alpha2 direct"];
const DEVICE: RGBColor = RGBColor(208, 235, 255);
/// Of the bars, in nanoseconds.
const FIRST_BUCKET: u64 = 1 << 13;
const LAST_BUCKET: u64 = 1 << 27;

const HOT_P99: &str = "hot_p99_us";
const HOT_P999: &str = "hot_p99.9_us";
const SPEED: &str = "raw_mib_per_second";
const ADDED_CPU: &str = "added_cpu_seconds";

/// Behind the phase, in the headings of turns that hold a target.
pub(super) fn with_target(above_ms: u64) -> String {
    format!("{TARGET}{above_ms} ms")
}

const TARGET: &str = ", idle + ";

/// The headings of compactions at full speed that held a target.
fn held(record: &Record) -> Vec<(&str, &str)> {
    let full_speed = format!("{}{TARGET}", Phase::FullSpeed.name());
    let of = |heading: &'_ str| heading.strip_prefix(full_speed.as_str()).map(str::len);
    let held = record.headings().into_iter();
    held.filter_map(|heading| Some((heading, &heading[heading.len() - of(heading)?..]))).collect()
}

pub(super) fn page(record: &mut Record) -> Result<Page> {
    record.derive("by_target", |rounds| {
        Some(rounds.median("all_p99_us")? / 1e3 / rounds.median("target_ms")?)
    });
    for (name, key) in [("p99_by_idle", HOT_P99), ("p99.9_by_idle", HOT_P999)] {
        record.derive(name, |rounds| {
            let suffix = rounds.heading.strip_prefix(Phase::SwitchIncluded.name())?;
            by_idle(rounds.record, suffix, rounds.who, key)
        });
    }
    record.derive(ADDED_CPU, |rounds| {
        let suffix = rounds.heading.strip_prefix(Phase::FullSpeed.name())?;
        let heading = |phase: Phase| format!("{}{suffix}", phase.name());
        added_by_compaction(rounds.record, rounds.who, heading, "server_cpu_seconds")
    });
    let held = held(record);
    let mut plots = BTreeMap::from([
        ("timeline.svg".to_owned(), timelines(record)?),
        ("purposes.svg".to_owned(), purposes(record)?),
    ]);
    if let Some(plot) = for_readme(record)? {
        plots.insert("calm.svg".to_owned(), plot);
    }
    if !held.is_empty() {
        plots.insert("targets.svg".to_owned(), targets_held(record, &held)?);
    }
    let foreign = foreign(record);
    if !foreign.is_empty() {
        plots.insert("latte.svg".to_owned(), timelines_by_latte(record)?);
    }
    let mut names = about_turns(record);
    names["foreign"] = json!(foreign);
    names["phases"] = json!(Phase::ALL.map(|phase| (phase.name(), title(phase))));
    names["waits"] = json!(waits_of_all(record));
    names["held"] = json!(held);
    names["inputs"] = json!(record.beside.get(&Shape::Rows.inputs()));
    names["wide"] = json!(record.beside.get(&Shape::Wide.inputs()));
    names["throttle_mib"] = THROTTLE_MIB.into();
    let template = include_str!("../../E1/page.md");
    Ok(Page { template, targets: targets(record), names, plots })
}

/// The headings of what `latte` read, and what is shown instead.
fn foreign(record: &Record) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for warmth in Warmth::ALL {
        for (phase, when) in [(Phase::Idle, "idle"), (Phase::SwitchIncluded, "whole stretch")] {
            let heading = phase.name().to_owned() + warmth.suffix();
            if !record.contenders(&heading).is_empty() {
                found.push((heading, format!("{}, {when}", warmth.name())));
            }
        }
    }
    found
}

fn title(phase: Phase) -> String {
    match phase {
        Phase::Idle => "Idle".to_owned(),
        Phase::FullSpeed => "During a major compaction at full speed".to_owned(),
        Phase::Afterwards => "In the seconds after it".to_owned(),
        Phase::SwitchIncluded => "From its begin to the end of those seconds".to_owned(),
        Phase::Throttled => format!("During one throttled to {THROTTLE_MIB} MiB/s"),
    }
}

/// Requests by Halcyon's own purposes, and by kind as the device saw them.
fn waits(turn: &Turn) -> Vec<(String, Histogram)> {
    let own: ByKind = turn.detail("purposes");
    let device: ByKind = turn.detail("device");
    let device = device.into_iter().map(|(kind, counted)| (format!("device {kind}"), counted));
    own.into_iter().chain(device).collect()
}

/// E2.
fn waits_of_all(record: &Record) -> Vec<Value> {
    let full_speed = Phase::FullSpeed.name();
    let mut rows = Vec::new();
    for who in record.contenders(full_speed) {
        let waits = record.rounds(full_speed, who).turns().next().map(waits);
        rows.extend(waits.unwrap_or_default().into_iter().map(|(name, all)| {
            json!({
                "who": who.name(),
                "name": name,
                "count": all.count(),
                "p50_ns": all.quantile(0.5),
                "p99_ns": all.quantile(0.99),
                "over_1ms": all.share_over(1_000_000),
                "over_2ms": all.share_over(2_000_000),
            })
        }));
    }
    rows
}

fn target(what: String, sign: char, bound: f64, measured: Option<f64>) -> Option<Target> {
    let measured = measured?;
    let reached = if sign == '≤' { measured <= bound } else { measured >= bound };
    Some(Target::new(what, format!("{sign} {bound}"), format!("{measured:.3}"), reached))
}

/// The whole stretch by the idle one; `suffix`: behind the phase, in the headings of both.
fn by_idle(record: &Record, suffix: &str, who: &Contender, key: &str) -> Option<f64> {
    let of = |phase: Phase| record.median(&format!("{}{suffix}", phase.name()), who, key);
    Some(of(Phase::SwitchIncluded)? / of(Phase::Idle)?)
}

/// Of all of Halcyon's modes with direct I/O, for each client: neither the compaction nor its end shows.
fn calm(record: &Record) -> Vec<Target> {
    let mut targets = Vec::new();
    for suffix in std::iter::once("").chain(Warmth::ALL.map(Warmth::suffix)) {
        let whole = format!("{}{suffix}", Phase::SwitchIncluded.name());
        let ours = record.contenders(&whole).into_iter();
        let ours = ours.filter(|who| who.is_halcyon() && who.mode.starts_with(modes::DIRECT));
        for who in ours {
            for (name, key, bound) in [("p99", HOT_P99, 1.25), ("p99.9", HOT_P999, 2.0)] {
                let what = format!(
                    "{}{suffix}: {name} of hot reads from the compaction's begin to some seconds after its end, by its idle {name}",
                    who.name()
                );
                targets.extend(target(what, '≤', bound, by_idle(record, suffix, who, key)));
            }
        }
    }
    targets
}

/// Of both kinds of rows.
fn targets(record: &Record) -> Vec<Target> {
    let mut targets = calm(record);
    targets.extend(at_full_speed(record, "", 4.0));
    targets.extend(at_full_speed(record, modes::WIDE_VALUES, 2.0));
    targets
}

/// Of Halcyon `direct`, by Cassandra 6 on the same rows; `rows`: behind the names of their modes.
fn at_full_speed(record: &Record, rows: &str, least_speed: f64) -> Vec<Target> {
    let ours = Contender::new("halcyon", &format!("{}{rows}", modes::DIRECT));
    let (idle, full_speed) = (Phase::Idle.name(), Phase::FullSpeed.name());
    let of = |key| record.median(full_speed, &ours, key);
    let by_idle = |key| Some(of(key)? / record.median(idle, &ours, key)?);
    let is_wide = |who: &Contender| who.mode.ends_with(modes::WIDE_VALUES);
    let mut newest = record.contenders(full_speed);
    newest.retain(|who| who.peer == Version::V6.name() && is_wide(who) == is_wide(&ours));
    let by_theirs = |key, best: fn(f64, f64) -> f64| {
        let theirs = newest.iter().filter_map(|who| record.median(full_speed, who, key));
        Some(of(key)? / theirs.reduce(best)?)
    };
    let slow = record.rounds(full_speed, &ours).turns().filter_map(|turn| {
        let purposes: ByKind = turn.detail("purposes");
        Some(100.0 * purposes.get("user_read")?.share_over(2_000_000))
    });
    let slow: Vec<f64> = slow.collect();
    let slow = (!slow.is_empty()).then(|| Spread::of(slow).median);
    let p99 = "p99 of hot reads during the compaction, by Halcyon's idle p99";
    let undisturbed = "the same of reads that no core's standing still kept waiting";
    let rival_p99 = "p99 during it, by that of Cassandra 6's best mode";
    let speed = "speed of the compaction, by that of Cassandra 6's fastest mode";
    let cpu = "CPU time that the compaction adds, by that in Cassandra 6's most frugal mode";
    let over_2ms = "user reads at the device that take over 2 ms, in per cent";
    let rows = [
        (p99, '≤', 1.25, by_idle(HOT_P99)),
        (undisturbed, '≤', 1.25, by_idle("undisturbed_p99_us")),
        (rival_p99, '≤', 0.2, by_theirs(HOT_P99, f64::min)),
        (speed, '≥', least_speed, by_theirs(SPEED, f64::max)),
        (cpu, '≤', 0.33, by_theirs(ADDED_CPU, f64::min)),
        (over_2ms, '≤', 0.01, slow),
    ];
    let rows = rows.into_iter().filter_map(|(what, sign, bound, measured)| {
        target(format!("{}: {what}", ours.name()), sign, bound, measured)
    });
    rows.collect()
}

/// What the method says of all turns without a target.
fn about_turns(record: &Record) -> Value {
    let turns = record.turns.iter().filter(|turn| !turn.heading.contains(TARGET));
    let turns: Vec<&Turn> = turns.collect();
    let full_speed = turns.iter().filter(|turn| turn.heading == Phase::FullSpeed.name());
    let load = Spread::of(full_speed.filter_map(|turn| turn.get("load_before")));
    let unanswered: f64 = turns.iter().filter_map(|turn| turn.get("unanswered")).sum();
    let mut names = about_reads(&turns);
    names["unanswered"] = json!(unanswered);
    names["load"] = json!([load.median, load.min, load.max]);
    names
}

/// A panel for each contender.
fn timelines(record: &Record) -> Result<String> {
    let contenders = record.contenders(Phase::FullSpeed.name()).into_iter();
    let turns = contenders.filter_map(|who| {
        Some((who.name(), timeline::typical(record, Phase::FullSpeed.name(), who)?))
    });
    timeline::drawn(&turns.collect::<Vec<_>>(), &Layout::Page)
}

/// README's picture, if the record has both contenders.
fn for_readme(record: &Record) -> Result<Option<String>> {
    let contenders = record.contenders(Phase::FullSpeed.name()).into_iter();
    let turns = contenders.filter(|who| README.contains(&who.name().as_str())).filter_map(|who| {
        Some((who.name(), timeline::typical(record, Phase::FullSpeed.name(), who)?))
    });
    let turns: Vec<_> = turns.collect();
    let is_whole = turns.len() == README.len();
    is_whole.then(|| timeline::drawn(&turns, &Layout::Narrow)).transpose()
}

/// The same by `latte`: the warm, then the half-warm.
fn timelines_by_latte(record: &Record) -> Result<String> {
    let mut turns = Vec::new();
    for warmth in Warmth::ALL {
        let heading = Phase::SwitchIncluded.name().to_owned() + warmth.suffix();
        turns.extend(record.contenders(&heading).into_iter().filter_map(|who| {
            let title = format!("{}, {}", who.name(), warmth.name());
            Some((title, timeline::typical(record, &heading, who)?))
        }));
    }
    timeline::drawn(&turns, &Layout::Page)
}

/// As `biolatency` draws: shares of requests by latency, a panel for each purpose (Halcyon) or kind (the device).
fn purposes(record: &Record) -> Result<String> {
    /// A panel of fewer requests says nothing.
    const LEAST_REQUESTS: u64 = 10;
    let mut panels = Vec::new();
    for who in record.contenders(Phase::FullSpeed.name()) {
        let Some(turn) = timeline::typical(record, Phase::FullSpeed.name(), who) else { continue };
        let waits = waits(turn).into_iter().filter(|(_, all)| all.count() >= LEAST_REQUESTS);
        panels.extend(waits.map(|(name, all)| Panel {
            title: format!("{}: {name}", who.name()),
            note: format!("{}, {:.2} % > 2 ms", all.count(), 100.0 * all.share_over(2_000_000)),
            bars: bars(&all, color_of(who)),
            ..Panel::default()
        }));
    }
    let ticks = [(14, "16 µs"), (17, "131 µs"), (20, "1 ms"), (23, "8 ms"), (26, "67 ms")];
    let grid = Grid {
        title: "Each request at the device during the major compaction, by latency".to_owned(),
        columns: 3,
        size: (250, 90),
        x: Axis {
            title: String::new(),
            is_log: false,
            from: 13.0,
            until: 28.0,
            ticks: ticks.map(|(at, name)| (f64::from(at), name.to_owned())).to_vec(),
        },
        y: Axis::linear("", 0.0, 100.0, 50.0, " %"),
        panels,
    };
    grid.svg()
}

fn bars(all: &Histogram, color: RGBColor) -> Vec<(f64, f64, f64, RGBColor)> {
    let first = f64::from(FIRST_BUCKET.ilog2());
    let shares = all.shares(FIRST_BUCKET, LAST_BUCKET).into_iter().enumerate();
    let bars = shares.filter(|(_, share)| *share > 0.0).map(|(number, share)| {
        let at = first + number as f64;
        (at, at + 0.95, 100.0 * share, color)
    });
    bars.collect()
}

/// p99 of all reads over time against the target, and below it what goes through the device.
fn targets_held(record: &Record, held: &[(&str, &str)]) -> Result<String> {
    let turns: Vec<&Turn> = held
        .iter()
        .filter_map(|(heading, _)| record.turns.iter().find(|turn| turn.heading == *heading))
        .collect();
    let timelines: Vec<Vec<Point>> = turns.iter().map(|turn| turn.detail("timeline")).collect();
    let most = timelines.iter().flatten().map(|Point(.., device)| *device).fold(1.0, f64::max);
    // The device's bars take the lower half of the axis, which is logarithmic.
    let height = |rate: f64| LEAST * (MOST / LEAST).powf(0.5 * rate / most);
    let panels = turns.iter().zip(&timelines).map(|(turn, points)| {
        let of = |key: &str| turn.get(key).unwrap_or(0.0);
        let (length, target) = (of("seconds"), of("target_ms"));
        let rates = points.iter().filter(|Point(at, ..)| (0.0..length).contains(at));
        let rate = Spread::of(rates.map(|Point(.., device)| *device)).median;
        let steps = points.windows(2);
        Panel {
            title: format!("idle + {} ms: target {target:.2} ms", of("above_idle_ms")),
            note: format!("{length:.0} s, {rate:.0} MiB/s at the device"),
            bars: steps
                .map(|pair| (pair[0].0, pair[1].0 + 0.01, height(pair[0].2), DEVICE))
                .collect(),
            lines: vec![line(points, |Point(_, [_, _, all, _], _)| *all, HALCYON, 2)],
            rule: Some((target, format!("target {target:.2} ms"))),
            ..Panel::default()
        }
    });
    let grid = Grid {
        title: "Latency targets: p99 of all reads (line), what goes through the device (bars)"
            .to_owned(),
        columns: 1,
        size: (800, 150),
        x: seconds(&timelines),
        y: Axis::milliseconds(LEAST, MOST),
        panels: panels.collect(),
    };
    grid.svg()
}
