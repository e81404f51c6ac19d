//! The page: latency by kind of request, and the disk; both over time, a panel for each server.

use plotters::style::RGBColor;
use serde::de::DeserializeOwned;

use super::tables::{CLASSES, statements_of_tables};
use super::{DISK, Look, MIB};
use crate::Result;
use crate::page::{Column, Page, table};
use crate::plot::{Axis, Grid, HALCYON, Line, OTHER, Panel};
use crate::record::{Record, Target, Turn};

const COLUMNS: &[Column] = &[
    Column::new("p50 µs", "p50_us", 0),
    Column::new("p99 µs", "p99_us", 0),
    Column::new("p99.9 µs", "p99.9_us", 0),
    Column::new("max µs", "max_us", 0),
    Column::new("p99 of the first third", "first_p99_us", 0),
    Column::new("of the last", "last_p99_us", 0),
];

const ON_DISK: &[Column] = &[
    Column::new("received MiB", "received_bytes", 0).times(1.0 / MIB),
    Column::new("messages on disk MiB, most", "messages_bytes_at_most", 1).times(1.0 / MIB),
    Column::new("at the end", "messages_bytes_at_the_end", 1).times(1.0 / MIB),
    Column::new("log on disk MiB at the end", "log_bytes_at_the_end", 1).times(1.0 / MIB),
    Column::new("tombstones a read, median", "tombstones_per_read_p50", 0),
    Column::new("p99", "tombstones_per_read_p99", 0),
];

/// Receive, poll, search.
const DRAWN: [(usize, &str, RGBColor); 3] = [
    (0, "blue", HALCYON),
    (1, "orange", RGBColor(232, 89, 12)),
    (6, "violet", RGBColor(95, 61, 196)),
];

pub(crate) fn page(record: &Record) -> Result<Page> {
    let disk = disk(record)?;
    let [_, messages, log] = statements_of_tables(record.setting("window") as u64);
    let rows = CLASSES.map(|class| (class, class));
    Ok(Page {
        title: "E6: a message store",
        targets: targets(record),
        sections: vec![
            format!("## Latency by kind of request\n\n{}", table(record, Some(""), rows, COLUMNS)),
            format!(
                "## On disk\n\n![Disk over time](disk.svg)\n\n{}",
                table(record, None, [(DISK, "")], ON_DISK)
            ),
            format!("## The tables\n\n```sql\n{messages};\n{log};\n```"),
        ],
        method: include_str!("../../E6/method.md"),
        computed: Vec::new(),
        plots: vec![("plot.svg", latency(record)?), ("disk.svg", disk)],
    })
}

fn targets(record: &Record) -> Vec<Target> {
    const FLAT: f64 = 1.25;
    let ours = record.contenders(DISK).into_iter().find(|who| who.is_halcyon());
    let Some(ours) = ours else { return Vec::new() };
    let drift = |class: &'static str| {
        let of = |key| record.median(class, ours, key);
        Some((class, of("last_p99_us")? / of("first_p99_us")?))
    };
    let drifts = CLASSES.iter().filter_map(|class| drift(class));
    let worst = drifts.max_by(|a, b| a.1.total_cmp(&b.1));
    let (class, ratio) = worst.unwrap_or(("nothing", f64::NAN));
    let growth = record.median(DISK, ours, "growth").unwrap_or(f64::NAN);
    let target = |what: &str, measured: String, reached| Target {
        what: format!("Halcyon: {what}"),
        to_reach: format!("≤ {FLAT}"),
        measured,
        reached,
    };
    vec![
        target(
            "p99 of the last third by that of the first, of the worst kind of request",
            format!("{ratio:.2} ({class})"),
            ratio <= FLAT,
        ),
        target(
            "most disk of the messages in the last third by that in the middle one",
            format!("{growth:.2}"),
            growth <= FLAT,
        ),
    ]
}

fn detail<T: DeserializeOwned + Default>(turn: &Turn, name: &str) -> T {
    serde_json::from_value(turn.details[name].clone()).unwrap_or_default()
}

/// What was seen on disk, of each server.
fn courses(record: &Record) -> Vec<&Turn> {
    record.turns.iter().filter(|turn| turn.heading == DISK).collect()
}

fn grid(title: String, record: &Record, y: Axis, panels: Vec<Panel>) -> Result<String> {
    let minutes = courses(record).into_iter().map(|turn| detail::<f64>(turn, "seconds") / 60.0);
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
            let step = detail::<f64>(turn, "slice_seconds") / 60.0;
            let p99: Vec<f64> = detail(turn, "p99_us");
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
    let looks = |turn: &Turn| detail::<Vec<Look>>(turn, "looks");
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
