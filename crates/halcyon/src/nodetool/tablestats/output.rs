//! Statistics as text, JSON and YAML.

use std::collections::BTreeMap;

use super::super::format::{Datum, Tree, number};
use super::statistics::Statistics;

/// Sums over a keyspace: counts of reads and writes, their mean latencies in ms, pending flushes.
struct Sums {
    reads: u64,
    read_ms: f64,
    writes: u64,
    write_ms: f64,
    pending_flushes: u64,
}

impl Sums {
    fn of(tables: &[Statistics<'_>]) -> Sums {
        let total = |column: &str| tables.iter().map(|of| of.count(column)).sum::<u64>();
        let mean = |count: &str, mean: &str| {
            let all = tables.iter().map(|of| (of.count(count) as f64, of.milliseconds(mean)));
            let known = all.filter(|(_, ms)| !ms.is_nan());
            let (count, sum) =
                known.fold((0.0, 0.0), |(n, sum), (count, ms)| (n + count, sum + count * ms));
            if count > 0.0 { sum / count } else { f64::NAN }
        };
        Sums {
            reads: total("read_count"),
            read_ms: mean("read_count", "read_mean_ns"),
            writes: total("write_count"),
            write_ms: mean("write_count", "write_mean_ns"),
            pending_flushes: total("pending_flushes"),
        }
    }
}

const LINE: &str = "----------------\n";

pub(super) fn text(
    keyspaces: &BTreeMap<String, Vec<Statistics<'_>>>,
    count: usize,
    out: &mut String,
) {
    if count == 0 {
        return;
    }
    out.push_str(&format!("Total number of tables: {count}\n{LINE}"));
    for (keyspace, tables) in keyspaces {
        let sums = Sums::of(tables);
        out.push_str(&format!(
            "Keyspace: {keyspace}\n\tRead Count: {}\n\tRead Latency: {} ms\n\tWrite Count: {}\n\tWrite Latency: {} ms\n\t\
             Pending Flushes: {}\n",
            sums.reads,
            number(sums.read_ms),
            sums.writes,
            number(sums.write_ms),
            sums.pending_flushes
        ));
        for table in tables {
            lines(table, &table.name(), "\t\t", out);
        }
        out.push_str(LINE);
    }
}

pub(super) fn sorted_text(
    tables: &[&Statistics<'_>],
    count: usize,
    (key, top): (&str, usize),
    out: &mut String,
) {
    if tables.is_empty() {
        return;
    }
    out.push_str(&format!("Total number of tables: {count}"));
    if top > 0 {
        out.push_str(&format!(" (showing top {} by {key})", top.min(count)));
    }
    out.push_str(&format!("\n{LINE}"));
    for table in tables {
        lines(table, &table.full_name(), "\t", out);
    }
    out.push_str(LINE);
}

fn lines(table: &Statistics<'_>, name: &str, indent: &str, out: &mut String) {
    out.push_str(&format!("{indent}Table: {name}\n"));
    for field in table.fields().iter().filter(|field| field.is_shown()) {
        out.push_str(&format!("{indent}{}: {}\n", field.title, field.text));
    }
    out.push('\n');
}

fn of_table(table: &Statistics<'_>) -> Datum {
    let fields = table.fields().into_iter();
    Datum::Map(fields.map(|field| (field.key(), field.datum)).collect())
}

pub(super) fn by_keyspace(keyspaces: &BTreeMap<String, Vec<Statistics<'_>>>, count: usize) -> Tree {
    let mut all = vec![total(count)];
    for (keyspace, tables) in keyspaces {
        let sums = Sums::of(tables);
        let fields = [
            ("tables", Datum::Map(tables.iter().map(|of| (of.name(), of_table(of))).collect())),
            ("read_latency", Datum::Number(sums.read_ms)),
            ("read_count", Datum::Count(sums.reads)),
            ("read_latency_ms", Datum::Number(sums.read_ms)),
            ("write_count", Datum::Count(sums.writes)),
            ("write_latency_ms", Datum::Number(sums.write_ms)),
            ("pending_flushes", Datum::Count(sums.pending_flushes)),
        ];
        let fields = fields.into_iter().map(|(key, datum)| (key.to_owned(), datum)).collect();
        all.push((keyspace.clone(), Datum::Map(fields)));
    }
    all
}

pub(super) fn by_table(tables: &[&Statistics<'_>], count: usize) -> Tree {
    let mut all = vec![total(count)];
    all.extend(tables.iter().map(|table| (table.full_name(), of_table(table))));
    all
}

fn total(count: usize) -> (String, Datum) {
    ("total_number_of_tables".to_owned(), Datum::Count(count as u64))
}
