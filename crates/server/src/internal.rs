//! Statements that the server executes itself, for traces, prepared statements and estimates.

use std::sync::Arc;

use halcyon_model::request::{Consistency, Value};
use halcyon_model::{Cursor, DecodeResult};
use halcyon_query::{Client, Coordinator, Outcome, QueryOptions, Result};

pub(crate) async fn execute(
    coordinator: &Coordinator,
    text: &str,
    values: &[Value<'_>],
) -> Result<Outcome> {
    let client = Client::default();
    let statement = Arc::new(coordinator.prepare(text, &client)?);
    let options = QueryOptions {
        consistency: Consistency::One,
        values,
        protocol_version: 5,
        ..QueryOptions::default()
    };
    // Boxed to keep the callers' futures small.
    Box::pin(coordinator.execute(&statement, &options, &client)).await
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
