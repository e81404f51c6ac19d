//! Sessions that Apache Cassandra 5.0.9 answered (`e2e/record_sessions.py`), answered again by a node of two shards on the
//! simulated disk: rows, warnings and errors must be the same.
//!
//! ```text
//! ! statement        makes what the others are about
//! > statement        asked        >c/s with consistency and serial consistency        >p prepared        >b bound to it
//! < answer           ok | names | values in hex | ! code message
//! ```

use std::path::Path;
use std::sync::Arc;

use halcyon_engine::Options;
use halcyon_io::{Disk, SimRuntime};
use halcyon_model::access::Principal;
use halcyon_model::hex;
use halcyon_model::request::{Consistency, Value};
use halcyon_query::{Coordinator, Error, Outcome, PreparedStatement, QueryOptions, Rows};

use crate::node::{self, code};

struct Session {
    coordinator: Coordinator,
    keyspace: Option<String>,
    last: Option<Arc<PreparedStatement>>,
}

impl Session {
    async fn open() -> Session {
        let allow_views = |options: &mut Options| options.views.is_creation_allowed = true;
        let coordinator = node::start_on(Disk::simulated(1).0, allow_views).await;
        node::join(&coordinator).await;
        Session { coordinator, keyspace: None, last: None }
    }

    async fn prepare_node(&mut self, statement: &str) {
        let answer = self.answer(&format!("> {statement}")).await;
        assert!(!answer.starts_with("! "), "{statement}: {answer}");
    }

    async fn answer(&mut self, line: &str) -> String {
        match self.run(line).await {
            Ok((outcome, warnings)) => show(outcome, warnings),
            Err(error) => format!("! {} {}", code(&error), message(&error)).replace('\n', "\\n"),
        }
    }

    async fn run(&mut self, line: &str) -> Result<(Outcome, Vec<String>), Error> {
        let (tag, text) = line[1..].split_once(' ').expect("a text");
        let keyspace = self.keyspace.clone();
        let keyspace = keyspace.as_deref();
        let mut options = QueryOptions { keyspace, protocol_version: 4, ..QueryOptions::default() };
        if tag == "b" {
            let bytes: Vec<Vec<u8>> = text.split(' ').map(bytes).collect();
            let values: Vec<_> = text.split(' ').zip(&bytes).map(value).collect();
            options.values = &values;
            let statement = self.last.clone().expect("prepared");
            let outcome = halcyon_query::execute(
                &self.coordinator,
                &statement,
                &options,
                &Principal::Anonymous,
            )
            .await?;
            return Ok((outcome, statement.warnings.clone()));
        }
        if let Some((consistency, serial)) = tag.split_once('/') {
            let level = |code: &str| Consistency::from_code(code.parse().ok()?);
            options.consistency = level(consistency).expect("a level");
            options.serial_consistency = level(serial);
        }
        let statement = Arc::new(halcyon_query::prepare(&self.coordinator, text, keyspace)?);
        if tag == "p" {
            halcyon_query::validate(&self.coordinator, &statement, keyspace, &Principal::Anonymous)
                .await?;
            self.last = Some(statement);
            return Ok((Outcome::Void, Vec::new()));
        }
        let outcome =
            halcyon_query::execute(&self.coordinator, &statement, &options, &Principal::Anonymous)
                .await?;
        if let Outcome::SetKeyspace(keyspace) = &outcome {
            self.keyspace = Some(keyspace.clone());
        }
        Ok((outcome, statement.warnings.clone()))
    }
}

fn bytes(text: &str) -> Vec<u8> {
    hex::decode(text).unwrap_or_default()
}

fn value<'a>((text, bytes): (&str, &'a Vec<u8>)) -> Value<'a> {
    match text {
        "null" => Value::Null,
        "unset" => Value::Unset,
        _ => Value::Bytes(bytes),
    }
}

fn message(error: &Error) -> String {
    match error {
        Error::Unavailable { required, alive, .. } => {
            format!("{error} required {required} alive {alive}")
        }
        other => other.to_string(),
    }
}

fn show(outcome: Outcome, mut warnings: Vec<String>) -> String {
    let shown = match outcome {
        Outcome::Rows(rows) => {
            warnings.extend(rows.warnings.iter().cloned());
            show_rows(&rows)
        }
        Outcome::Warned(said) => {
            warnings.extend(said);
            "ok".to_owned()
        }
        Outcome::SchemaChange { warnings: said, .. } => {
            warnings.extend(said);
            "ok".to_owned()
        }
        Outcome::Void | Outcome::SetKeyspace(_) => "ok".to_owned(),
    };
    let warnings: String = warnings.iter().map(|warning| format!("\\n  w {warning}")).collect();
    shown + &warnings
}

fn show_rows(rows: &Rows) -> String {
    let names: Vec<&str> = rows.columns.iter().map(|column| column.name.as_str()).collect();
    let mut content = rows.content.as_slice();
    let mut value = || {
        let (length, rest) = content.split_first_chunk::<4>().expect("a length");
        content = rest;
        let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
            return "null".to_owned();
        };
        let (value, rest) = content.split_at(length);
        content = rest;
        hex::encode(value)
    };
    let shown: Vec<String> = (0..rows.count)
        .map(|_| names.iter().map(|_| value()).collect::<Vec<_>>().join(","))
        .collect();
    format!("{} | {}", names.join(","), shown.join(";"))
}

async fn differences(recorded: &str) -> Vec<String> {
    let mut session = Session::open().await;
    let mut wrong = Vec::new();
    let mut lines = recorded.lines().filter(|line| !line.starts_with('#'));
    while let Some(line) = lines.next() {
        if let Some(statement) = line.strip_prefix("! ") {
            session.prepare_node(statement).await;
            continue;
        }
        let expected = lines.next().and_then(|line| line.strip_prefix("< ")).expect("an answer");
        let found = session.answer(line).await;
        if found != expected {
            wrong.push(format!("{line}\n   Cassandra: {expected}\n   Halcyon:   {found}"));
        }
    }
    wrong
}

/// Proves that writes, batches, conditions, counters, JSON, consistency levels and limits are answered as by Cassandra.
#[test]
fn sessions_are_answered_as_by_cassandra() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/sessions");
    let files = std::fs::read_dir(folder).expect("a folder");
    let mut report = Vec::new();
    for file in files {
        let path = file.expect("readable").path();
        let recorded = std::fs::read_to_string(&path).expect("readable");
        let wrong = SimRuntime::seeded(1).block_on(differences(&recorded));
        if !wrong.is_empty() {
            report.push(format!(
                "{}: {} differ\n{}",
                path.display(),
                wrong.len(),
                wrong.join("\n")
            ));
        }
    }
    assert!(report.is_empty(), "{}", report.join("\n"));
}
