//! Statements that the server executes itself, for traces and prepared statements.

use std::sync::Arc;

use halcyon_model::request::{Consistency, Value};
use halcyon_query::{Client, Outcome, QueryOptions, Result};

use crate::shard::ShardServer;

pub(crate) async fn execute(
    shard: &ShardServer,
    text: &str,
    values: &[Value<'_>],
) -> Result<Outcome> {
    let client = Client::default();
    let statement = Arc::new(shard.coordinator.prepare(text, &client)?);
    let options = QueryOptions {
        consistency: Consistency::One,
        values,
        protocol_version: 5,
        ..QueryOptions::default()
    };
    // Boxed to keep the callers' futures small.
    Box::pin(shard.coordinator.execute(&statement, &options, &client)).await
}
