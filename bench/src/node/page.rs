//! The page: a table for each kind of work, by requests in flight.

use halcyon_oracle::Version;

use super::{Asks, START, Work, batch};
use crate::page::{Column, Page, profile, table};
use crate::plot::{Bars, Section};
use crate::record::{Contender, Record, Rounds, Spread, Target};
use crate::{Result, flush};

const RATE: Column = Column::new("per second", "per_second", 0);
const P50: Column = Column::new("p50 µs", "p50_us", 0);
const P99: Column = Column::new("p99 µs", "p99_us", 0);
const P999: Column = Column::new("p99.9 µs", "p99.9_us", 0);
const CPU: Column = Column::new("server CPU µs", "server_cpu_us", 1);

const COLUMNS: &[Column] = &[
    RATE,
    Column::derived("of Cassandra's", |ours| {
        Some(format!("{:.2} ×", ours.median(RATE.key)? / rival(ours)?.median(RATE.key)?))
    }),
    P50,
    P99,
    P999,
    CPU,
    Column::derived("of Cassandra's", |ours| {
        Some(format!("1 / {:.1}", rival(ours)?.median(CPU.key)? / ours.median(CPU.key)?))
    }),
    Column::new("client CPU µs", "client_cpu_us", 1),
];

const BARS: &[Column] = &[RATE, P50, P99, Column::new("server CPU µs per operation", CPU.key, 1)];

/// Cassandra, asked by the same generator; none of Cassandra itself.
fn rival(ours: Rounds<'_>) -> Option<Rounds<'_>> {
    let by_latte = |who: &Contender| who.mode.ends_with(Asks::Latte.suffix());
    let all = ours.record.contenders(ours.heading).into_iter();
    let mut rivals = all.filter(|who| !who.is_halcyon() && by_latte(who) == by_latte(ours.who));
    rivals.next().filter(|_| ours.who.is_halcyon()).map(|rival| ours.of(rival))
}

pub(crate) fn page(record: &Record) -> Result<Page> {
    let mut sections = Vec::new();
    let mut drawn = Vec::new();
    for work in Work::ALL {
        let headings = headings(record, work);
        let rows = headings.iter().map(|(in_flight, heading)| (*heading, in_flight.as_str()));
        let rows = table(record, Some("in flight"), rows, COLUMNS);
        if !rows.is_empty() {
            sections.push(format!("## {}\n\n{rows}", work.title()));
        }
        if work != Work::RoundTrip {
            drawn.extend(headings.iter().map(|(_, heading)| Section::plain(heading)));
        }
    }
    let flushes = table(record, None, [(flush::HEADING, "")], &[P50, P99, P999]);
    sections.push(format!("## The device's own flush, 4 KiB\n\n{flushes}"));
    const STARTS: &[Column] = &[
        Column::new("seconds to the first answer", "seconds", 3),
        Column::new("MiB at rest", "resident_bytes", 0).times(1.0 / 1_048_576.0),
    ];
    sections.push(format!("## Start and rest\n\n{}", table(record, None, [(START, "")], STARTS)));
    for work in Work::ALL {
        let Some(shares) = profile(record, work.title()) else { continue };
        sections.push(format!(
            "## Where Halcyon's time goes: {}\n\n50 in flight, by `perf`, in one more turn (`k`: in the kernel).\n\n{shares}",
            work.title().to_lowercase(),
        ));
    }
    let bars = Bars {
        title: "Halcyon and Cassandra under the same requests, median and spread",
        columns: BARS,
        sections: drawn,
    };
    Ok(Page {
        title: "The node: Halcyon and Apache Cassandra under the same requests",
        targets: targets(record),
        sections,
        method: include_str!("../../node/method.md"),
        computed: Vec::new(),
        plots: vec![("plot.svg", bars.svg(record)?)],
    })
}

/// The number in flight, and the heading, in ascending order.
fn headings(record: &Record, work: Work) -> Vec<(String, &str)> {
    let mut found: Vec<(usize, &str)> = Vec::new();
    for heading in record.headings() {
        let number = heading.strip_prefix(work.title()).and_then(|rest| {
            rest.strip_prefix(", ")?.strip_suffix(" in flight")?.parse::<usize>().ok()
        });
        found.extend(number.map(|number| (number, heading)));
    }
    found.sort_unstable();
    found.into_iter().map(|(number, heading)| (number.to_string(), heading)).collect()
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
    Some(Target {
        what: what.to_owned(),
        to_reach: format!("≥ {least}"),
        measured: format!("{ratio:.1}"),
        reached: ratio >= least,
    })
}

/// Server CPU per operation, Cassandra's by Halcyon's, at each number in flight. All have to reach it.
fn cpu_target(record: &Record, work: Work, asks: Asks) -> Option<Target> {
    const LEAST: f64 = 8.0;
    let mut ratios = Vec::new();
    for (in_flight, heading) in headings(record, work) {
        let median = |who: &Contender| record.median(heading, who, CPU.key);
        let halcyon = median(&batch("halcyon", asks))?;
        let cassandra = median(&batch(Version::V5.name(), asks.of_cassandra()))?;
        ratios.push((in_flight, cassandra / halcyon));
    }
    let shown = ratios.iter().map(|(in_flight, ratio)| format!("{ratio:.1} ({in_flight})"));
    Some(Target {
        what: format!(
            "{}{}: server CPU per operation, Cassandra's by Halcyon's (requests in flight)",
            work.title(),
            asks.suffix()
        ),
        to_reach: format!("≥ {LEAST}"),
        measured: shown.collect::<Vec<_>>().join(", "),
        reached: !ratios.is_empty() && ratios.iter().all(|(_, ratio)| *ratio >= LEAST),
    })
}

/// One durable write at a time, by the device's flush and an empty round trip.
fn latency_target(record: &Record, who: &Contender) -> Option<Target> {
    let median = |work: Work, who| record.median(&work.heading(1), who, P50.key);
    let write = median(Work::DurableWrites, who)?;
    let round_trip = median(Work::RoundTrip, &batch("halcyon", Asks::Anywhere))?;
    let what = format!("{}: one durable write at a time", who.name());
    flush::target(record, what, write, round_trip)
}
