//! Prepared statements on disk, which a start prepares again.
//!
//! ```text
//! keyspace \n text of the statement
//! ```

use std::pin::Pin;

use halcyon_model::request::{Consistency, Value};
use halcyon_protocol::{QueryParameters, Values};

use super::Connection;

const INSERT: &str = "INSERT INTO system.prepared_statements (prepared_id, logged_keyspace, query_string) VALUES (?, ?, ?)";

pub fn run<'a>(
    connection: &'a mut Connection,
    bytes: &'a [u8],
) -> Pin<Box<dyn Future<Output = ()> + 'a>> {
    Box::pin(async move {
        let stored = String::from_utf8_lossy(bytes);
        let (keyspace, text) = stored.split_once('\n').unwrap_or(("", &stored));
        // Any id: a start asks whether the statement can be prepared, not whether this is its hash.
        let id: Vec<u8> =
            (0..16).map(|at| bytes.get(at).map_or(at as u8, |byte| byte ^ at as u8)).collect();
        let keyspace =
            if keyspace.is_empty() { Value::Null } else { Value::Bytes(keyspace.as_bytes()) };
        let values = vec![Value::Bytes(&id), keyspace, Value::Bytes(text.as_bytes())];
        let values = Values::Positional(values);
        let parameters = QueryParameters { values, ..QueryParameters::new(Consistency::One) };
        connection.session.client.query(0, INSERT, &parameters);
        connection.answer(INSERT).await;
    })
}
