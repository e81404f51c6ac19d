//! The files of indexes: written beside an SSTable, found, and given up.

use std::sync::Arc;

use halcyon_io::Purpose;
use halcyon_sstable::attached::{Destination, IndexBuilder, component_name, write_sorted};
use halcyon_sstable::format::toc;
use halcyon_sstable::{Descriptor, ScanOptions};
use halcyon_stream::{Fragment, FragmentStream, PartitionKey};

use super::TableIndex;
use crate::Result;
use crate::engine::Engine;
use crate::memtable::Memtable;
use crate::version::LiveSSTable;

/// Entries that are sorted in memory.
const SORTED: usize = 32 << 20;

/// Rows of an SSTable between two looks at whether the build is to stop.
const ROWS: u32 = 1024;

impl Engine {
    fn destination(&self, descriptor: &Descriptor, index: &TableIndex) -> Destination {
        Destination {
            path: descriptor.path_of(&component_name(&index.name)),
            fingerprint: index.fingerprint.clone(),
            clusterings: index.target.layout.clusterings.clone(),
            mode: self.options.background_write_mode,
            purpose: Purpose::Flush,
        }
    }

    /// Writes the indexes of a memtable beside the SSTable that it has become.
    pub(crate) async fn write_indexes(
        &self,
        descriptor: &Descriptor,
        memtable: &Memtable,
    ) -> Result<()> {
        for index in memtable.indexes() {
            let to = self.destination(descriptor, &index.of);
            write_sorted(&self.disk, &to, index.entries().cloned()).await?;
        }
        self.list_indexes(descriptor, memtable.indexes().iter().map(|index| &index.of)).await
    }

    /// Makes the index of an SSTable from its rows. `go_on` is asked now and then, with the bytes of data that were read since.
    pub(super) async fn build_index(
        &self,
        live: &Arc<LiveSSTable>,
        index: &TableIndex,
        mut go_on: impl FnMut(u64) -> bool,
    ) -> Result<()> {
        let to = Destination {
            purpose: Purpose::CompactionWrite,
            ..self.destination(live.descriptor(), index)
        };
        // One of another definition, or that could not be used.
        match self.disk.remove(&to.path).await {
            Err(e) if !e.is_not_found() => return Err(e.into()),
            _ => {}
        }
        let options = ScanOptions {
            mode: self.options.background_read_mode,
            purpose: Purpose::CompactionRead,
            layout: Some(index.target.layout.clone()),
            ..ScanOptions::default()
        };
        let mut scan = live.sstable().scan(&self.disk, options).await?;
        let mut builder = IndexBuilder::new(&self.disk, to, SORTED);
        let walked = async {
            let (mut key, mut shared) = (PartitionKey::empty(), Arc::from(Vec::new()));
            let (mut seen, mut read, mut rows) = (false, 0, 0);
            while scan.advance().await? {
                match scan.fragment() {
                    Fragment::Start(start) => {
                        key.copy_from(start.key);
                        shared = Arc::from(key.bytes.as_slice());
                        seen = false;
                    }
                    Fragment::Static(row) => {
                        index.target.of_static(&key, &row, |entry| builder.add(entry));
                    }
                    Fragment::Row(row) => {
                        read += row.bytes.len() as u64;
                        halcyon_io::give_way(row.bytes.len());
                        index.target.of_row(key.token, &shared, &row, |entry| builder.add(entry));
                    }
                    Fragment::Marker(_) | Fragment::End => continue,
                }
                if !seen && !matches!(scan.fragment(), Fragment::Start(_)) {
                    seen = true;
                    index.target.of_key(&key, |entry| builder.add(entry));
                }
                if builder.is_full() {
                    builder.spill().await?;
                }
                rows += 1;
                if rows == ROWS {
                    if !go_on(read) {
                        return Err(halcyon_compaction::Error::Cancelled.into());
                    }
                    (rows, read) = (0, 0);
                }
            }
            Ok(())
        };
        if let Err(e) = walked.await {
            builder.abandon().await;
            return Err(e);
        }
        Ok(builder.finish().await?)
    }

    /// Makes those indexes of a compaction's output that it does not have.
    pub(crate) async fn build_indexes(
        &self,
        live: &Arc<LiveSSTable>,
        indexes: &[TableIndex],
        mut go_on: impl FnMut(u64) -> bool,
    ) -> Result<()> {
        let missing: Vec<&TableIndex> = live.lacks(indexes).collect();
        for index in &missing {
            self.build_index(live, index, &mut go_on).await?;
        }
        self.list_indexes(live.descriptor(), missing.iter().copied()).await?;
        for index in missing {
            live.open_index(&self.disk, index, self.options.read_mode).await?;
        }
        Ok(())
    }

    /// Names the files of indexes in TOC.txt, so that Cassandra deletes them with the SSTable.
    async fn list_indexes<'a>(
        &self,
        descriptor: &Descriptor,
        indexes: impl Iterator<Item = &'a TableIndex>,
    ) -> Result<()> {
        let names: Vec<String> = indexes.map(|index| component_name(&index.name)).collect();
        if !names.is_empty() {
            toc::add(&self.disk, descriptor, &names).await?;
        }
        Ok(())
    }
}
