//! What becomes of a view's rows when a row of its base changes (`ViewUpdateGenerator`).
//!
//! A view's rows carry the timestamps of the base's cells, so that updates may be applied in any order and more than once. Where an entry
//! ends, it gets an expired liveness with the timestamp that made it (CASSANDRA-11500, CASSANDRA-13826): a later one with a newer
//! timestamp brings it back, which a row deletion would not allow.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use halcyon_model::clustering::ClusteringValue;
use halcyon_model::schema::ColumnKind;
use halcyon_model::time::EXPIRED_LIVENESS_TTL;
use halcyon_model::token::{join_key, split_key};
use halcyon_model::{DeletionTime, Liveness, NO_DELETION_TIME, NO_TTL};
use halcyon_schema::catalog::ColumnRef;
use halcyon_stream::{Cell, ComplexDeletion, Mutation, PartitionKey, Row, RowBuf};

use super::plan::ViewPlan;
use crate::{Error, Result};

/// The changes of one view that the changes of one partition of its base make.
pub(super) struct Updates {
    plan: Arc<ViewPlan>,
    key: PartitionKey,
    /// Seconds.
    now: u32,
    by_key: BTreeMap<Vec<u8>, Mutation>,
    /// Of the rows that were made, about.
    bytes: u64,
}

impl Updates {
    pub(super) fn new(plan: Arc<ViewPlan>, key: &PartitionKey, now: u32) -> Updates {
        Updates { plan, key: key.clone(), now, by_key: BTreeMap::new(), bytes: 0 }
    }

    /// Nothing yet, of the same partition and view.
    pub(super) fn again(&self) -> Updates {
        Updates::new(self.plan.clone(), &self.key, self.now)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn finish(self) -> impl Iterator<Item = Mutation> {
        self.by_key.into_values()
    }

    /// A row of the base that was `existing` becomes `merged`.
    pub(super) fn add(&mut self, existing: Option<Row<'_>>, merged: Row<'_>) -> Result<()> {
        let plan = self.plan.clone();
        let Some(column) = plan.other_key else {
            let was = existing.filter(|row| self.has_live_data(row));
            return match (was, self.has_live_data(&merged)) {
                (Some(existing), true) => self.update(existing, merged),
                (Some(existing), false) => self.end(existing, merged),
                (None, true) => self.create(merged),
                (None, false) => Ok(()),
            };
        };
        let live = |row: &Row<'_>| cell(row, column).filter(|cell| cell.is_live(self.now)).copied();
        let was = existing.and_then(|row| Some((row, live(&row)?)));
        let Some((existing, before)) = was else {
            return if live(&merged).is_some() { self.create(merged) } else { Ok(()) };
        };
        let Some(after) = live(&merged) else { return self.end(existing, merged) };
        let cql_type = plan.base.schema.regulars.get(usize::from(column)).map(|c| &c.cql_type);
        let (old, new) = (before.value.of(existing.bytes), after.value.of(merged.bytes));
        if cql_type.is_some_and(|cql_type| cql_type.compare(old, new).is_eq()) {
            return self.update(existing, merged);
        }
        self.create(merged)?;
        self.end(existing, merged)
    }

    fn has_live_data(&self, row: &Row<'_>) -> bool {
        is_live(&row.liveness, self.now) || row.cells.iter().any(|cell| cell.is_live(self.now))
    }

    fn has(&self, row: &Row<'_>) -> bool {
        self.plan.rows.has_row(&self.key, row.clustering)
    }

    fn create(&mut self, base: Row<'_>) -> Result<()> {
        if !self.has(&base) {
            return Ok(());
        }
        let mut row = RowBuf::new();
        let Some(key) = self.begin(&base, &mut row)? else { return Ok(()) };
        row.parts.liveness = self.liveness(&base);
        row.parts.deletion = base.deletion;
        copy(&self.plan, None, &base, &mut row);
        self.submit(&key, row);
        Ok(())
    }

    /// The entry stays; its key is the same before and after.
    fn update(&mut self, existing: Row<'_>, merged: Row<'_>) -> Result<()> {
        // The filter is on the base's primary key, which both have.
        if !self.has(&merged) {
            return Ok(());
        }
        let mut row = RowBuf::new();
        let Some(key) = self.begin(&merged, &mut row)? else { return Ok(()) };
        row.parts.liveness = self.liveness(&merged);
        row.parts.deletion = merged.deletion;
        copy(&self.plan, Some(&existing), &merged, &mut row);
        self.submit(&key, row);
        Ok(())
    }

    /// Ends the entry that the row had.
    fn end(&mut self, existing: Row<'_>, merged: Row<'_>) -> Result<()> {
        if !self.has(&existing) {
            return Ok(());
        }
        let mut row = RowBuf::new();
        let Some(key) = self.begin(&existing, &mut row)? else { return Ok(()) };
        let timestamp = self.ended_at(&existing, &merged);
        // Where the deletion of the row ends the entry, that is enough.
        if timestamp > merged.deletion.time.marked_for_delete_at {
            row.parts.liveness =
                Liveness { timestamp, ttl: EXPIRED_LIVENESS_TTL, local_expiration_time: self.now };
        }
        row.parts.deletion = merged.deletion;
        copy(&self.plan, Some(&existing), &merged, &mut row);
        self.submit(&key, row);
        Ok(())
    }

    /// Begins the view's row of a base row, and returns its partition key; `None` if a value of its key is missing, as can be in
    /// tables with COMPACT STORAGE.
    fn begin(&self, base: &Row<'_>, row: &mut RowBuf) -> Result<Option<PartitionKey>> {
        let plan = &self.plan;
        let schema = &plan.base.schema;
        let components = split_key(&self.key.bytes, schema.partition_key.len());
        let clusterings = &plan.base.layout.clusterings;
        let clustering: Vec<ClusteringValue<'_>> =
            clusterings.values(base.clustering, schema.clustering.len()).collect();
        let value = |at: &ColumnRef| {
            let index = usize::from(at.index);
            match at.kind {
                ColumnKind::PartitionKey => components.as_ref()?.get(index).copied(),
                ColumnKind::Clustering => match clustering.get(index)? {
                    ClusteringValue::Bytes(bytes) => Some(*bytes),
                    ClusteringValue::Null => None,
                },
                ColumnKind::Regular => Some(cell(base, at.index)?.value.of(base.bytes)),
                ColumnKind::Static => None,
            }
        };
        let key: Option<Vec<&[u8]>> = plan.partition_key.iter().map(value).collect();
        let values = plan.clustering.iter().map(|at| value(at).map(ClusteringValue::Bytes));
        let values: Option<Vec<ClusteringValue<'_>>> = values.collect();
        let Some((key, values)) = key.zip(values) else { return Ok(None) };
        let length: usize = key.iter().map(|part| part.len()).sum();
        let key = join_key(&key).ok_or_else(|| {
            let view = plan.view.full_name();
            Error::Invalid(format!(
                "Key length of {length} of materialized view {view} is longer than maximum of 65535"
            ))
        })?;
        let mut serialized = Vec::new();
        plan.view.layout.clusterings.write(&values, &mut serialized);
        row.parts.clustering = row.store(&serialized);
        Ok(Some(PartitionKey::of(&key)))
    }

    fn submit(&mut self, key: &PartitionKey, row: RowBuf) {
        if row.row().is_empty() {
            return;
        }
        self.bytes += (size_of::<Mutation>() + row.bytes.len()) as u64
            + (row.parts.cells.len() * size_of::<Cell>()) as u64;
        let view = &self.plan.view;
        let mutation = self
            .by_key
            .entry(key.bytes.clone())
            .or_insert_with(|| Mutation::new(view.id, view.layout.clone(), key.clone()));
        mutation.rows.push(row);
    }

    /// The liveness of the view's row: of the cell in its key, if there is one. Without one, columns that the view does not show keep a
    /// row of it alive too.
    fn liveness(&self, base: &Row<'_>) -> Liveness {
        let plan = &self.plan;
        if let Some(cell) = plan.other_key.and_then(|column| cell(base, column)) {
            return match cell.ttl {
                NO_TTL => lasting(cell.timestamp),
                ttl => Liveness {
                    timestamp: cell.timestamp,
                    ttl,
                    local_expiration_time: cell.local_deletion_time,
                },
            };
        }
        let liveness = base.liveness;
        if plan.includes_all {
            return liveness;
        }
        let hidden = base.cells.iter().filter(|cell| !plan.shows(cell.column));
        let (mut timestamp, mut lasts, mut longest) = (liveness.timestamp, false, None::<&Cell>);
        for cell in hidden.filter(|cell| cell.is_live(self.now)) {
            timestamp = timestamp.max(cell.timestamp);
            lasts |= !cell.is_expiring();
            if cell.is_expiring()
                && longest.is_none_or(|l| cell.local_deletion_time > l.local_deletion_time)
            {
                longest = Some(cell);
            }
        }
        let base_lives = is_live(&liveness, self.now);
        if lasts || base_lives && !liveness.is_expiring() {
            return lasting(timestamp);
        }
        match longest {
            Some(cell)
                if !base_lives || cell.local_deletion_time > liveness.local_expiration_time =>
            {
                let local_expiration_time = cell.local_deletion_time;
                Liveness { timestamp, ttl: cell.ttl, local_expiration_time }
            }
            _ => liveness,
        }
    }

    /// The timestamp up to which the entry is ended.
    fn ended_at(&self, existing: &Row<'_>, merged: &Row<'_>) -> i64 {
        let plan = &self.plan;
        let deletion = merged.deletion.time;
        if let Some(before) = plan.other_key.and_then(|column| cell(existing, column)) {
            return match deletion.deletes(before.timestamp) {
                true => deletion.marked_for_delete_at,
                false => before.timestamp,
            };
        }
        let timestamp = deletion.marked_for_delete_at.max(existing.liveness.timestamp);
        if plan.includes_all {
            return timestamp;
        }
        // Dead or not: it may have kept the entry alive.
        let hidden = existing.cells.iter().filter(|cell| !plan.shows(cell.column));
        hidden.map(|cell| cell.timestamp).fold(timestamp, i64::max)
    }
}

fn lasting(timestamp: i64) -> Liveness {
    Liveness { timestamp, ttl: NO_TTL, local_expiration_time: NO_DELETION_TIME }
}

fn is_live(liveness: &Liveness, now: u32) -> bool {
    !liveness.is_empty() && (!liveness.is_expiring() || now < liveness.local_expiration_time)
}

/// The cell of a simple column.
fn cell<'r>(row: &Row<'r>, column: u16) -> Option<&'r Cell> {
    row.cells.iter().find(|cell| cell.column == column)
}

/// The cells that a row had.
struct Before<'r> {
    row: Option<&'r Row<'r>>,
    /// Those of collections, by column and path.
    elements: HashMap<(u16, &'r [u8]), &'r Cell>,
}

impl<'r> Before<'r> {
    fn of(row: Option<&'r Row<'r>>) -> Before<'r> {
        let elements = row.into_iter().flat_map(|row| {
            let path = |cell: &'r Cell| ((cell.column, cell.path.of(row.bytes)), cell);
            row.cells.iter().map(path).filter(|((_, path), _)| !path.is_empty())
        });
        Before { row, elements: elements.collect() }
    }

    /// The one in the place of a cell of another row.
    fn cell(&self, cell: &Cell, of: &Row<'_>) -> Option<(&'r Cell, &'r [u8])> {
        let row = self.row?;
        let found = match cell.path.of(of.bytes) {
            [] => {
                let at = row.cells.partition_point(|other| other.column < cell.column);
                row.cells.get(at).filter(|other| {
                    other.column == cell.column && other.path.of(row.bytes).is_empty()
                })
            }
            path => self.elements.get(&(cell.column, path)).copied(),
        };
        found.map(|found| (found, row.bytes))
    }
}

/// Copies what the view shows of a base row's columns: all, or what differs from `existing`.
fn copy(plan: &ViewPlan, existing: Option<&Row<'_>>, merged: &Row<'_>, to: &mut RowBuf) {
    let column = |column: u16| plan.regulars.get(usize::from(column)).copied().flatten();
    let before = Before::of(existing);
    let is_known = |cell: &Cell| {
        before.cell(cell, merged).is_some_and(|(other, bytes)| {
            other.timestamp == cell.timestamp
                && other.ttl == cell.ttl
                && other.local_deletion_time == cell.local_deletion_time
                && other.value.of(bytes) == cell.value.of(merged.bytes)
        })
    };
    for cell in merged.cells.iter().filter(|cell| !is_known(cell)) {
        let Some(column) = column(cell.column) else { continue };
        let path = to.store(cell.path.of(merged.bytes));
        let value = to.store(cell.value.of(merged.bytes));
        to.parts.cells.push(Cell { column, path, value, ..*cell });
    }
    let before = |deletion: &ComplexDeletion| {
        let known = existing.map_or(&[][..], |existing| existing.complex_deletions);
        known.iter().find(|other| other.column == deletion.column).map(|other| other.time)
    };
    for deletion in merged.complex_deletions {
        let Some(column) = column(deletion.column) else { continue };
        if before(deletion).is_none_or(|before: DeletionTime| deletion.time.supersedes(&before)) {
            to.parts.complex_deletions.push(ComplexDeletion { column, time: deletion.time });
        }
    }
}
