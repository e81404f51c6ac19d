//! The pictures: latency over time by kind of request, and the disk over time; a panel for each server.

use super::tables::CLASSES;
use super::{Course, MIB, SLICES};
use crate::panels::{Axis, Grid, Line, Panel};

/// Receive, poll, search.
const DRAWN: [(usize, &str); 3] = [(0, "#0b7285"), (1, "#e8590c"), (6, "#5f3dc4")];
const MESSAGES: &str = "#0b7285";
const LOG: &str = "#adb5bd";

fn minutes(courses: &[Course]) -> Axis {
    let until = courses.iter().map(|course| course.seconds / 60.0).fold(0.01, f64::max);
    Axis::linear("minutes", 0.0, until, (until / 5.0).max(0.01), "")
}

fn grid(title: String, courses: &[Course], y: Axis, panels: Vec<Panel>) -> String {
    let columns = panels.len().max(1);
    Grid { title, columns, size: (380.0, 220.0), x: minutes(courses), y, panels }.svg()
}

pub(super) fn latency(courses: &[Course]) -> String {
    let panels = courses.iter().map(|course| {
        let line = |(class, color): &(usize, &'static str)| {
            let step = course.seconds / 60.0 / SLICES as f64;
            let p99 = course.p99.get(*class).into_iter().flatten();
            let points = p99.enumerate().map(|(n, us)| ((n as f64 + 0.5) * step, us / 1000.0));
            Line { points: points.collect(), color, width: 1.5 }
        };
        Panel {
            title: course.contender.name(),
            lines: DRAWN.iter().map(line).collect(),
            ..Panel::default()
        }
    });
    let names: Vec<&str> =
        DRAWN.iter().filter_map(|(class, _)| CLASSES.get(*class).copied()).collect();
    let title = format!("p99 over time: {} (blue, orange, violet)", names.join(", "));
    grid(title, courses, Axis::milliseconds(0.1, 1000.0), panels.collect())
}

pub(super) fn disk(courses: &[Course]) -> String {
    let most = courses.iter().flat_map(|course| &course.looks);
    let most = most.map(|look| look.messages_bytes.max(look.log_bytes)).max().unwrap_or(0) as f64;
    let most = (most / MIB).max(1.0);
    let panels = courses.iter().map(|course| {
        let line = |of: fn(&super::Look) -> u64, color| {
            let points = course.looks.iter().map(|look| (look.at / 60.0, of(look) as f64 / MIB));
            Line { points: points.collect(), color, width: 1.5 }
        };
        Panel {
            title: course.contender.name(),
            lines: vec![
                line(|look| look.messages_bytes, MESSAGES),
                line(|look| look.log_bytes, LOG),
            ],
            ..Panel::default()
        }
    });
    let axis = Axis::linear("", 0.0, most, (most / 5.0).ceil(), " MiB");
    grid("On disk: messages (blue), log (grey)".to_owned(), courses, axis, panels.collect())
}
