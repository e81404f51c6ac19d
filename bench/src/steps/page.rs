//! The page: each step beside the same one at rest, each ingestion, and both over time.

use halcyon_oracle::Result;
use plotters::style::RGBColor;
use serde_json::json;

use super::pace::Look;
use crate::page::Page;
use crate::plot::{Axis, Grid, HALCYON, Line, OTHER, Panel};
use crate::record::{Contender, Record, Spread, Target, Turn};

pub(super) const AT_REST: &str = "at rest";
pub(super) const COMPACTING: &str = "compacting";
/// Of the plots, in seconds.
pub(super) const STEP: f64 = 0.5;
const RATE: RGBColor = RGBColor(232, 89, 12);
/// What compaction may make of the p99 of reads.
const MOST: f64 = 1.25;

pub(super) fn page(record: &mut Record) -> Result<Page> {
    record.derive("times_rest", |rounds| {
        let rest = Contender::new("halcyon", AT_REST);
        let rest = rounds.median("rest_read_p99_us").or(rounds.of(&rest).median("read_p99_us"));
        Some(rounds.median("read_p99_us")? / rest.filter(|rest| *rest > 0.0)?)
    });
    let turns = || record.turns.iter();
    let all = |key: &'static str| turns().filter_map(move |turn| turn.get(key));
    let failed = ["read_failed", "insert_failed", "unanswered"].map(|key| all(key).sum::<f64>());
    let (steps, ingestions): (Vec<&str>, Vec<&str>) =
        record.headings().into_iter().partition(|heading| heading.starts_with("step "));
    let names = json!({
        "steps": steps,
        "ingestions": ingestions,
        "failed": failed.iter().sum::<f64>(),
        "ran_first": all("generator_ran_first").all(|first| first == 1.0),
        "load": Spread::of(all("load")).max,
    });
    let mut plots = vec![("steps.svg".to_owned(), steps_plot(record)?)];
    if !ingestions.is_empty() {
        plots.push(("ingestion.svg".to_owned(), ingestion_plot(record, &ingestions)?));
    }
    let template = include_str!("../../steps/page.md");
    Ok(Page { template, targets: targets(record), names, plots: plots.into_iter().collect() })
}

fn targets(record: &Record) -> Vec<Target> {
    let compared = record.turns.iter().filter(|turn| turn.contender.mode != AT_REST);
    let targets = compared.filter_map(|turn| {
        let times = turn.get("times_rest")?;
        let what = format!("{}: p99 of reads, of the same without compaction", turn.heading);
        let measured = format!("{times:.2} ×");
        Some(Target::new(what, format!("≤ {MOST} ×"), measured, times <= MOST))
    });
    targets.collect()
}

/// Half-seconds of milliseconds, behind each other.
fn milliseconds(turns: &[&Turn], step_seconds: f64) -> Vec<(f64, f64)> {
    let mut points = Vec::new();
    for (number, turn) in turns.iter().enumerate() {
        let p99: Vec<f64> = turn.detail("p99");
        let begin = number as f64 * step_seconds;
        let of_step = p99.into_iter().enumerate();
        points.extend(of_step.map(|(n, micros)| (begin + n as f64 * STEP, micros / 1000.0)));
    }
    points
}

/// What compaction may take, in GiB a second: the numbers of an axis of milliseconds serve for both.
fn rates(turns: &[&Turn], step_seconds: f64) -> Vec<(f64, f64)> {
    let mut points = Vec::new();
    for (number, turn) in turns.iter().enumerate() {
        let looks: Vec<Look> = turn.detail("looks");
        let begin = number as f64 * step_seconds;
        points.extend(looks.iter().map(|look| (begin + look.seconds, look.rate / 1024.0)));
    }
    points
}

fn grid(title: &str, seconds: f64, panels: Vec<Panel>) -> Result<String> {
    let grid = Grid {
        title: title.to_owned(),
        columns: 1,
        size: (720, 130),
        x: Axis::linear("seconds", 0.0, seconds.max(1.0), (seconds / 6.0).max(0.5), ""),
        y: Axis { ticks: ticks(), ..Axis::milliseconds(0.01, 10.0) },
        panels,
    };
    grid.svg()
}

fn ticks() -> Vec<(f64, String)> {
    let ticks = [(0.01, "10 µs"), (0.1, "0.1 ms"), (1.0, "1 ms"), (10.0, "10 ms")];
    ticks.map(|(at, text)| (at, text.to_owned())).to_vec()
}

fn steps_plot(record: &Record) -> Result<String> {
    let seconds = record.setting("seconds");
    let of = |mode: &str| -> Vec<&Turn> {
        let is_step = |turn: &&Turn| turn.heading.starts_with("step ");
        record.turns.iter().filter(is_step).filter(|turn| turn.contender.mode == mode).collect()
    };
    let line = |points, color| Line { points, color, width: 1 };
    let (rest, compacting) = (of(AT_REST), of(COMPACTING));
    let panel = |title: &str, lines| Panel { title: title.to_owned(), lines, ..Panel::default() };
    let panels = vec![
        panel(
            "p99 of each half second: at rest (grey), compacting (blue)",
            vec![
                line(milliseconds(&rest, seconds), OTHER),
                line(milliseconds(&compacting, seconds), HALCYON),
            ],
        ),
        panel(
            "what compaction may take (1 ms: 1 GiB/s)",
            vec![line(rates(&compacting, seconds), RATE)],
        ),
    ];
    let total = seconds * compacting.len() as f64;
    grid("Reads that come in steps, and what is left for compaction", total, panels)
}

fn ingestion_plot(record: &Record, ingestions: &[&str]) -> Result<String> {
    let mut panels = Vec::new();
    for heading in ingestions {
        let turns: Vec<&Turn> =
            record.turns.iter().filter(|turn| turn.heading == *heading).take(1).collect();
        panels.push(Panel {
            title: format!("{heading}: p99 of reads (blue), rate of compaction (orange)"),
            lines: vec![
                Line { points: milliseconds(&turns, 0.0), color: HALCYON, width: 1 },
                Line { points: rates(&turns, 0.0), color: RATE, width: 1 },
            ],
            ..Panel::default()
        });
    }
    grid("Ingestion (1 ms: 1 GiB/s)", record.setting("ingests"), panels)
}
