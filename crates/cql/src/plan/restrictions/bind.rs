//! Restrictions with values: partition keys or a token range, and slices.
//!
//! A slice of several columns of mixed order is the union of slices of one column each:
//! `(a, b) > (1, 2)` is `a = 1 AND b > 2` or `a > 1`. Start and end are bound apart and intersected.

use std::borrow::Cow;
use std::cmp::Ordering;

use halcyon_model::clustering::{ClusteringValue, Position, PositionBuf};
use halcyon_model::token::join_key;
use halcyon_model::{BoundKind, CqlType};
use halcyon_stream::{PartitionKey, Slice, Slices};

use super::product::product;
use super::{BoundTerm, Entry, Keys, Restrictions, TupleList, TupleTerm, What};
use crate::plan::execution::Execution;
use crate::plan::term::{Bound, Term};
use crate::plan::value::collection::collection_elements;
use halcyon_schema::catalog::Table;
use halcyon_syntax::{Error, Result};

pub(in crate::plan) type Tuple = Vec<Vec<u8>>;

/// The relation that a tuple belongs to, by which a null in it is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::plan) enum Form {
    Equal,
    In,
    Slice,
}

/// A null among the values of columns in parentheses.
fn null_of(name: &str, names: &[impl AsRef<str>], form: Form) -> Error {
    Error::InvalidRequest(match form {
        Form::Equal => format!("Invalid null value for column {name}"),
        Form::Slice => format!("Invalid null value in condition for column {name}"),
        Form::In => {
            let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
            format!("Invalid null value in condition for columns: [{}]", names.join(", "))
        }
    })
}

/// Tokens between two bounds, which `true` includes; `None` is open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenBounds {
    pub start: Option<(i64, bool)>,
    pub end: Option<(i64, bool)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BoundKeys {
    /// In the order in which their rows are to come.
    Partitions(Vec<PartitionKey>),
    Range(TokenBounds),
}

impl BoundKeys {
    /// Refuses an empty key. Cassandra does not check the keys of a statement that reads no rows.
    pub(in crate::plan) fn check(&self) -> Result<()> {
        match self {
            BoundKeys::Partitions(keys) if keys.iter().any(|key| key.bytes.is_empty()) => {
                Err(Error::invalid_request("Key may not be empty"))
            }
            _ => Ok(()),
        }
    }
}

pub(super) fn value(term: &Term, execution: &Execution<'_>, column: &str) -> Result<Vec<u8>> {
    of_bound(term.bind(execution)?, column)
}

fn of_bound(bound: Bound<'_>, column: &str) -> Result<Vec<u8>> {
    match bound {
        Bound::Bytes(bytes) => Ok(bytes.into_owned()),
        Bound::Null => Err(Error::InvalidRequest(format!(
            "Invalid null value in condition for column {column}"
        ))),
        Bound::Unset => {
            Err(Error::InvalidRequest(format!("Invalid unset value for column {column}")))
        }
    }
}

/// The list of an `IN ?`.
pub(super) fn in_list<'v>(
    term: &'v Term,
    names: &[impl AsRef<str>],
    tuples: bool,
    execution: &Execution<'v>,
) -> Result<Cow<'v, [u8]>> {
    let what = match term.bind(execution)? {
        Bound::Bytes(bytes) => return Ok(bytes),
        Bound::Null => "null",
        Bound::Unset => "unset",
    };
    Err(Error::InvalidRequest(match (names, what) {
        ([name], _) if !tuples => format!("Invalid {what} value for column {}", name.as_ref()),
        (_, "null") => "Invalid null value for IN restriction".to_owned(),
        _ => {
            let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
            format!("Invalid unset value for in({})", names.join(","))
        }
    }))
}

pub(super) fn column_names(table: &Table, entry: &Entry) -> Vec<String> {
    let name =
        |c: &halcyon_schema::catalog::ColumnRef| table.column(*c).map(|def| def.name.clone());
    entry.columns.iter().map(|column| name(column).unwrap_or_default()).collect()
}

fn is_null(term: &TupleTerm, execution: &Execution<'_>) -> Result<bool> {
    match term {
        TupleTerm::One(term) => Ok(term.bind(execution)? == Bound::Null),
        TupleTerm::Columns(_) | TupleTerm::Whole(_) => Ok(false),
    }
}

fn split_tuple(bytes: &[u8], names: &[impl AsRef<str>], form: Form) -> Result<Tuple> {
    let mut cursor = halcyon_model::Cursor::new(bytes);
    let part = |name| {
        let null = || null_of(AsRef::as_ref(name), names, form);
        let len = cursor.i32().map_err(|_| null())?;
        let len = usize::try_from(len).map_err(|_| null())?;
        cursor.take(len).map(<[u8]>::to_vec).map_err(|_| null())
    };
    names.iter().map(part).collect()
}

pub(in crate::plan) fn tuple(
    term: &TupleTerm,
    names: &[impl AsRef<str>],
    execution: &Execution<'_>,
    form: Form,
) -> Result<Tuple> {
    tuple_or_null(term, names, execution, form)?
}

/// The values, or the error of a null among them: Cassandra binds all tuples before it refuses a null.
fn tuple_or_null(
    term: &TupleTerm,
    names: &[impl AsRef<str>],
    execution: &Execution<'_>,
    form: Form,
) -> Result<Result<Tuple>> {
    match term {
        TupleTerm::One(term) => {
            Ok(Ok(vec![value(term, execution, names.first().map_or("", AsRef::as_ref))?]))
        }
        TupleTerm::Columns(terms) => {
            let mut values = Vec::with_capacity(terms.len());
            let mut null = None;
            for (at, (term, name)) in terms.iter().zip(names).enumerate() {
                match term.bind(execution)? {
                    Bound::Bytes(bytes) => values.push(bytes.into_owned()),
                    Bound::Null => null = null.or(Some(name.as_ref())),
                    Bound::Unset => {
                        let message = format!("Invalid unset value for tuple field number {at}");
                        return Err(Error::InvalidRequest(message));
                    }
                }
            }
            Ok(null.map_or(Ok(values), |name| Err(null_of(name, names, form))))
        }
        TupleTerm::Whole(term) => split_tuple(&whole(term, names, execution)?, names, form).map(Ok),
    }
}

/// A tuple that one marker stands for.
fn whole(term: &Term, names: &[impl AsRef<str>], execution: &Execution<'_>) -> Result<Vec<u8>> {
    let listed: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    let shown = format!("({})", listed.join(","));
    match term.bind(execution)? {
        Bound::Unset => {
            Err(Error::InvalidRequest(format!("Invalid unset value for tuple {shown}")))
        }
        bound => of_bound(bound, &shown),
    }
}

fn list_elements(bytes: &[u8], name: &str) -> Result<Vec<Vec<u8>>> {
    let malformed = |_| Error::InvalidRequest(format!("Invalid list value for {name}"));
    let mut cursor = halcyon_model::Cursor::new(bytes);
    let count = cursor.i32().map_err(malformed)?;
    let mut elements = Vec::new();
    for _ in 0..count {
        let len = cursor.i32().map_err(malformed)?;
        let Ok(len) = usize::try_from(len) else {
            return Err(Error::InvalidRequest(format!(
                "Invalid null value in condition for column {name}"
            )));
        };
        elements.push(cursor.take(len).map_err(malformed)?.to_vec());
    }
    Ok(elements)
}

/// What a value of an IN costs, in units of work.
const VALUE: u64 = 300;

/// Binds the start and the end of a slice in the clustering order.
pub(in crate::plan) fn in_turn<T>(
    is_descending: bool,
    start: impl FnOnce() -> Result<T>,
    end: impl FnOnce() -> Result<T>,
) -> Result<(T, T)> {
    if !is_descending {
        return Ok((start()?, end()?));
    }
    let end = end()?;
    Ok((start()?, end))
}

/// The tuples of an `Equal` or an `In`.
pub(super) fn tuples(
    what: &What,
    names: &[String],
    execution: &Execution<'_>,
) -> Result<Vec<Tuple>> {
    match what {
        What::Equal(term) => Ok(vec![tuple(term, names, execution, Form::Equal)?]),
        What::In(list) => tuple_list(list, names, execution),
        _ => Ok(Vec::new()),
    }
}

/// Whether one of several restrictions is an IN.
fn has_in(entries: &[Entry]) -> bool {
    entries.iter().any(|entry| matches!(entry.what, What::In(_)))
}

/// The list of an `IN ?`, whose values are counted as work.
fn counted_list<'v>(
    term: &'v Term,
    names: &[impl AsRef<str>],
    tuples: bool,
    execution: &Execution<'v>,
) -> Result<Cow<'v, [u8]>> {
    let list = in_list(term, names, tuples, execution)?;
    execution.work.spend_on(list.len() / 4, VALUE)?;
    Ok(list)
}

/// The tuples of an `In`.
pub(in crate::plan) fn tuple_list(
    list: &TupleList,
    names: &[impl AsRef<str>],
    execution: &Execution<'_>,
) -> Result<Vec<Tuple>> {
    match list {
        TupleList::Each(terms) => {
            execution.work.spend_on(terms.len(), VALUE)?;
            let name = names.first().map_or("", AsRef::as_ref);
            // All values are validated before one of them is refused for being null, and then for being unset.
            let bound = terms.iter().map(|term| match term {
                TupleTerm::One(term) => term.bind(execution).map(Some),
                TupleTerm::Columns(_) | TupleTerm::Whole(_) => Ok(None),
            });
            let bound = bound.collect::<Result<Vec<_>>>()?;
            if bound.iter().flatten().any(|bound| matches!(bound, Bound::Null)) {
                of_bound(Bound::Null, name)?;
            }
            let values = terms.iter().zip(bound).map(|(term, bound)| match bound {
                Some(bound) => Ok(of_bound(bound, name).map(|value| vec![value])),
                None => tuple_or_null(term, names, execution, Form::In),
            });
            values.collect::<Result<Vec<_>>>()?.into_iter().collect()
        }
        TupleList::List { term, tuples } => {
            let whole: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
            let list = counted_list(term, names, *tuples, execution)?;
            let elements = list_elements(&list, &whole.join(","))?;
            let values = |element: Vec<u8>| match tuples {
                true => split_tuple(&element, names, Form::In),
                false => Ok(vec![element]),
            };
            elements.into_iter().map(values).collect()
        }
    }
}

/// The tuples of an `In` that filters, of which Cassandra finds nothing that follows a null.
pub(super) fn tuples_before_null(
    list: &TupleList,
    names: &[impl AsRef<str>],
    execution: &Execution<'_>,
) -> Result<Vec<Tuple>> {
    match list {
        TupleList::Each(terms) => {
            execution.work.spend_on(terms.len(), VALUE)?;
            let bound = terms.iter().map(|term| match term {
                TupleTerm::Whole(term) => {
                    Ok(split_tuple(&whole(term, names, execution)?, names, Form::In))
                }
                term => tuple_or_null(term, names, execution, Form::In),
            });
            let bound = bound.collect::<Result<Vec<_>>>()?;
            Ok(bound.into_iter().map_while(Result::ok).collect())
        }
        TupleList::List { term, tuples } => {
            let list = counted_list(term, names, *tuples, execution)?;
            let elements = collection_elements(&list).into_iter();
            let values = elements.map_while(|element| split_tuple(element?, names, Form::In).ok());
            Ok(values.collect())
        }
    }
}

fn partition_key(parts: &[&[u8]]) -> Result<PartitionKey> {
    let too_long = || {
        let values: usize = parts.iter().map(|part| part.len()).sum();
        // Of several values, each has three bytes more in the key.
        let len = if values > 65_535 { values } else { values + 3 * parts.len() };
        Error::InvalidRequest(format!("Key length of {len} is longer than maximum of 65535"))
    };
    join_key(parts).map(|bytes| PartitionKey::of(&bytes)).ok_or_else(too_long)
}

/// The key if each of its columns has one value, the most frequent case.
fn single_key(
    entries: &[Entry],
    table: &Table,
    execution: &Execution<'_>,
) -> Result<Option<PartitionKey>> {
    let mut values = Vec::with_capacity(entries.len());
    for entry in entries {
        let What::Equal(TupleTerm::One(term)) = &entry.what else { return Ok(None) };
        match term.bind(execution)? {
            Bound::Bytes(bytes) => values.push(bytes),
            missing => {
                let names = column_names(table, entry);
                of_bound(missing, names.first().map_or("", String::as_str))?;
            }
        }
    }
    let parts: Vec<&[u8]> = values.iter().map(|value| value.as_ref()).collect();
    partition_key(&parts).map(Some)
}

impl Restrictions {
    pub fn bind_keys(&self, table: &Table, execution: &Execution<'_>) -> Result<Option<BoundKeys>> {
        let token = || token_bounds(self.token.as_ref(), execution);
        let Keys::Columns(entries) = &self.keys else {
            return Ok(match token()? {
                Some(bounds) if is_empty(&bounds) => None,
                bounds => Some(BoundKeys::Range(bounds.unwrap_or_default())),
            });
        };
        let admitted = |mut keys: Vec<PartitionKey>| {
            let token = token()?;
            keys.retain(|key| token.is_none_or(|bounds| bounds.admits(key.token)));
            Ok(Some(BoundKeys::Partitions(keys)))
        };
        if let Some(key) = single_key(entries, table, execution)? {
            return admitted(vec![key]);
        }
        let mut keys: Vec<Tuple> = vec![Vec::new()];
        let (has_in, mut count) = (has_in(entries), 1usize);
        for entry in entries {
            let mut values = tuples(&entry.what, &column_names(table, entry), execution)?;
            // Cassandra counts a value as often as it is given.
            count = count.saturating_mul(values.len());
            if has_in {
                execution.check_product(count, "partition key")?;
            }
            let cql_type = entry.columns.first().and_then(|column| table.column(*column));
            if let Some(def) = cql_type {
                let compare = |a: &Tuple, b: &Tuple| compare_first(&def.cql_type, a, b);
                values.sort_by(compare);
                // Of values that are equal by their type (1.0 and 1.00) the first one of the statement counts, as in Cassandra.
                values.dedup_by(|a, b| compare(a, b).is_eq());
            }
            keys = product(&keys, &values, "partition key", execution.work)?;
            if keys.is_empty() {
                break;
            }
        }
        let mut bound = Vec::with_capacity(keys.len());
        for key in &keys {
            let parts: Vec<&[u8]> = key.iter().map(Vec::as_slice).collect();
            bound.push(partition_key(&parts)?);
        }
        admitted(bound)
    }

    /// The rows that are wanted of each partition.
    pub fn bind_slices(
        &self,
        table: &Table,
        execution: &Execution<'_>,
        reversed: bool,
        statics: bool,
    ) -> Result<Slices> {
        if self.clustering.is_empty() {
            return Ok(Slices { slices: vec![Slice::default()].into(), reversed, statics });
        }
        let mut prefixes: Vec<Tuple> = vec![Vec::new()];
        let mut slices = None;
        // Cassandra asks only where rows are named.
        let is_asked = has_in(&self.clustering) && self.names_rows(table);
        let mut count = 1usize;
        for entry in &self.clustering {
            let names = column_names(table, entry);
            match &entry.what {
                What::Slice { start, end } => {
                    type Limit = Option<Result<(Tuple, bool)>>;
                    let bind = |bound: &Option<BoundTerm>| -> Result<Limit> {
                        let Some(bound) = bound else { return Ok(None) };
                        let names = names.get(..bound.count).unwrap_or(&names);
                        let values = tuple_or_null(&bound.term, names, execution, Form::Slice)?;
                        Ok(Some(values.map(|values| (values, bound.inclusive))))
                    };
                    // Null sorts before every value, on descending columns too.
                    let null = |bound: &Option<BoundTerm>| match bound {
                        Some(bound) => is_null(&bound.term, execution),
                        None => Ok(false),
                    };
                    let first = entry.columns.first().map_or(0, |c| usize::from(c.index));
                    let descending = table.layout.clusterings.is_reversed(first);
                    let bind = |bound| Ok(if null(bound)? { None } else { Some(bind(bound)?) });
                    // The first bound in the clustering order is the first to be refused, but for those of several columns.
                    let end_first = descending && !entry.tuple;
                    let (start, end) = in_turn(end_first, || bind(start), || bind(end))?;
                    if (start.is_none() && descending) || (end.is_none() && !descending) {
                        return Ok(Slices { slices: Vec::new().into(), reversed, statics });
                    }
                    let start = start.flatten().transpose()?;
                    let end = end.flatten().transpose()?;
                    let per_prefix = prefixes.iter();
                    slices = Some(
                        per_prefix
                            .flat_map(|prefix| between(table, prefix, &start, &end))
                            .collect::<Vec<Slice>>(),
                    );
                }
                what => {
                    let next = tuples(what, &names, execution)?;
                    count = count.saturating_mul(next.len());
                    if is_asked {
                        execution.check_product(count, "clustering key")?;
                    }
                    prefixes = product(&prefixes, &next, "clustering key", execution.work)?;
                }
            }
            // Behind an IN without values Cassandra looks at no further one.
            if prefixes.is_empty() {
                break;
            }
        }
        let slices = match slices {
            Some(slices) => slices,
            None => prefixes.iter().map(|prefix| of_prefix(table, prefix)).collect(),
        };
        Ok(Slices { slices: in_order(table, slices).into(), reversed, statics })
    }
}

/// The range that relations on `token(…)` mean.
pub(in crate::plan) fn token_bounds(
    token: Option<&What>,
    execution: &Execution<'_>,
) -> Result<Option<TokenBounds>> {
    let read = |term: &TupleTerm| -> Result<i64> {
        let TupleTerm::One(term) = term else { return Ok(i64::MIN) };
        let bound = term.bind(execution)?;
        let bytes = bound.bytes();
        bytes
            .and_then(|bytes| <[u8; 8]>::try_from(bytes).ok())
            .map(i64::from_be_bytes)
            .ok_or_else(|| Error::invalid_request("Invalid null token value"))
    };
    let bound = |bound: &Option<BoundTerm>| -> Result<Option<(i64, bool)>> {
        bound.as_ref().map(|b| Ok((read(&b.term)?, b.inclusive))).transpose()
    };
    Ok(match token {
        None => None,
        Some(What::Slice { start, end }) => {
            Some(TokenBounds { start: bound(start)?, end: bound(end)? })
        }
        Some(What::Equal(term)) => {
            let token = read(term)?;
            Some(TokenBounds { start: Some((token, true)), end: Some((token, true)) })
        }
        Some(_) => None,
    })
}

fn compare_first(cql_type: &CqlType, a: &Tuple, b: &Tuple) -> Ordering {
    match (a.first(), b.first()) {
        (Some(a), Some(b)) => cql_type.base().compare(a, b),
        _ => Ordering::Equal,
    }
}

impl TokenBounds {
    /// Whether a range of partitions has the token. The minimum token bounds nothing.
    pub fn contains(&self, token: i64) -> bool {
        self.is_behind_start(token) && self.is_before_end(token)
    }

    /// Whether a key that the statement names is one of those that are wanted: also where start and end wrap around the ring.
    pub(in crate::plan) fn admits(&self, token: i64) -> bool {
        match (self.start, self.end) {
            (Some((start, true)), Some((end, true))) if start == end => token == start,
            (Some((start, _)), Some((end, _))) if start > end && end != i64::MIN => {
                self.is_behind_start(token) || self.is_before_end(token)
            }
            _ => self.contains(token),
        }
    }

    fn is_behind_start(&self, token: i64) -> bool {
        self.start.is_none_or(|(start, inclusive)| {
            token > start || (inclusive && token == start) || start == i64::MIN
        })
    }

    fn is_before_end(&self, token: i64) -> bool {
        self.end.is_none_or(|(end, inclusive)| {
            token < end || (inclusive && token == end) || end == i64::MIN
        })
    }
}

/// Where no key is named, wrapping ranges are empty; the minimum token as an end is the end of the ring.
fn is_empty(bounds: &TokenBounds) -> bool {
    let (Some((start, from)), Some((end, to))) = (bounds.start, bounds.end) else { return false };
    start != i64::MIN && end != i64::MIN && (start > end || (start == end && !(from && to)))
}

fn bound(table: &Table, kind: BoundKind, values: &[Vec<u8>]) -> PositionBuf {
    let parts: Vec<ClusteringValue<'_>> =
        values.iter().map(|value| ClusteringValue::Bytes(value)).collect();
    let mut serialized = Vec::new();
    table.layout.clusterings.write(&parts, &mut serialized);
    PositionBuf { kind, count: values.len(), serialized }
}

fn of_prefix(table: &Table, prefix: &[Vec<u8>]) -> Slice {
    Slice {
        start: Some(bound(table, BoundKind::InclStart, prefix)),
        end: Some(bound(table, BoundKind::InclEnd, prefix)),
    }
}

/// The slices above (`after`) or below the values, in the sense of CQL, within a prefix.
fn half(
    table: &Table,
    prefix: &[Vec<u8>],
    values: &[Vec<u8>],
    inclusive: bool,
    after: bool,
) -> Vec<Slice> {
    let whole = |kind: BoundKind| (!prefix.is_empty()).then(|| bound(table, kind, prefix));
    let mut slices = Vec::with_capacity(values.len());
    for at in 0..values.len() {
        let fixed: Vec<Vec<u8>> =
            prefix.iter().chain(values.iter().take(at + 1)).cloned().collect();
        let inclusive = inclusive && at + 1 == values.len();
        let within = fixed.get(..fixed.len() - 1).unwrap_or_default();
        let edge = |kind: BoundKind| (!within.is_empty()).then(|| bound(table, kind, within));
        let descending = table.layout.clusterings.is_reversed(prefix.len() + at);
        slices.push(if after != descending {
            let kind = if inclusive { BoundKind::InclStart } else { BoundKind::ExclStart };
            Slice { start: Some(bound(table, kind, &fixed)), end: edge(BoundKind::InclEnd) }
        } else {
            let kind = if inclusive { BoundKind::InclEnd } else { BoundKind::ExclEnd };
            Slice { start: edge(BoundKind::InclStart), end: Some(bound(table, kind, &fixed)) }
        });
    }
    if slices.is_empty() {
        slices.push(Slice { start: whole(BoundKind::InclStart), end: whole(BoundKind::InclEnd) });
    }
    slices
}

fn between(
    table: &Table,
    prefix: &[Vec<u8>],
    start: &Option<(Tuple, bool)>,
    end: &Option<(Tuple, bool)>,
) -> Vec<Slice> {
    let half = |side: &Option<(Tuple, bool)>, after| {
        let (values, inclusive) = match side {
            Some((values, inclusive)) => (values.as_slice(), *inclusive),
            None => (&[] as &[Vec<u8>], true),
        };
        half(table, prefix, values, inclusive, after)
    };
    let (above, below) = (half(start, true), half(end, false));
    let pairs = above.iter().flat_map(|a| below.iter().map(move |b| (a, b)));
    pairs.filter_map(|(a, b)| a.intersect(b, &table.layout)).collect()
}

/// Sorts slices and joins those that overlap.
fn in_order(table: &Table, mut slices: Vec<Slice>) -> Vec<Slice> {
    let order = |a: Position<'_>, b: Position<'_>| table.layout.clusterings.compare(a, b);
    slices.sort_by(|a, b| order(a.start_position(), b.start_position()));
    let mut joined: Vec<Slice> = Vec::with_capacity(slices.len());
    for slice in slices {
        match joined.last_mut() {
            Some(last) if order(slice.start_position(), last.end_position()).is_lt() => {
                if order(last.end_position(), slice.end_position()).is_lt() {
                    last.end = slice.end;
                }
            }
            _ => joined.push(slice),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that keys which are named are admitted by a range that wraps around the ring, and by one token alone, as in Cassandra;
    /// `DELETE … WHERE p IN (…) AND token(p) > 5 AND token(p) < -5` deletes by it.
    #[test]
    fn named_keys_are_admitted_by_ranges_that_wrap() {
        let bounds = |start, end| TokenBounds { start: Some(start), end: Some(end) };
        let wraps = bounds((5, false), (-5, false));
        assert_eq!(
            [-6, -5, 0, 5, 6].map(|token| wraps.admits(token)),
            [true, false, false, false, true]
        );
        assert!(!wraps.contains(-6) && !wraps.contains(6));
        let first = bounds((i64::MIN, true), (i64::MIN, true));
        assert_eq!([i64::MIN, 0].map(|token| first.admits(token)), [true, false]);
        assert!(bounds((5, false), (i64::MIN, true)).admits(6));
    }
}
