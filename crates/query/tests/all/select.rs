//! SELECT against recorded answers of Apache Cassandra 5.0.9: a node of two shards on the simulated disk runs each
//! statement, and names, types, rows, warnings, messages and paging states must be the same.
//!
//! ```text
//! % statement            is prepared: v names and types of its markers, k those of the partition key
//! ! statement            makes what the questions are about
//! ? statement            asked at once          @ n statement       asked in pages of n rows
//! = name type | ...      - values in hex        w warning           x code message         ~ paging state, or end
//! ```
//!
//! The order in which messages list the signatures of a function is that of a Java hash set, so it is not compared.

use std::sync::Arc;

use halcyon_io::SimRuntime;
use halcyon_model::CqlType;
use halcyon_model::access::Principal;
use halcyon_query::{Coordinator, Error, Outcome, QueryOptions, Rows};

use crate::node::{self, code, start};

async fn execute(
    node: &Coordinator,
    text: &str,
    page_size: Option<i32>,
    paging_state: Option<&[u8]>,
) -> Result<(Outcome, Vec<String>), Error> {
    let statement = Arc::new(halcyon_query::prepare(node, text, None)?);
    let options =
        QueryOptions { page_size, paging_state, protocol_version: 4, ..QueryOptions::default() };
    let outcome = halcyon_query::execute(node, &statement, &options, &Principal::Anonymous).await?;
    Ok((outcome, statement.warnings.clone()))
}

fn type_text(cql_type: &CqlType) -> String {
    match cql_type {
        CqlType::Frozen(inner) | CqlType::Reversed(inner) => type_text(inner),
        CqlType::List(e) => format!("list<{}>", type_text(e)),
        CqlType::Set(e) => format!("set<{}>", type_text(e)),
        CqlType::Map(k, v) => format!("map<{}, {}>", type_text(k), type_text(v)),
        CqlType::Udt(udt) => format!("udt {}", String::from_utf8_lossy(&udt.name)),
        CqlType::Tuple(types) => {
            format!("tuple<{}>", types.iter().map(type_text).collect::<Vec<_>>().join(", "))
        }
        // Version 4 of the protocol has no code for it.
        CqlType::Duration => "custom org.apache.cassandra.db.marshal.DurationType".to_owned(),
        other => other.cql_name(),
    }
}

/// The rows of a page, each as its values in hex.
fn rows_text(rows: &Rows) -> Vec<String> {
    let mut at = rows.content.as_slice();
    let mut value = || {
        let (len, rest) = at.split_first_chunk::<4>().expect("a length");
        at = rest;
        let Ok(len) = usize::try_from(i32::from_be_bytes(*len)) else { return "null".to_owned() };
        let (bytes, rest) = at.split_at(len);
        at = rest;
        if bytes.is_empty() { "''".to_owned() } else { halcyon_model::hex::encode(bytes) }
    };
    let lines: Vec<String> = (0..rows.count)
        .map(|_| {
            let values: Vec<String> = rows.columns.iter().map(|_| value()).collect();
            format!("- {}", values.join(" "))
        })
        .collect();
    assert!(at.is_empty(), "bytes are left");
    lines
}

async fn ask(node: &Coordinator, text: &str, page_size: Option<i32>) -> Vec<String> {
    let mut lines = Vec::new();
    let mut state: Option<Vec<u8>> = None;
    loop {
        let (rows, warnings) = match execute(node, text, page_size, state.as_deref()).await {
            Ok((Outcome::Rows(rows), warnings)) => (rows, warnings),
            Ok((other, _)) => {
                lines.push(format!("{other:?}"));
                return lines;
            }
            Err(error) => {
                lines.push(format!("x {} {error}", code(&error)));
                return lines;
            }
        };
        if lines.is_empty() {
            let column = |c: &halcyon_model::request::ColumnSpec| {
                format!("{} {}", c.name, type_text(&c.cql_type))
            };
            let columns: Vec<String> = rows.columns.iter().map(column).collect();
            lines.push(format!("= {}", columns.join(" | ")));
        }
        lines.extend(rows_text(&rows));
        lines.extend(warnings.iter().chain(&rows.warnings).map(|warning| format!("w {warning}")));
        if page_size.is_some() {
            let shown = rows.paging_state.as_ref().map(|state| halcyon_model::hex::encode(state));
            lines.push(format!("~ {}", shown.unwrap_or_else(|| "end".to_owned())));
        }
        match rows.paging_state {
            None => return lines,
            found => state = found,
        }
    }
}

/// What a client learns of a statement's markers.
fn markers(node: &Coordinator, text: &str) -> Vec<String> {
    let statement = match halcyon_query::prepare(node, text, None) {
        Ok(statement) => statement,
        Err(error) => return vec![format!("x {} {error}", code(&error))],
    };
    let specs = statement.variables.specs.iter();
    let markers: Vec<String> =
        specs.map(|spec| format!("{} {}", spec.name, type_text(&spec.cql_type))).collect();
    let key: Vec<String> = statement.variables.partition_key.iter().map(u16::to_string).collect();
    let line = |mark: &str, text: String| format!("{mark} {text}").trim_end().to_owned();
    vec![line("v", markers.join(" | ")), line("k", key.join(" "))]
}

/// What of a line is compared. Of a paging state that names no row, Cassandra's still has the row before.
fn compared(line: &str) -> &str {
    match line.strip_prefix("~ ") {
        Some("end") => line,
        Some(_) => "~ more",
        None => line.split("signatures").next().unwrap_or(line),
    }
}

/// Proves that answers are Cassandra's.
#[test]
fn answers_are_cassandras() {
    let recorded = include_str!("../data/recorded_selects.txt");
    SimRuntime::seeded(1).block_on(async {
        let node = start().await;
        node::join(&node).await;
        let mut lines = recorded.lines().peekable();
        let mut different = Vec::new();
        while let Some(line) = lines.next() {
            let Some((mark, text)) = line.split_once(' ') else { continue };
            if let Some(statement) = line.strip_prefix('!') {
                execute(&node, statement, None, None)
                    .await
                    .unwrap_or_else(|e| panic!("{line}: {e}"));
                continue;
            }
            let page_size = mark.strip_prefix('@').map(|size| size.parse().expect("a size"));
            let mut expected = Vec::new();
            while let Some(answer) = lines.next_if(|l| !l.starts_with(['!', '?', '@', '%'])) {
                expected.push(answer);
            }
            let found = match mark {
                "%" => markers(&node, text),
                _ => ask(&node, text, page_size).await,
            };
            let same = found.len() == expected.len()
                && found.iter().zip(&expected).all(|(a, b)| compared(a) == compared(b));
            if !same {
                different.push(format!(
                    "{line}\n  Cassandra:\n    {}\n  Halcyon:\n    {}",
                    expected.join("\n    "),
                    found.join("\n    ")
                ));
            }
        }
        let count = different.len();
        assert!(different.is_empty(), "{}\n{count} answers differ", different.join("\n"));
    });
}

/// Proves that pages of what indexes find are its rows, whether an index has rows, whole partitions, or both are searched.
#[test]
fn pages_of_indexes_are_the_rows() {
    SimRuntime::seeded(1).block_on(async {
        let node = start().await;
        let run = async |text: &str| {
            execute(&node, text, None, None).await.unwrap_or_else(|e| panic!("{text}: {e}"))
        };
        run("CREATE KEYSPACE pi WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}").await;
        run("CREATE TABLE pi.t (a int, b int, c int, s int static, v int, PRIMARY KEY ((a, b), c))").await;
        for column in ["b", "s", "c"] {
            run(&format!("CREATE INDEX ON pi.t ({column})")).await;
        }
        for (a, b) in (0..4).flat_map(|a| [(a, 0), (a, 1)]) {
            run(&format!("UPDATE pi.t SET s = {} WHERE a = {a} AND b = {b}", a % 2)).await;
            for c in 0..30 {
                run(&format!("INSERT INTO pi.t (a, b, c, v) VALUES ({a}, {b}, {c}, {})", c % 3)).await;
            }
        }
        let of_conditions = [
            ("b = 1", 120),
            ("s = 1", 120),
            ("b = 1 AND s = 1", 60),
            ("c = 7", 8),
            ("c = 7 AND b = 1", 4),
            ("b = 0 AND c > 3 AND v = 1", 36),
            ("a = 1 AND b = 1 AND s = 1", 30),
        ];
        for (condition, count) in of_conditions {
            let text = format!("SELECT a, b, c FROM pi.t WHERE {condition} ALLOW FILTERING");
            let is_row = |line: &String| line.starts_with("- ");
            let all = ask(&node, &text, None).await;
            let all: Vec<String> = all.into_iter().filter(is_row).collect();
            assert_eq!(all.len(), count, "{text}");
            for size in [1, 2, 7, 30, 64, 100] {
                let pages = ask(&node, &text, Some(size)).await;
                let pages: Vec<String> = pages.into_iter().filter(is_row).collect();
                assert_eq!(pages, all, "{text}, in pages of {size}");
            }
        }
    });
}
