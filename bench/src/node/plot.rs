//! The picture: for each kind of work a row of bar charts, by requests in flight.

use super::record::{Measured, Record, Work};
use crate::chart::{Chart, Column, Row, Section};
use crate::contender::Spread;

struct Metric {
    column: Column,
    of: fn(&Measured) -> f64,
}

const METRICS: [Metric; 4] = [
    Metric { column: Column { title: "per second", decimals: 0, unit: "" }, of: Measured::rate },
    Metric {
        column: Column { title: "p50, µs", decimals: 0, unit: "" },
        of: |measured| measured.latencies.p50,
    },
    Metric {
        column: Column { title: "p99, µs", decimals: 0, unit: "" },
        of: |measured| measured.latencies.p99,
    },
    Metric {
        column: Column { title: "server CPU µs per operation", decimals: 1, unit: "" },
        of: Measured::server_cpu,
    },
];

pub(super) fn svg(record: &Record) -> String {
    let works = Work::ALL.into_iter().filter(|work| *work != Work::RoundTrip);
    let sections = works.flat_map(|work| {
        record.in_flight(work).into_iter().map(move |in_flight| section(record, work, in_flight))
    });
    Chart {
        title: "Halcyon and Cassandra under the same requests, median and spread",
        sections: sections.collect(),
        columns: METRICS.into_iter().map(|metric| metric.column).collect(),
    }
    .svg()
}

fn section(record: &Record, work: Work, in_flight: usize) -> Section {
    let contenders = record.contenders(work, in_flight).into_iter();
    let rows = contenders.map(|(contender, all)| Row {
        label: contender.name().replace("Cassandra ", "C* "),
        is_halcyon: contender.is_halcyon(),
        spreads: METRICS
            .iter()
            .map(|metric| Spread::of(all.iter().map(|measured| (metric.of)(measured))))
            .collect(),
    });
    let title = format!("{}, {in_flight} in flight", work.title());
    Section { title, rows: rows.collect(), bounds: Vec::new() }
}
