//! Statements that the server executes itself, for traces, prepared statements and estimates.

use std::sync::Arc;

use futures_util::future::try_join_all;
use halcyon_client::Rows;
use halcyon_model::access::Principal;
use halcyon_model::request::{Consistency, Value};
use halcyon_model::{Cursor, DecodeResult};
use halcyon_query::{self as query, Coordinator, Error, Outcome, QueryOptions, Result};

pub(crate) async fn execute(
    coordinator: &Coordinator,
    text: &str,
    values: &[Value<'_>],
) -> Result<Outcome> {
    execute_at(coordinator, Consistency::One, text, values).await
}

/// As [`execute`], with a consistency level.
pub(crate) async fn execute_at(
    coordinator: &Coordinator,
    consistency: Consistency,
    text: &str,
    values: &[Value<'_>],
) -> Result<Outcome> {
    let statement = Arc::new(query::prepare(coordinator, text, None)?);
    let options = QueryOptions { consistency, ..options(values) };
    // Boxed to keep the callers' futures small.
    query::execute(coordinator, &statement, &options, &Principal::System).await
}

/// The same with each of these rows of values, all at once, so that they share groups of the commit log: one after the other, each
/// would be a group of its own, with its own flush of the device.
pub(crate) async fn execute_all(
    coordinator: &Coordinator,
    text: &str,
    rows: &[Vec<Value<'_>>],
) -> Result<()> {
    let statement = Arc::new(query::prepare(coordinator, text, None)?);
    let options: Vec<QueryOptions<'_>> = rows.iter().map(|values| options(values)).collect();
    let all = options
        .iter()
        .map(|options| query::execute(coordinator, &statement, options, &Principal::System));
    Box::pin(try_join_all(all)).await.map(drop)
}

fn options<'a>(values: &'a [Value<'a>]) -> QueryOptions<'a> {
    QueryOptions {
        consistency: Consistency::One,
        values,
        protocol_version: 5,
        ..QueryOptions::default()
    }
}

/// The rows of a statement, as a client has them.
pub(crate) async fn select(coordinator: &Coordinator, text: &str) -> Result<Rows> {
    let Outcome::Rows(rows) = execute(coordinator, text, &[]).await? else {
        return Ok(Rows::default());
    };
    let mut cursor = Cursor::new(&rows.content);
    let mut value = || -> DecodeResult<Option<Vec<u8>>> {
        let [value] = row::<1>(&mut cursor)?;
        Ok(value.map(<[u8]>::to_vec))
    };
    let columns: Vec<String> = rows.columns.iter().map(|column| column.name.clone()).collect();
    let decoded: DecodeResult<Vec<_>> =
        (0..rows.count).map(|_| columns.iter().map(|_| value()).collect()).collect();
    let decoded = decoded.map_err(|error| Error::Server(error.to_string()))?;
    Ok(Rows::of(columns, decoded))
}

/// The values of the next row of an answer.
pub(crate) fn row<'a, const COLUMNS: usize>(
    cursor: &mut Cursor<'a>,
) -> DecodeResult<[Option<&'a [u8]>; COLUMNS]> {
    let mut values = [None; COLUMNS];
    for value in &mut values {
        if let Ok(length) = usize::try_from(cursor.i32()?) {
            *value = Some(cursor.take(length)?);
        }
    }
    Ok(values)
}
