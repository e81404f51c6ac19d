//! Latency over time, step by step: measured, kept in a record, drawn.

use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use halcyon_oracle::Result;
use plotters::style::RGBColor;
use serde::{Deserialize, Serialize};

use crate::keys::COLD;
use crate::latency::{Latencies, Sample};
use crate::machine::Device;
use crate::plot::{Axis, Grid, Line, Panel, color_of};
use crate::record::{Contender, Record, Turn};

const MIB: f64 = 1_048_576.0;
const COMPACTS: RGBColor = RGBColor(255, 243, 191);
const SLOWEST: RGBColor = RGBColor(206, 212, 218);
/// Of the axis, in ms.
pub(crate) const LEAST: f64 = 0.1;
pub(crate) const MOST: f64 = 1000.0;
/// By which a turn is typical.
const HOT_P99: &str = "hot_p99_us";

/// One step of a timeline.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Point(
    /// Seconds since the compaction's begin.
    pub(crate) f64,
    /// p99 of hot, of cold and of all reads, and the slowest: µs.
    pub(crate) [f64; 4],
    /// Read and written at the device, MiB per second.
    pub(crate) f64,
);

/// `moved`: what went through the device, by the meter; `zero`: when the compaction began.
pub(crate) fn points(
    samples: &[Sample],
    moved: &Moved,
    step: Duration,
    zero: Duration,
) -> Vec<Point> {
    let rounded = |value: f64| (value * 10.0).round() / 10.0;
    let number = |at: Duration| (at.as_nanos() / step.as_nanos().max(1)) as usize;
    let count = samples.last().map_or(0, |sample| number(sample.due));
    let mut steps: Vec<[Vec<u64>; 2]> = vec![Default::default(); count];
    for sample in samples {
        if let Some(nanos) = steps.get_mut(number(sample.due)) {
            nanos[usize::from(sample.class == COLD)].push(sample.nanos);
        }
    }
    let mut found = Vec::new();
    for (number, [hot, cold]) in steps.into_iter().enumerate() {
        let at = (step * number as u32).as_secs_f64();
        let all = Latencies::of([hot.as_slice(), cold.as_slice()].concat());
        let (hot, cold) = (Latencies::of(hot), Latencies::of(cold));
        let device = moved.iter().rev().find(|(moment, _)| moment.as_secs_f64() <= at + 1e-6);
        let at = ((at - zero.as_secs_f64()) * 100.0).round() / 100.0;
        let reads = [hot.p99, cold.p99, all.p99, all.max].map(rounded);
        found.push(Point(at, reads, rounded(device.map_or(0.0, |(_, rate)| *rate))));
    }
    found
}

/// The slowest request of each step of a stretch, in ms.
pub(crate) fn slowest(
    samples: &[&Sample],
    from: Duration,
    seconds: f64,
    step: Duration,
) -> Vec<f64> {
    let steps = (seconds / step.as_secs_f64()).ceil() as usize;
    let mut slowest = vec![0.0_f64; steps];
    for sample in samples {
        let number = sample.due.saturating_sub(from).as_nanos() / step.as_nanos().max(1);
        if let Some(worst) = slowest.get_mut(number as usize) {
            *worst = worst.max((sample.nanos as f64 / 1e4).round() / 100.0);
        }
    }
    slowest
}

/// MiB per second through the device, by the beginning of a step on the clock of a loop.
pub(crate) type Moved = Vec<(Duration, f64)>;

/// What goes through the device, step by step.
pub(crate) struct Meter {
    stop: Sender<()>,
    reading: JoinHandle<Vec<(Instant, f64)>>,
}

impl Meter {
    pub(crate) fn start(folder: &Path, step: Duration) -> Result<Meter> {
        let device = Device::of(folder)?;
        let (stop, stopped) = channel::<()>();
        let reading = std::thread::spawn(move || {
            let (mut rates, mut before) = (Vec::new(), device.counters());
            let mut at = Instant::now();
            while stopped.recv_timeout(step) == Err(RecvTimeoutError::Timeout) {
                let counters = device.counters();
                let moved = counters.since(&before);
                let bytes = moved.of("device_bytes_read") + moved.of("device_bytes_written");
                let mib = bytes as f64 / MIB;
                rates.push((at, mib / at.elapsed().as_secs_f64()));
                before = counters;
                at = Instant::now();
            }
            rates
        });
        Ok(Meter { stop, reading })
    }

    /// By the time since `start`.
    pub(crate) fn stop(self, start: Instant) -> Result<Moved> {
        let _ = self.stop.send(());
        let rates = self.reading.join().map_err(|_| "the meter panicked")?;
        Ok(rates
            .into_iter()
            .map(|(at, rate)| (at.saturating_duration_since(start), rate))
            .collect())
    }
}

/// The round whose p99 is the median one.
pub(crate) fn typical<'a>(record: &'a Record, heading: &str, who: &Contender) -> Option<&'a Turn> {
    let is_round = |turn: &&Turn| turn.heading == heading && turn.contender == *who;
    let mut turns: Vec<&Turn> = record.turns.iter().filter(is_round).collect();
    let p99 = |turn: &Turn| turn.get(HOT_P99).unwrap_or(f64::MAX);
    turns.sort_by(|a, b| p99(a).total_cmp(&p99(b)));
    turns.get(turns.len().saturating_sub(1) / 2).copied()
}

pub(crate) fn line(
    points: &[Point],
    of: impl Fn(&Point) -> f64,
    color: RGBColor,
    width: u32,
) -> Line {
    let points = points.iter().map(|point| (point.0, of(point) / 1000.0)).collect();
    Line { points, color, width }
}

pub(crate) fn seconds(timelines: &[Vec<Point>]) -> Axis {
    let until = timelines.iter().filter_map(|points| points.last()).map(|point| point.0);
    let from = timelines.iter().filter_map(|points| points.first()).map(|point| point.0);
    let (from, until) = (from.fold(0.0, f64::min), until.fold(1.0, f64::max));
    let step = if until - from > 40.0 { 20.0 } else { 10.0 };
    Axis::linear("seconds since the compaction began", from, until, step, "")
}

/// How many panels stand side by side, and how large they are.
pub(crate) enum Layout {
    /// All contenders of an experiment.
    Page,
    /// A few, below each other: readable on a phone.
    Narrow,
}

/// p99 of hot reads over time, a panel for each turn, under its title.
pub(crate) fn drawn(turns: &[(String, &Turn)], layout: &Layout) -> Result<String> {
    let timelines: Vec<Vec<Point>> =
        turns.iter().map(|(_, turn)| turn.detail("timeline")).collect();
    let panels = turns.iter().zip(&timelines).map(|((title, turn), points)| {
        // A turn's stretch may be longer than its compaction.
        let length = turn.get("compaction_seconds").or(turn.get("seconds")).unwrap_or(0.0);
        let p99 = turn.get(HOT_P99).unwrap_or(0.0) / 1000.0;
        Panel {
            title: title.clone(),
            note: format!("p99 {p99:.2} ms, {length:.0} s"),
            shades: vec![(0.0, length, COMPACTS)],
            lines: vec![
                line(points, |Point(_, [.., max], _)| *max, SLOWEST, 1),
                line(points, |Point(_, [hot, ..], _)| *hot, color_of(&turn.contender), 2),
            ],
            ..Panel::default()
        }
    });
    let (title, columns, size) = match layout {
        Layout::Page => (
            "Read latency during a major compaction (yellow): p99 and, thin, the slowest read of each half second",
            2,
            (380, 130),
        ),
        Layout::Narrow => ("Reads beside a compaction: p99; thin: slowest", 1, (290, 120)),
    };
    let grid = Grid {
        title: title.to_owned(),
        columns,
        size,
        x: seconds(&timelines),
        y: Axis::milliseconds(LEAST, MOST),
        panels: panels.collect(),
    };
    grid.svg()
}
