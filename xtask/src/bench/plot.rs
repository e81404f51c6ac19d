//! The picture: for each compressor a row of bar charts, drawn as SVG.
//!
//! ```text
//!              MiB/s of raw rows      CPU s/GiB        left in cache     peak memory
//!   lz4-4      ██████████┊ ├┤         ██               ▏                 █
//!              ███                    ███████          ██████            ████████
//! ```
//! Whiskers go from the least to the most; dashed lines are the bounds of codec and device.

use std::fmt::Write;

use super::dataset::Codec;
use super::record::{Bounds, Contender, Record, Run, Spread};

const LABELS: f64 = 200.0;
const PANEL: f64 = 270.0;
const BAR_SPACE: f64 = 22.0;
const BAR: f64 = 14.0;
const TOP: f64 = 64.0;
const SECTION_HEAD: f64 = 34.0;
/// Of a panel, for bars; the rest is for the number behind the longest one.
const BARS_SHARE: f64 = 0.68;
const HALCYON: &str = "#0b7285";
const CASSANDRA: &str = "#adb5bd";
const INK: &str = "#212529";

struct Metric {
    title: &'static str,
    of: fn(&Run) -> f64,
    decimals: usize,
    unit: &'static str,
}

const METRICS: [Metric; 4] = [
    Metric { title: "MiB/s of raw rows", of: Run::rate, decimals: 0, unit: "" },
    Metric { title: "CPU seconds per GiB", of: Run::cpu_per_gib, decimals: 2, unit: "" },
    Metric {
        title: "left in the page cache",
        of: |run| 100.0 * run.cached_share().unwrap_or(0.0),
        decimals: 1,
        unit: " %",
    },
    Metric {
        title: "peak memory, MiB",
        of: |run| run.cost.peak_memory as f64 / 1_048_576.0,
        decimals: 0,
        unit: "",
    },
];

type Contenders<'a> = Vec<(Contender, Vec<&'a Run>)>;

pub(super) fn svg(record: &Record) -> String {
    let width = LABELS + PANEL * METRICS.len() as f64 + 20.0;
    let mut body = String::new();
    let mut y = TOP;
    for codec in record.codecs() {
        let contenders = record.contenders(&codec);
        text(&mut body, (10.0, y + 4.0), "start", "bold", &Codec(codec.clone()).title());
        let top = y + SECTION_HEAD - 20.0;
        labels(&mut body, &contenders, top);
        for (i, metric) in METRICS.iter().enumerate() {
            let left = LABELS + PANEL * i as f64;
            let bounds = record.bounds_of(&codec).filter(|_| i == 0);
            panel(&mut body, metric, &contenders, bounds, (left, top));
        }
        y = top + BAR_SPACE * contenders.len() as f64 + SECTION_HEAD;
    }
    for (i, metric) in METRICS.iter().enumerate() {
        text(&mut body, (LABELS + PANEL * i as f64, 44.0), "start", "bold", metric.title);
    }
    text(&mut body, (10.0, 22.0), "start", "bold", "Major compaction, median and spread");
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {y}\" width=\"{width}\" height=\"{y}\" \
         font-family=\"DejaVu Sans, Helvetica, Arial, sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{body}</svg>\n"
    )
}

fn text(to: &mut String, (x, y): (f64, f64), anchor: &str, weight: &str, words: &str) {
    let words = words.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(
        to,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" font-weight=\"{weight}\" fill=\"{INK}\">{words}</text>"
    );
}

fn labels(to: &mut String, contenders: &Contenders<'_>, top: f64) {
    for (i, (contender, _)) in contenders.iter().enumerate() {
        let y = top + BAR_SPACE * (i as f64 + 0.5) + 4.0;
        let name = contender.name().replace("Cassandra ", "C* ");
        text(to, (LABELS - 12.0, y), "end", "normal", &name);
    }
}

fn panel(
    to: &mut String,
    metric: &Metric,
    contenders: &Contenders<'_>,
    bounds: Option<&Bounds>,
    (left, top): (f64, f64),
) {
    let spreads: Vec<Spread> = contenders
        .iter()
        .map(|(_, runs)| Spread::of(runs.iter().map(|run| (metric.of)(run))))
        .collect();
    let longest = spreads.iter().map(|spread| spread.max).fold(1e-9, f64::max);
    // A bound far away is left out rather than let it press the bars flat.
    let lines: Vec<(&str, f64)> = bounds
        .map(|b| vec![("codec", b.codec_rate), ("device", b.device_rate)])
        .unwrap_or_default();
    let lines: Vec<(&str, f64)> =
        lines.into_iter().filter(|(_, rate)| *rate < 2.0 * longest).collect();
    let most = lines.iter().map(|(_, rate)| *rate).fold(longest, f64::max);
    let scale = PANEL * BARS_SHARE / most;
    for (i, ((contender, _), spread)) in contenders.iter().zip(&spreads).enumerate() {
        let middle = top + BAR_SPACE * (i as f64 + 0.5);
        let color = if contender.is_halcyon() { HALCYON } else { CASSANDRA };
        let (length, from, until) =
            (spread.median * scale, left + spread.min * scale, left + spread.max * scale);
        let _ = writeln!(
            to,
            "<rect x=\"{left:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{BAR}\" fill=\"{color}\"/>\n\
             <path d=\"M{from:.1} {middle:.1}H{until:.1}\" stroke=\"{INK}\" stroke-width=\"1.5\"/>",
            middle - BAR / 2.0,
            length.max(0.8),
        );
        let shown = format!("{:.*}{}", metric.decimals, spread.median, metric.unit);
        text(to, (until.max(left + length) + 6.0, middle + 4.0), "start", "normal", &shown);
    }
    let bottom = top + BAR_SPACE * contenders.len() as f64;
    for (name, rate) in lines {
        let x = left + rate * scale;
        let _ = writeln!(
            to,
            "<path d=\"M{x:.1} {top:.1}V{bottom:.1}\" stroke=\"#c92a2a\" stroke-dasharray=\"4 3\"/>"
        );
        text(to, (x + 3.0, bottom + 9.0), "middle", "normal", name);
    }
}
