//! The page: a table for each chore, and the slowest read over time for each turn.

use halcyon_oracle::Result;
use plotters::style::RGBColor;
use serde_json::json;

use super::stretch::{STEP, Timeline};
use crate::latency::LONG;
use crate::page::Page;
use crate::plot::{Axis, Grid, HALCYON, Line, OTHER, Panel};
use crate::record::{Contender, Record, Spread, Target, Turn, listed};

pub(super) const AT_REST: &str = "at rest";
const CHORE: RGBColor = RGBColor(255, 243, 191);
/// A quantile of undisturbed reads, that by the same at rest, and what it may be at most.
const BY_REST: [(&str, &str, &str, f64); 2] = [
    ("p99", "undisturbed_p99_us", "p99_by_rest", 1.25),
    ("p99.9", "undisturbed_p99.9_us", "p99.9_by_rest", 2.0),
];

pub(super) fn page(record: &mut Record) -> Result<Page> {
    for (_, key, by_rest, _) in BY_REST {
        record.derive(by_rest, |rounds| {
            let rest = rounds.record.median(AT_REST, rounds.who, key)?;
            (rounds.heading != AT_REST && rest > 0.0).then_some(rounds.median(key)? / rest)
        });
    }
    let all = |key: &'static str| record.turns.iter().filter_map(move |turn| turn.get(key));
    let chores = chores(record);
    let named: Vec<_> = chores
        .iter()
        .map(|chore| (chore, format!("{}. {chore}", letter(&chores, chore))))
        .collect();
    let names = json!({
        "at_rest": AT_REST,
        "chores": named,
        "ran_first": all("generator_ran_first").all(|first| first == 1.0),
        "load": Spread::of(all("load")).max,
    });
    let plots = [("slowest.svg".to_owned(), slowest(record, &chores)?)].into();
    let template = include_str!("../../chores/page.md");
    Ok(Page { template, targets: targets(record, &chores), names, plots })
}

fn chores(record: &Record) -> Vec<String> {
    let headings = record.headings().into_iter().filter(|heading| *heading != AT_REST);
    headings.map(str::to_owned).collect()
}

/// By which the plot calls a chore.
fn letter(chores: &[String], chore: &str) -> char {
    let number = chores.iter().position(|known| known == chore);
    number.and_then(|number| ('a'..='z').nth(number)).unwrap_or('?')
}

fn ours(record: &Record) -> Option<&Contender> {
    record.contenders(AT_REST).into_iter().find(|who| who.is_halcyon())
}

fn targets(record: &Record, chores: &[String]) -> Vec<Target> {
    let Some(ours) = ours(record) else { return Vec::new() };
    let mut targets = Vec::new();
    for (quantile, _, by_rest, most) in BY_REST {
        let ratios = chores.iter().filter_map(|of| Some((of, record.median(of, ours, by_rest)?)));
        let ratios: Vec<(&String, f64)> = ratios.collect();
        let what = format!("Halcyon: {quantile} of undisturbed reads, by the same at rest");
        targets.extend(Target::at_most(what, most, &ratios));
    }
    targets.extend(kept_waiting(record, ours, chores));
    targets
}

/// Of all rounds together.
fn kept_waiting(record: &Record, ours: &Contender, chores: &[String]) -> Option<Target> {
    let count = |chore: &str| {
        let turns = record.rounds(chore, ours).turns();
        let keys = ["undisturbed_over_10ms", "read_failed", "unanswered"];
        turns.flat_map(|turn| keys.map(|key| turn.get(key).unwrap_or(0.0))).sum::<f64>()
    };
    let counts: Vec<(&String, f64)> = chores.iter().map(|chore| (chore, count(chore))).collect();
    let what = format!(
        "Halcyon: undisturbed reads that took over {} ms, and reads that failed or were not answered",
        LONG.as_millis()
    );
    let all: f64 = counts.iter().map(|(_, count)| count).sum();
    let those: Vec<_> = counts.into_iter().filter(|(_, count)| *count > 0.0).collect();
    let measured = if those.is_empty() { "0".to_owned() } else { listed(&those, 0) };
    (!chores.is_empty()).then(|| Target::new(what, "0", measured, all == 0.0))
}

/// A panel for each turn.
fn slowest(record: &Record, chores: &[String]) -> Result<String> {
    let step = STEP.as_secs_f64();
    let line = |slowest: &[f64], color| {
        let points = slowest.iter().enumerate();
        let points = points.map(|(number, ms)| (number as f64 * step, ms.max(0.01)));
        Line { points: points.collect(), color, width: 1 }
    };
    let at_rest = record.turns.iter().filter(|turn| turn.heading == AT_REST);
    let timelines: Vec<(&Turn, Timeline)> =
        at_rest.map(|turn| (turn, turn.detail("timeline"))).collect();
    let seconds = timelines.iter().map(|(_, timeline)| timeline.slowest.len() as f64 * step);
    let seconds = seconds.fold(1.0, f64::max);
    let mut ticks = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0].into_iter();
    let tick = ticks.find(|tick| seconds / tick <= 12.0).unwrap_or(100.0);
    let panels = timelines.iter().map(|(turn, timeline)| {
        let told = timeline.stretches.iter().filter(|(heading, ..)| heading != AT_REST);
        // Most chores are too short to be seen.
        let shades = told.clone().map(|(_, from, done)| (*from, done.max(from + step), CHORE));
        let labels = told.map(|(chore, from, _)| (*from, letter(chores, chore).to_string()));
        Panel {
            title: turn.contender.name(),
            shades: shades.collect(),
            labels: labels.collect(),
            lines: vec![
                line(&timeline.slowest, OTHER),
                line(&timeline.slowest_undisturbed, HALCYON),
            ],
            ..Panel::default()
        }
    });
    let grid = Grid {
        title: "The slowest read of each quarter of a second: undisturbed (blue), of all (grey); yellow: a chore"
            .to_owned(),
        columns: 1,
        size: (720, 130),
        x: Axis::linear("seconds", 0.0, seconds, tick, ""),
        y: Axis::milliseconds(0.1, 1000.0),
        panels: panels.collect(),
    };
    grid.svg()
}
