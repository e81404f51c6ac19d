//! The row cache, and caches saved across restarts.

pub(crate) mod carried;
mod positions;
pub(crate) mod rows;
pub(crate) mod saved;
mod share;

pub use rows::RowCacheStats;
pub use saved::SavedCache;
