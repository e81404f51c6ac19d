//! Records of the commit log: mutations as bytes, in a form that outlives schema changes.
//!
//! ```text
//! record     u8 version │ uvint n │ n × (u32 length, entry)
//! entry      u8 kind │ 16 table │ mutation, or nothing if the kind is "truncated"
//! mutation   vbytes key │ u8 contents │ i64 base │ [deletion] │ [columns, row: static] │ [columns, uvint n, n × row] │
//!            [uvint n, n × range]
//! columns    uvint n │ n × (u8 complex, vbytes name)                       those in use; cells refer to them by index
//! row        vbytes clustering │ u8 flags │ [liveness] │ [deletion] │ [complex deletions] │ uvint n, n × cell
//! cell       u8 flags │ uvint column │ [svint timestamp] │ [uvint ttl] │ [u32 deletion time] │ [vbytes path] │ vbytes value
//! ```
//! Timestamps are relative to `base`. A replay finds columns by name; it drops cells of columns that the table no longer has, or has in
//! another shape.

use std::sync::Arc;

use halcyon_model::bytes::Put;
use halcyon_model::clustering::PositionBuf;
use halcyon_model::{
    BoundKind, Cursor, DecodeError, DecodeResult, DeletionTime, Liveness, NO_DELETION_TIME, NO_TTL,
};
use halcyon_schema::catalog::Table;
use halcyon_stream::{
    Cell, Column, ComplexDeletion, Layout, Mutation, PartitionKey, RangeTombstone, RowBuf,
    RowDeletion, Statics, TableId,
};

const VERSION: u8 = 1;

const MUTATION: u8 = 0;
const TRUNCATED: u8 = 1;

mod contents {
    pub(super) const DELETION: u8 = 1;
    pub(super) const STATIC: u8 = 2;
    pub(super) const ROWS: u8 = 4;
    pub(super) const RANGES: u8 = 8;
}

mod row_flags {
    pub(super) const LIVENESS: u8 = 1;
    pub(super) const EXPIRING: u8 = 2;
    pub(super) const DELETION: u8 = 4;
    pub(super) const SHADOWABLE: u8 = 8;
    pub(super) const COMPLEX_DELETIONS: u8 = 16;
}

mod cell_flags {
    /// The timestamp of the row's liveness.
    pub(super) const ROW_TIMESTAMP: u8 = 1;
    pub(super) const TTL: u8 = 2;
    pub(super) const DELETION_TIME: u8 = 4;
    pub(super) const PATH: u8 = 8;
}

/// An entry of a record, about one table.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "nearly all are mutations")]
pub(crate) enum Entry {
    Mutation(Mutation),
    /// All earlier writes to the table were dropped.
    Truncated(TableId),
    /// An entry of an unknown or dropped table.
    Skipped(TableId),
}

/// Encodes records; its buffers are reused.
#[derive(Debug, Default)]
pub(crate) struct RecordWriter {
    bytes: Vec<u8>,
    body: Vec<u8>,
    /// For each column of the layout, its index among those in use plus one; 0 if unused.
    places: Vec<u32>,
    occurring: Vec<u16>,
}

impl RecordWriter {
    pub(crate) fn truncated(&mut self, table: TableId) -> &[u8] {
        self.begin(1);
        self.bytes.put_u32(17);
        self.bytes.put_u8(TRUNCATED);
        self.bytes.put(&table);
        &self.bytes
    }

    pub(crate) fn mutations<'m>(
        &mut self,
        count: usize,
        mutations: impl Iterator<Item = &'m Mutation>,
    ) -> &[u8] {
        self.begin(count);
        for mutation in mutations {
            let at = self.bytes.len();
            self.bytes.put_u32(0);
            self.bytes.put_u8(MUTATION);
            self.bytes.put(&mutation.table);
            self.mutation(mutation);
            let length = (self.bytes.len() - at - 4) as u32;
            if let Some(place) = self.bytes.get_mut(at..at + 4) {
                place.copy_from_slice(&length.to_be_bytes());
            }
        }
        &self.bytes
    }

    fn begin(&mut self, count: usize) {
        self.bytes.clear();
        self.bytes.put_u8(VERSION);
        self.bytes.put_uvint(count as u64);
    }

    fn mutation(&mut self, mutation: &Mutation) {
        let base = base_of(mutation);
        let present = |flag: u8, is: bool| if is { flag } else { 0 };
        self.bytes.put_vbytes(&mutation.key.bytes);
        self.bytes.put_u8(
            present(contents::DELETION, !mutation.deletion.is_live())
                | present(contents::STATIC, mutation.static_row.is_some())
                | present(contents::ROWS, !mutation.rows.is_empty())
                | present(contents::RANGES, !mutation.range_tombstones.is_empty()),
        );
        self.bytes.put_i64(base);
        if !mutation.deletion.is_live() {
            put_deletion(&mut self.bytes, &mutation.deletion, base);
        }
        if let Some(row) = &mutation.static_row {
            self.rows(&mutation.layout.statics, std::slice::from_ref(row), base);
        }
        if !mutation.rows.is_empty() {
            self.rows(&mutation.layout.regulars, &mutation.rows, base);
        }
        if !mutation.range_tombstones.is_empty() {
            self.bytes.put_uvint(mutation.range_tombstones.len() as u64);
            for range in &mutation.range_tombstones {
                for bound in [&range.start, &range.end] {
                    self.bytes.put_u8(bound.kind as u8);
                    self.bytes.put_uvint(bound.count as u64);
                    self.bytes.put_vbytes(&bound.serialized);
                }
                put_deletion(&mut self.bytes, &range.time, base);
            }
        }
    }

    /// Writes the columns in use, then the rows. The rows are encoded first, to find the columns.
    fn rows(&mut self, columns: &[Column], rows: &[RowBuf], base: i64) {
        let RecordWriter { bytes, body, places, occurring } = self;
        body.clear();
        occurring.clear();
        places.clear();
        places.resize(columns.len(), 0);
        let mut place = |column: u16| match places.get_mut(usize::from(column)) {
            Some(place) => {
                if *place == 0 {
                    occurring.push(column);
                    *place = occurring.len() as u32;
                }
                u64::from(*place - 1)
            }
            None => 0,
        };
        body.put_uvint(rows.len() as u64);
        for row in rows {
            put_row(body, row, base, &mut place);
        }
        bytes.put_uvint(occurring.len() as u64);
        for column in occurring.iter().filter_map(|at| columns.get(usize::from(*at))) {
            bytes.put_bool(column.is_complex());
            bytes.put_vbytes(&column.name);
        }
        bytes.put(body);
    }
}

/// Any timestamp of the mutation: most cells share it.
fn base_of(mutation: &Mutation) -> i64 {
    let row = mutation.rows.first().or(mutation.static_row.as_ref());
    let of_row = row.and_then(|row| {
        let liveness =
            Some(row.parts.liveness.timestamp).filter(|_| !row.parts.liveness.is_empty());
        liveness.or(row.parts.cells.first().map(|cell| cell.timestamp))
    });
    of_row.unwrap_or(0)
}

fn put_deletion(out: &mut Vec<u8>, time: &DeletionTime, base: i64) {
    out.put_svint(time.marked_for_delete_at.wrapping_sub(base));
    out.put_u32(time.local_deletion_time);
}

fn put_row(out: &mut Vec<u8>, row: &RowBuf, base: i64, place: &mut impl FnMut(u16) -> u64) {
    let parts = &row.parts;
    let present = |flag: u8, is: bool| if is { flag } else { 0 };
    let liveness = parts.liveness;
    out.put_vbytes(parts.clustering.of(&row.bytes));
    out.put_u8(
        present(row_flags::LIVENESS, !liveness.is_empty())
            | present(row_flags::EXPIRING, !liveness.is_empty() && liveness.is_expiring())
            | present(row_flags::DELETION, !parts.deletion.time.is_live())
            | present(row_flags::SHADOWABLE, parts.deletion.shadowable)
            | present(row_flags::COMPLEX_DELETIONS, !parts.complex_deletions.is_empty()),
    );
    if !liveness.is_empty() {
        out.put_svint(liveness.timestamp.wrapping_sub(base));
        if liveness.is_expiring() {
            out.put_i32(liveness.ttl);
            out.put_u32(liveness.local_expiration_time);
        }
    }
    if !parts.deletion.time.is_live() {
        put_deletion(out, &parts.deletion.time, base);
    }
    if !parts.complex_deletions.is_empty() {
        out.put_uvint(parts.complex_deletions.len() as u64);
        for deletion in &parts.complex_deletions {
            out.put_uvint(place(deletion.column));
            put_deletion(out, &deletion.time, base);
        }
    }
    out.put_uvint(parts.cells.len() as u64);
    for cell in &parts.cells {
        let as_row = !liveness.is_empty() && cell.timestamp == liveness.timestamp;
        out.put_u8(
            present(cell_flags::ROW_TIMESTAMP, as_row)
                | present(cell_flags::TTL, cell.ttl != NO_TTL)
                | present(cell_flags::DELETION_TIME, cell.local_deletion_time != NO_DELETION_TIME)
                | present(cell_flags::PATH, cell.path.len > 0),
        );
        out.put_uvint(place(cell.column));
        if !as_row {
            out.put_svint(cell.timestamp.wrapping_sub(base));
        }
        if cell.ttl != NO_TTL {
            out.put_i32(cell.ttl);
        }
        if cell.local_deletion_time != NO_DELETION_TIME {
            out.put_u32(cell.local_deletion_time);
        }
        if cell.path.len > 0 {
            out.put_vbytes(cell.path.of(&row.bytes));
        }
        out.put_vbytes(cell.value.of(&row.bytes));
    }
}

pub(super) fn encode<'m>(mutations: impl Iterator<Item = &'m Mutation> + Clone) -> Vec<u8> {
    let mut writer = RecordWriter::default();
    writer.mutations(mutations.clone().count(), mutations);
    writer.bytes
}

/// Decodes a record. `find` selects the tables.
pub(crate) fn read_record(
    bytes: &[u8],
    find: impl Fn(&TableId) -> Option<Arc<Table>>,
) -> DecodeResult<Vec<Entry>> {
    let mut cursor = Cursor::new(bytes);
    let version = cursor.u8()?;
    if version != VERSION {
        return Err(cursor.error(format!("record of version {version}, known is {VERSION}")));
    }
    let count = cursor.uvint()?;
    let mut entries = Vec::new();
    for _ in 0..count {
        let length = cursor.u32()?;
        let offset = cursor.offset();
        let mut entry = Cursor::at_offset(cursor.take(length as usize)?, offset);
        let kind = entry.u8()?;
        let table: TableId = entry.array()?;
        entries.push(match (kind, find(&table)) {
            (TRUNCATED, _) => Entry::Truncated(table),
            (_, None) => Entry::Skipped(table),
            (MUTATION, Some(table)) => Entry::Mutation(read_mutation(&mut entry, &table)?),
            _ => return Err(entry.error(format!("entry of kind {kind}"))),
        });
    }
    Ok(entries)
}

fn read_mutation(cursor: &mut Cursor<'_>, table: &Table) -> DecodeResult<Mutation> {
    let layout = &table.layout;
    let key = PartitionKey::of(cursor.vbytes()?);
    let present = cursor.u8()?;
    let base = cursor.i64()?;
    let mut mutation = Mutation::new(table.id, layout.clone(), key);
    if present & contents::DELETION != 0 {
        mutation.deletion = read_deletion(cursor, base)?;
    }
    if present & contents::STATIC != 0 {
        mutation.static_row = read_rows(cursor, table, Statics::Static, base)?.pop();
    }
    if present & contents::ROWS != 0 {
        mutation.rows = read_rows(cursor, table, Statics::Regular, base)?;
    }
    if present & contents::RANGES != 0 {
        for _ in 0..cursor.uvint()? {
            let start = read_bound(cursor, layout)?;
            let end = read_bound(cursor, layout)?;
            if !start.kind.opens() || !end.kind.closes() {
                return Err(cursor.error("range tombstone whose bounds do not open and close"));
            }
            let time = read_deletion(cursor, base)?;
            mutation.range_tombstones.push(RangeTombstone { start, end, time });
        }
    }
    if cursor.remaining() > 0 {
        return Err(cursor.error(format!("{} bytes behind a mutation", cursor.remaining())));
    }
    Ok(mutation)
}

fn read_deletion(cursor: &mut Cursor<'_>, base: i64) -> DecodeResult<DeletionTime> {
    let marked_for_delete_at = base.wrapping_add(cursor.svint()?);
    Ok(DeletionTime { marked_for_delete_at, local_deletion_time: cursor.u32()? })
}

fn read_bound(cursor: &mut Cursor<'_>, layout: &Layout) -> DecodeResult<PositionBuf> {
    let kind = BoundKind::read_marker(cursor)?;
    let count = cursor.uvint()?;
    let offset = cursor.offset();
    let serialized = cursor.vbytes()?;
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    check_clustering(layout, serialized, count, offset)?;
    Ok(PositionBuf { kind, count, serialized: serialized.to_vec() })
}

fn check_clustering(
    layout: &Layout,
    serialized: &[u8],
    count: usize,
    offset: u64,
) -> DecodeResult<()> {
    let mut inner = Cursor::at_offset(serialized, offset);
    layout.clusterings.read(&mut inner, count)?;
    if inner.remaining() == 0 {
        return Ok(());
    }
    Err(DecodeError { offset, what: "bytes behind a clustering".to_owned() })
}

/// The number of a recorded column in the table's layout.
#[derive(Clone, Copy)]
struct RecordedColumn {
    column: u16,
    /// What was written at or before this is of a column that was dropped, and has come back since.
    dropped_at: i64,
}

/// Decodes rows to the table's current columns.
fn read_rows(
    cursor: &mut Cursor<'_>,
    table: &Table,
    which: Statics,
    base: i64,
) -> DecodeResult<Vec<RowBuf>> {
    let layout = &table.layout;
    let columns = layout.columns(which);
    let dropped_at = |name: &[u8]| {
        let dropped = table.schema.dropped.iter().find(|dropped| dropped.name.as_bytes() == name);
        dropped.map_or(i64::MIN, |dropped| dropped.dropped_time)
    };
    let mut places: Vec<Option<RecordedColumn>> = Vec::new();
    for _ in 0..cursor.uvint()? {
        let complex = cursor.bool()?;
        let name = cursor.vbytes()?;
        let same = |column: &Column| column.name == name && column.is_complex() == complex;
        let column = columns.iter().position(same).and_then(|at| u16::try_from(at).ok());
        places.push(column.map(|column| RecordedColumn { column, dropped_at: dropped_at(name) }));
    }
    let mut rows = Vec::new();
    for _ in 0..cursor.uvint()? {
        let mut row = read_row(cursor, &places, base)?;
        if which == Statics::Regular {
            let clustering = row.parts.clustering.of(&row.bytes);
            check_clustering(layout, clustering, layout.clusterings.len(), cursor.offset())?;
        }
        // Indexes follow the order of first use; a row needs the layout's order.
        row.parts.cells.sort_by_key(|cell| cell.column);
        row.parts.complex_deletions.sort_by_key(|deletion| deletion.column);
        if !row.row().is_empty() {
            rows.push(row);
        }
    }
    Ok(rows)
}

fn read_column(
    cursor: &mut Cursor<'_>,
    places: &[Option<RecordedColumn>],
) -> DecodeResult<Option<RecordedColumn>> {
    let place = cursor.uvint()?;
    let known = usize::try_from(place).ok().and_then(|place| places.get(place));
    known.copied().ok_or_else(|| cursor.error(format!("column {place} of {}", places.len())))
}

fn read_row(
    cursor: &mut Cursor<'_>,
    places: &[Option<RecordedColumn>],
    base: i64,
) -> DecodeResult<RowBuf> {
    let mut row = RowBuf::new();
    row.parts.clustering = row.store(cursor.vbytes()?);
    let flags = cursor.u8()?;
    if flags & row_flags::LIVENESS != 0 {
        row.parts.liveness = Liveness {
            timestamp: base.wrapping_add(cursor.svint()?),
            ttl: NO_TTL,
            local_expiration_time: NO_DELETION_TIME,
        };
        if flags & row_flags::EXPIRING != 0 {
            row.parts.liveness.ttl = cursor.i32()?;
            row.parts.liveness.local_expiration_time = cursor.u32()?;
        }
    }
    if flags & row_flags::DELETION != 0 {
        let shadowable = flags & row_flags::SHADOWABLE != 0;
        row.parts.deletion = RowDeletion { time: read_deletion(cursor, base)?, shadowable };
    }
    if flags & row_flags::COMPLEX_DELETIONS != 0 {
        for _ in 0..cursor.uvint()? {
            let place = read_column(cursor, places)?;
            let time = read_deletion(cursor, base)?;
            let kept = place.filter(|place| time.marked_for_delete_at > place.dropped_at);
            let deletion = kept.map(|place| ComplexDeletion { column: place.column, time });
            row.parts.complex_deletions.extend(deletion);
        }
    }
    for _ in 0..cursor.uvint()? {
        read_cell(cursor, places, base, &mut row)?;
    }
    Ok(row)
}

fn read_cell(
    cursor: &mut Cursor<'_>,
    places: &[Option<RecordedColumn>],
    base: i64,
    row: &mut RowBuf,
) -> DecodeResult<()> {
    let flags = cursor.u8()?;
    let place = read_column(cursor, places)?;
    let timestamp = if flags & cell_flags::ROW_TIMESTAMP != 0 {
        row.parts.liveness.timestamp
    } else {
        base.wrapping_add(cursor.svint()?)
    };
    let ttl = if flags & cell_flags::TTL != 0 { cursor.i32()? } else { NO_TTL };
    let has_time = flags & cell_flags::DELETION_TIME != 0;
    let local_deletion_time = if has_time { cursor.u32()? } else { NO_DELETION_TIME };
    let path = if flags & cell_flags::PATH != 0 { cursor.vbytes()? } else { &[] };
    let value = cursor.vbytes()?;
    let Some(RecordedColumn { column, .. }) = place.filter(|place| timestamp > place.dropped_at)
    else {
        return Ok(());
    };
    let (path, value) = (row.store(path), row.store(value));
    row.parts.cells.push(Cell { column, ttl, timestamp, local_deletion_time, path, value });
    Ok(())
}
