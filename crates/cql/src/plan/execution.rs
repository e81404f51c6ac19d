//! What one execution of a plan gives its terms.

use halcyon_model::request::Value;
use halcyon_model::uuid;

/// What all terms of one execution see the same way.
#[derive(Debug, Clone, Copy)]
pub struct Execution<'a> {
    /// By marker.
    pub values: &'a [Value<'a>],
    /// The request's time: `now()`, `currentTimestamp()`, default timestamps.
    pub now_micros: i64,
    /// Seconds; the client's `now_in_seconds` if it sent one.
    pub now_seconds: i32,
    pub protocol_version: u8,
    /// The source of unique values: `uuid()`, `now()`, list cells.
    pub uuids: &'a uuid::Generator,
    /// The values of the columns in the JSON of an INSERT.
    pub json: &'a [Given],
}

/// The value that a member of the JSON gives its column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Given {
    /// The column is not named.
    Nothing,
    Null,
    Value(Vec<u8>),
}
