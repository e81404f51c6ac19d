//! The page: a table for each kind of work, by requests in flight.

use halcyon_oracle::{Result, Version};
use serde_json::json;

use super::{Asks, START, Work, batch};
use crate::flush;
use crate::page::Page;
use crate::record::{Contender, Record, Rounds, Spread, Target, listed};

const RATE: &str = "per_second";
const P50: &str = "p50_us";
const CPU: &str = "server_cpu_us";

/// Cassandra, asked by the same generator; none of Cassandra itself.
fn rival(ours: Rounds<'_>) -> Option<Rounds<'_>> {
    let by_latte = |who: &Contender| who.mode.ends_with(Asks::Latte.suffix());
    let all = ours.record.contenders(ours.heading).into_iter();
    let mut rivals = all.filter(|who| !who.is_halcyon() && by_latte(who) == by_latte(ours.who));
    rivals.next().filter(|_| ours.who.is_halcyon()).map(|rival| ours.of(rival))
}

pub(super) fn page(record: &mut Record) -> Result<Page> {
    record
        .derive("rate_by_cassandra", |ours| Some(ours.median(RATE)? / rival(ours)?.median(RATE)?));
    record.derive("cassandra_cpu_by_ours", |ours| {
        Some(rival(ours)?.median(CPU)? / ours.median(CPU)?)
    });
    let works =
        Work::ALL.map(|work| json!({ "title": work.title(), "headings": headings(record, work) }));
    let drawn = Work::ALL.into_iter().filter(|work| *work != Work::RoundTrip);
    let drawn = drawn.flat_map(|work| headings(record, work)).map(|(heading, _)| heading);
    Ok(Page {
        template: include_str!("../../node/page.md"),
        targets: targets(record),
        names: json!({ "works": works, "drawn": drawn.collect::<Vec<_>>() }),
        ..Page::default()
    })
}

/// The headings, and the numbers in flight, in ascending order of these.
fn headings(record: &Record, work: Work) -> Vec<(&str, String)> {
    let mut found: Vec<(usize, &str)> = Vec::new();
    for heading in record.headings() {
        let number = heading.strip_prefix(work.title()).and_then(|rest| {
            rest.strip_prefix(", ")?.strip_suffix(" in flight")?.parse::<usize>().ok()
        });
        found.extend(number.map(|number| (number, heading)));
    }
    found.sort_unstable();
    found.into_iter().map(|(number, heading)| (heading, number.to_string())).collect()
}

fn targets(record: &Record) -> Vec<Target> {
    let mut all = Vec::new();
    for work in [Work::DurableWrites, Work::MemoryReads, Work::DeviceReads] {
        all.extend(Asks::ALL.into_iter().filter_map(|asks| cpu_target(record, work, asks)));
    }
    for asks in Asks::ALL {
        all.extend(latency_target(record, &batch("halcyon", asks)));
    }
    let what = "Start to first answer: Cassandra's by Halcyon's";
    all.extend(start_target(record, what, 50.0, "seconds"));
    let what = "Memory at rest: Cassandra's by Halcyon's";
    all.extend(start_target(record, what, 20.0, "resident_bytes"));
    all
}

fn start_target(record: &Record, what: &str, least: f64, key: &str) -> Option<Target> {
    let median = |is_halcyon: bool| {
        let turns = record.turns.iter().filter(|turn| turn.heading == START);
        let of = turns.filter(|turn| turn.contender.is_halcyon() == is_halcyon);
        let values: Vec<f64> = of.filter_map(|turn| turn.get(key)).collect();
        (!values.is_empty()).then(|| Spread::of(values).median)
    };
    let ratio = median(false)? / median(true)?;
    Some(Target::new(what, format!("≥ {least}"), format!("{ratio:.1}"), ratio >= least))
}

/// Server CPU per operation, Cassandra's by Halcyon's, at each number in flight. All have to reach it.
fn cpu_target(record: &Record, work: Work, asks: Asks) -> Option<Target> {
    const LEAST: f64 = 8.0;
    let ratio = |(heading, in_flight): (&str, String)| {
        let median = |who: &Contender| record.median(heading, who, CPU);
        let ours = median(&batch("halcyon", asks))?;
        let theirs = median(&batch(Version::V5.name(), asks.of_cassandra()))?;
        Some((in_flight, theirs / ours))
    };
    let ratios: Option<Vec<(String, f64)>> =
        headings(record, work).into_iter().map(ratio).collect();
    let ratios = ratios?;
    let reached = !ratios.is_empty() && ratios.iter().all(|(_, ratio)| *ratio >= LEAST);
    let of = format!("{}{}", work.title(), asks.suffix());
    let what =
        format!("{of}: server CPU per operation, Cassandra's by Halcyon's (requests in flight)");
    Some(Target::new(what, format!("≥ {LEAST}"), listed(&ratios, 1), reached))
}

/// One durable write at a time, by the device's flush and an empty round trip.
fn latency_target(record: &Record, who: &Contender) -> Option<Target> {
    let median = |work: Work, who| record.median(&work.heading(1), who, P50);
    let write = median(Work::DurableWrites, who)?;
    let round_trip = median(Work::RoundTrip, &batch("halcyon", Asks::Anywhere))?;
    let what = format!("{}: one durable write at a time", who.name());
    flush::target(record, what, write, round_trip)
}
