//! Reads the partitions of one SSTable in order, as a `FragmentStream`.
//!
//! The current fragment lives in the reader's window; `advance` consumes it and decodes the next one in place.  Nothing is
//! copied but the partition key.  A row's size is checked against the remaining data before anything is
//! read for it, and a row that is cut, out of order in its fields, or larger than its size is corruption with an offset.

use std::sync::Arc;

use halcyon_io::prefetch;
use halcyon_model::clustering::Position;
use halcyon_model::{BoundKind, Cursor, DeletionTime};
use halcyon_stream::{
    Fragment, FragmentStream, Layout, Marker, PartitionKey, PartitionStart, RowParts, Span,
};

use super::chunk_read::{DataReader, MAX_ROW};
use super::decode::{Extent, RowDecoder, Unfiltered};
use super::window::{DataWindow, SeekWindow};
use crate::format::deletion_time::read_deletion_time;
use crate::{Error, Result};

/// More than 35 clustering values of 64 KiB: a header that does not fit is corrupt.
const MAX_ROW_HEADER: usize = 8 << 20;

/// With each fragment the bytes of the next one, which is likely as long, and the head of the one behind it are brought into the caches.
/// Ten times this maximum would drive out those of a merge's other inputs.
const SOON_MAX: usize = 2048;
const HEAD: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScanState {
    Between,
    Start,
    Static,
    Row,
    Marker {
        kind: BoundKind,
        count: usize,
        values: Span,
        close: Option<DeletionTime>,
        open: Option<DeletionTime>,
    },
    End,
    /// The end of the data, the last wanted partition, or an error.
    Over,
}

pub struct SSTableScanner<D = DataReader> {
    data: D,
    decoder: Arc<RowDecoder>,
    layout: Arc<Layout>,
    uint_deletion_time: bool,
    state: ScanState,
    key: PartitionKey,
    deletion: DeletionTime,
    parts: RowParts,
    /// Bytes of the current fragment, consumed by the next `advance`.
    current: usize,
    partition_position: u64,
    fragment_position: u64,
    /// Partitions to read before stopping.
    partitions_left: u64,
}

impl<D: DataWindow> SSTableScanner<D> {
    pub(crate) fn new(
        data: D,
        decoder: Arc<RowDecoder>,
        layout: Arc<Layout>,
        uint_deletion_time: bool,
        partitions: u64,
    ) -> SSTableScanner<D> {
        SSTableScanner {
            data,
            decoder,
            layout,
            uint_deletion_time,
            state: ScanState::Between,
            key: PartitionKey::empty(),
            deletion: DeletionTime::LIVE,
            parts: RowParts::empty(),
            current: 0,
            partition_position: 0,
            fragment_position: 0,
            partitions_left: partitions,
        }
    }

    pub fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    /// Position in the data of the current partition's first byte.
    pub fn partition_position(&self) -> u64 {
        self.partition_position
    }

    /// Position in the data of the current fragment's first byte.
    pub fn fragment_position(&self) -> u64 {
        self.fragment_position
    }

    /// How far the data has been read, and its length: for progress.
    pub fn progress(&self) -> (u64, u64) {
        (self.data.position(), self.data.data_length())
    }

    /// Where the next fragment will be read.
    pub(crate) fn next_position(&self) -> u64 {
        self.data.position() + self.current as u64
    }

    pub(crate) fn corrupt(&self, offset: u64, what: impl Into<String>) -> Error {
        self.data.corrupt(offset, what)
    }

    async fn partition_start(&mut self) -> Result<bool> {
        if self.partitions_left == 0 || self.data.remaining() == 0 {
            self.state = ScanState::Over;
            return Ok(false);
        }
        self.partitions_left -= 1;
        let position = self.data.position();
        self.data.fill(2).await?;
        let key_length = Cursor::at_offset(self.data.available(), position)
            .u16()
            .map_err(|e| self.data.corrupt(e.offset, e.what))?;
        self.data.fill(usize::from(key_length) + 2 + 12).await?;
        let mut cursor = Cursor::at_offset(self.data.available(), position);
        let decoded = cursor
            .sbytes()
            .and_then(|key| Ok((key, read_deletion_time(self.uint_deletion_time, &mut cursor)?)));
        let (key, deletion) = decoded.map_err(|e| self.data.corrupt(e.offset, e.what))?;
        self.key.set(key);
        self.deletion = deletion;
        self.current = cursor.index();
        self.partition_position = position;
        self.fragment_position = position;
        self.state = ScanState::Start;
        Ok(true)
    }

    /// Makes the next unfiltered available as a whole.
    async fn next_extent(&mut self) -> Result<Extent> {
        loop {
            let position = self.data.position();
            let available = self.data.available().len();
            match self.decoder.extent(self.data.available(), position) {
                Ok(extent) if extent.len <= available as u64 => return Ok(extent),
                Ok(extent) if extent.len > self.data.remaining() => {
                    let what = format!(
                        "row of {} bytes, {} are left in the data",
                        extent.len,
                        self.data.remaining()
                    );
                    return Err(self.data.corrupt(position, what));
                }
                Ok(extent) if extent.len > MAX_ROW => {
                    let what = format!("row of {} bytes; at most {MAX_ROW} are read", extent.len);
                    return Err(self.data.corrupt(position, what));
                }
                Ok(extent) => self.data.fill(extent.len as usize).await?,
                Err(e) => {
                    let complete = available as u64 == self.data.remaining();
                    if complete || available >= MAX_ROW_HEADER {
                        return Err(self.data.corrupt(e.offset, e.what));
                    }
                    // No more than the chunk at hand at first: the next one may be another read of the device.
                    self.data.fill((2 * available).clamp(1, MAX_ROW_HEADER)).await?;
                }
            }
        }
    }

    async fn unfiltered(&mut self) -> Result<bool> {
        loop {
            let after_start = self.state == ScanState::Start;
            self.fragment_position = self.data.position();
            let extent = self.next_extent().await?;
            let length = extent.len as usize;
            let position = self.data.position();
            let bytes = self.data.available().get(..length).unwrap_or_default();
            let decoded = self.decoder.decode(&extent, bytes, position, &mut self.parts);
            let unfiltered = decoded.map_err(|e| self.data.corrupt(e.offset, e.what))?;
            let next = self.data.available().get(length..).unwrap_or_default();
            prefetch(next.get(..(length + HEAD).min(SOON_MAX)).unwrap_or(next));
            self.current = length;
            self.state = match unfiltered {
                Unfiltered::Static if !after_start || !self.decoder.has_statics() => {
                    return Err(self.data.corrupt(position, "static row where none can be"));
                }
                Unfiltered::Row | Unfiltered::Marker { .. } | Unfiltered::End
                    if after_start && self.decoder.has_statics() =>
                {
                    return Err(self.data.corrupt(position, "static row expected"));
                }
                Unfiltered::Static => ScanState::Static,
                Unfiltered::Row => ScanState::Row,
                Unfiltered::Marker { kind, count, values, close, open } => {
                    ScanState::Marker { kind, count, values, close, open }
                }
                Unfiltered::End => ScanState::End,
            };
            // A row whose columns were all dropped is skipped; an empty static row exists only because the format requires one.
            let is_row = matches!(self.state, ScanState::Row | ScanState::Static);
            if is_row && self.parts.over(&[]).is_empty() {
                self.data.consume(length);
                self.current = 0;
                continue;
            }
            return Ok(true);
        }
    }

    async fn step(&mut self) -> Result<bool> {
        self.data.consume(self.current);
        self.current = 0;
        match self.state {
            ScanState::Over => Ok(false),
            ScanState::Between | ScanState::End => self.partition_start().await,
            _ => self.unfiltered().await,
        }
    }
}

impl<D: SeekWindow> SSTableScanner<D> {
    /// Continues with the partition that begins at this position of the data.
    pub(crate) async fn seek(&mut self, position: u64) -> Result<()> {
        self.current = 0;
        self.state = ScanState::Between;
        self.data.seek(position).await
    }

    /// Continues with the row or marker that begins at this position, in the current partition.
    pub(crate) async fn seek_row(&mut self, position: u64) -> Result<()> {
        self.current = 0;
        self.state = ScanState::Row;
        self.data.seek(position).await
    }
}

impl<D: DataWindow> FragmentStream for SSTableScanner<D> {
    type Error = Error;

    async fn advance(&mut self) -> Result<bool> {
        let stepped = self.step().await;
        if stepped.is_err() {
            self.state = ScanState::Over;
        }
        stepped
    }

    #[inline]
    fn fragment(&self) -> Fragment<'_> {
        let bytes = self.data.available().get(..self.current).unwrap_or_default();
        match self.state {
            ScanState::Start => {
                Fragment::Start(PartitionStart { key: &self.key, deletion: self.deletion })
            }
            ScanState::Static => Fragment::Static(self.parts.over(bytes)),
            ScanState::Row => Fragment::Row(self.parts.over(bytes)),
            ScanState::Marker { kind, count, values, close, open } => Fragment::Marker(Marker {
                position: Position { kind, count, serialized: values.of(bytes) },
                close,
                open,
            }),
            ScanState::Between | ScanState::End | ScanState::Over => Fragment::End,
        }
    }
}
