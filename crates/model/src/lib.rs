//! The vocabulary of Halcyon: CQL types and values, keys and tokens, liveness, deletion, and the rules by
//! which two versions of the same thing are reconciled.  No I/O, no async, no unsafe.
#![forbid(unsafe_code)]
#![deny(clippy::expect_used)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod access;
pub mod analysis;
pub mod byte_comparable;
pub mod bytes;
pub mod clustering;
pub mod counter;
pub mod hex;
pub mod options;
mod path_component;
pub mod reconcile;
pub mod request;
pub mod schema;
pub mod similarity;
pub mod time;
pub mod token;
pub mod types;
pub mod units;
pub mod uuid;
pub mod value;
mod visible;

pub use bytes::{Cursor, DecodeError, DecodeResult};
pub use clustering::{BoundKind, Clusterings};
pub use path_component::path_component;
pub use time::{DeletionTime, Liveness, NO_DELETION_TIME, NO_TIMESTAMP, NO_TTL};
pub use token::{DecoratedKey, Partitioner, Token};
pub use types::CqlType;
pub use visible::{in_one_line, visible, visible_indented};
