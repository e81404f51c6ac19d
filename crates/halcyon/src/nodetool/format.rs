//! JSON and YAML, laid out as Cassandra's tools print them.

use serde_json::{Map, Value, json};

use super::arguments::Call;
use super::failure::{Failure, Result};

/// What JSON and YAML show.
pub(super) type Tree = Vec<(String, Datum)>;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Datum {
    Text(String),
    Count(u64),
    /// `NaN` where nothing was measured.
    Number(f64),
    True,
    Null,
    List(Vec<String>),
    EmptyMap,
    Map(Tree),
    Maps(Vec<Tree>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Text,
    Json,
    Yaml,
}

impl Format {
    /// `-F`; what it may be is said in `known`.
    pub(super) fn of(call: &Call, known: &str) -> Result<Format> {
        match call.option("-F") {
            None | Some("") => Ok(Format::Text),
            Some("json") => Ok(Format::Json),
            Some("yaml") => Ok(Format::Yaml),
            Some(_) => Failure::usage(format!("arguments for -F are {known} only.")),
        }
    }
}

/// As Java prints a double.
pub(super) fn number(value: f64) -> String {
    if value.is_nan() { "NaN".to_owned() } else { format!("{value:?}") }
}

/// Not for [`Format::Text`].
pub(super) fn as_map(tree: &Tree, format: Format, out: &mut String) {
    if format == Format::Yaml {
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
            let mut before = "[ ";
            for item in items {
                out.push_str(before);
                json_text(item, depth, out);
                before = ", ";
            }
            out.push_str(" ]");
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
        Datum::Map(fields) => object(fields, depth),
        Datum::Maps(items) => items.iter().map(|fields| object(fields, depth)).collect(),
    }
}

fn object(fields: &Tree, depth: usize) -> Value {
    let fields = fields.iter().map(|(key, datum)| (key.clone(), as_json(datum, depth + 1)));
    Value::Object(fields.collect::<Map<String, Value>>())
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
            Datum::Maps(items) if !items.is_empty() => {
                out.push('\n');
                for fields in items {
                    let mut text = String::new();
                    yaml(fields, depth + 1, &mut text);
                    // The first field stands behind the dash.
                    out.push_str(&format!("{indent}- {}", text.trim_start()));
                }
                continue;
            }
            Datum::Maps(_) => "[]".to_owned(),
            Datum::EmptyMap | Datum::Map(_) => "{}".to_owned(),
        };
        out.push_str(&format!(" {value}\n"));
    }
}

/// A text, between quotes where it would be a number, a time, a map or a word with another meaning. What is printed here has no
/// character to escape.
fn scalar(text: &str) -> String {
    const WORDS: [&str; 7] = ["true", "false", "yes", "no", "on", "off", "null"];
    let is_number = text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_digit() || ".:_eE+-/T".contains(c))
        && !text.contains('/');
    let is_word = WORDS.contains(&text.to_lowercase().as_str());
    let has_colon = text.contains(": ");
    let is_flow = text.starts_with(['{', '[']);
    match text.is_empty() || is_number || is_word || has_colon || is_flow {
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
