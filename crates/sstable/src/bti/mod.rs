//! BTI: Partitions.db and Rows.db, two tries of byte-comparable keys.
//!
//! ```text
//!                        Partitions.db                                    Data.db
//!   decorated key ──►  trie of key prefixes ── no row index ──────────►  partition
//!                              │                                            ▲ + offset
//!                              └──── ≥ 2 blocks ──► Rows.db: entry, trie of separators
//! ```

mod describe;
mod index_writer;
mod node;
mod node_writer;
mod output;
mod partition_index;
mod payload;
mod row_index_entry;
mod separator;
#[cfg(test)]
mod tests;
mod trie_cursor;
mod trie_writer;

pub use describe::{describe_partitions, describe_rows};
pub use index_writer::{FinishedIndex, IndexWriter};
pub use node::{Node, NodeKind, PAGE};
pub use partition_index::PartitionIndex;
pub use payload::{PartitionPayload, PartitionPosition, Payload, RowPayload};
pub use row_index_entry::RowIndexEntry;
pub use trie_cursor::TrieCursor;
