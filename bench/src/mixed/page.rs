//! The page: latencies of reads and inserts, stalls by cause, the slowest request over time.

use std::time::Duration;

use halcyon_oracle::Result;
use plotters::style::RGBColor;
use serde_json::json;

use crate::latency::LONG;
use crate::page::Page;
use crate::plot::{Axis, Grid, HALCYON, Line, Panel};
use crate::record::{Contender, Record, Spread, Target};

/// The one heading.
pub(super) const MIXED: &str = "mixed";
/// Of the plot.
pub(super) const STEP: Duration = Duration::from_millis(250);
const INSERTS: RGBColor = RGBColor(232, 89, 12);

pub(super) fn page(record: &mut Record) -> Result<Page> {
    let turns = || record.turns.iter();
    let all = |key: &'static str| turns().filter_map(move |turn| turn.get(key));
    let failed = ["read_failed", "insert_failed", "unanswered"].map(|key| all(key).sum::<f64>());
    let names = json!({
        "failed": failed.iter().sum::<f64>(),
        "ran_first": all("generator_ran_first").all(|first| first == 1.0),
        "load": Spread::of(all("load")).max,
    });
    let plots = [("slowest.svg".to_owned(), slowest(record)?)].into();
    let template = include_str!("../../mixed/page.md");
    Ok(Page { template, targets: targets(record), names, plots })
}

fn ours(record: &Record) -> Option<&Contender> {
    record.contenders(MIXED).into_iter().find(|who| who.is_halcyon())
}

/// Of all turns together.
fn targets(record: &Record) -> Vec<Target> {
    let Some(ours) = ours(record) else { return Vec::new() };
    let rounds = record.rounds(MIXED, ours);
    let slowest = |key| rounds.spread(key).map(|spread| spread.max / 1000.0);
    let most = LONG.as_millis();
    let rows = [
        ("slowest read of a hot row", slowest("read_max_us")),
        ("slowest insert", slowest("insert_max_us")),
    ];
    let targets = rows.into_iter().filter_map(|(what, measured)| {
        let measured = measured?;
        let is_reached = measured <= most as f64;
        let measured = format!("{measured:.1} ms");
        Some(Target::new(format!("Halcyon: {what}"), format!("≤ {most} ms"), measured, is_reached))
    });
    targets.collect()
}

/// A panel for each turn.
fn slowest(record: &Record) -> Result<String> {
    let step = STEP.as_secs_f64();
    let line = |slowest: Vec<f64>, color| {
        let points = slowest.into_iter().enumerate();
        let points = points.map(|(n, ms)| (n as f64 * step, ms.max(0.01)));
        Line { points: points.collect(), color, width: 1 }
    };
    let panels = record.turns.iter().map(|turn| Panel {
        title: turn.contender.name(),
        note: format!("p99.9 of reads {:.2} ms", turn.get("read_p99.9_us").unwrap_or(0.0) / 1000.0),
        lines: vec![line(turn.detail("inserts"), INSERTS), line(turn.detail("reads"), HALCYON)],
        ..Panel::default()
    });
    let seconds = record.setting("seconds");
    let grid = Grid {
        title: "The slowest of each quarter of a second: read of a hot row (blue), insert (orange)"
            .to_owned(),
        columns: 2,
        size: (380, 130),
        x: Axis::linear("seconds", 0.0, seconds.max(1.0), (seconds / 6.0).max(0.5), ""),
        y: Axis::milliseconds(0.1, 1000.0),
        panels: panels.collect(),
    };
    grid.svg()
}
