//! The tools for Cassandra's files, without a server: each is a function from a typed request to typed results.
//!
//! | module | what |
//! |---|---|
//! | `paths` | the SSTables that paths name, by table |
//! | `schema_source` | where the schema of such a table comes from |
//! | `describe` | the contents of an SSTable's components, and every byte of one |
//! | `dump` | the partitions of SSTables |
//! | `verify` | checks SSTables |
//! | `compact` | compacts tables that no node has open |
//! | `doctor` | why a node reads more than its queries need |
//!
//! 1. A result that can be long goes to a callback, piece by piece. The callback's error ends the tool, so its type is the caller's.
//! 2. What a tool has to say beside its result goes to [`Notices`].
//! 3. Nothing here parses arguments or prints.
#![deny(clippy::expect_used)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod compact;
pub mod describe;
pub mod doctor;
pub mod dump;
mod error;
mod notices;
pub mod paths;
pub mod schema_source;
mod text;
pub mod verify;

pub use error::{Error, Result};
pub use notices::Notices;
pub use text::table;
