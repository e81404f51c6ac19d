//! Statements that the server itself executes: traces, what is prepared.

use std::sync::Arc;

use halcyon_protocol::Consistency;
use halcyon_query::{Client, Outcome, OwnedValue, QueryOptions, Result};

use crate::shard::ShardServer;

pub(crate) async fn execute(
    shard: &ShardServer,
    text: &str,
    values: Vec<OwnedValue>,
) -> Result<Outcome> {
    let client = Client::default();
    let statement = Arc::new(shard.coordinator.prepare(text, &client)?);
    let options = QueryOptions {
        consistency: Consistency::One.code(),
        values,
        protocol_version: 5,
        ..QueryOptions::default()
    };
    // Boxed: whoever awaits this has a small future.
    Box::pin(shard.coordinator.execute(&statement, &options, &client)).await
}

pub(crate) fn bytes(value: impl AsRef<[u8]>) -> OwnedValue {
    OwnedValue::Bytes(value.as_ref().to_vec())
}
