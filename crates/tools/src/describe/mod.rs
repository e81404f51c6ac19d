//! The contents of an SSTable's components.

mod bytes;
mod component_bytes;
mod fragments;

use halcyon_io::Disk;
use halcyon_model::CqlType;
use halcyon_model::token::split_key;
use halcyon_model::value::{to_cql_literal, to_string};
use halcyon_sstable::format::filter::Filter;
use halcyon_sstable::format::listing::ListedSSTable;
use halcyon_sstable::format::toc::Toc;
use halcyon_sstable::{Component, OpenOptions, SSTable};

pub use bytes::describe as describe_bytes;
pub use component_bytes::ComponentBytes;

use crate::error::Result;
use crate::paths::TableName;

/// The description of one SSTable.
pub struct Description<'a> {
    pub table: &'a TableName,
    pub listed: &'a ListedSSTable,
    pub sstable: SSTable,
    /// Components (and files of indexes) with their sizes in bytes.
    pub files: Vec<(String, u64)>,
    /// The lines of TOC.txt; `None` without the file.
    pub toc: Option<Vec<String>>,
    /// `None` without a filter.
    pub filter: Option<Filter>,
    now: u32,
}

/// Reads all components but Data.db and the index.
pub async fn describe<'a>(
    disk: &Disk,
    table: &'a TableName,
    listed: &'a ListedSSTable,
) -> Result<Description<'a>> {
    let now = u32::try_from(disk.clock().unix_seconds()).unwrap_or(u32::MAX);
    let sstable = SSTable::open_listed(disk, listed, OpenOptions::default()).await?;
    let descriptor = &listed.descriptor;
    let names = listed.components.iter().map(|c| c.to_string()).chain(listed.extra.iter().cloned());
    let mut files = Vec::new();
    for name in names {
        let size = disk.stat(&descriptor.path_of(&name)).await?.len;
        files.push((name, size));
    }
    let toc = match listed.has(Component::Toc) {
        false => None,
        true => {
            let path = descriptor.component_path(Component::Toc);
            let bytes = disk.read(&path, 1 << 20).await?;
            let toc = Toc::decode(&mut halcyon_model::Cursor::new(&bytes))
                .map_err(|e| halcyon_sstable::Error::corrupt(path, Component::Toc, e))?;
            Some(toc.names)
        }
    };
    let filter = match listed.has(Component::Filter) {
        true => Some(sstable.filter(disk).await?),
        false => None,
    };
    Ok(Description { table, listed, sstable, files, toc, filter, now })
}

impl Description<'_> {
    /// Bits of the filter; 0 if it accepts every key.
    pub fn filter_bits(&self) -> Option<u64> {
        self.filter.as_ref().map(|filter| 8 * filter.memory() as u64)
    }

    /// Tombstones that could be purged now with gc_grace_seconds = 0, per cell.
    pub fn droppable_ratio(&self) -> f64 {
        let stats = &self.sstable.statistics().stats;
        let cells = &stats.cells_per_partition;
        let all = (cells.mean() * cells.count() as f64).trunc();
        if all > 0.0 { stats.tombstone_drop_times.sum(self.now) / all } else { 0.0 }
    }
}

/// A partition key; the parts of a composite one as literals in parentheses.
pub fn key_text(key_type: &CqlType, key: &[u8]) -> String {
    if let CqlType::Composite(types) = key_type
        && let Some(parts) = split_key(key, types.len())
    {
        let parts: Vec<String> =
            types.iter().zip(parts).map(|(t, p)| to_cql_literal(t, p)).collect();
        return format!("({})", parts.join(", "));
    }
    to_string(key_type, key)
}
