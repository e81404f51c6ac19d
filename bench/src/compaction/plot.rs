//! The picture: for each compressor a row of bar charts.

use super::record::{Record, Run};
use crate::chart::{Chart, Column, Row, Section};
use crate::contender::Spread;
use crate::dataset::Codec;

struct Metric {
    column: Column,
    of: fn(&Run) -> f64,
}

const METRICS: [Metric; 4] = [
    Metric { column: Column { title: "MiB/s of raw rows", decimals: 0, unit: "" }, of: Run::rate },
    Metric {
        column: Column { title: "CPU seconds per GiB", decimals: 2, unit: "" },
        of: Run::cpu_per_gib,
    },
    Metric {
        column: Column { title: "left in the page cache", decimals: 1, unit: " %" },
        of: |run| 100.0 * run.cached_share().unwrap_or(0.0),
    },
    Metric {
        column: Column { title: "peak memory, MiB", decimals: 0, unit: "" },
        of: |run| run.cost.peak_memory as f64 / 1_048_576.0,
    },
];

pub(super) fn svg(record: &Record) -> String {
    let section = |codec: String| {
        let contenders = record.contenders(&codec).into_iter();
        let rows = contenders.map(|(contender, runs)| Row {
            label: contender.name().replace("Cassandra ", "C* "),
            is_halcyon: contender.is_halcyon(),
            spreads: METRICS
                .iter()
                .map(|metric| Spread::of(runs.iter().map(|run| (metric.of)(run))))
                .collect(),
        });
        let rows = rows.collect();
        let bounds = record.bounds_of(&codec);
        Section {
            title: Codec(codec).title(),
            rows,
            bounds: bounds
                .map(|b| vec![("codec", b.codec_rate), ("device", b.device_rate)])
                .unwrap_or_default(),
        }
    };
    Chart {
        title: "Major compaction, median and spread",
        sections: record.codecs().into_iter().map(section).collect(),
        columns: METRICS.into_iter().map(|metric| metric.column).collect(),
    }
    .svg()
}
