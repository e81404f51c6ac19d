//! Restrictions with their values: partition keys, clusterings, and the slices that a deletion covers.

use std::collections::HashSet;

use std::cmp::Ordering;

use halcyon_model::clustering::{ClusteringValue, Position, PositionBuf};
use halcyon_model::token::{join_key, split_key};
use halcyon_model::{BoundKind, CqlType};
use halcyon_stream::PartitionKey;

use super::bound::BoundRows;
use super::restrictions::{Restrictions, first};
use super::statement_type::StatementType;
use crate::plan::execution::Execution;
use crate::plan::restrictions::product::product;
use crate::plan::restrictions::{
    BoundTerm, Entry, Form, What, in_turn, token_bounds, tuple, tuple_list,
};
use halcyon_schema::catalog::Table;
use halcyon_syntax::{Error, Result};

const MAX_KEY: usize = u16::MAX as usize;

fn refuse<T>(message: String) -> Result<T> {
    Err(Error::InvalidRequest(message))
}

/// Values of some columns that follow each other.
type Prefix = Vec<Vec<u8>>;

fn too_long(length: usize) -> Error {
    Error::InvalidRequest(format!("Key length of {length} is longer than maximum of {MAX_KEY}"))
}

fn check_length(length: usize) -> Result<()> {
    if length > MAX_KEY { Err(too_long(length)) } else { Ok(()) }
}

/// Of a key, as Cassandra counts it: the bytes of its values.
fn length(values: &[Vec<u8>]) -> usize {
    values.iter().map(Vec::len).sum()
}

/// Every combination of the values that the restrictions on a key allow, each once, up to the first slice.
fn combinations<'r>(
    entries: impl Iterator<Item = &'r Entry> + Clone,
    names: &[&str],
    what: &str,
    execution: &Execution<'_>,
) -> Result<Vec<Prefix>> {
    let mut prefixes: Vec<Prefix> = vec![Vec::new()];
    // Cassandra asks only where rows are named, not where they are sliced.
    let is_in = |entry: &Entry| matches!(entry.what, What::In(_));
    let is_slice = |entry: &Entry| matches!(entry.what, What::Slice { .. });
    let named: usize = entries.clone().map(|entry| entry.columns.len()).sum();
    let is_asked =
        named == names.len() && entries.clone().any(is_in) && !entries.clone().any(is_slice);
    let mut count = 1usize;
    for entry in entries {
        let first = first(entry);
        let names = names.get(first..first + entry.columns.len()).unwrap_or_default();
        let mut choices = match &entry.what {
            What::Equal(term) => vec![tuple(term, names, execution, Form::Equal)?],
            What::In(list) => tuple_list(list, names, execution)?,
            _ => break,
        };
        // It counts a value as often as it is given.
        count = count.saturating_mul(choices.len());
        if is_asked {
            execution.check_product(count, what)?;
        }
        let mut seen = HashSet::new();
        choices.retain(|choice| seen.insert(choice.clone()));
        prefixes = product(&prefixes, &choices, what, execution.work)?;
        if prefixes.is_empty() {
            break;
        }
    }
    Ok(prefixes)
}

impl Restrictions {
    pub(super) fn bind_keys(
        &self,
        table: &Table,
        execution: &Execution<'_>,
    ) -> Result<Vec<PartitionKey>> {
        let names: Vec<&str> =
            table.schema.partition_key.iter().map(|def| def.name.as_str()).collect();
        let token = token_bounds(self.token.as_ref(), execution)?;
        let mut keys = Vec::new();
        let mut combined = combinations(self.keys.iter(), &names, "partition key", execution)?;
        let compare = |a: &[Vec<u8>], b: &[Vec<u8>]| {
            let types = table.schema.partition_key.iter().map(|def| &def.cql_type);
            let orders = types.zip(a.iter().zip(b)).map(|(of, (a, b))| of.compare(a, b));
            orders.fold(Ordering::Equal, Ordering::then)
        };
        // A refusal tells of the first key in the order of the types. Of keys that are equal by them the first one of the statement counts.
        combined.sort_by(|a, b| compare(a, b));
        combined.dedup_by(|a, b| compare(a, b).is_eq());
        for components in combined {
            let parts: Vec<&[u8]> = components.iter().map(Vec::as_slice).collect();
            check_length(length(&components))?;
            let Some(key) = join_key(&parts) else {
                return Err(too_long(components.iter().map(|part| part.len() + 3).sum()));
            };
            if key.is_empty() {
                return refuse("Key may not be empty".to_owned());
            }
            keys.push(PartitionKey::of(&key));
        }
        keys.retain(|key| token.is_none_or(|bounds| bounds.admits(key.token)));
        Ok(keys)
    }

    /// Refuses what a client can bind and a key that is written cannot have: a list with null, and an empty tinyint (`0x`), which
    /// Cassandra takes if there are conditions.
    pub(super) fn check_keys(
        keys: &[PartitionKey],
        table: &Table,
        is_conditional: bool,
    ) -> Result<()> {
        let columns = &table.schema.partition_key;
        let is_suspect = |cql_type: &CqlType| match cql_type.thawed() {
            CqlType::List(_) => true,
            CqlType::TinyInt => !is_conditional,
            _ => false,
        };
        if !columns.iter().any(|def| is_suspect(&def.cql_type)) {
            return Ok(());
        }
        for key in keys {
            let parts = split_key(&key.bytes, columns.len()).unwrap_or_default();
            for (def, part) in
                columns.iter().zip(parts).filter(|(def, _)| is_suspect(&def.cql_type))
            {
                def.cql_type.validate(part).map_err(Error::InvalidRequest)?;
            }
        }
        Ok(())
    }

    /// Thrift knew no row whose only clustering value is empty, so a table with `COMPACT STORAGE` takes none (`UpdateParameters.newRow`).
    pub(super) fn check_compact(&self, rows: &BoundRows, table: &Table) -> Result<()> {
        let (BoundRows::Rows(rows), [column]) = (rows, table.schema.clustering.as_slice()) else {
            return Ok(());
        };
        let is_compact = table.schema.options.compact_storage && self.has_clustering();
        if is_compact && rows.contains(&serialize(&[Vec::new()], table)) {
            return refuse(format!("Invalid empty or null value for column {}", column.name));
        }
        Ok(())
    }

    pub(super) fn bind_rows(
        &self,
        kind: StatementType,
        table: &Table,
        execution: &Execution<'_>,
    ) -> Result<BoundRows> {
        if !self.has_clustering() {
            return Ok(BoundRows::Partition);
        }
        let names: Vec<&str> =
            table.schema.clustering.iter().map(|def| def.name.as_str()).collect();
        let prefixes = combinations(self.clustering.iter(), &names, "clustering key", execution)?;
        let is_compact = table.schema.options.compact_storage;
        let (names_rows, is_delete) =
            (self.is_full_clustering(table), kind == StatementType::Delete);
        let of_rows = (is_compact && !is_delete) || names_rows;
        for prefix in &prefixes {
            // Cassandra asks only rows, and then cannot write a longer bound in version nb.
            match of_rows {
                true => check_length(length(prefix))?,
                false => prefix.iter().try_for_each(|value| check_length(value.len()))?,
            }
        }
        if of_rows {
            let mut rows: Vec<Vec<u8>> =
                prefixes.iter().map(|prefix| whole_clustering(prefix, table)).collect();
            // The first row in the partition's order is named in the error.
            let compare = |a: &[u8], b: &[u8]| {
                let (a, b) = (row(a, names.len()), row(b, names.len()));
                table.layout.clusterings.compare(a, b)
            };
            rows.sort_by(|a, b| compare(a, b));
            rows.dedup_by(|a, b| compare(a, b).is_eq());
            return Ok(BoundRows::Rows(rows));
        }
        let mut slices = Vec::new();
        if prefixes.is_empty() {
            return Ok(BoundRows::Slices(slices));
        }
        let last = self.clustering.last();
        let Some(entry @ Entry { what: What::Slice { start, end }, .. }) = last else {
            slices.extend(prefixes.iter().map(|prefix| whole(prefix, table)));
            return Ok(BoundRows::Slices(slices));
        };
        let first = first(entry);
        let bind = |bound: &Option<BoundTerm>| -> Result<Option<(Prefix, bool)>> {
            let Some(bound) = bound else { return Ok(None) };
            let names = names.get(first..first + bound.count).unwrap_or_default();
            let values = tuple(&bound.term, names, execution, Form::Slice)?;
            values.iter().try_for_each(|value| check_length(value.len()))?;
            Ok(Some((values, bound.inclusive)))
        };
        let is_descending = table.layout.clusterings.is_reversed(first);
        let (start, end) = in_turn(is_descending, || bind(start), || bind(end))?;
        for prefix in prefixes {
            let mut slicer = Slicer { table, slices: &mut slices };
            let limit = |bound: &'_ Option<(Prefix, bool)>| bound.clone();
            slicer.slice(prefix, limit(&start), limit(&end));
        }
        let clusterings = &table.layout.clusterings;
        slices.retain(|(start, end)| {
            clusterings.compare(start.position(), end.position()) == Ordering::Less
        });
        Ok(BoundRows::Slices(slices))
    }
}

fn serialize(values: &[Vec<u8>], table: &Table) -> Vec<u8> {
    let values: Vec<ClusteringValue<'_>> =
        values.iter().map(|value| ClusteringValue::Bytes(value)).collect();
    let mut out = Vec::new();
    table.layout.clusterings.write(&values, &mut out);
    out
}

/// Of a row: in a table with `COMPACT STORAGE` the last values may be missing.
fn whole_clustering(values: &[Vec<u8>], table: &Table) -> Vec<u8> {
    let given = values.iter().map(|value| ClusteringValue::Bytes(value));
    let missing = std::iter::repeat(ClusteringValue::Null);
    let all: Vec<_> = given.chain(missing).take(table.schema.clustering.len()).collect();
    let mut out = Vec::new();
    table.layout.clusterings.write(&all, &mut out);
    out
}

fn row(serialized: &[u8], count: usize) -> Position<'_> {
    Position { kind: BoundKind::Clustering, count, serialized }
}

fn bound(kind: BoundKind, values: &[Vec<u8>], table: &Table) -> PositionBuf {
    PositionBuf { kind, count: values.len(), serialized: serialize(values, table) }
}

/// Everything below a prefix.
fn whole(prefix: &[Vec<u8>], table: &Table) -> (PositionBuf, PositionBuf) {
    (bound(BoundKind::InclStart, prefix, table), bound(BoundKind::InclEnd, prefix, table))
}

/// Cuts a range of values into slices of the clustering order, in which some columns may run backwards.
struct Slicer<'a> {
    table: &'a Table,
    slices: &'a mut Vec<(PositionBuf, PositionBuf)>,
}

type Limit = Option<(Prefix, bool)>;

impl Slicer<'_> {
    fn slice(&mut self, prefix: Prefix, start: Limit, end: Limit) {
        let from = prefix.len();
        let length = |limit: &Limit| limit.as_ref().map_or(0, |(values, _)| values.len());
        let columns = from..from + length(&start).max(length(&end));
        let clusterings = &self.table.layout.clusterings;
        let reversed = columns.clone().filter(|i| clusterings.is_reversed(*i)).count();
        if reversed == 0 {
            self.push(&prefix, start, end);
        } else if reversed == columns.len() {
            self.push(&prefix, end, start);
        } else {
            self.cut(prefix, start, end);
        }
    }

    /// One slice; limits are in clustering order.
    fn push(&mut self, prefix: &[Vec<u8>], start: Limit, end: Limit) {
        let side = |limit: Limit, inclusive: BoundKind, exclusive: BoundKind| {
            let (values, is_inclusive) = limit.unwrap_or((Vec::new(), true));
            let values: Prefix = prefix.iter().cloned().chain(values).collect();
            bound(if is_inclusive { inclusive } else { exclusive }, &values, self.table)
        };
        let slice = (
            side(start, BoundKind::InclStart, BoundKind::ExclStart),
            side(end, BoundKind::InclEnd, BoundKind::ExclEnd),
        );
        self.slices.push(slice);
    }

    /// Directions differ: what lies strictly between the first values is one slice of one column; what equals either of
    /// them is cut further by the values that follow.
    fn cut(&mut self, prefix: Prefix, start: Limit, end: Limit) {
        // A limit whose values are used up holds for all rows of the prefix, or for none.
        let used_up =
            |limit: &Limit| limit.as_ref().filter(|(values, _)| values.is_empty()).map(|l| l.1);
        if used_up(&start) == Some(false) || used_up(&end) == Some(false) {
            return;
        }
        let start = start.filter(|(values, _)| !values.is_empty());
        let end = end.filter(|(values, _)| !values.is_empty());
        if start.is_none() && end.is_none() {
            self.slices.push(whole(&prefix, self.table));
            return;
        }
        let column = prefix.len();
        let split = |limit: Limit| -> Option<(Vec<u8>, (Prefix, bool))> {
            let (mut values, inclusive) = limit?;
            let first = values.remove(0);
            Some((first, (values, inclusive)))
        };
        let (start, end) = (split(start), split(end));
        if let (Some((low, _)), Some((high, _))) = (&start, &end) {
            let compare = |a: &[u8], b: &[u8]| {
                let cql_type = self.table.layout.clusterings.type_at(column);
                cql_type.map_or(Ordering::Equal, |cql_type| cql_type.compare(a, b))
            };
            match compare(low, high) {
                Ordering::Greater => return,
                Ordering::Equal => {
                    let longer = prefix.into_iter().chain([low.clone()]).collect();
                    self.cut(longer, start.map(|s| s.1), end.map(|e| e.1));
                    return;
                }
                Ordering::Less => {}
            }
        }
        let open = |side: &Option<(Vec<u8>, (Prefix, bool))>| {
            side.as_ref().map(|(value, _)| (vec![value.clone()], false))
        };
        let (low, high) = (open(&start), open(&end));
        if self.table.layout.clusterings.is_reversed(column) {
            self.push(&prefix, high, low);
        } else {
            self.push(&prefix, low, high);
        }
        if let Some((value, rest)) = start {
            self.cut(prefix.iter().cloned().chain([value]).collect(), Some(rest), None);
        }
        if let Some((value, rest)) = end {
            self.cut(prefix.into_iter().chain([value]).collect(), None, Some(rest));
        }
    }
}
