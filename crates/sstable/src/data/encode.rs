//! Encodes rows and markers into Data.db's grammar; the inverse of `decode`.

use halcyon_model::bytes::Put;
use halcyon_model::{DeletionTime, Liveness};
use halcyon_stream::{Cell, ComplexDeletion, Layout, Marker, Row, Statics};

use super::bases::Bases;
use super::decode::{cell_flags, row_flags};

/// A column as the writer needs it.
#[derive(Debug, Clone, Copy)]
struct OutColumn {
    complex: bool,
    fixed_len: bool,
}

#[derive(Debug)]
pub(crate) struct RowEncoder {
    pub(crate) bases: Bases,
    statics: Vec<OutColumn>,
    regulars: Vec<OutColumn>,
    /// The size of the last row, as written. The next one's is likely as long, so its body can be written in place.
    size: Vec<u8>,
}

impl RowEncoder {
    pub(crate) fn new(bases: Bases, layout: &Layout) -> RowEncoder {
        let columns = |which| -> Vec<OutColumn> {
            let columns = layout.columns(which).iter();
            columns
                .map(|c| OutColumn {
                    complex: c.is_complex(),
                    fixed_len: !c.is_complex() && c.cql_type.fixed_len().is_some(),
                })
                .collect()
        };
        RowEncoder {
            bases,
            statics: columns(Statics::Static),
            regulars: columns(Statics::Regular),
            size: vec![0],
        }
    }

    /// Appends a row. `previous` is the distance from the previous unfiltered (or partition start).
    pub(crate) fn row(&mut self, which: Statics, row: Row<'_>, previous: u64, out: &mut Vec<u8>) {
        let mut flags = 0;
        let mut ext = 0;
        if which == Statics::Static {
            ext |= row_flags::EXT_IS_STATIC;
        }
        if row.deletion.shadowable {
            ext |= row_flags::EXT_SHADOWABLE_DELETION;
        }
        if ext != 0 {
            flags |= row_flags::EXTENSION;
        }
        if !row.complex_deletions.is_empty() {
            flags |= row_flags::HAS_COMPLEX_DELETION;
        }
        let flags_at = out.len();
        out.put_u8(flags);
        if ext != 0 {
            out.put_u8(ext);
        }
        if which == Statics::Regular {
            out.put(row.clustering);
        }
        let size_at = self.begin_body(previous, out);
        flags |= self.key_part(row, out);
        flags |= self.subset(which, row, out);
        self.columns(which, row, out);
        self.end_body(size_at, out);
        if let Some(slot) = out.get_mut(flags_at) {
            *slot = flags;
        }
    }

    /// Leaves room for the size and writes the distance to the previous unfiltered.
    fn begin_body(&self, previous: u64, out: &mut Vec<u8>) -> usize {
        let size_at = out.len();
        out.put(&self.size);
        out.put_uvint(previous);
        size_at
    }

    /// Writes the size of the body since `begin_body` into its reserved bytes, and moves the body if the size needs more or fewer.
    fn end_body(&mut self, size_at: usize, out: &mut Vec<u8>) {
        let room = self.size.len();
        let size = out.len() - size_at - room;
        self.size.clear();
        self.size.put_uvint(size as u64);
        match out.get_mut(size_at..size_at + room) {
            Some(room) if room.len() == self.size.len() => room.copy_from_slice(&self.size),
            _ => {
                out.splice(size_at..size_at + room, self.size.iter().copied());
            }
        }
    }

    /// Liveness and row deletion; returns their flags.
    fn key_part(&self, row: Row<'_>, body: &mut Vec<u8>) -> u8 {
        let mut flags = 0;
        let Liveness { timestamp, ttl, local_expiration_time } = row.liveness;
        if !row.liveness.is_empty() {
            flags |= row_flags::HAS_TIMESTAMP;
            self.bases.write_timestamp(timestamp, body);
            if row.liveness.is_expiring() {
                flags |= row_flags::HAS_TTL;
                self.bases.write_ttl(ttl, body);
                self.bases.write_deletion_time(local_expiration_time, body);
            }
        }
        if !row.deletion.time.is_live() {
            flags |= row_flags::HAS_DELETION;
            self.bases.write_deletion(&row.deletion.time, body);
        }
        flags
    }

    /// Which columns the row has; returns HAS_ALL_COLUMNS or writes the subset.
    fn subset(&self, which: Statics, row: Row<'_>, body: &mut Vec<u8>) -> u8 {
        let n = self.out_columns(which).len();
        if n < 64 {
            let mut present = 0u64;
            for cell in row.cells {
                present |= 1 << (cell.column & 63);
            }
            for deletion in row.complex_deletions {
                present |= 1 << (deletion.column & 63);
            }
            let missing = !present & ((1u64 << n) - 1);
            if missing == 0 {
                return row_flags::HAS_ALL_COLUMNS;
            }
            body.put_uvint(missing);
            return 0;
        }
        let mut present = vec![false; n];
        let cells = row.cells.iter().map(|c| c.column);
        for column in cells.chain(row.complex_deletions.iter().map(|d| d.column)) {
            if let Some(slot) = present.get_mut(usize::from(column)) {
                *slot = true;
            }
        }
        let count = present.iter().filter(|p| **p).count();
        if count == n {
            return row_flags::HAS_ALL_COLUMNS;
        }
        body.put_uvint32((n - count) as i32);
        let listed_are_present = count < n / 2;
        for (i, &is_present) in present.iter().enumerate() {
            if is_present == listed_are_present {
                body.put_uvint32(i as i32);
            }
        }
        0
    }

    fn out_columns(&self, which: Statics) -> &[OutColumn] {
        match which {
            Statics::Static => &self.statics,
            Statics::Regular => &self.regulars,
        }
    }

    fn columns(&self, which: Statics, row: Row<'_>, body: &mut Vec<u8>) {
        let columns = self.out_columns(which);
        let mut cells = row.cells;
        let mut deletions = row.complex_deletions;
        // Simple columns come first.
        while let Some((cell, rest)) = cells.split_first()
            && let Some(&column) = columns.get(usize::from(cell.column))
            && !column.complex
        {
            self.cell(row, cell, column, body);
            cells = rest;
        }
        loop {
            let next_cell = cells.first().map(|c| c.column);
            let next_deletion = deletions.first().map(|d| d.column);
            let index = match (next_cell, next_deletion) {
                (Some(c), Some(d)) => c.min(d),
                (Some(only), None) | (None, Some(only)) => only,
                (None, None) => return,
            };
            let Some(&column) = columns.get(usize::from(index)) else { return };
            let deletion = deletions.first().filter(|d| d.column == index);
            if deletion.is_some() {
                deletions = deletions.get(1..).unwrap_or_default();
            }
            let n = cells.iter().take_while(|c| c.column == index).count();
            let (own, rest) = cells.split_at(n);
            self.complex(row, deletion, own, column, body);
            cells = rest;
        }
    }

    fn complex(
        &self,
        row: Row<'_>,
        deletion: Option<&ComplexDeletion>,
        cells: &[Cell],
        column: OutColumn,
        body: &mut Vec<u8>,
    ) {
        if !row.complex_deletions.is_empty() {
            let time = deletion.map_or(DeletionTime::LIVE, |d| d.time);
            self.bases.write_deletion(&time, body);
        }
        body.put_uvint32(cells.len() as i32);
        for cell in cells {
            self.cell(row, cell, column, body);
        }
    }

    #[inline]
    fn cell(&self, row: Row<'_>, cell: &Cell, column: OutColumn, body: &mut Vec<u8>) {
        let row_timestamp = !row.liveness.is_empty() && cell.timestamp == row.liveness.timestamp;
        let row_ttl = cell.is_expiring()
            && row.liveness.is_expiring()
            && cell.ttl == row.liveness.ttl
            && cell.local_deletion_time == row.liveness.local_expiration_time;
        let deleted = cell.is_tombstone();
        let value = cell.value.of(row.bytes);
        let mut flags = 0;
        if value.is_empty() {
            flags |= cell_flags::HAS_EMPTY_VALUE;
        }
        if deleted {
            flags |= cell_flags::IS_DELETED;
        } else if cell.is_expiring() {
            flags |= cell_flags::IS_EXPIRING;
        }
        if row_timestamp {
            flags |= cell_flags::USE_ROW_TIMESTAMP;
        }
        if row_ttl {
            flags |= cell_flags::USE_ROW_TTL;
        }
        body.put_u8(flags);
        if !row_timestamp {
            self.bases.write_timestamp(cell.timestamp, body);
        }
        if (deleted || cell.is_expiring()) && !row_ttl {
            self.bases.write_deletion_time(cell.local_deletion_time, body);
        }
        if cell.is_expiring() && !row_ttl {
            self.bases.write_ttl(cell.ttl, body);
        }
        if column.complex {
            body.put_vbytes(cell.path.of(row.bytes));
        }
        if !value.is_empty() {
            if column.fixed_len {
                body.put(value);
            } else {
                body.put_vbytes(value);
            }
        }
    }

    pub(crate) fn marker(&mut self, marker: Marker<'_>, previous: u64, out: &mut Vec<u8>) {
        out.put_u8(row_flags::IS_MARKER);
        out.put_u8(marker.position.kind as u8);
        out.put_u16(marker.position.count as u16);
        out.put(marker.position.serialized);
        let size_at = self.begin_body(previous, out);
        for deletion in [marker.close, marker.open].into_iter().flatten() {
            self.bases.write_deletion(&deletion, out);
        }
        self.end_body(size_at, out);
    }
}
