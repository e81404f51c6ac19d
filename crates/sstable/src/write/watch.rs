//! What is written of an SSTable, as it is written: for warnings of large partitions.

use halcyon_stream::{Column, PartitionKey, Row};

use crate::Descriptor;

/// Sees the rows and the ends of partitions.
pub trait Watch: Send + Sync {
    /// Whether it sees rows.
    fn sees_rows(&self) -> bool;

    /// `columns`: what the cells' numbers mean.
    fn row(&self, key: &PartitionKey, columns: &[Column], row: Row<'_>);

    /// `size`: uncompressed bytes in the data. `tombstones`: what has a time of deletion or expiration.
    fn partition(&self, of: &Descriptor, key: &PartitionKey, size: u64, tombstones: u64);
}
