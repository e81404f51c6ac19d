//! The options of a table: read, validated in Cassandra's words, given their defaults, printed.
//!
//! 1. A statement's value is read as Cassandra reads it; what it does not understand is refused there and then.
//! 2. What is in force after the statement is validated as a whole.
//! 3. The types here are what strategies, writers and caches take: what was accepted, nothing refuses later.
//! 4. What comes from the disk is read leniently ([`MapOption::lenient`]): a table is served whatever its row says.

pub mod caching;
pub mod compaction;
pub mod compression;
pub mod defaults;
mod map_option;
mod print;
mod speculative;
mod table;
#[cfg(test)]
mod tests;

pub use caching::{CachedRows, Caching};
pub use compaction::{Compaction, Leveled, SizeTiered, Strategy, TimeWindow, Unified};
pub use compression::{Compressed, Compression, CompressorKind};
pub use map_option::{Entries, MapOption, SubOptions};
pub use print::literal;
pub use table::{Given, NAMES, TableOptions, boolean};

pub use compaction::hash_order;

/// Why Cassandra would refuse an option. The text is its message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OptionError {
    /// SyntaxException
    #[error("{0}")]
    Syntax(String),
    /// ConfigurationException
    #[error("{0}")]
    Configuration(String),
}

impl OptionError {
    fn configuration(message: &str) -> OptionError {
        OptionError::Configuration(message.to_owned())
    }
}
