//! BIG: Index.db.

mod index;
mod index_writer;
pub(crate) mod promoted;
#[cfg(test)]
mod tests;

pub use index::{Entry, EntryScan, MAX_ENTRY_HEAD, Scanned, read_entry};
pub use index_writer::{FinishedIndex, IndexWriter};
pub use promoted::{IndexInfo, PromotedIndex, PromotedLayout, describe_entry};
