//! Statistics as text, JSON and YAML.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::statistics::{Datum, Statistics, number};

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

/// What JSON and YAML show.
pub(super) type Tree = Vec<(String, Datum)>;

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

pub(super) fn as_map(tree: &Tree, format: &str, out: &mut String) {
    if format == "yaml" {
        yaml(tree, 0, out);
        out.push('\n');
        return;
    }
    let fields = tree.iter().map(|(key, datum)| (key.clone(), as_json(datum, 1)));
    json_text(&Value::Object(fields.collect()), 0, out);
    out.push('\n');
}

/// As Cassandra's library prints it: blanks around colons, lists in one line.
fn json_text(value: &Value, depth: usize, out: &mut String) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            let indent = "  ".repeat(depth);
            let mut before = "{\n";
            for (key, value) in fields {
                out.push_str(&format!("{before}{indent}  {} : ", json!(key)));
                json_text(value, depth + 1, out);
                before = ",\n";
            }
            out.push_str(&format!("\n{indent}}}"));
        }
        Value::Object(_) => out.push_str("{ }"),
        Value::Array(items) if items.is_empty() => out.push_str("[ ]"),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(Value::to_string).collect();
            out.push_str(&format!("[ {} ]", items.join(", ")));
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}

/// A number that was not measured is null two levels deep, and text below, as in Cassandra.
fn as_json(datum: &Datum, depth: usize) -> Value {
    match datum {
        Datum::Text(text) => json!(text),
        Datum::Count(count) => json!(count),
        Datum::Number(number) if number.is_finite() => json!(number),
        Datum::Number(_) if depth <= 2 => Value::Null,
        Datum::Number(_) => json!("NaN"),
        Datum::True => json!(true),
        Datum::Null => Value::Null,
        Datum::List(items) => json!(items),
        Datum::EmptyMap => json!({}),
        Datum::Map(fields) => Value::Object(
            fields
                .iter()
                .map(|(key, datum)| (key.clone(), as_json(datum, depth + 1)))
                .collect::<Map<String, Value>>(),
        ),
    }
}

/// In block style.
fn yaml(fields: &[(String, Datum)], depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth);
    for (key, datum) in fields {
        out.push_str(&format!("{indent}{}:", scalar(key)));
        let value = match datum {
            Datum::Text(text) => scalar(text),
            Datum::Count(count) => count.to_string(),
            Datum::Number(number) if number.is_nan() => ".NaN".to_owned(),
            Datum::Number(value) => number(*value),
            Datum::True => "true".to_owned(),
            Datum::Null => "null".to_owned(),
            Datum::List(items) if items.is_empty() => "[]".to_owned(),
            Datum::List(items) => {
                let items = items.iter().map(|item| format!("\n{indent}- {}", scalar(item)));
                out.push_str(&items.collect::<String>());
                out.push('\n');
                continue;
            }
            Datum::Map(fields) if !fields.is_empty() => {
                out.push('\n');
                yaml(fields, depth + 1, out);
                continue;
            }
            Datum::EmptyMap | Datum::Map(_) => "{}".to_owned(),
        };
        out.push_str(&format!(" {value}\n"));
    }
}

/// A text, between quotes where it would be a number or a word with another meaning. Names of tables, and what is printed here, have
/// no character that would have to be escaped.
fn scalar(text: &str) -> String {
    const WORDS: [&str; 7] = ["true", "false", "yes", "no", "on", "off", "null"];
    let is_number = text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_digit() || ".:_eE+-/".contains(c))
        && !text.contains('/');
    let is_word = WORDS.contains(&text.to_lowercase().as_str());
    let has_colon = text.contains(": ");
    match text.is_empty() || is_number || is_word || has_colon {
        true => format!("'{text}'"),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that YAML is what Cassandra's tool prints: texts that look like numbers are quoted, blocks are indented.
    #[test]
    fn yaml_is_in_block_style() {
        let text = |text: &str| Datum::Text(text.to_owned());
        let inner = vec![
            ("data".to_owned(), text("0")),
            ("latency".to_owned(), text("NaN")),
            ("mean".to_owned(), Datum::Number(f64::NAN)),
            ("size".to_owned(), text("5.49 KiB")),
            ("ratio".to_owned(), Datum::Number(-1.0)),
            ("levels".to_owned(), Datum::List(vec!["5/4".to_owned(), "0".to_owned()])),
            ("none".to_owned(), Datum::List(Vec::new())),
            ("top".to_owned(), Datum::EmptyMap),
            ("twcs".to_owned(), text("1 DAYS, max duration: 2 minutes")),
            ("other".to_owned(), Datum::Null),
        ];
        let mut out = String::new();
        yaml(&[("no".to_owned(), Datum::Map(inner))], 0, &mut out);
        let expected = "'no':\n  data: '0'\n  latency: NaN\n  mean: .NaN\n  size: 5.49 KiB\n  ratio: -1.0\n  levels:\n  - 5/4\n  - '0'\n  \
                        none: []\n  top: {}\n  twcs: '1 DAYS, max duration: 2 minutes'\n  other: null\n";
        assert_eq!(out, expected);
    }

    /// Proves that JSON is laid out as Cassandra's tool does.
    #[test]
    fn json_is_laid_out_as_in_cassandra() {
        let mut out = String::new();
        let value = json!({"a": {"b": [], "c": {}, "d": ["1", "2"]}, "e": null, "f": -1.0});
        json_text(&value, 0, &mut out);
        let expected = "{\n  \"a\" : {\n    \"b\" : [ ],\n    \"c\" : { },\n    \"d\" : [ \"1\", \"2\" ]\n  },\n  \"e\" : null,\n  \"f\" : -1.0\n}";
        assert_eq!(out, expected);
    }

    /// Proves at which depth a number that was not measured is null.
    #[test]
    fn numbers_that_were_not_measured() {
        let nan = Datum::Number(f64::NAN);
        assert_eq!((as_json(&nan, 2), as_json(&nan, 4)), (Value::Null, json!("NaN")));
    }
}
