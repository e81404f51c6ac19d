//! The page: latency by kind of request, and the disk; both over time, a panel for each server.

use halcyon_oracle::Result;
use plotters::style::RGBColor;
use serde_json::json;

use super::look::{DISK, Look};
use super::tables::{CLASSES, statements_of_tables};
use crate::page::Page;
use crate::plot::{Axis, Grid, HALCYON, Line, OTHER, Panel};
use crate::record::{Record, Target, Turn};

const MIB: f64 = 1_048_576.0;

/// Receive, poll, search.
const DRAWN: [(usize, &str, RGBColor); 3] = [
    (0, "blue", HALCYON),
    (1, "orange", RGBColor(232, 89, 12)),
    (6, "violet", RGBColor(95, 61, 196)),
];

pub(super) fn page(record: &Record) -> Result<Page> {
    let tables = statements_of_tables(record.setting("window") as u64);
    Ok(Page {
        template: include_str!("../../E6/page.md"),
        targets: targets(record),
        names: json!({ "classes": CLASSES, "tables": tables }),
        plots: [("plot.svg".to_owned(), latency(record)?), ("disk.svg".to_owned(), disk(record)?)]
            .into(),
    })
}

fn targets(record: &Record) -> Vec<Target> {
    const FLAT: f64 = 1.25;
    let ours = record.contenders(DISK).into_iter().find(|who| who.is_halcyon());
    let Some(ours) = ours else { return Vec::new() };
    let drift = |class: &&'static str| {
        let of = |key| record.median(class, ours, key);
        Some((*class, of("last_p99_us")? / of("first_p99_us")?))
    };
    let worst = CLASSES.iter().filter_map(drift).max_by(|a, b| a.1.total_cmp(&b.1));
    let (class, ratio) = worst.unwrap_or(("nothing", f64::NAN));
    let growth = record.median(DISK, ours, "growth").unwrap_or(f64::NAN);
    let flat = |what: &str, measured: String, ratio: f64| {
        Target::new(format!("Halcyon: {what}"), format!("≤ {FLAT}"), measured, ratio <= FLAT)
    };
    let what = "p99 of the last third by that of the first, of the worst kind of request";
    let on_disk = "most disk of the messages in the last third by that in the middle one";
    vec![
        flat(what, format!("{ratio:.2} ({class})"), ratio),
        flat(on_disk, format!("{growth:.2}"), growth),
    ]
}

/// What was seen on disk, of each server.
fn courses(record: &Record) -> Vec<&Turn> {
    record.turns.iter().filter(|turn| turn.heading == DISK).collect()
}

fn grid(title: String, record: &Record, y: Axis, panels: Vec<Panel>) -> Result<String> {
    let minutes = courses(record).into_iter().map(|turn| turn.detail::<f64>("seconds") / 60.0);
    let until = minutes.fold(0.01, f64::max);
    let x = Axis::linear("minutes", 0.0, until, (until / 5.0).max(0.01), "");
    let columns = panels.len().max(1);
    Grid { title, columns, size: (380, 220), x, y, panels }.svg()
}

fn latency(record: &Record) -> Result<String> {
    let mut panels = Vec::new();
    for course in courses(record) {
        let line = |(class, _, color): (usize, &str, RGBColor)| {
            let turn = record.rounds(CLASSES.get(class)?, &course.contender).turns().next()?;
            let step = turn.detail::<f64>("slice_seconds") / 60.0;
            let p99: Vec<f64> = turn.detail("p99_us");
            let points = p99.iter().enumerate();
            let points = points.map(|(n, us)| ((n as f64 + 0.5) * step, us / 1000.0)).collect();
            Some(Line { points, color, width: 2 })
        };
        let lines = DRAWN.into_iter().filter_map(line).collect();
        panels.push(Panel { title: course.contender.name(), lines, ..Panel::default() });
    }
    let names: Vec<String> = DRAWN
        .iter()
        .filter_map(|(class, color, _)| Some(format!("{} {color}", CLASSES.get(*class)?)))
        .collect();
    let title = format!("p99 over time: {}", names.join(", "));
    grid(title, record, Axis::milliseconds(0.1, 1000.0), panels)
}

fn disk(record: &Record) -> Result<String> {
    let looks = |turn: &Turn| turn.detail::<Vec<Look>>("looks");
    let all: Vec<Look> = courses(record).into_iter().flat_map(looks).collect();
    let most = all.iter().map(|look| look.messages_bytes.max(look.log_bytes)).max().unwrap_or(0);
    let most = (most as f64 / MIB).max(1.0);
    let panels = courses(record).into_iter().map(|turn| {
        let looks = looks(turn);
        let line = |of: fn(&Look) -> u64, color| {
            let points = looks.iter().map(|look| (look.seconds / 60.0, of(look) as f64 / MIB));
            Line { points: points.collect(), color, width: 2 }
        };
        Panel {
            title: turn.contender.name(),
            lines: vec![
                line(|look| look.messages_bytes, HALCYON),
                line(|look| look.log_bytes, OTHER),
            ],
            ..Panel::default()
        }
    });
    let panels = panels.collect();
    let axis = Axis::linear("", 0.0, most, (most / 5.0).ceil(), " MiB");
    grid("On disk: messages (blue), log (grey)".to_owned(), record, axis, panels)
}
