//! What CQL means, in a page: the state of a partition is a function of the set of its changes, each with its own timestamp.
//!
//! 1. A cell, an element of a collection and a row's liveness are each what their newest change says.
//! 2. A deletion of the partition, of a range or of a collection hides what is not newer than itself.
//! 3. A row is there if it has liveness or a cell; a static row without rows is shown as one row of nulls.
//!
//! Timestamps are distinct, so ties do not occur. Nothing is merged in advance: each state is computed from all changes.

use std::collections::BTreeMap;

pub(crate) type Timestamp = i64;
/// A row of an answer.
pub(crate) type Cells = Vec<Option<Vec<u8>>>;
/// Clustering columns `a` and `b`.
pub(crate) type RowKey = (i32, i32);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Column {
    /// `s int static`
    Static,
    /// `v int`
    Value,
    /// `w text`
    Text,
    /// `x int`, added and dropped.
    Extra,
}

/// What has cells of its own for its elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Collection {
    /// `m map<int, int>`
    Map,
    /// `e set<int>`: elements are keys.
    Set,
    /// `l list<int>`: no two elements of a row are equal, so that they are keys. The node's clock orders them, which is not compared.
    List,
    /// `u pair`: fields by their places.
    Udt,
    /// `sm map<int, int> static`
    StaticMap,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CellChange {
    /// `None` deletes.
    Set(Column, Option<Vec<u8>>),
    Put(Collection, i32, i32),
    Remove(Collection, i32),
    Clear(Collection),
    /// Deletes all older elements first.
    Replace(Collection, Vec<(i32, i32)>),
}

/// Rows from (inclusive) to (inclusive).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) first: RowKey,
    pub(crate) last: RowKey,
}

impl Range {
    pub(crate) fn has(&self, row: RowKey) -> bool {
        self.first <= row && row <= self.last
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    DeletePartition,
    DeleteRange(Range),
    /// Of the static row if `row` is `None`.
    Write {
        row: Option<RowKey>,
        inserted: bool,
        expires: Option<i64>,
        cells: Vec<CellChange>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mutation {
    pub(crate) at: Timestamp,
    pub(crate) change: Change,
}

impl Mutation {
    pub(crate) fn expires(&self) -> bool {
        matches!(self.change, Change::Write { expires: Some(_), .. })
    }
}

#[derive(Debug, Clone, Copy)]
struct Written<T> {
    at: Timestamp,
    expires: Option<i64>,
    value: T,
}

#[derive(Debug, Clone, Default)]
struct RawRow {
    liveness: Option<Written<()>>,
    cells: BTreeMap<Column, Written<Option<Vec<u8>>>>,
    elements: BTreeMap<(Collection, i32), Written<Option<i32>>>,
    cleared: BTreeMap<Collection, Timestamp>,
}

/// What a SELECT sees of a row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) cells: BTreeMap<Column, (Timestamp, Vec<u8>)>,
    pub(crate) elements: BTreeMap<(Collection, i32), i32>,
}

impl Row {
    pub(crate) fn is_empty(&self) -> bool {
        self.cells.is_empty() && self.elements.is_empty()
    }

    pub(crate) fn of(&self, collection: Collection) -> Vec<(i32, i32)> {
        let of = self.elements.iter().filter(|((of, _), _)| *of == collection);
        of.map(|((_, key), value)| (*key, *value)).collect()
    }
}

/// What a SELECT sees of a partition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Partition {
    pub(crate) static_row: Row,
    pub(crate) rows: BTreeMap<RowKey, Row>,
}

/// When columns were dropped last.
pub(crate) type Drops = BTreeMap<Column, Timestamp>;

fn put<K: Ord, T>(into: &mut BTreeMap<K, Written<T>>, key: K, written: Written<T>) {
    if into.get(&key).is_none_or(|older| older.at < written.at) {
        into.insert(key, written);
    }
}

impl RawRow {
    fn write(&mut self, at: Timestamp, expires: Option<i64>, change: &CellChange) {
        match change {
            CellChange::Set(column, value) => {
                put(&mut self.cells, *column, Written { at, expires, value: value.clone() });
            }
            CellChange::Put(of, key, value) => {
                put(&mut self.elements, (*of, *key), Written { at, expires, value: Some(*value) });
            }
            CellChange::Remove(of, key) => {
                put(&mut self.elements, (*of, *key), Written { at, expires: None, value: None });
            }
            CellChange::Clear(of) => self.clear(*of, at),
            CellChange::Replace(of, elements) => {
                // Cassandra deletes at the timestamp before.
                self.clear(*of, at - 1);
                for (key, value) in elements {
                    let written = Written { at, expires, value: Some(*value) };
                    put(&mut self.elements, (*of, *key), written);
                }
            }
        }
    }

    fn clear(&mut self, of: Collection, at: Timestamp) {
        let cleared = self.cleared.entry(of).or_insert(at);
        *cleared = at.max(*cleared);
    }

    /// `None` if nothing of it is left.
    fn seen(&self, deleted: Option<Timestamp>, drops: &Drops, now: i64) -> Option<Row> {
        let lives = |at: Timestamp, expires: Option<i64>| {
            deleted.is_none_or(|deleted| at > deleted) && expires.is_none_or(|time| time > now)
        };
        let is_live = self.liveness.is_some_and(|written| lives(written.at, written.expires));
        let mut row = Row::default();
        for (column, written) in &self.cells {
            let dropped = drops.get(column).is_some_and(|drop| written.at <= *drop);
            if let Some(value) = &written.value
                && lives(written.at, written.expires)
                && !dropped
            {
                row.cells.insert(*column, (written.at, value.clone()));
            }
        }
        for (key, written) in &self.elements {
            if let Some(value) = written.value
                && lives(written.at, written.expires)
                && self.cleared.get(&key.0).is_none_or(|cleared| written.at > *cleared)
            {
                row.elements.insert(*key, value);
            }
        }
        (is_live || !row.is_empty()).then_some(row)
    }
}

/// The state after all these changes, in whatever order they were made.
pub(crate) fn partition<'a>(
    changes: impl Iterator<Item = &'a Mutation>,
    drops: &Drops,
    now: i64,
) -> Partition {
    let mut deletions: Vec<(Range, Timestamp)> = Vec::new();
    let mut partition_deleted = None;
    let mut static_row = RawRow::default();
    let mut rows: BTreeMap<RowKey, RawRow> = BTreeMap::new();
    for Mutation { at, change } in changes {
        match change {
            Change::DeletePartition => partition_deleted = partition_deleted.max(Some(*at)),
            Change::DeleteRange(range) => deletions.push((*range, *at)),
            Change::Write { row, inserted, expires, cells } => {
                let into = match row {
                    None => &mut static_row,
                    Some(key) => rows.entry(*key).or_default(),
                };
                let written = Written { at: *at, expires: *expires, value: () };
                if *inserted && into.liveness.is_none_or(|older| older.at < *at) {
                    into.liveness = Some(written);
                }
                cells.iter().for_each(|cell| into.write(*at, *expires, cell));
            }
        }
    }
    let deleted = |row: RowKey| {
        let covering = deletions.iter().filter(|(range, _)| range.has(row));
        covering.map(|(_, at)| *at).max().max(partition_deleted)
    };
    Partition {
        static_row: static_row.seen(partition_deleted, drops, now).unwrap_or_default(),
        rows: rows
            .iter()
            .filter_map(|(key, row)| Some((*key, row.seen(deleted(*key), drops, now)?)))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(
        at: Timestamp,
        inserted: bool,
        expires: Option<i64>,
        cells: &[CellChange],
    ) -> Mutation {
        let change = Change::Write { row: Some((1, 1)), inserted, expires, cells: cells.to_vec() };
        Mutation { at, change }
    }

    /// Proves that the order of changes does not matter, that deletions hide what is not newer, and that time ends what expires.
    #[test]
    fn changes_commute() {
        let value = |n: u8| CellChange::Set(Column::Value, Some(vec![n]));
        let changes = [
            write(10, true, None, &[value(1), CellChange::Put(Collection::Map, 1, 1)]),
            write(20, false, Some(100), &[value(2)]),
            write(30, false, None, &[CellChange::Replace(Collection::Map, vec![(2, 2)])]),
            Mutation { at: 15, change: Change::DeletePartition },
        ];
        let forwards = partition(changes.iter(), &Drops::new(), 99);
        assert_eq!(partition(changes.iter().rev(), &Drops::new(), 99), forwards);
        let row = &forwards.rows[&(1, 1)];
        assert_eq!(row.cells[&Column::Value], (20, vec![2]));
        assert_eq!(row.of(Collection::Map), [(2, 2)]);
        let later = partition(changes.iter(), &Drops::new(), 100);
        assert!(later.rows[&(1, 1)].cells.is_empty());
        let dropped = partition(changes.iter(), &Drops::from([(Column::Value, 20)]), 0);
        assert!(dropped.rows[&(1, 1)].cells.is_empty());
    }
}
