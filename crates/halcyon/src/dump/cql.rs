//! Prints rows as the CQL statements that write them.
//!
//! 1. Cells are grouped by timestamp and TTL. Those of the row's liveness form one `INSERT`, each other group one `UPDATE` (or
//!    `DELETE`, for tombstones).
//! 2. All statements have timestamps, so their order does not matter.
//! 3. A range tombstone is printed when it closes.
//! 4. An expiring cell gets its remaining TTL; an expired cell is printed as a tombstone.
//! 5. CQL has no statement for counters' contexts, the positions of list elements, and ranges over columns of mixed order: these
//!    become comments.

use std::collections::BTreeMap;
use std::io::Write;

use halcyon_model::clustering::{ClusteringValue, Position};
use halcyon_model::hex;
use halcyon_model::schema::{ColumnDef, TableSchema};
use halcyon_model::token::{key_component_types, split_key};
use halcyon_model::types::quote_identifier_if_needed;
use halcyon_model::{BoundKind, CqlType, DeletionTime};
use halcyon_sstable::Descriptor;
use halcyon_stream::{Cell, Column, ColumnShape, Fragment, Layout, Marker, Row};

use super::cql_range::{Bound, condition};
use super::cql_value::literal;
use crate::failure::{Failure, Result};
use halcyon_model::units;

pub(super) struct CqlDump<'a, W> {
    out: W,
    layout: &'a Layout,
    table: String,
    key_names: Vec<String>,
    clustering_names: Vec<String>,
    now: u32,
    /// `k1 = 1 AND k2 = 'a'` of the current partition.
    key_condition: String,
    key_values: Vec<String>,
    open: Option<OpenRange>,
}

/// The open range tombstone.
struct OpenRange {
    bound: Bound,
    time: DeletionTime,
}

/// Assignments or columns by timestamp and remaining TTL.
type Gathered = BTreeMap<(i64, u32), Vec<String>>;

impl<'a, W: Write> CqlDump<'a, W> {
    pub(super) fn new(
        out: W,
        layout: &'a Layout,
        schema: &TableSchema,
        now: u32,
    ) -> Result<CqlDump<'a, W>> {
        let names = |columns: &[ColumnDef]| -> Vec<String> {
            columns.iter().map(|c| quote_identifier_if_needed(&c.name)).collect()
        };
        let key_names = names(&schema.partition_key);
        let clustering_names = names(&schema.clustering);
        let fits = key_names.len() == key_component_types(&layout.key_type).len()
            && clustering_names.len() == layout.clustering_types.len();
        if !fits {
            return Err(Failure::usage(format!(
                "the schema of {}.{} has another primary key than the SSTable; give the schema of the table that the \
                 SSTable belongs to",
                schema.keyspace, schema.name
            )));
        }
        let quoted = quote_identifier_if_needed;
        let table = format!("{}.{}", quoted(&schema.keyspace), quoted(&schema.name));
        Ok(CqlDump {
            out,
            layout,
            table,
            key_names,
            clustering_names,
            now,
            key_condition: String::new(),
            key_values: Vec::new(),
            open: None,
        })
    }

    pub(super) fn head(&mut self, descriptor: &Descriptor) -> Result<()> {
        writeln!(self.out, "-- {descriptor}")?;
        writeln!(
            self.out,
            "-- Each statement carries the timestamp it was written with; when a tombstone was made (for gc_grace_seconds)\n\
             -- CQL cannot say: it will count from when the statement runs."
        )?;
        Ok(())
    }

    pub(super) fn fragment(&mut self, fragment: Fragment<'_>) -> Result<()> {
        match fragment {
            Fragment::Start(start) => self.partition(&start.key.bytes, start.deletion),
            Fragment::Static(row) => self.row(row, true),
            Fragment::Row(row) => self.row(row, false),
            Fragment::Marker(marker) => self.marker(marker),
            Fragment::End => Ok(()),
        }
    }

    fn partition(&mut self, key: &[u8], deletion: DeletionTime) -> Result<()> {
        let types = key_component_types(&self.layout.key_type);
        let Some(components) = split_key(key, types.len()) else {
            return Err(Failure::problem(format!(
                "partition key {} is not a composite",
                hex::encode(key)
            )));
        };
        self.key_values =
            types.iter().zip(&components).map(|(t, bytes)| literal(t, bytes)).collect();
        let conditions = self.key_names.iter().zip(&self.key_values);
        let conditions: Vec<String> = conditions.map(|(n, v)| format!("{n} = {v}")).collect();
        self.key_condition = conditions.join(" AND ");
        self.open = None;
        if deletion.is_live() {
            return Ok(());
        }
        self.delete("", &deletion, "")
    }

    fn delete(&mut self, what: &str, deletion: &DeletionTime, condition: &str) -> Result<()> {
        let and = if condition.is_empty() { "" } else { " AND " };
        let space = if what.is_empty() { "" } else { " " };
        writeln!(
            self.out,
            "DELETE{space}{what} FROM {} USING TIMESTAMP {} WHERE {}{and}{condition}; -- made {}",
            self.table,
            deletion.marked_for_delete_at,
            self.key_condition,
            units::seconds_as_instant(deletion.local_deletion_time)
        )?;
        Ok(())
    }

    fn literals(&self, serialized: &[u8], count: usize) -> Vec<Option<String>> {
        let values = self.layout.clusterings.values(serialized, count);
        values
            .zip(&self.layout.clustering_types)
            .map(|(value, cql_type)| match value {
                ClusteringValue::Null => None,
                ClusteringValue::Bytes(bytes) => Some(literal(cql_type, bytes)),
            })
            .collect()
    }

    fn row(&mut self, row: Row<'_>, is_static: bool) -> Result<()> {
        let layout = self.layout;
        let columns = if is_static { &layout.statics } else { &layout.regulars };
        let values = match is_static {
            true => Vec::new(),
            false => self.literals(row.clustering, layout.clustering_types.len()),
        };
        if values.contains(&None) {
            writeln!(
                self.out,
                "-- a row of {} whose clustering has nulls: no statement can write it",
                self.key_condition
            )?;
            return Ok(());
        }
        let values: Vec<String> = values.into_iter().flatten().collect();
        let conditions = self.clustering_names.iter().zip(&values);
        let conditions: Vec<String> = conditions.map(|(n, v)| format!("{n} = {v}")).collect();
        let condition = conditions.join(" AND ");
        if !row.deletion.time.is_live() {
            self.delete("", &row.deletion.time, &condition)?;
        }
        for deletion in row.complex_deletions {
            if let Some(column) = columns.get(usize::from(deletion.column)) {
                self.delete(&name_of(column), &deletion.time, &condition)?;
            }
        }
        let mut inserted = (self.key_names.clone(), self.key_values.clone());
        inserted.0.extend_from_slice(&self.clustering_names);
        inserted.1.extend(values);
        self.cells(row, columns, &condition, (!is_static).then_some(inserted))
    }

    /// `inserted`: names and values of the primary key, for the `INSERT` of the liveness.
    fn cells(
        &mut self,
        row: Row<'_>,
        columns: &[Column],
        condition: &str,
        inserted: Option<(Vec<String>, Vec<String>)>,
    ) -> Result<()> {
        let mut updates = Gathered::new();
        let mut deletes = Gathered::new();
        let live = (row.liveness.timestamp, row.liveness.ttl, row.liveness.local_expiration_time);
        let has_expired = row.liveness.is_expiring() && live.2 <= self.now;
        let mut insert = inserted.filter(|_| !row.liveness.is_empty() && !has_expired);
        for cell in row.cells {
            let Some(column) = columns.get(usize::from(cell.column)) else { continue };
            let (path, value) = (cell.path.of(row.bytes), cell.value.of(row.bytes));
            let is_gone = cell.is_tombstone() || !cell.is_live(self.now);
            let own = (cell.timestamp, cell.ttl, cell.local_deletion_time);
            if column.shape == ColumnShape::Counter {
                self.counter(column, value, condition)?;
            } else if is_gone && matches!(column.cql_type, CqlType::List(_)) {
                self.list_tombstone(column, cell.timestamp, path, condition)?;
            } else if is_gone {
                deletes.entry((cell.timestamp, 0)).or_default().push(element(column, path));
            } else if let (Some((names, values)), ColumnShape::Simple, true) =
                (&mut insert, &column.shape, live == own)
            {
                names.push(name_of(column));
                values.push(literal(&column.cql_type, value));
            } else {
                let assignment = assignment(column, cell, path, value);
                let left = self.left(cell.ttl, cell.local_deletion_time);
                updates.entry((cell.timestamp, left)).or_default().push(assignment);
            }
        }
        if let Some((names, values)) = insert {
            let expiry = match live.1 {
                0 => String::new(),
                ttl => format!(
                    " -- written with TTL {ttl}, expires {}",
                    units::seconds_as_instant(live.2)
                ),
            };
            let using = using(live.0, self.left(live.1, live.2));
            let (names, values) = (names.join(", "), values.join(", "));
            writeln!(
                self.out,
                "INSERT INTO {} ({names}) VALUES ({values}){using};{expiry}",
                self.table
            )?;
        }
        let and = if condition.is_empty() { "" } else { " AND " };
        for ((timestamp, ttl), assignments) in updates {
            let (using, list) = (using(timestamp, ttl), assignments.join(", "));
            let key = &self.key_condition;
            writeln!(
                self.out,
                "UPDATE {}{using} SET {list} WHERE {key}{and}{condition};",
                self.table
            )?;
        }
        for ((timestamp, _), list) in deletes {
            let (key, list) = (&self.key_condition, list.join(", "));
            writeln!(
                self.out,
                "DELETE {list} FROM {} USING TIMESTAMP {timestamp} WHERE {key}{and}{condition};",
                self.table
            )?;
        }
        Ok(())
    }

    /// The remaining seconds of a TTL; 0 without one.
    fn left(&self, ttl: i32, expires_at: u32) -> u32 {
        if ttl == 0 { 0 } else { expires_at.saturating_sub(self.now).max(1) }
    }

    fn counter(&mut self, column: &Column, value: &[u8], condition: &str) -> Result<()> {
        let and = if condition.is_empty() { "" } else { " AND " };
        writeln!(
            self.out,
            "-- counter {} where {}{and}{condition}: context 0x{} (shards add up over all SSTables; no statement can \
             write one)",
            name_of(column),
            self.key_condition,
            hex::encode(value)
        )?;
        Ok(())
    }

    /// CQL deletes list elements by index, which is unknown without all SSTables of the table.
    fn list_tombstone(
        &mut self,
        column: &Column,
        timestamp: i64,
        path: &[u8],
        condition: &str,
    ) -> Result<()> {
        let and = if condition.is_empty() { "" } else { " AND " };
        writeln!(
            self.out,
            "-- deleted at {timestamp}: the element at 0x{} of {} where {}{and}{condition}, which no statement can name",
            hex::encode(path),
            name_of(column),
            self.key_condition
        )?;
        Ok(())
    }

    fn marker(&mut self, marker: Marker<'_>) -> Result<()> {
        let kind = marker.position.kind;
        let closes_inclusive = matches!(kind, BoundKind::InclEnd | BoundKind::InclEndExclStart);
        let opens_inclusive = matches!(kind, BoundKind::InclStart | BoundKind::ExclEndInclStart);
        if kind.closes()
            && let Some(open) = self.open.take()
        {
            let end = self.bound(&marker.position, closes_inclusive);
            self.range(&open, &end)?;
        }
        if let Some(time) = marker.open {
            let bound = self.bound(&marker.position, opens_inclusive);
            self.open = Some(OpenRange { bound, time });
        }
        Ok(())
    }

    fn bound(&self, position: &Position<'_>, inclusive: bool) -> Bound {
        Bound { values: self.literals(position.serialized, position.count), inclusive }
    }

    fn range(&mut self, open: &OpenRange, end: &Bound) -> Result<()> {
        let types = &self.layout.clustering_types;
        match condition(&self.clustering_names, types, &open.bound, end) {
            Some(condition) => self.delete("", &open.time, &condition),
            None => {
                let values = |bound: &Bound| {
                    let shown = bound.values.iter().map(|v| v.as_deref().unwrap_or("null"));
                    format!("({})", shown.collect::<Vec<_>>().join(", "))
                };
                writeln!(
                    self.out,
                    "-- deleted at {} where {}: the range from {} to {}, which no one statement can say",
                    open.time.marked_for_delete_at,
                    self.key_condition,
                    values(&open.bound),
                    values(end)
                )?;
                Ok(())
            }
        }
    }
}

fn name_of(column: &Column) -> String {
    quote_identifier_if_needed(&String::from_utf8_lossy(&column.name))
}

fn using(timestamp: i64, ttl: u32) -> String {
    match ttl {
        0 => format!(" USING TIMESTAMP {timestamp}"),
        ttl => format!(" USING TIMESTAMP {timestamp} AND TTL {ttl}"),
    }
}

/// A column, or the element at a path: `m['a']`, `u.field`.
fn element(column: &Column, path: &[u8]) -> String {
    let name = name_of(column);
    match &column.cql_type {
        CqlType::Map(key, _) | CqlType::Set(key) => {
            format!("{name}[{}]", literal(key, path))
        }
        CqlType::Udt(udt) => {
            let index = path.try_into().map(u16::from_be_bytes).map(usize::from).ok();
            match index.and_then(|i| udt.fields.get(i)) {
                Some((field, _)) => {
                    format!(
                        "{name}.{}",
                        quote_identifier_if_needed(&String::from_utf8_lossy(field))
                    )
                }
                None => format!("{name} /* field 0x{} */", hex::encode(path)),
            }
        }
        _ => name,
    }
}

fn assignment(column: &Column, cell: &Cell, path: &[u8], value: &[u8]) -> String {
    let name = name_of(column);
    let expires = match cell.ttl {
        0 => String::new(),
        ttl => format!(
            " /* written with TTL {ttl}, expires {} */",
            units::seconds_as_instant(cell.local_deletion_time)
        ),
    };
    let said = match &column.cql_type {
        CqlType::Set(e) => format!("{name} = {name} + {{{}}}", literal(e, path)),
        CqlType::List(e) => {
            format!("{name} = {name} + [{}] /* at 0x{} */", literal(e, value), hex::encode(path))
        }
        CqlType::Map(_, v) => format!("{} = {}", element(column, path), literal(v, value)),
        CqlType::Udt(udt) => {
            let index = path.try_into().map(u16::from_be_bytes).map(usize::from).ok();
            let field = index.and_then(|i| udt.fields.get(i)).map(|(_, t)| t);
            let literal = literal(field.unwrap_or(&CqlType::Blob), value);
            format!("{} = {literal}", element(column, path))
        }
        simple => format!("{name} = {}", literal(simple, value)),
    };
    said + &expires
}
