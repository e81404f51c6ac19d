//! Partitions as `sstabledump` (`JsonTransformer`) prints them, byte for byte.
//!
//! Peculiarities of `sstabledump`, which scripts may depend on:
//! - the position of a partition and of a static row is that of the first row after it;
//! - a cell has a timestamp or TTL only if it differs from its row's;
//! - the value of a counter is the first bytes of its context, not its total;
//! - an object is no longer compact after a `deletion_info` in it, so its last line is out of line.

use std::io::{self, Write};

use halcyon_model::clustering::ClusteringValue;
use halcyon_model::token::{key_component_types, split_key};
use halcyon_model::types::quote_identifier_if_needed;
use halcyon_model::value::{to_json_string, to_string};
use halcyon_model::{BoundKind, CqlType, DeletionTime, Liveness};
use halcyon_stream::{Cell, Column, ColumnShape, Layout, Marker, Row};

use super::json_writer::JsonWriter;
use halcyon_model::units;

/// The format of times, and the current time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    pub(crate) raw: bool,
    /// Seconds since 1970; decides what has expired.
    pub(crate) now: u32,
}

impl Times {
    fn micros(&self, micros: i64) -> String {
        if self.raw {
            return micros.to_string();
        }
        // Java's arithmetic: seconds round towards zero, nanoseconds saturate at 64 bits.
        let nanos = micros.saturating_mul(1000).rem_euclid(1_000_000_000);
        units::instant(micros / 1_000_000, nanos as u32)
    }

    fn seconds(&self, seconds: u32) -> String {
        if self.raw { seconds.to_string() } else { units::seconds_as_instant(seconds) }
    }
}

/// The start of a partition; printed once the position after it is known.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PartitionHead<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) deletion: DeletionTime,
    pub(crate) position: u64,
}

pub(crate) struct JsonDump<'l, W> {
    json: JsonWriter<W>,
    layout: &'l Layout,
    times: Times,
    /// `REGULAR` or `INDEX`.
    table_kind: &'static str,
}

impl<'l, W: Write> JsonDump<'l, W> {
    pub(crate) fn new(
        json: JsonWriter<W>,
        layout: &'l Layout,
        times: Times,
        table_kind: &'static str,
    ) -> JsonDump<'l, W> {
        JsonDump { json, layout, times, table_kind }
    }

    pub(crate) fn start_all(&mut self) {
        self.json.start_array();
    }

    pub(crate) fn end_all(&mut self) -> io::Result<()> {
        self.json.end_array()
    }

    pub(crate) fn finish(self) -> io::Result<()> {
        self.json.finish()
    }

    /// `[ "k1", "k2" ]`
    pub(crate) fn key(&mut self, key: &[u8]) -> io::Result<()> {
        self.json.compact_objects = true;
        self.json.compact_arrays = true;
        self.json.start_array();
        let types = key_component_types(&self.layout.key_type);
        match split_key(key, types.len()) {
            Some(components) => {
                for (cql_type, component) in types.iter().zip(components) {
                    self.json.string(&to_string(cql_type, component));
                }
            }
            None => self.json.string(&to_string(&CqlType::Blob, key)),
        }
        self.json.end_array()?;
        self.json.compact_objects = false;
        self.json.compact_arrays = false;
        Ok(())
    }

    pub(crate) fn start_partition(&mut self, head: PartitionHead<'_>) -> io::Result<()> {
        self.json.start_object();
        self.json.field("table kind");
        self.json.string(self.table_kind);
        self.json.field("partition");
        self.json.start_object();
        self.json.field("key");
        self.key(head.key)?;
        self.json.field("position");
        self.json.raw(&head.position.to_string());
        if !head.deletion.is_live() {
            self.deletion(&head.deletion)?;
        }
        self.json.end_object()?;
        self.json.field("rows");
        self.json.start_array();
        Ok(())
    }

    pub(crate) fn end_partition(&mut self) -> io::Result<()> {
        self.json.end_array()?;
        self.json.end_object()
    }

    pub(crate) fn static_row(&mut self, row: Row<'_>, position: u64) -> io::Result<()> {
        let layout = self.layout;
        self.row_of(row, position, "static_block", &layout.statics)
    }

    pub(crate) fn row(&mut self, row: Row<'_>, position: u64) -> io::Result<()> {
        let layout = self.layout;
        self.row_of(row, position, "row", &layout.regulars)
    }

    fn row_of(
        &mut self,
        row: Row<'_>,
        position: u64,
        row_type: &str,
        columns: &[Column],
    ) -> io::Result<()> {
        self.json.start_object();
        self.json.field("type");
        self.json.string(row_type);
        self.json.field("position");
        self.json.raw(&position.to_string());
        if row_type == "row" {
            self.clustering(row.clustering, self.layout.clustering_types.len())?;
        }
        if !row.liveness.is_empty() {
            self.liveness(&row.liveness)?;
        }
        if !row.deletion.time.is_live() {
            self.deletion(&row.deletion.time)?;
        }
        self.json.field("cells");
        self.json.start_array();
        let mut cells = row.cells;
        for (index, column) in columns.iter().enumerate() {
            let own = |c: u16| usize::from(c) == index;
            let complex = row.complex_deletions.iter().find(|d| own(d.column));
            if let Some(deletion) = complex {
                self.complex_deletion(column, &deletion.time)?;
            }
            let (mine, rest) = cells.split_at(cells.iter().take_while(|c| own(c.column)).count());
            cells = rest;
            for cell in mine {
                self.cell(column, cell, row.bytes, &row.liveness)?;
            }
        }
        self.json.end_array()?;
        self.json.end_object()
    }

    fn liveness(&mut self, liveness: &Liveness) -> io::Result<()> {
        self.json.compact_objects = false;
        self.json.field("liveness_info");
        self.json.compact_objects = true;
        self.json.start_object();
        self.json.field("tstamp");
        self.json.string(&self.times.micros(liveness.timestamp));
        if liveness.is_expiring() {
            let expired = liveness.local_expiration_time < self.times.now;
            self.expiry(liveness.ttl, liveness.local_expiration_time, expired);
        }
        self.json.end_object()?;
        self.json.compact_objects = false;
        Ok(())
    }

    fn expiry(&mut self, ttl: i32, expires_at: u32, expired: bool) {
        self.json.field("ttl");
        self.json.raw(&ttl.to_string());
        self.json.field("expires_at");
        self.json.string(&self.times.seconds(expires_at));
        self.json.field("expired");
        self.json.raw(if expired { "true" } else { "false" });
    }

    fn deletion(&mut self, deletion: &DeletionTime) -> io::Result<()> {
        self.json.field("deletion_info");
        self.json.compact_objects = true;
        self.json.start_object();
        self.json.field("marked_deleted");
        self.json.string(&self.times.micros(deletion.marked_for_delete_at));
        self.json.field("local_delete_time");
        self.json.string(&self.times.seconds(deletion.local_deletion_time));
        self.json.end_object()?;
        self.json.compact_objects = false;
        Ok(())
    }

    /// The values of a row, or of a bound, with `*` for missing values.
    fn clustering(&mut self, serialized: &[u8], count: usize) -> io::Result<()> {
        if count == 0 {
            return Ok(());
        }
        self.json.field("clustering");
        self.json.compact_objects = true;
        self.json.start_array();
        self.json.compact_arrays = true;
        let mut values = self.layout.clusterings.values(serialized, count);
        for cql_type in &self.layout.clustering_types {
            match values.next() {
                None => self.json.string("*"),
                Some(ClusteringValue::Null) => self.json.raw("null"),
                Some(ClusteringValue::Bytes(bytes)) => {
                    self.json.raw(&to_json_string(shown_type(cql_type), bytes));
                }
            }
        }
        self.json.end_array()?;
        self.json.compact_objects = false;
        self.json.compact_arrays = false;
        Ok(())
    }

    fn complex_deletion(&mut self, column: &Column, deletion: &DeletionTime) -> io::Result<()> {
        self.json.compact_objects = true;
        self.json.start_object();
        self.json.field("name");
        self.json.string(&column_name(column));
        self.deletion(deletion)?;
        self.json.compact_objects = true;
        self.json.end_object()?;
        self.json.compact_objects = false;
        Ok(())
    }

    fn cell(
        &mut self,
        column: &Column,
        cell: &Cell,
        bytes: &[u8],
        liveness: &Liveness,
    ) -> io::Result<()> {
        self.json.start_object();
        self.json.compact_objects = true;
        self.json.field("name");
        self.json.string(&column_name(column));
        let (path, value_type) = path_and_type(column, cell.path.of(bytes));
        if let Some(path) = path {
            self.json.field("path");
            self.json.compact_arrays = true;
            self.json.start_array();
            self.json.string(&path);
            self.json.end_array()?;
            self.json.compact_arrays = false;
        }
        if cell.is_tombstone() {
            self.json.field("deletion_info");
            self.json.compact_objects = true;
            self.json.start_object();
            self.json.field("local_delete_time");
            self.json.string(&self.times.seconds(cell.local_deletion_time));
            self.json.end_object()?;
            self.json.compact_objects = false;
        } else {
            self.json.field("value");
            self.json.raw(&to_json_string(&value_type, cell.value.of(bytes)));
        }
        if liveness.is_empty() || cell.timestamp != liveness.timestamp {
            self.json.field("tstamp");
            self.json.string(&self.times.micros(cell.timestamp));
        }
        if cell.is_expiring() && (liveness.is_empty() || cell.ttl != liveness.ttl) {
            self.expiry(cell.ttl, cell.local_deletion_time, !cell.is_live(self.times.now));
        }
        self.json.end_object()?;
        self.json.compact_objects = false;
        Ok(())
    }

    pub(crate) fn marker(&mut self, marker: Marker<'_>) -> io::Result<()> {
        let kind = marker.position.kind;
        self.json.start_object();
        self.json.field("type");
        if kind.is_boundary() {
            let open_is_inclusive = kind == BoundKind::ExclEndInclStart;
            self.json.string("range_tombstone_boundary");
            self.bound("start", open_is_inclusive, &marker, marker.open)?;
            self.bound("end", !open_is_inclusive, &marker, marker.close)?;
        } else {
            let inclusive = matches!(kind, BoundKind::InclStart | BoundKind::InclEnd);
            let (name, time) =
                if kind.opens() { ("start", marker.open) } else { ("end", marker.close) };
            self.json.string("range_tombstone_bound");
            self.bound(name, inclusive, &marker, time)?;
        }
        self.json.end_object()?;
        self.json.compact_objects = false;
        Ok(())
    }

    fn bound(
        &mut self,
        name: &str,
        inclusive: bool,
        marker: &Marker<'_>,
        time: Option<DeletionTime>,
    ) -> io::Result<()> {
        self.json.field(name);
        self.json.start_object();
        self.json.field("type");
        self.json.string(if inclusive { "inclusive" } else { "exclusive" });
        self.clustering(marker.position.serialized, marker.position.count)?;
        self.deletion(&time.unwrap_or(DeletionTime::LIVE))?;
        self.json.end_object()
    }
}

/// The clustering of an index contains keys of the base table; they are printed with that type if it is known.
fn shown_type(cql_type: &CqlType) -> &CqlType {
    match cql_type {
        CqlType::PartitionerDefinedOrder { key_type: Some(key_type), .. } => key_type,
        other => other,
    }
}

fn column_name(column: &Column) -> String {
    quote_identifier_if_needed(&String::from_utf8_lossy(&column.name))
}

/// The path of a cell of a complex column, and the type of the cell's value.
fn path_and_type(column: &Column, path: &[u8]) -> (Option<String>, CqlType) {
    let ColumnShape::Complex { path_type } = &column.shape else {
        return (None, column.cql_type.clone());
    };
    match &column.cql_type {
        CqlType::Map(_, value) => (Some(to_string(path_type, path)), (**value).clone()),
        CqlType::List(element) => (Some(to_string(path_type, path)), (**element).clone()),
        CqlType::Udt(udt) => {
            let index = path.try_into().map(u16::from_be_bytes).ok().map(usize::from);
            match index.and_then(|i| udt.fields.get(i)) {
                Some((name, cql_type)) => {
                    (Some(String::from_utf8_lossy(name).into_owned()), cql_type.clone())
                }
                None => (Some(to_string(path_type, path)), CqlType::Blob),
            }
        }
        _ => (Some(to_string(path_type, path)), CqlType::Empty),
    }
}
