//! The pictures: latency over time, latency by purpose, and targets that were held.

use super::record::{Held, Record};
use super::turn::{Phase, Point, Turn};
use crate::contender::{Contender, Spread};
use crate::histogram::Histogram;
use crate::panels::{Axis, Grid, Line, Panel};

const HALCYON: &str = "#0b7285";
const CASSANDRA: &str = "#868e96";
const COMPACTS: &str = "#fff3bf";
const DEVICE: &str = "#d0ebff";
/// Of the axis, in ms.
const LEAST: f64 = 0.1;
const MOST: f64 = 1000.0;
/// Of the bars, in nanoseconds.
const FIRST_BUCKET: u64 = 1 << 13;
const LAST_BUCKET: u64 = 1 << 27;

fn color(contender: &Contender) -> &'static str {
    if contender.is_halcyon() { HALCYON } else { CASSANDRA }
}

/// The turn that is nearest to the median of its contender's p99.
fn typical<'a>(turns: &[&'a Turn]) -> Option<&'a Turn> {
    let p99 = |turn: &Turn| {
        turn.of(Phase::FullSpeed).map_or(f64::MAX, |stretch| stretch.hot.latencies.p99)
    };
    let mut sorted = turns.to_vec();
    sorted.sort_by(|a, b| p99(a).total_cmp(&p99(b)));
    sorted.get(sorted.len().saturating_sub(1) / 2).copied()
}

fn line(points: &[Point], of: impl Fn(&Point) -> f64, color: &'static str, width: f64) -> Line {
    let points = points.iter().map(|point| (point.at, of(point) / 1000.0)).collect();
    Line { points, color, width }
}

fn seconds(turns: &[&Turn]) -> Axis {
    let last = |turn: &&Turn| turn.timeline.last().map_or(0.0, |point| point.at);
    let first = |turn: &&Turn| turn.timeline.first().map_or(0.0, |point| point.at);
    let until = turns.iter().map(last).fold(1.0, f64::max);
    let from = turns.iter().map(first).fold(0.0, f64::min);
    let step = if until - from > 40.0 { 20.0 } else { 10.0 };
    Axis::linear("seconds since the compaction began", from, until, step, "")
}

/// The one picture: p99 of hot reads over time, a panel for each contender.
pub(super) fn timelines(record: &Record) -> String {
    let contenders = record.contenders();
    let turns: Vec<&Turn> = contenders.iter().filter_map(|(_, turns)| typical(turns)).collect();
    let panels = turns.iter().map(|turn| {
        let stretch = turn.of(Phase::FullSpeed);
        let length = stretch.map_or(0.0, |stretch| stretch.seconds);
        let p99 = stretch.map_or(0.0, |stretch| stretch.hot.latencies.p99 / 1000.0);
        let color = color(&turn.contender);
        Panel {
            title: turn.contender.name(),
            note: format!("p99 {p99:.2} ms, {length:.0} s"),
            shades: vec![(0.0, length, COMPACTS)],
            lines: vec![
                line(&turn.timeline, |point| point.max, "#ced4da", 1.0),
                line(&turn.timeline, |point| point.hot_p99, color, 2.5),
            ],
            ..Panel::default()
        }
    });
    let panels = panels.collect();
    Grid {
        title: "Read latency while a major compaction runs (yellow): p99 and, thin, the slowest read of each half second"
            .to_owned(),
        columns: 2,
        size: (380.0, 130.0),
        x: seconds(&turns),
        y: Axis::milliseconds(LEAST, MOST),
        panels,
    }
    .svg()
}

/// As biolatency draws: shares of requests by latency, a panel for each purpose (Halcyon) or kind (the device).
pub(super) fn purposes(record: &Record) -> String {
    let mut panels = Vec::new();
    for (contender, turns) in record.contenders() {
        let Some(stretch) = typical(&turns).and_then(|turn| turn.of(Phase::FullSpeed)) else {
            continue;
        };
        let of_device = stretch.measured.device.iter();
        let of_device = of_device.map(|(kind, counted)| (format!("device {kind}"), counted));
        let own = stretch.measured.purposes.iter();
        let own = own.map(|(purpose, counted)| (purpose.clone(), counted));
        for (name, counted) in own.chain(of_device).filter(|(_, counted)| counted.count() > 9) {
            let title = format!("{}: {name}", contender.name());
            panels.push(bars(title, counted, color(&contender)));
        }
    }
    let ticks = [(14, "16 µs"), (17, "131 µs"), (20, "1 ms"), (23, "8 ms"), (26, "67 ms")];
    Grid {
        title: "Each request at the device during the major compaction, by latency".to_owned(),
        columns: 3,
        size: (250.0, 90.0),
        x: Axis {
            title: String::new(),
            is_log: false,
            from: 13.0,
            until: 28.0,
            ticks: ticks.map(|(at, name)| (f64::from(at), name.to_owned())).to_vec(),
        },
        y: Axis::linear("", 0.0, 100.0, 50.0, " %"),
        panels,
    }
    .svg()
}

fn bars(title: String, counted: &Histogram, color: &'static str) -> Panel {
    let shares = counted.shares(FIRST_BUCKET, LAST_BUCKET);
    let first = f64::from(FIRST_BUCKET.ilog2());
    let bars = shares.into_iter().enumerate().filter(|(_, share)| *share > 0.0);
    let bars = bars.map(|(number, share)| {
        let at = first + number as f64;
        (at, at + 1.0, 100.0 * share, color)
    });
    Panel {
        title,
        note: format!("{}, {:.2} % > 2 ms", counted.count(), 100.0 * counted.share_over(2_000_000)),
        bars: bars.collect(),
        ..Panel::default()
    }
}

/// p99 of all reads over time against the target, and below it what goes through the device.
pub(super) fn targets(held: &[Held]) -> String {
    let turns: Vec<&Turn> = held.iter().map(|held| &held.turn).collect();
    let most = turns.iter().flat_map(|turn| &turn.timeline).map(|point| point.device);
    let most = most.fold(1.0, f64::max);
    // The device's bars take the lower half of the axis, which is logarithmic.
    let height = |rate: f64| LEAST * (MOST / LEAST).powf(0.5 * rate / most);
    let panels = held.iter().map(|Held { turn, target_ms, above_ms, .. }| {
        let compacts = turn.of(Phase::FullSpeed);
        let length = compacts.map_or(0.0, |stretch| stretch.seconds);
        let steps = turn.timeline.windows(2);
        let rates = turn.timeline.iter().filter(|point| (0.0..length).contains(&point.at));
        let rate = Spread::of(rates.map(|point| point.device)).median;
        Panel {
            title: format!("idle + {above_ms} ms: target {target_ms:.2} ms"),
            note: format!("{length:.0} s, {rate:.0} MiB/s at the device"),
            bars: steps
                .map(|pair| (pair[0].at, pair[1].at + 0.01, height(pair[0].device), DEVICE))
                .collect(),
            lines: vec![line(&turn.timeline, |point| point.all_p99, HALCYON, 2.0)],
            rules: vec![(*target_ms, format!("target {target_ms:.2} ms"))],
            ..Panel::default()
        }
    });
    let panels = panels.collect();
    Grid {
        title: "Latency targets: p99 of all reads (line), what goes through the device (bars)"
            .to_owned(),
        columns: 1,
        size: (800.0, 150.0),
        x: seconds(&turns),
        y: Axis::milliseconds(LEAST, MOST),
        panels,
    }
    .svg()
}
