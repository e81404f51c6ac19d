//! The page: reads in each stretch, by those at rest.

use halcyon_oracle::Result;
use serde_json::json;

use super::observer::Observer;
use crate::page::Page;
use crate::record::{Record, Target};

pub(super) const AT_REST: &str = "at rest";
const BY_REST: &str = "p99_by_rest";
/// Cores that the node takes beyond those at rest.
const MORE: &str = "more_cores";
const SCRAPES: &str = Observer::TOGETHER[0].0;
const ALL: &str = Observer::TOGETHER[4].0;

pub(super) fn page(record: &mut Record) -> Result<Page> {
    let at_rest =
        |key: &'static str| move |record: &Record, who: &_| record.median(AT_REST, who, key);
    record.derive(BY_REST, |rounds| {
        let rest = at_rest("read_p99_us")(rounds.record, rounds.who)?;
        Some(rounds.median("read_p99_us")? / rest)
    });
    record.derive(MORE, |rounds| {
        let rest = at_rest("server_cores")(rounds.record, rounds.who)?;
        Some(rounds.median("server_cores")? - rest)
    });
    let headings: Vec<&str> =
        [AT_REST].into_iter().chain(Observer::TOGETHER.map(|(heading, _)| heading)).collect();
    let names = json!({ "headings_of_reads": headings, "scrapes": SCRAPES, "all": ALL });
    let template = include_str!("../../observers/page.md");
    Ok(Page { template, targets: targets(record), names, ..Page::default() })
}

fn targets(record: &Record) -> Vec<Target> {
    let Some(ours) = record.contenders(AT_REST).into_iter().next() else { return Vec::new() };
    let of = |heading: &str, key: &str| record.median(heading, ours, key);
    let shown = |value: Option<f64>, decimals: usize| {
        value.map_or("nothing".to_owned(), |value| format!("{value:.decimals$}"))
    };
    let held = |value: Option<f64>, most: f64| value.is_some_and(|value| value <= most);
    let all = of(ALL, BY_REST);
    let took = of(SCRAPES, "scrape_p50_ms");
    let share = of(SCRAPES, MORE).map(|cores| 100.0 * cores);
    let beside = of(SCRAPES, BY_REST);
    vec![
        Target::new(
            "p99 of reads beside all observers, by that at rest",
            "≤ 1.1",
            shown(all, 2),
            held(all, 1.1),
        ),
        Target::new(
            "p99 of reads beside scrapes, by that at rest",
            "≤ 1.1",
            shown(beside, 2),
            held(beside, 1.1),
        ),
        Target::new("a scrape, ms", "≤ 50", shown(took, 1), held(took, 50.0)),
        Target::new(
            "what a scrape a second takes of a core, %",
            "≤ 1",
            shown(share, 2),
            held(share, 1.0),
        ),
    ]
}
