//! The page: latencies by phase, the price of the compaction, who made reads wait, latency targets; and the three plots.

use std::collections::BTreeMap;
use std::fmt::Write;

use halcyon_oracle::Version;
use plotters::style::RGBColor;
use serde::de::DeserializeOwned;

use super::modes::THROTTLE_MIB;
use super::turn::{Phase, Point};
use crate::Result;
use crate::histogram::Histogram;
use crate::page::{Column, Page, table};
use crate::plot::{Axis, Grid, HALCYON, Line, OTHER, Panel};
use crate::record::{Contender, Record, Rounds, Spread, Target, Turn};

const MIB: f64 = 1_048_576.0;
const COMPACTS: RGBColor = RGBColor(255, 243, 191);
const SLOWEST: RGBColor = RGBColor(206, 212, 218);
const DEVICE: RGBColor = RGBColor(208, 235, 255);
/// Of the axis, in ms.
const LEAST: f64 = 0.1;
const MOST: f64 = 1000.0;
/// Of the bars, in nanoseconds.
const FIRST_BUCKET: u64 = 1 << 13;
const LAST_BUCKET: u64 = 1 << 27;

const HOT_P99: &str = "hot_p99_us";

const fn ms(title: &'static str, key: &'static str, decimals: usize) -> Column {
    Column::new(title, key, decimals).times(1e-3)
}

const LATENCIES: &[Column] = &[
    ms("hot: mean", "hot_mean_us", 2),
    ms("p50", "hot_p50_us", 2),
    ms("p99", HOT_P99, 2).with_spread(),
    ms("p99.9", "hot_p99.9_us", 2),
    ms("max", "hot_max_us", 1),
    Column::new("over 2 ms", "hot_share_over_2ms", 3).times(100.0).unit(" %"),
    ms("p99 undisturbed", "undisturbed_p99_us", 2),
    Column::new("a core stood still", "core_stood_still_ms", 1),
    ms("cold: p50", "cold_p50_us", 2),
    ms("p99", "cold_p99_us", 2),
    ms("p99.9", "cold_p99.9_us", 2),
];

const WORK: &[Column] = &[
    Column::new("memory MiB", "memory_bytes", 0).times(1.0 / MIB),
    Column::new("seconds", "seconds", 1),
    Column::new("MiB/s of raw rows", "raw_mib_per_second", 0).with_spread(),
    Column::new("server CPU s", "server_cpu_seconds", 1),
    Column::new("page cache + MiB", "page_cache_growth_peak_bytes", 0).times(1.0 / MIB),
    Column::new("dirty MiB at most", "dirty_peak_bytes", 0).times(1.0 / MIB),
    Column::new("pages reclaimed", "pages pgsteal_file", 0),
    Column::new("stalled for I/O s", "stalled_us io some", 2).times(1e-6),
    Column::new("for memory s", "stalled_us memory some", 2).times(1e-6),
    Column::new("for a core s", "stalled_us cpu some", 2).times(1e-6),
];

const HELD: &[Column] = &[
    Column::new("idle p99 ms", "idle_p99_ms", 2),
    Column::new("target ms", "target_ms", 2),
    ms("measured p99 ms", "all_p99_us", 2),
    Column::derived("measured by target", |rounds| Some(format!("{:.2}", by_target(rounds)?))),
    Column::derived("", |rounds| {
        /// A target is held within a fifth: it is looked at twice a second.
        const MOST: f64 = 1.2;
        Some(if by_target(rounds)? <= MOST { "held" } else { "missed" }.to_owned())
    }),
    Column::new("compaction s", "seconds", 1),
    Column::new("MiB/s of raw rows", "raw_mib_per_second", 0),
];

fn by_target(rounds: Rounds<'_>) -> Option<f64> {
    Some(rounds.median("all_p99_us")? / 1e3 / rounds.median("target_ms")?)
}

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

pub(crate) fn page(record: &Record) -> Result<Page> {
    let mut sections = Vec::new();
    for phase in Phase::ALL {
        let rows = table(record, None, [(phase.name(), "")], LATENCIES);
        if !rows.is_empty() {
            sections.push(format!("## {}\n\nMilliseconds.\n\n{rows}", title(phase)));
        }
    }
    let full_speed = Phase::FullSpeed.name();
    let mut plots = vec![("timeline.svg", timelines(record)?), ("purposes.svg", purposes(record)?)];
    sections.push(format!(
        "## The compaction's work and price\n\nAt full speed. Growth is the whole machine's; stalls are those that the kernel accounts \
         (PSI), seconds of the compaction's.\n\n{}",
        table(record, None, [(full_speed, "")], WORK)
    ));
    sections.push(who_waited(record));
    let held = held(record);
    if !held.is_empty() {
        plots.push(("targets.svg", targets_held(record, &held)?));
        sections.push(format!(
            "## Latency targets\n\n`compaction_latency_target` above the p99 that reads have in the idle stretch; one read in two is \
             cold.\n\n![Latency targets](targets.svg)\n\n{}",
            table(record, Some("above idle"), held, HELD)
        ));
    }
    Ok(Page {
        title: "E1 and E2: read latency while it compacts",
        targets: targets(record),
        sections,
        method: include_str!("../../E1/method.md"),
        computed: computed(record),
        plots,
    })
}

fn title(phase: Phase) -> String {
    match phase {
        Phase::Idle => "Idle".to_owned(),
        Phase::FullSpeed => "During a major compaction at full speed".to_owned(),
        Phase::Afterwards => "In the seconds after it".to_owned(),
        Phase::Throttled => format!("During one throttled to {THROTTLE_MIB} MiB/s"),
    }
}

fn detail<T: DeserializeOwned + Default>(turn: &Turn, name: &str) -> T {
    serde_json::from_value(turn.details[name].clone()).unwrap_or_default()
}

/// Requests by Halcyon's own purposes, and by kind as the device saw them.
fn waits(turn: &Turn) -> Vec<(String, Histogram)> {
    let own: BTreeMap<String, Histogram> = detail(turn, "purposes");
    let device: BTreeMap<String, Histogram> = detail(turn, "device");
    own.into_iter()
        .chain(device.into_iter().map(|(kind, counted)| (format!("device {kind}"), counted)))
        .collect()
}

/// E2.
fn who_waited(record: &Record) -> String {
    let mut text = String::from(
        "## E2: who made the read wait\n\nRequests during the compaction at full speed: by Halcyon's own purposes (submission to \
         completion; read-ahead and write-behind that are done before a request waits for them have no such time and are left out), \
         and as the block device saw them (issue to completion, of all programs).\n\n![Latency by purpose](purposes.svg)\n\n\
         | | | requests | p50 µs | p99 µs | over 1 ms | over 2 ms |\n|---|---|---|---|---|---|---|\n",
    );
    let full_speed = Phase::FullSpeed.name();
    for who in record.contenders(full_speed) {
        let Some(turn) = record.rounds(full_speed, who).turns().next() else { continue };
        for (name, all) in waits(turn) {
            let _ = writeln!(
                text,
                "| {} | {name} | {} | {:.0} | {:.0} | {:.3} % | {:.3} % |",
                who.name(),
                all.count(),
                all.quantile(0.5) / 1e3,
                all.quantile(0.99) / 1e3,
                100.0 * all.share_over(1_000_000),
                100.0 * all.share_over(2_000_000),
            );
        }
    }
    text
}

/// Targets of Halcyon `direct`.
fn targets(record: &Record) -> Vec<Target> {
    let ours = Contender::new("halcyon", "direct");
    let (idle, full_speed) = (Phase::Idle.name(), Phase::FullSpeed.name());
    let by_idle =
        |key| Some(record.median(full_speed, &ours, key)? / record.median(idle, &ours, key)?);
    let newest = record.contenders(full_speed).into_iter();
    let newest: Vec<&Contender> = newest.filter(|who| who.peer == Version::V6.name()).collect();
    let theirs = |key: &str| -> Vec<f64> {
        newest.iter().filter_map(|who| record.median(full_speed, who, key)).collect()
    };
    let best = theirs(HOT_P99).into_iter().reduce(f64::min);
    let fastest = theirs("raw_mib_per_second").into_iter().reduce(f64::max);
    let by = |key, rival: Option<f64>| Some(record.median(full_speed, &ours, key)? / rival?);
    let slow = record.rounds(full_speed, &ours).turns().filter_map(|turn| {
        let purposes: BTreeMap<String, Histogram> = detail(turn, "purposes");
        Some(100.0 * purposes.get("user_read")?.share_over(2_000_000))
    });
    let slow: Vec<f64> = slow.collect();
    let slow = (!slow.is_empty()).then(|| Spread::of(slow).median);
    let rows = [
        (
            "p99 of hot reads during the compaction, by Halcyon's idle p99",
            '≤',
            1.25,
            by_idle(HOT_P99),
        ),
        (
            "the same of reads that no core's standing still kept waiting",
            '≤',
            1.25,
            by_idle("undisturbed_p99_us"),
        ),
        ("p99 during it, by that of Cassandra 6's best mode", '≤', 0.2, by(HOT_P99, best)),
        (
            "speed of the compaction, by that of Cassandra 6's fastest mode",
            '≥',
            1.0,
            by("raw_mib_per_second", fastest),
        ),
        ("user reads at the device that take over 2 ms, in per cent", '≤', 0.01, slow),
    ];
    let target = |(what, sign, bound, measured): (&str, char, f64, Option<f64>)| {
        let measured = measured?;
        Some(Target {
            what: format!("Halcyon direct: {what}"),
            to_reach: format!("{sign} {bound}"),
            measured: format!("{measured:.3}"),
            reached: if sign == '≤' { measured <= bound } else { measured >= bound },
        })
    };
    rows.into_iter().filter_map(target).collect()
}

/// What the method says of all turns without a target.
fn computed(record: &Record) -> Vec<(&'static str, String)> {
    let turns: Vec<&Turn> =
        record.turns.iter().filter(|turn| !turn.heading.contains(TARGET)).collect();
    let all = |key: &str| turns.iter().filter_map(|turn| turn.get(key)).collect::<Vec<f64>>();
    let empty = turns
        .iter()
        .filter_map(|turn| Some(turn.get("hot_empty")? / turn.get("hot_count")?.max(1.0)));
    let failed: f64 =
        ["hot_failed", "cold_failed"].map(|key| all(key).iter().sum::<f64>()).iter().sum();
    let full_speed = turns.iter().filter(|turn| turn.heading == Phase::FullSpeed.name());
    let load = Spread::of(full_speed.filter_map(|turn| turn.get("load_before")));
    let first = all("generator_ran_first").iter().all(|first| *first == 1.0);
    let generator = Spread::of(all("generator_cpu_share")).max;
    let inputs = record.beside.get("inputs");
    let input = |name: &str| inputs.and_then(|inputs| inputs[name].as_f64()).unwrap_or(0.0);
    vec![
        ("sstables_made", format!("{}", input("sstables"))),
        ("raw_mib", format!("{:.0}", input("data_bytes") / MIB)),
        ("stored_mib", format!("{:.0}", input("file_bytes") / MIB)),
        ("memory_mib", format!("{:.0}", record.setting("memory") / MIB)),
        ("throttle_mib", THROTTLE_MIB.to_string()),
        ("first", if first { "allowed here" } else { "not allowed here" }.to_owned()),
        ("generator_percent", format!("{:.1}", 100.0 * generator)),
        ("failed", format!("{failed:.0}")),
        ("unanswered", format!("{:.0}", all("unanswered").iter().sum::<f64>())),
        ("empty_percent", format!("{:.2}", 100.0 * Spread::of(empty).max)),
        ("load", format!("{:.1} ({:.1}–{:.1})", load.median, load.min, load.max)),
    ]
}

fn color(who: &Contender) -> RGBColor {
    if who.is_halcyon() { HALCYON } else { OTHER }
}

/// The round whose p99 is the median one, at full speed.
fn typical<'a>(record: &'a Record, who: &'a Contender) -> Option<&'a Turn> {
    let mut turns: Vec<&Turn> = record.rounds(Phase::FullSpeed.name(), who).turns().collect();
    let p99 = |turn: &Turn| turn.get(HOT_P99).unwrap_or(f64::MAX);
    turns.sort_by(|a, b| p99(a).total_cmp(&p99(b)));
    turns.get(turns.len().saturating_sub(1) / 2).copied()
}

fn line(points: &[Point], of: impl Fn(&Point) -> f64, color: RGBColor, width: u32) -> Line {
    let points = points.iter().map(|point| (point.0, of(point) / 1000.0)).collect();
    Line { points, color, width }
}

fn seconds(timelines: &[Vec<Point>]) -> Axis {
    let until = timelines.iter().filter_map(|points| points.last()).map(|point| point.0);
    let from = timelines.iter().filter_map(|points| points.first()).map(|point| point.0);
    let (from, until) = (from.fold(0.0, f64::min), until.fold(1.0, f64::max));
    let step = if until - from > 40.0 { 20.0 } else { 10.0 };
    Axis::linear("seconds since the compaction began", from, until, step, "")
}

/// p99 of hot reads over time, a panel for each contender.
fn timelines(record: &Record) -> Result<String> {
    let contenders = record.contenders(Phase::FullSpeed.name()).into_iter();
    let turns: Vec<&Turn> = contenders.filter_map(|who| typical(record, who)).collect();
    let timelines: Vec<Vec<Point>> = turns.iter().map(|turn| detail(turn, "timeline")).collect();
    let panels = turns.iter().zip(&timelines).map(|(turn, points)| {
        let length = turn.get("seconds").unwrap_or(0.0);
        let p99 = turn.get(HOT_P99).unwrap_or(0.0) / 1000.0;
        Panel {
            title: turn.contender.name(),
            note: format!("p99 {p99:.2} ms, {length:.0} s"),
            shade: Some((0.0, length, COMPACTS)),
            lines: vec![
                line(points, |Point(_, [.., max], _)| *max, SLOWEST, 1),
                line(points, |Point(_, [hot, ..], _)| *hot, color(&turn.contender), 2),
            ],
            ..Panel::default()
        }
    });
    let grid = Grid {
        title: "Read latency during a major compaction (yellow): p99 and, thin, the slowest read of each half second"
            .to_owned(),
        columns: 2,
        size: (380, 130),
        x: seconds(&timelines),
        y: Axis::milliseconds(LEAST, MOST),
        panels: panels.collect(),
    };
    grid.svg()
}

/// As `biolatency` draws: shares of requests by latency, a panel for each purpose (Halcyon) or kind (the device).
fn purposes(record: &Record) -> Result<String> {
    /// A panel of fewer requests says nothing.
    const LEAST_REQUESTS: u64 = 10;
    let mut panels = Vec::new();
    for who in record.contenders(Phase::FullSpeed.name()) {
        let Some(turn) = typical(record, who) else { continue };
        let waits = waits(turn).into_iter().filter(|(_, all)| all.count() >= LEAST_REQUESTS);
        panels.extend(waits.map(|(name, all)| Panel {
            title: format!("{}: {name}", who.name()),
            note: format!("{}, {:.2} % > 2 ms", all.count(), 100.0 * all.share_over(2_000_000)),
            bars: bars(&all, color(who)),
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
    let timelines: Vec<Vec<Point>> = turns.iter().map(|turn| detail(turn, "timeline")).collect();
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
