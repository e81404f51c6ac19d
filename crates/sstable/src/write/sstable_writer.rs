//! Writes an SSTable from fragments in order.
//!
//! 1. Each fragment is validated, serialized relative to the bases of the header, and counted into the statistics.
//! 2. At the end of a block of rows (`column_index_size`) the index hears of it; at the end of a partition the index,
//!    the Bloom filter, and for BIG every 128th time the summary.
//! 3. `seal` completes and syncs the components in Cassandra's order — data, index, filter, summary, CompressionInfo or CRC,
//!    digest, statistics, TOC — and then the directory. Only then does the SSTable exist.
//!
//! The writer does not replace SSTables: a transaction log does that, once the new one is complete.

use std::sync::Arc;

use futures_util::future::LocalBoxFuture;
use halcyon_io::{Disk, WriteOptions};
use halcyon_model::clustering::Position;
use halcyon_model::counter::CounterContext;
use halcyon_model::time::INVALID_DELETION_TIME;
use halcyon_model::{BoundKind, DeletionTime};
use halcyon_stream::{
    Column, ColumnShape, Fragment, GrammarError, Layout, Marker, PartitionStart, Row, RowBuf,
    RowParts, Statics, Validator,
};

use crate::data::chunk_write::DataTarget;
use crate::data::data_writer::DataWriter;
use crate::data::encode::RowEncoder;
use crate::data::{Bases, decode::row_flags};
use crate::format::deletion_time::{LEGACY_LATEST, write_deletion_time};
use crate::format::statistics::collector::MetadataCollector;
use crate::row_index::Block;
use crate::write::carry::{Carry, Carrying};
use crate::write::index_files::IndexFiles;
use crate::write::options::{ExpirationOverflow, WriterOptions};
use crate::write::sealing;
use crate::write::watch::Watch;
use crate::{CHECKS, Component, Descriptor, Error, Result, Version};

/// An SSTable that is complete and durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    pub descriptor: Descriptor,
    /// Bytes of Data.db.
    pub file_length: u64,
}

/// The block of rows that is being written.
#[derive(Debug, Default)]
struct OpenBlock {
    /// Bytes from the partition's start.
    offset: u64,
    first: Vec<u8>,
    first_kind: Option<(BoundKind, usize)>,
    open_at_start: Option<DeletionTime>,
}

pub struct SSTableWriter {
    disk: Disk,
    descriptor: Descriptor,
    layout: Arc<Layout>,
    has_counters: bool,
    options: WriterOptions,
    data: DataWriter,
    carrying: Option<Carrying>,
    watch: Option<Arc<dyn Watch>>,
    sees_rows: bool,
    index: IndexFiles,
    encoder: RowEncoder,
    validator: Validator,
    stats: MetadataCollector,
    granularity: u64,
    partition_start: u64,
    partition_deletion: DeletionTime,
    /// The partition's header still lacks its static row.
    header_open: bool,
    previous: u64,
    block: OpenBlock,
    open: Option<DeletionTime>,
    /// The statistics know the partition's first unfiltered.
    covered_first: bool,
    partitions: u64,
}

impl SSTableWriter {
    /// Creates the files. The descriptor must be new; the caller has put it into a transaction log.
    pub fn create<'a>(
        disk: &'a Disk,
        descriptor: Descriptor,
        layout: Arc<Layout>,
        bases: Bases,
        options: WriterOptions,
    ) -> LocalBoxFuture<'a, Result<SSTableWriter>> {
        Box::pin(async move {
            descriptor
                .version
                .writable()
                .map_err(|what| Error::Unsupported { path: descriptor.directory.clone(), what })?;
            let write = WriteOptions {
                buffer_size: options.buffer_size,
                expected_len: options.expected_length,
                depth: 4,
                read_back: options.read_back,
            };
            let target = DataTarget {
                disk: disk.clone(),
                path: descriptor.component_path(Component::Data),
                mode: options.mode,
                purpose: options.purpose,
                options: write,
                compression: options.compression.clone(),
                effort: options.effort,
            };
            let data = DataWriter::create(target, options.own_thread).await?;
            let index =
                IndexFiles::create(disk, &descriptor, &layout.partitioner, &options).await?;
            Ok(SSTableWriter {
                granularity: options
                    .column_index_size
                    .unwrap_or_else(|| index.default_granularity()),
                encoder: RowEncoder::new(bases, &layout),
                validator: Validator::new(layout.clone()),
                stats: MetadataCollector::new(layout.clusterings.clone()),
                disk: disk.clone(),
                descriptor,
                has_counters: layout
                    .statics
                    .iter()
                    .chain(&layout.regulars)
                    .any(|column| column.shape == ColumnShape::Counter),
                layout,
                options,
                data,
                carrying: None,
                watch: None,
                sees_rows: false,
                index,
                partition_start: 0,
                partition_deletion: DeletionTime::LIVE,
                header_open: false,
                previous: 0,
                block: OpenBlock::default(),
                open: None,
                covered_first: false,
                partitions: 0,
            })
        })
    }

    /// Before the first fragment: what is hot of the SSTable is carried over.
    pub fn carry(&mut self, to: Option<Arc<dyn Carry>>) {
        self.carrying = to.map(|to| Carrying::new(to, self.data.chunk_length()));
    }

    /// Before the first fragment: `watch` sees what is written.
    pub fn watched_by(&mut self, watch: Option<Arc<dyn Watch>>) {
        self.sees_rows = watch.as_ref().is_some_and(|watch| watch.sees_rows());
        self.watch = watch;
    }

    pub fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    pub fn version(&self) -> Version {
        self.descriptor.version
    }

    /// Uncompressed bytes written so far.
    pub fn data_position(&self) -> u64 {
        self.data.position()
    }

    /// Bytes of Data.db written so far, as stored.
    pub fn file_position(&self) -> u64 {
        self.data.file_position()
    }

    pub fn partitions(&self) -> u64 {
        self.partitions
    }

    /// Takes the next fragment. Call `drain` when `wants_drain`.
    #[inline]
    pub fn append(&mut self, fragment: Fragment<'_>) -> Result<()> {
        if let Err(error) = self.validator.check(fragment) {
            return Err(self.refused(error));
        }
        if self.header_open && !matches!(fragment, Fragment::Static(_)) {
            if !self.layout.statics.is_empty() {
                let empty = RowParts::empty();
                self.encoder.row(Statics::Static, empty.over(&[]), 0, self.data.buffer());
            }
            self.close_header();
        }
        match fragment {
            Fragment::Start(start) => self.start(start),
            Fragment::Static(row) => match self.capped(row)? {
                None => self.static_row(row),
                Some(capped) => self.static_row(capped.row()),
            },
            Fragment::Row(row) => match self.capped(row)? {
                None => self.row(row),
                Some(capped) => self.row(capped.row()),
            },
            Fragment::Marker(marker) => self.marker(marker),
            Fragment::End => self.end(),
        }
    }

    /// Whether buffered bytes are to be handed on.
    #[inline]
    pub fn wants_drain(&self) -> bool {
        self.data.wants_drain() || self.index.wants_drain()
    }

    pub async fn drain(&mut self) -> Result<()> {
        let carrying = &mut self.carrying;
        self.data.drain(|bytes| see(carrying, |carrying| carrying.see_data(bytes))).await?;
        self.index.drain(|bytes| see(carrying, |carrying| carrying.see_index(bytes))).await
    }

    #[cold]
    fn refused(&self, error: GrammarError) -> Error {
        match error {
            GrammarError::Disorder { what } => self.disorder(&what),
            GrammarError::DuplicateRow { what } => {
                Error::DuplicateRow(format!("{}: refused to write: {what}", self.descriptor))
            }
        }
    }

    fn disorder(&self, what: &str) -> Error {
        Error::Invalid(format!("{}: refused to write: {what}", self.descriptor))
    }

    /// The row with the expirations that the version can store, if it has others. One that had overflowed when it was written stays what it
    /// is, as in Cassandra's compactions: read as the end of time.
    #[inline]
    fn capped(&self, row: Row<'_>) -> Result<Option<Box<RowBuf>>> {
        let fits = |seconds: u32| seconds >= INVALID_DELETION_TIME || seconds <= LEGACY_LATEST;
        if self.descriptor.version.has_uint_deletion_time()
            || fits(row.liveness.local_expiration_time)
                && row.cells.iter().all(|c| fits(c.local_deletion_time))
        {
            return Ok(None);
        }
        if self.options.expiration_overflow == ExpirationOverflow::Reject {
            return Err(Error::Invalid(format!(
                "{}: an expiration after 2038-01-19 cannot be stored in version {}; write oa or later",
                self.descriptor, self.descriptor.version
            )));
        }
        let mut capped = Box::new(RowBuf::new());
        capped.copy_from(row);
        let RowParts { liveness, cells, .. } = &mut capped.parts;
        let of_cells = cells.iter_mut().map(|cell| &mut cell.local_deletion_time);
        for time in of_cells.chain([&mut liveness.local_expiration_time]) {
            if !fits(*time) {
                *time = LEGACY_LATEST;
            }
        }
        Ok(Some(capped))
    }

    fn start(&mut self, start: PartitionStart<'_>) -> Result<()> {
        let unsigned = self.descriptor.version.has_uint_deletion_time();
        self.partition_start = self.data.position();
        self.partition_deletion = start.deletion;
        let Ok(key_length) = u16::try_from(start.key.bytes.len()) else {
            return Err(self.disorder("partition key longer than 65535 bytes"));
        };
        let buffer = self.data.buffer();
        buffer.extend_from_slice(&key_length.to_be_bytes());
        buffer.extend_from_slice(&start.key.bytes);
        write_deletion_time(unsigned, &start.deletion, buffer)?;
        self.index.start_partition(start.key, self.partition_start);
        if let Some(carrying) = &mut self.carrying {
            carrying.start(start.key, self.partition_start);
        }
        self.stats.partition_deletion(&start.deletion);
        self.header_open = true;
        self.open = None;
        self.covered_first = false;
        Ok(())
    }

    /// Key, deletion and static row are written.
    fn close_header(&mut self) {
        self.header_open = false;
        let length = self.data.position() - self.partition_start;
        self.index.header(length, self.partition_deletion);
        if let Some(carrying) = &mut self.carrying {
            carrying.header(self.partition_start + length);
        }
        self.previous = 0;
        self.begin_block(length);
    }

    fn begin_block(&mut self, offset: u64) {
        self.block.offset = offset;
        self.block.first_kind = None;
        self.block.open_at_start = self.open;
    }

    fn static_row(&mut self, row: Row<'_>) -> Result<()> {
        self.encoder.row(Statics::Static, row, 0, self.data.buffer());
        self.collect(Statics::Static, row);
        self.close_header();
        Ok(())
    }

    #[inline]
    fn row(&mut self, row: Row<'_>) -> Result<()> {
        let at = self.data.position() - self.partition_start;
        let position = row.position(self.layout.clusterings.len());
        self.note_first(position);
        self.encoder.row(Statics::Regular, row, at - self.previous, self.data.buffer());
        self.previous = at;
        self.collect(Statics::Regular, row);
        if let Some(carrying) = &mut self.carrying {
            carrying.row(position.serialized, self.data.position());
        }
        self.maybe_close_block()
    }

    #[inline]
    fn collect(&mut self, which: Statics, row: Row<'_>) {
        collect_row(&mut self.stats, row);
        if self.sees_rows
            && let Some(watch) = &self.watch
        {
            watch.row(self.validator.key(), self.layout.columns(which), row);
        }
        if self.has_counters && has_legacy_shards(self.layout.columns(which), row) {
            self.stats.legacy_counter_shards();
        }
    }

    fn marker(&mut self, marker: Marker<'_>) -> Result<()> {
        let at = self.data.position() - self.partition_start;
        self.note_first(marker.position);
        self.encoder.marker(marker, at - self.previous, self.data.buffer());
        self.previous = at;
        self.open = marker.open;
        for deletion in [marker.close, marker.open].iter().flatten() {
            self.stats.deletion(deletion);
        }
        self.maybe_close_block()
    }

    #[inline]
    fn note_first(&mut self, position: Position<'_>) {
        if !self.covered_first {
            self.covered_first = true;
            self.stats.cover(position);
        }
        if self.block.first_kind.is_none() {
            self.block.first_kind = Some((position.kind, position.count));
            self.block.first.clear();
            self.block.first.extend_from_slice(position.serialized);
        }
    }

    #[inline]
    fn maybe_close_block(&mut self) -> Result<()> {
        let at = self.data.position() - self.partition_start;
        if at - self.block.offset < self.granularity { Ok(()) } else { self.close_block(at) }
    }

    fn close_block(&mut self, end: u64) -> Result<()> {
        let (Some((kind, count)), Some(last)) =
            (self.block.first_kind, self.validator.last_position())
        else {
            return Ok(());
        };
        let first = Position { kind, count, serialized: &self.block.first };
        let block = Block {
            first,
            last,
            offset: self.block.offset,
            width: end - self.block.offset,
            open_at_start: self.block.open_at_start,
            open_at_end: self.open,
        };
        self.index.add_block(&self.layout.clusterings, block)?;
        self.begin_block(end);
        if let Some(carrying) = &mut self.carrying {
            carrying.block(self.partition_start + end);
        }
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        let end_offset = self.data.position() - self.partition_start;
        self.data.buffer().push(row_flags::END_OF_PARTITION);
        let length = self.data.position() - self.partition_start;
        // The rest becomes a block only if there is one already, and then counts the end flag in.
        if self.index.has_blocks() && self.block.first_kind.is_some() {
            self.close_block(length)?;
        }
        let index = &mut self.index;
        let entry = index.end_partition(end_offset)?;
        if let Some(carrying) = &mut self.carrying {
            carrying.end(self.partition_start + length, || index.indexed(&entry));
        }
        if let Some(last) = self.validator.last_position() {
            self.stats.cover(last);
        }
        let key = self.validator.key();
        let tombstones = self.stats.end_partition(&key.bytes, length);
        if let Some(watch) = &self.watch {
            watch.partition(&self.descriptor, key, length, tombstones);
        }
        self.partitions += 1;
        Ok(())
    }

    /// Completes the SSTable and makes it durable.
    pub fn seal(mut self) -> LocalBoxFuture<'static, Result<Sealed>> {
        Box::pin(async move {
            self.drain().await?;
            if self.partitions == 0 {
                let what = self.disorder("an SSTable without partitions");
                self.abandon().await;
                return Err(what);
            }
            let written = self.data.position();
            let carrying = &mut self.carrying;
            let show = |bytes: &[u8]| see(carrying, |carrying| carrying.see_data(bytes));
            let data = self.data.finish(show).await?;
            let file_length = data.file_length;
            let show = |bytes: &[u8]| see(carrying, |carrying| carrying.see_index(bytes));
            let index = self.index.finish(show).await?;
            if CHECKS {
                assert_eq!(data.data_length, written, "the encoder has all bytes of the data");
                assert_eq!(index.partitions, self.partitions, "the index has all partitions");
            }
            let parts = sealing::Parts {
                disk: &self.disk,
                descriptor: &self.descriptor,
                layout: &self.layout,
                options: &self.options,
                bases: self.encoder.bases,
                data,
                index,
                stats: self.stats,
            };
            sealing::write_components(parts).await?;
            if let Some(carrying) = self.carrying {
                carrying.hand_over(&self.descriptor);
            }
            Ok(Sealed { descriptor: self.descriptor, file_length })
        })
    }

    /// Gives up: stops the encoder. The files are the transaction's to delete.
    pub fn abandon(self) -> LocalBoxFuture<'static, ()> {
        Box::pin(async move {
            // What matters is that no thread writes any more; whether it could is of no interest.
            let _ = self.data.finish(|_| ()).await;
        })
    }
}

fn see(carrying: &mut Option<Carrying>, show: impl FnOnce(&mut Carrying)) {
    if let Some(carrying) = carrying {
        show(carrying);
    }
}

/// Counts a row into the statistics (`Rows.collectStats`).
#[inline]
pub(crate) fn collect_row(stats: &mut MetadataCollector, row: Row<'_>) {
    stats.liveness(&row.liveness);
    stats.deletion(&row.deletion.time);
    for deletion in row.complex_deletions {
        stats.deletion(&deletion.time);
    }
    let mut columns_set = 0;
    let mut last = None;
    stats.cells(row.cells.iter().map(|c| (c.timestamp, c.ttl, c.local_deletion_time)));
    for cell in row.cells {
        columns_set += u64::from(last != Some(cell.column));
        last = Some(cell.column);
    }
    stats.row(columns_set);
}

/// Whether a counter of the row still has shards from before 2.1 (`CounterCells.hasLegacyShards`).
fn has_legacy_shards(columns: &[Column], row: Row<'_>) -> bool {
    row.cells.iter().any(|cell| {
        let column = columns.get(usize::from(cell.column));
        column.is_some_and(|column| column.shape == ColumnShape::Counter)
            && !cell.is_tombstone()
            && CounterContext::decode(cell.value.of(row.bytes))
                .is_ok_and(|context| context.has_legacy_shards())
    })
}
