//! The index components of an SSTable that is being written: Index.db and Summary.db, or Partitions.db and Rows.db, and Filter.db.

use halcyon_io::{Disk, SequentialWriter, WriteOptions};
use halcyon_model::{Clusterings, DeletionTime, Partitioner};
use halcyon_stream::PartitionKey;

use crate::format::filter::Filter;
use crate::format::summary::{Summary, SummaryBuilder};
use crate::read::entry::RowIndexRef;
use crate::row_index::{Block, IndexEntry};
use crate::write::carry::Indexed;
use crate::write::options::WriterOptions;
use crate::{CHECKS, Component, Descriptor, Error, Format, Result, big, bti};

/// Pending bytes of an index that are worth a write.
const PENDING: usize = 64 * 1024;
/// Keys that go into the filter together.
const HASHES: usize = 64;

#[expect(clippy::large_enum_variant, reason = "one of them per SSTable that is being written")]
enum Family {
    Big { writer: big::IndexWriter, file: SequentialWriter, summary: SummaryBuilder },
    Bti { writer: bti::IndexWriter, partitions: SequentialWriter, rows: SequentialWriter },
}

pub(crate) struct IndexFiles {
    family: Family,
    filter: Option<Filter>,
    /// Of the last keys, which are not in the filter yet.
    hashes: Vec<(i64, i64)>,
    blocks: u64,
    partitions: u64,
    /// For assertions: where the partition starts in the data, and its last block ends in it.
    data_position: Option<u64>,
    block_end: u64,
}

/// The components that are written when the index is complete.
pub(crate) struct FinishedIndexes {
    pub(crate) partitions: u64,
    pub(crate) filter: Option<Filter>,
    pub(crate) summary: Option<Summary>,
}

impl IndexFiles {
    pub(crate) async fn create(
        disk: &Disk,
        descriptor: &Descriptor,
        partitioner: &Partitioner,
        options: &WriterOptions,
    ) -> Result<IndexFiles> {
        let create = async |component: Component| {
            let write = WriteOptions { buffer_size: 4 * PENDING, ..WriteOptions::default() };
            let path = descriptor.component_path(component);
            disk.create_with(&path, options.mode, options.purpose, write).await
        };
        let family = match descriptor.version.format {
            Format::Big => Family::Big {
                writer: big::IndexWriter::new(descriptor.version.has_uint_deletion_time()),
                file: create(Component::Index).await?,
                summary: SummaryBuilder::new(options.min_index_interval),
            },
            Format::Bti => Family::Bti {
                writer: bti::IndexWriter::new().with_partitioner(partitioner.clone()),
                partitions: create(Component::Partitions).await?,
                rows: create(Component::Rows).await?,
            },
        };
        let fp_chance = options.provenance.bloom_filter_fp_chance;
        let filter = Filter::for_keys(options.estimated_keys, fp_chance).map_err(Error::Invalid)?;
        Ok(IndexFiles {
            family,
            filter,
            hashes: Vec::with_capacity(HASHES),
            blocks: 0,
            partitions: 0,
            data_position: None,
            block_end: 0,
        })
    }

    pub(crate) fn default_granularity(&self) -> u64 {
        match &self.family {
            Family::Big { .. } => big::IndexWriter::default_granularity(),
            Family::Bti { .. } => bti::IndexWriter::default_granularity(),
        }
    }

    pub(crate) fn start_partition(&mut self, key: &PartitionKey, data_position: u64) {
        self.hashes.push(key.hashes);
        if self.hashes.len() == HASHES {
            self.fill_filter();
        }
        self.blocks = 0;
        if CHECKS {
            let is_next = self.data_position.is_none_or(|before| before < data_position);
            assert!(is_next, "a partition at {data_position}, not after the one before");
        }
        self.data_position = Some(data_position);
        match &mut self.family {
            Family::Big { writer, summary, .. } => {
                summary.add(&key.bytes, writer.position());
                writer.start_partition(key, data_position);
            }
            Family::Bti { writer, .. } => writer.start_partition(key, data_position),
        }
    }

    fn fill_filter(&mut self) {
        if let Some(filter) = &mut self.filter {
            filter.add_all(&self.hashes);
        }
        self.hashes.clear();
    }

    pub(crate) fn header(&mut self, length: u64, deletion: DeletionTime) {
        self.block_end = length;
        match &mut self.family {
            Family::Big { writer, .. } => writer.header(length, deletion),
            Family::Bti { writer, .. } => writer.header(length, deletion),
        }
    }

    pub(crate) fn has_blocks(&self) -> bool {
        self.blocks > 0
    }

    pub(crate) fn add_block(&mut self, clusterings: &Clusterings, block: Block<'_>) -> Result<()> {
        self.blocks += 1;
        if CHECKS {
            assert_eq!(block.offset, self.block_end, "blocks of rows leave no gap");
            assert!(block.width > 0, "a block without bytes at {}", block.offset);
        }
        self.block_end = block.offset + block.width;
        match &mut self.family {
            Family::Big { writer, .. } => writer.add_block(clusterings, block),
            Family::Bti { writer, .. } => writer.add_block(clusterings, block),
        }
    }

    pub(crate) fn end_partition(&mut self, end_offset: u64) -> Result<IndexEntry> {
        self.partitions += 1;
        match &mut self.family {
            Family::Big { writer, .. } => writer.end_partition(end_offset),
            Family::Bti { writer, .. } => writer.end_partition(end_offset),
        }
    }

    /// The entry of the partition that has just ended, as a reader finds it.
    pub(crate) fn indexed(&self, entry: &IndexEntry) -> Indexed {
        if entry.blocks == 0 {
            return Indexed { rows: RowIndexRef::None, bytes: 0..0 };
        }
        match &self.family {
            Family::Big { writer, .. } => {
                let bytes = entry.index_position..writer.position();
                let promoted = bytes.end - writer.promoted_length()..bytes.end;
                Indexed { rows: RowIndexRef::Big(promoted), bytes }
            }
            Family::Bti { writer, .. } => {
                let (entry, bytes) = writer.row_index();
                Indexed { rows: RowIndexRef::Bti(entry), bytes }
            }
        }
    }

    pub(crate) fn wants_drain(&self) -> bool {
        match &self.family {
            Family::Big { writer, .. } => writer.index.len() >= PENDING,
            Family::Bti { writer, .. } => writer.partitions.len() + writer.rows.len() >= PENDING,
        }
    }

    /// What goes to the component that has the row indexes is shown before.
    pub(crate) async fn drain(&mut self, show: impl FnOnce(&[u8])) -> Result<()> {
        match &mut self.family {
            Family::Big { writer, file, .. } => {
                show(&writer.index);
                drain(file, &mut writer.index).await
            }
            Family::Bti { writer, partitions, rows } => {
                show(&writer.rows);
                drain(partitions, &mut writer.partitions).await?;
                drain(rows, &mut writer.rows).await
            }
        }
    }

    pub(crate) async fn finish(mut self, show: impl FnOnce(&[u8])) -> Result<FinishedIndexes> {
        self.fill_filter();
        let (filter, count) = (self.filter, self.partitions);
        match self.family {
            Family::Big { writer, mut file, summary } => {
                let finished = writer.finish()?;
                show(&finished.index);
                file.write(&finished.index).await?;
                file.finish().await?;
                let keys = finished.summary;
                let summary = summary.finish(keys.first_key, keys.last_key);
                Ok(FinishedIndexes { partitions: count, filter, summary: Some(summary) })
            }
            Family::Bti { writer, mut partitions, mut rows } => {
                let finished = writer.finish()?;
                show(&finished.rows);
                partitions.write(&finished.partitions).await?;
                rows.write(&finished.rows).await?;
                partitions.finish().await?;
                rows.finish().await?;
                Ok(FinishedIndexes { partitions: count, filter, summary: None })
            }
        }
    }
}

async fn drain(file: &mut SequentialWriter, pending: &mut Vec<u8>) -> Result<()> {
    file.write(pending).await?;
    pending.clear();
    Ok(())
}
