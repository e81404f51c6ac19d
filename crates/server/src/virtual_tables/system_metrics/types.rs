//! The table of each type of metric.

use halcyon_io::clock::now;
use halcyon_metrics::Kind;

use super::{Filled, Found, Measured, Node, Rows, Shown, found};
use crate::virtual_tables::rows::Value;
use crate::virtual_tables::table::VirtualTable;

pub(in crate::virtual_tables) const TABLES: &[VirtualTable] = &[
    VirtualTable::gathered(
        "CREATE TABLE system_metrics.type_counter (name text PRIMARY KEY, scope text, value bigint)
        WITH ID = a5399aa8-d217-33a5-abce-96bdcedccdf5 AND comment = 'All metrics with type \"Counter\"';",
        counters,
    ),
    VirtualTable::gathered(
        "CREATE TABLE system_metrics.type_gauge (name text PRIMARY KEY, scope text, value text)
        WITH ID = 21e799e1-b89b-3f7e-a838-e4b882636299 AND comment = 'All metrics with type \"Gauge\"';",
        gauges,
    ),
    VirtualTable::gathered(
        "CREATE TABLE system_metrics.type_histogram (name text PRIMARY KEY, max bigint, mean double, min bigint,
        p75th double, p95th double, p98th double, p999th double, p99th double, scope text)
        WITH ID = d6e98418-2caf-3d54-9256-b7d2adc7259e AND comment = 'All metrics with type \"Histogram\"';",
        histograms,
    ),
    VirtualTable::gathered(
        "CREATE TABLE system_metrics.type_meter (name text PRIMARY KEY, count bigint, fifteen_minute_rate double,
        five_minute_rate double, mean_rate double, one_minute_rate double, scope text)
        WITH ID = 30b3e057-671d-3f9f-9116-698f390ce0a1 AND comment = 'All metrics with type \"Meter\"';",
        meters,
    ),
    VirtualTable::gathered(
        "CREATE TABLE system_metrics.type_timer (name text PRIMARY KEY, count bigint, fifteen_minute_rate double,
        five_minute_rate double, max double, mean double, mean_rate double, min double, one_minute_rate double,
        p75th double, p95th double, p98th double, p999th double, p99th double, scope text)
        WITH ID = bb157905-ecfb-3613-8cc9-591b1a8e1673 AND comment = 'All metrics with type \"Timer\"';",
        timers,
    ),
];

fn counters<'a>(node: &'a Node, rows: &'a mut Rows<'_>) -> Filled<'a> {
    Box::pin(async move {
        let found = found(node, |metric| metric.kind == Kind::Counter).await;
        let mut rows = rows.with(["name", "scope", "value"]);
        for of in found {
            if let Shown::Number(number) = of.value {
                rows.push([of.name.into(), of.scope.into(), number.into()]);
            }
        }
    })
}

fn gauges<'a>(node: &'a Node, rows: &'a mut Rows<'_>) -> Filled<'a> {
    Box::pin(async move {
        let found = found(node, |metric| metric.kind == Kind::Gauge).await;
        let mut rows = rows.with(["name", "scope", "value"]);
        for of in found {
            let value = of.text();
            rows.push([of.name.into(), of.scope.into(), value.into()]);
        }
    })
}

/// Of a number it is not known when it grew: the rates of the last minutes are null, until it does.
fn meters<'a>(node: &'a Node, rows: &'a mut Rows<'_>) -> Filled<'a> {
    Box::pin(async move {
        let found = found(node, |metric| metric.kind == Kind::Meter).await;
        let mut rows = rows.with([
            "name",
            "count",
            "fifteen_minute_rate",
            "five_minute_rate",
            "mean_rate",
            "one_minute_rate",
            "scope",
        ]);
        for of in found {
            let Shown::Number(count) = of.value else { continue };
            let rate = (count == 0).then_some(0.0);
            rows.push([
                of.name.into(),
                count.into(),
                rate.into(),
                rate.into(),
                mean_rate(node, count).into(),
                rate.into(),
                of.scope.into(),
            ]);
        }
    })
}

fn histograms<'a>(node: &'a Node, rows: &'a mut Rows<'_>) -> Filled<'a> {
    Box::pin(async move {
        let found = found(node, |metric| metric.kind == Kind::Histogram).await;
        let mut rows = rows.with([
            "name", "max", "mean", "min", "p75th", "p95th", "p98th", "p99th", "p999th", "scope",
        ]);
        for of in found {
            let Shown::Distribution(values) = &of.value else { continue };
            let [p75, p95, p98, p99, p999] = percentiles(&of, values);
            let (max, mean, min) = (values.max, values.mean, values.min);
            rows.push([
                of.name.into(),
                max.into(),
                mean.into(),
                min.into(),
                p75,
                p95,
                p98,
                p99,
                p999,
                of.scope.into(),
            ]);
        }
    })
}

/// The rate of fifteen minutes is not known.
fn timers<'a>(node: &'a Node, rows: &'a mut Rows<'_>) -> Filled<'a> {
    Box::pin(async move {
        let found = found(node, |metric| metric.kind == Kind::Timer).await;
        let mut rows = rows.with([
            "name",
            "count",
            "fifteen_minute_rate",
            "five_minute_rate",
            "max",
            "mean",
            "mean_rate",
            "min",
            "one_minute_rate",
            "p75th",
            "p95th",
            "p98th",
            "p99th",
            "p999th",
            "scope",
        ]);
        for of in found {
            let Shown::Distribution(values) = &of.value else { continue };
            let [p75, p95, p98, p99, p999] = percentiles(&of, values);
            let [max, min] = [values.max, values.min].map(|value| of.shown(value as f64));
            let (mean, count) = (of.shown(values.mean), values.count);
            let (five, one) = (values.five_minutes, values.one_minute);
            rows.push([
                of.name.into(),
                count.into(),
                (count == 0).then_some(0.0).into(),
                five.into(),
                max.into(),
                mean.into(),
                mean_rate(node, count).into(),
                min.into(),
                one.into(),
                p75,
                p95,
                p98,
                p99,
                p999,
                of.scope.into(),
            ]);
        }
    })
}

fn percentiles(of: &Found, values: &Measured) -> [Value; 5] {
    values.percentiles.map(|value| of.shown(value as f64).into())
}

/// Since the start.
fn mean_rate(node: &Node, count: u64) -> f64 {
    let seconds = (now() - node.facts.began).as_secs_f64();
    if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
}
