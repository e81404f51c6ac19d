//! CQL: parsed, prepared, executed, paged, batched.
//!
//! ```text
//! form │ statement \n statement \n …  │ 0 │ values for its markers: length (255 null, 254 unset), bytes
//! ```

use std::pin::Pin;

use halcyon_model::request::{BatchKind, Consistency, Value};
use halcyon_protocol::client::Answer;
use halcyon_protocol::{BatchQuery, QueryParameters, Values};

use super::Connection;

/// Bits of the form: the size of a page, whether everything is prepared, whether all is one batch.
const PAGE: u8 = 3;
const PREPARES: u8 = 4;
const BATCHES: u8 = 8;
const PAGES: usize = 4;
const STATEMENTS: usize = 12;
const LENGTH: usize = 16 << 10;

pub fn run<'a>(
    connection: &'a mut Connection,
    bytes: &'a [u8],
) -> Pin<Box<dyn Future<Output = ()> + 'a>> {
    Box::pin(execute(connection, bytes))
}

async fn execute(connection: &mut Connection, bytes: &[u8]) {
    let Some((form, rest)) = bytes.split_first() else { return };
    let rest = &rest[..rest.len().min(LENGTH)];
    let mut parts = rest.splitn(2, |byte| *byte == 0);
    let text = String::from_utf8_lossy(parts.next().unwrap_or_default());
    let mut values = parts.next().unwrap_or_default();
    let statements: Vec<&str> = text.lines().take(STATEMENTS).collect();
    if form & BATCHES != 0 {
        return batch(connection, *form, &statements, values).await;
    }
    for statement in statements {
        connection.tampers |= tampers(statement);
        one(connection, *form, statement, &mut values).await;
    }
}

/// Whether it may write to `system_schema`.
fn tampers(statement: &str) -> bool {
    let statement = statement.to_ascii_lowercase();
    let writes = ["insert", "update", "delete", "truncate", "use", "alter"];
    statement.contains("system_schema") && writes.iter().any(|word| statement.contains(word))
}

fn take<'a>(values: &mut &'a [u8], count: usize) -> Vec<Value<'a>> {
    let mut taken = Vec::new();
    for _ in 0..count {
        let (length, rest) = values.split_first().map_or((255, &[][..]), |(l, rest)| (*l, rest));
        let (value, rest) = match length {
            255 => (Value::Null, rest),
            254 => (Value::Unset, rest),
            length => {
                let (value, rest) = rest.split_at(usize::from(length).min(rest.len()));
                (Value::Bytes(value), rest)
            }
        };
        taken.push(value);
        *values = rest;
    }
    taken
}

fn markers(statement: &str) -> usize {
    statement.matches(['?', ':']).count()
}

async fn one(connection: &mut Connection, form: u8, statement: &str, values: &mut &[u8]) {
    let values = Values::Positional(take(values, markers(statement)));
    let page_size = Some(i32::from(form & PAGE)).filter(|size| *size > 0);
    let mut id = None;
    if form & PREPARES != 0 {
        connection.session.client.prepare(0, statement);
        match connection.answer(statement).await {
            Answer::Prepared { id: prepared, result_metadata_id } => {
                id = Some((prepared, result_metadata_id.unwrap_or_default()));
            }
            _ => return,
        }
    }
    let mut state: Option<Vec<u8>> = None;
    for _ in 0..PAGES {
        let parameters = QueryParameters {
            page_size,
            paging_state: state.as_deref(),
            values: values.clone(),
            ..QueryParameters::new(Consistency::One)
        };
        match &id {
            Some((id, metadata)) => connection.session.client.execute(0, id, metadata, &parameters),
            None => connection.session.client.query(0, statement, &parameters),
        }
        match connection.answer(statement).await {
            Answer::Rows(page) if page.paging_state.is_some() => state = page.paging_state,
            _ => return,
        }
    }
}

async fn batch(connection: &mut Connection, form: u8, statements: &[&str], mut values: &[u8]) {
    let kinds = [BatchKind::Logged, BatchKind::Unlogged, BatchKind::Counter];
    let kind = kinds[usize::from(form & PAGE) % kinds.len()];
    let mut entries = Vec::new();
    for statement in statements {
        connection.tampers |= tampers(statement);
        entries.push((BatchQuery::Text(statement), take(&mut values, markers(statement))));
    }
    connection.session.client.batch(0, kind, &entries, &QueryParameters::new(Consistency::One));
    connection.answer(&statements.join("; ")).await;
}
