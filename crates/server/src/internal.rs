//! Statements that the server itself executes: traces, what is prepared.

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
    // Boxed, so that the futures that await it are small.
    Box::pin(shard.coordinator.execute(&statement, &options, &client)).await
}
