//! The row cache, what the caches of all shards share, and caches saved across restarts.

pub(crate) mod carried;
pub(crate) mod memory;
pub(crate) mod rows;
pub(crate) mod saved;

pub use rows::RowCacheStats;
pub use saved::{SavedCache, SavedCaches};
