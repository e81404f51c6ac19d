//! Decodes rows and range tombstone markers of Data.db (`UnfilteredSerializer`).
//!
//! ```text
//! row    := flags [ext] clustering size:uvint body        body := prev [liveness] [deletion] [subset] column*
//! marker := 02 kind size16 values size:uvint body         body := prev deletion [deletion]
//! ```
//! Decoding copies nothing: cells are spans into the bytes of the unfiltered.  Everything is checked: each read against
//! the body's end, the body's size against the bytes read, column indexes, value framing.

use std::sync::Arc;

use halcyon_model::time::INVALID_DELETION_TIME;
use halcyon_model::{
    BoundKind, Clusterings, Cursor, DecodeError, DecodeResult, DeletionTime, Liveness,
    NO_DELETION_TIME, NO_TTL,
};
use halcyon_stream::{Cell, Column, ComplexDeletion, Layout, RowDeletion, RowParts, Span, Statics};

use super::bases::{Bases, checked_expiration};

pub(crate) mod row_flags {
    pub(crate) const END_OF_PARTITION: u8 = 0x01;
    pub(crate) const IS_MARKER: u8 = 0x02;
    pub(crate) const HAS_TIMESTAMP: u8 = 0x04;
    pub(crate) const HAS_TTL: u8 = 0x08;
    pub(crate) const HAS_DELETION: u8 = 0x10;
    pub(crate) const HAS_ALL_COLUMNS: u8 = 0x20;
    pub(crate) const HAS_COMPLEX_DELETION: u8 = 0x40;
    pub(crate) const EXTENSION: u8 = 0x80;
    pub(crate) const EXT_IS_STATIC: u8 = 0x01;
    pub(crate) const EXT_SHADOWABLE_DELETION: u8 = 0x02;
}

pub(crate) mod cell_flags {
    pub(crate) const IS_DELETED: u8 = 0x01;
    pub(crate) const IS_EXPIRING: u8 = 0x02;
    pub(crate) const HAS_EMPTY_VALUE: u8 = 0x04;
    pub(crate) const USE_ROW_TIMESTAMP: u8 = 0x08;
    pub(crate) const USE_ROW_TTL: u8 = 0x10;
}

/// A column of the file, and where its cells go.
#[derive(Debug, Clone)]
struct FileColumn {
    /// Index in the stream's layout.
    target: u16,
    complex: bool,
    fixed_len: Option<u32>,
    /// Cells and complex deletions written at or before this are dropped with their column.
    dropped_at: i64,
}

/// The context for decoding the rows of one SSTable.
#[derive(Debug)]
pub(crate) struct RowDecoder {
    pub(crate) bases: Bases,
    /// Versions since `oa`.
    pub(crate) unsigned_deletion_times: bool,
    clusterings: Clusterings,
    statics: Vec<FileColumn>,
    regulars: Vec<FileColumn>,
}

/// The kind of a decoded unfiltered; a row is in the `RowParts` that the caller passed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Unfiltered {
    Row,
    Static,
    Marker {
        kind: BoundKind,
        count: usize,
        values: Span,
        close: Option<DeletionTime>,
        open: Option<DeletionTime>,
    },
    End,
}

/// Extent of an unfiltered, found without decoding its body.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent {
    pub(crate) flags: u8,
    ext: u8,
    kind: BoundKind,
    count: usize,
    values: Span,
    body: usize,
    /// Length of the whole unfiltered.
    pub(crate) len: u64,
}

impl RowDecoder {
    /// `file` is the layout of the SSTable's header, `target` that of the stream; `None` if it lacks a column.
    pub(crate) fn new(
        bases: Bases,
        unsigned_deletion_times: bool,
        file: &Layout,
        target: &Arc<Layout>,
        dropped_at: impl Fn(&[u8]) -> Option<i64>,
    ) -> Option<RowDecoder> {
        let columns = |which| -> Option<Vec<FileColumn>> {
            let place = |column: &Column| {
                let same =
                    |c: &Column| c.name == column.name && c.is_complex() == column.is_complex();
                let at = target.columns(which).iter().position(same);
                let (target, dropped_at) = match (at, dropped_at(&column.name)) {
                    (Some(at), dropped) => (u16::try_from(at).ok()?, dropped.unwrap_or(i64::MIN)),
                    // The column was dropped, so all of its cells are skipped.
                    (None, Some(_)) => (u16::MAX, i64::MAX),
                    (None, None) => return None,
                };
                Some(FileColumn {
                    target,
                    complex: column.is_complex(),
                    fixed_len: column.cql_type.fixed_len().filter(|_| !column.is_complex()),
                    dropped_at,
                })
            };
            file.columns(which).iter().map(place).collect()
        };
        Some(RowDecoder {
            bases,
            unsigned_deletion_times,
            clusterings: file.clusterings.clone(),
            statics: columns(Statics::Static)?,
            regulars: columns(Statics::Regular)?,
        })
    }

    pub(crate) fn has_statics(&self) -> bool {
        !self.statics.is_empty()
    }

    /// Reads the head of a row, up to its body. Fails also where `bytes` end too early.
    #[inline]
    pub(crate) fn extent(&self, bytes: &[u8], offset: u64) -> DecodeResult<Extent> {
        let mut cursor = Cursor::at_offset(bytes, offset);
        let flags = cursor.u8()?;
        let mut extent = Extent {
            flags,
            ext: 0,
            kind: BoundKind::Clustering,
            count: 0,
            values: Span::default(),
            body: 1,
            len: 1,
        };
        if flags & row_flags::END_OF_PARTITION != 0 {
            return Ok(extent);
        }
        if flags & row_flags::IS_MARKER != 0 {
            extent.kind = BoundKind::read_marker(&mut cursor)?;
            extent.count = usize::from(cursor.u16()?);
        } else {
            if flags & row_flags::EXTENSION != 0 {
                extent.ext = cursor.u8()?;
            }
            if extent.ext & row_flags::EXT_IS_STATIC != 0 {
                extent.kind = BoundKind::Static;
            } else {
                extent.count = self.clusterings.len();
            }
        }
        let start = cursor.index();
        let values = self.clusterings.read(&mut cursor, extent.count)?;
        extent.values = Span { start: start as u32, len: values.len() as u32 };
        let size = cursor.uvint()?;
        extent.body = cursor.index();
        extent.len = (extent.body as u64)
            .checked_add(size)
            .ok_or_else(|| cursor.error(format!("size of a row is {size}")))?;
        Ok(extent)
    }

    /// Decodes the unfiltered whose bytes are exactly `bytes` (`extent.len` long).
    pub(crate) fn decode(
        &self,
        extent: &Extent,
        bytes: &[u8],
        offset: u64,
        parts: &mut RowParts,
    ) -> DecodeResult<Unfiltered> {
        if extent.flags & row_flags::END_OF_PARTITION != 0 {
            return Ok(Unfiltered::End);
        }
        let mut cursor = Cursor::at_offset(bytes, offset);
        cursor.take(extent.body)?;
        cursor.uvint()?; // distance to the previous unfiltered: zero or meaningless in some writers
        let unfiltered = if extent.flags & row_flags::IS_MARKER != 0 {
            self.marker(extent, &mut cursor)?
        } else {
            let is_static = extent.kind == BoundKind::Static;
            self.row(extent, &mut cursor, is_static, bytes, parts)?;
            if is_static { Unfiltered::Static } else { Unfiltered::Row }
        };
        if cursor.remaining() != 0 {
            return Err(cursor.error(format!(
                "{} bytes left over at the end of a row: its size does not fit its content",
                cursor.remaining()
            )));
        }
        Ok(unfiltered)
    }

    fn marker(&self, extent: &Extent, cursor: &mut Cursor<'_>) -> DecodeResult<Unfiltered> {
        let kind = extent.kind;
        let first = self.deletion(cursor)?;
        let (close, open) = if kind.is_boundary() {
            (Some(first), Some(self.deletion(cursor)?))
        } else if kind.closes() {
            (Some(first), None)
        } else {
            (None, Some(first))
        };
        Ok(Unfiltered::Marker { kind, count: extent.count, values: extent.values, close, open })
    }

    fn deletion(&self, cursor: &mut Cursor<'_>) -> DecodeResult<DeletionTime> {
        let offset = cursor.offset();
        let deletion = self.bases.read_deletion(cursor, self.unsigned_deletion_times)?;
        if deletion.is_live() {
            return Err(DecodeError { offset, what: "range tombstone without a timestamp".into() });
        }
        Ok(deletion)
    }

    fn row(
        &self,
        extent: &Extent,
        cursor: &mut Cursor<'_>,
        is_static: bool,
        bytes: &[u8],
        parts: &mut RowParts,
    ) -> DecodeResult<()> {
        let flags = extent.flags;
        parts.clear();
        parts.clustering = extent.values;
        if flags & row_flags::HAS_TIMESTAMP != 0 {
            parts.liveness = self.liveness(flags, cursor)?;
        }
        if flags & row_flags::HAS_DELETION != 0 {
            let time = self.bases.read_deletion(cursor, self.unsigned_deletion_times)?;
            let shadowable = extent.ext & row_flags::EXT_SHADOWABLE_DELETION != 0;
            parts.deletion = RowDeletion { time, shadowable };
        }
        let columns = if is_static { &self.statics } else { &self.regulars };
        if flags & row_flags::HAS_ALL_COLUMNS != 0 {
            for column in columns {
                self.column(column, flags, cursor, bytes, parts)?;
            }
            return Ok(());
        }
        let n = columns.len();
        if n < 64 {
            let at = cursor.offset();
            let missing = cursor.uvint()?;
            if missing >> n != 0 {
                let what = format!("column bitmap {missing:x} has bits beyond {n} columns");
                return Err(DecodeError { offset: at, what });
            }
            for (i, column) in columns.iter().enumerate() {
                if missing >> i & 1 == 0 {
                    self.column(column, flags, cursor, bytes, parts)?;
                }
            }
            return Ok(());
        }
        for i in large_subset(n, cursor)? {
            if let Some(column) = columns.get(i) {
                self.column(column, flags, cursor, bytes, parts)?;
            }
        }
        Ok(())
    }

    #[inline]
    fn liveness(&self, flags: u8, cursor: &mut Cursor<'_>) -> DecodeResult<Liveness> {
        let timestamp = self.bases.read_timestamp(cursor)?;
        if flags & row_flags::HAS_TTL == 0 {
            return Ok(Liveness { timestamp, ..Liveness::EMPTY });
        }
        let ttl = self.bases.read_ttl(cursor)?;
        let seconds = self.bases.read_cell_deletion_time(cursor, self.unsigned_deletion_times)?;
        if ttl < 0 {
            return Err(cursor.error(format!("negative TTL {ttl} of a row")));
        }
        Ok(Liveness { timestamp, ttl, local_expiration_time: checked_expiration(seconds, ttl) })
    }

    #[inline(always)]
    fn column(
        &self,
        column: &FileColumn,
        row_flags: u8,
        cursor: &mut Cursor<'_>,
        bytes: &[u8],
        parts: &mut RowParts,
    ) -> DecodeResult<()> {
        if !column.complex {
            return self.cell(column, cursor, bytes, parts);
        }
        if row_flags & row_flags::HAS_COMPLEX_DELETION != 0 {
            let time = self.bases.read_deletion(cursor, self.unsigned_deletion_times)?;
            if !time.is_live() && time.marked_for_delete_at > column.dropped_at {
                parts.complex_deletions.push(ComplexDeletion { column: column.target, time });
            }
        }
        let n = cursor.count()?;
        if n > cursor.remaining() {
            return Err(cursor.error(format!("{n} cells in {} bytes", cursor.remaining())));
        }
        for _ in 0..n {
            self.cell(column, cursor, bytes, parts)?;
        }
        Ok(())
    }

    #[inline(always)]
    fn cell(
        &self,
        column: &FileColumn,
        cursor: &mut Cursor<'_>,
        bytes: &[u8],
        parts: &mut RowParts,
    ) -> DecodeResult<()> {
        use cell_flags::{
            HAS_EMPTY_VALUE, IS_DELETED, IS_EXPIRING, USE_ROW_TIMESTAMP, USE_ROW_TTL,
        };
        let flags = cursor.u8()?;
        let timestamp = if flags & USE_ROW_TIMESTAMP != 0 {
            parts.liveness.timestamp
        } else {
            self.bases.read_timestamp(cursor)?
        };
        let (mut local_deletion_time, mut ttl) = (NO_DELETION_TIME, NO_TTL);
        if flags & USE_ROW_TTL != 0 {
            local_deletion_time = parts.liveness.local_expiration_time;
            ttl = parts.liveness.ttl;
        } else if flags & (IS_DELETED | IS_EXPIRING) != 0 {
            local_deletion_time =
                self.bases.read_cell_deletion_time(cursor, self.unsigned_deletion_times)?;
            if flags & IS_EXPIRING != 0 {
                ttl = self.bases.read_ttl(cursor)?;
                if ttl < 0 {
                    return Err(cursor.error(format!("negative TTL {ttl} of a cell")));
                }
                local_deletion_time = checked_expiration(local_deletion_time, ttl);
            }
            if local_deletion_time == NO_DELETION_TIME {
                local_deletion_time = INVALID_DELETION_TIME;
            }
        }
        let path = if column.complex { span(cursor.vbytes()?, bytes) } else { Span::default() };
        let value = if flags & HAS_EMPTY_VALUE != 0 {
            Span::default()
        } else {
            let value = match column.fixed_len {
                Some(len) => cursor.take(len as usize)?,
                None => cursor.vbytes()?,
            };
            span(value, bytes)
        };
        if timestamp > column.dropped_at {
            let column = column.target;
            parts.cells.push(Cell { column, ttl, timestamp, local_deletion_time, path, value });
        }
        Ok(())
    }
}

/// The span of a slice that was taken from `bytes`.
#[inline]
fn span(part: &[u8], bytes: &[u8]) -> Span {
    let start = part.as_ptr() as usize - bytes.as_ptr() as usize;
    Span { start: start as u32, len: part.len() as u32 }
}

/// Subset of 64 or more columns (`Columns.Serializer`): the missing count, then the shorter of the two lists.
fn large_subset(n: usize, cursor: &mut Cursor<'_>) -> DecodeResult<Vec<usize>> {
    let missing = cursor.count()?;
    if missing > n {
        return Err(cursor.error(format!("{missing} of {n} columns missing")));
    }
    let present = n - missing;
    let listed_are_present = present < n / 2;
    let mut listed = Vec::with_capacity(if listed_are_present { present } else { missing });
    for _ in 0..if listed_are_present { present } else { missing } {
        let index = cursor.count()?;
        if index >= n || listed.last().is_some_and(|&last| last >= index) {
            return Err(cursor.error(format!("column index {index} out of order or of range")));
        }
        listed.push(index);
    }
    if listed_are_present {
        return Ok(listed);
    }
    Ok((0..n).filter(|i| listed.binary_search(i).is_err()).collect())
}
