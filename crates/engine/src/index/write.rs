//! The files of indexes: written beside an SSTable, found, and given up.

use std::sync::Arc;

use halcyon_io::Purpose;
use halcyon_sstable::attached::{
    Destination, Held, IndexBuilder, Target, component_name, write_sorted,
};
use halcyon_sstable::format::toc;
use halcyon_sstable::{Descriptor, SSTableScanner, ScanOptions};
use halcyon_stream::{Fragment, FragmentStream, PartitionKey};

use super::TableIndex;
use crate::Result;
use crate::memtable::Memtable;
use crate::storage::Storage;
use crate::version::LiveSSTable;

/// Rows of an SSTable between two looks at whether the build is to stop.
const ROWS: u32 = 1024;

impl Storage {
    fn destination(&self, descriptor: &Descriptor, index: &TableIndex) -> Result<Destination> {
        Ok(Destination {
            path: descriptor.path_of(&component_name(&index.name)?),
            fingerprint: index.fingerprint.clone(),
            clusterings: index.target.layout.clusterings.clone(),
            mode: self.options.background_write_mode,
            purpose: Purpose::Flush,
        })
    }

    /// Writes the indexes of a memtable beside the SSTable that it has become.
    pub(crate) async fn write_indexes(
        &self,
        descriptor: &Descriptor,
        memtable: &Memtable,
    ) -> Result<()> {
        for index in memtable.indexes() {
            let to = self.destination(descriptor, &index.of)?;
            if index.is_sorted() {
                write_sorted(&self.disk, &to, index.entries().cloned()).await?;
                continue;
            }
            let mut builder = IndexBuilder::new(&self.disk, to, &index.of.target, 1);
            let entries = index.entries().cloned();
            let entries = entries.map(|entry| (entry.place, Held::One(entry.term)));
            for (place, held) in entries.chain(index.others()) {
                builder.add(place, held);
                if builder.is_full() {
                    builder.spill().await?;
                }
            }
            builder.finish().await?;
        }
        self.list_indexes(descriptor, memtable.indexes().iter().map(|index| &index.of)).await
    }

    /// Makes those of the indexes that an SSTable does not have, from its rows, which are read once. `go_on` is asked now and then, with
    /// the bytes of rows that were read since.
    pub(crate) async fn build_indexes(
        &self,
        live: &Arc<LiveSSTable>,
        indexes: &[TableIndex],
        go_on: impl FnMut(u64) -> bool,
    ) -> Result<()> {
        let missing: Vec<&TableIndex> = live.lacks(indexes).collect();
        let Some(first) = missing.first() else { return Ok(()) };
        let options = ScanOptions {
            mode: self.options.background_read_mode,
            purpose: Purpose::CompactionRead,
            // Of the table, as those of all its indexes.
            layout: Some(first.target.layout.clone()),
            ..ScanOptions::default()
        };
        let scan = live.sstable().scan(&self.disk, options).await?;
        let mut builders = Vec::with_capacity(missing.len());
        for index in &missing {
            let to = self.destination(live.descriptor(), index)?;
            let to = Destination { purpose: Purpose::CompactionWrite, ..to };
            // One of another definition, or that could not be used.
            match self.disk.remove(&to.path).await {
                Err(e) if !e.is_not_found() => return Err(e.into()),
                _ => {}
            }
            let builder = IndexBuilder::new(&self.disk, to, &index.target, missing.len());
            builders.push((&index.target, builder));
        }
        if let Err(e) = walk(scan, &mut builders, go_on).await {
            for (_, builder) in builders {
                builder.abandon().await;
            }
            return Err(e);
        }
        let mut outcome = Ok(());
        for (_, builder) in builders {
            match outcome {
                Ok(()) => outcome = builder.finish().await,
                Err(_) => builder.abandon().await,
            }
        }
        outcome?;
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
        let names: Vec<String> =
            indexes.map(|index| component_name(&index.name)).collect::<Result<_, _>>()?;
        if !names.is_empty() {
            toc::add(&self.disk, descriptor, &names).await?;
        }
        Ok(())
    }
}

/// Gives every builder the entries of its target.
async fn walk(
    mut scan: SSTableScanner,
    builders: &mut [(&Target, IndexBuilder)],
    mut go_on: impl FnMut(u64) -> bool,
) -> Result<()> {
    let (mut key, mut shared) = (PartitionKey::empty(), Arc::from(Vec::new()));
    let (mut seen, mut read, mut rows) = (false, 0, 0);
    while scan.advance().await? {
        let fragment = scan.fragment();
        let bytes = match fragment {
            Fragment::Start(start) => {
                key.copy_from(start.key);
                shared = Arc::from(key.bytes.as_slice());
                seen = false;
                continue;
            }
            Fragment::Static(row) | Fragment::Row(row) => row.bytes.len(),
            Fragment::Marker(_) | Fragment::End => continue,
        };
        let is_first = !std::mem::replace(&mut seen, true);
        for (target, builder) in builders.iter_mut() {
            match fragment {
                Fragment::Static(row) => {
                    target.of_static(&key, &row, |at, held| builder.add(at, held))
                }
                Fragment::Row(row) => {
                    target.of_row(key.token, &shared, &row, |at, held| builder.add(at, held))
                }
                _ => {}
            }
            if is_first {
                target.of_key(&key, |at, held| builder.add(at, held));
            }
        }
        for (_, builder) in builders.iter_mut().filter(|(_, builder)| builder.is_full()) {
            builder.spill().await?;
        }
        halcyon_io::give_way(bytes);
        read += bytes as u64;
        rows += 1;
        if rows == ROWS {
            if !go_on(read) {
                return Err(halcyon_compaction::Error::Cancelled.into());
            }
            (rows, read) = (0, 0);
        }
    }
    Ok(())
}
