//! Values and their texts, as Cassandra renders and reads them. It renders in three ways:
//!
//! | function | Cassandra | used for |
//! |---|---|---|
//! | `to_json_string` | `AbstractType.toJSONString` | sstabledump's clusterings and cell values; SELECT JSON |
//! | `to_string` | `AbstractType.getString` | sstabledump's partition keys and paths; messages |
//! | `to_cql_literal` | `CQL3Type.toCQLLiteral` | statements |
//!
//! `from_string` is `AbstractType.fromString`: what a text constant, a text in JSON or a stored argument of a mask stands for.
//!
//! Where Cassandra would throw (bytes that are not a value of the type), the bytes are shown as hex: `"0x…"` in JSON,
//! `0x…` as a literal, plain hex as a string.  So damaged data is still visible.

mod calendar;
mod duration;
mod from_text;
mod java_float;
mod json;
mod literal;
mod number;
mod number_text;
mod plain;
mod temporal;
mod zones;

#[cfg(test)]
mod tests;

pub use calendar::{date_string, timestamp_iso_string, timestamp_json_string};
pub use duration::parse_duration;
pub use from_text::from_string;
pub use java_float::{double_to_string, float_to_string, parse_double};
pub use json::{quote_json, to_json_string};
pub use literal::to_cql_literal;
pub use number_text::{integer, is_exact_double};
pub use plain::to_string;
pub use temporal::parse_instant;
