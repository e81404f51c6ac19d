//! `writetime`, `maxwritetime` and `ttl`: of a value, of one of its cells, or of each.

use halcyon_model::CqlType;
use halcyon_model::bytes::Put;

use super::elements::{element, field, key_type, slice};
use super::{CellTime, Evaluation, Part, Step, TimeKind};
use crate::plan::value::collection::put_value;

/// What the steps have led to so far.
enum Asked<'a> {
    /// Cells of a column that has many.
    Cells(Vec<&'a CellTime>),
    /// A cell, and the value in it, or a part of that.
    Value(&'a CellTime, Option<Vec<u8>>),
}

/// `form`: the type of the column, if the answer is a list.
pub(super) fn time(
    on: &Evaluation<'_>,
    fetch: usize,
    kind: TimeKind,
    steps: &[Step],
    form: Option<&CqlType>,
) -> Option<Vec<u8>> {
    let whole = on.row.value(fetch);
    let mut asked = match on.row.times(fetch) {
        [only] if only.simple => {
            let value = whole.filter(|_| !steps.is_empty());
            Asked::Value(only, value.map(<[u8]>::to_vec))
        }
        cells => Asked::Cells(cells.iter().collect()),
    };
    for step in steps {
        asked = match asked {
            // The parts of a value that is one cell have its time, if they are there.
            Asked::Value(cell, value) => Asked::Value(cell, Some(part(on, step, &value?)?)),
            Asked::Cells(cells) => cells_of(on, step, cells, whole)?,
        };
    }
    let chosen = match asked {
        Asked::Cells(cells) => cells,
        Asked::Value(cell, _) => vec![cell],
    };
    if chosen.is_empty() {
        return None;
    }
    if let Some(cql_type) = form {
        return Some(each(&chosen, kind, cql_type));
    }
    match kind {
        TimeKind::Ttl => chosen.first()?.ttl.map(|ttl| ttl.to_be_bytes().to_vec()),
        TimeKind::WriteTime => Some(chosen.first()?.timestamp.to_be_bytes().to_vec()),
        TimeKind::MaxWriteTime => {
            chosen.iter().map(|cell| cell.timestamp).max().map(|t| t.to_be_bytes().to_vec())
        }
    }
}

/// The part of a value that a step leads to.
fn part(on: &Evaluation<'_>, step: &Step, value: &[u8]) -> Option<Vec<u8>> {
    match &step.part {
        Part::Element(key) => element(value, &step.of, on.term(*key)?),
        Part::Slice(from, to) => {
            let bound = |term: &Option<usize>| term.and_then(|term| on.term(term));
            let found = slice(value, &step.of, bound(from), bound(to));
            Some(found).filter(|found| *found != 0_u32.to_be_bytes())
        }
        Part::Field(index) => field(value, usize::from(*index)),
    }
}

/// The cells, or the one with its value, that a step leads to from some of a column's.
fn cells_of<'a>(
    on: &Evaluation<'_>,
    step: &Step,
    cells: Vec<&'a CellTime>,
    column: Option<&[u8]>,
) -> Option<Asked<'a>> {
    let compare = |path: &[u8], key: &[u8]| Some(key_type(&step.of)?.compare(path, key));
    let is_asked = |cell: &&CellTime| match &step.part {
        Part::Element(key) => {
            on.term(*key).is_some_and(|key| compare(&cell.path, key).is_some_and(|c| c.is_eq()))
        }
        Part::Slice(from, to) => {
            let bound = |term: &Option<usize>| term.and_then(|term| on.term(term));
            let order = |key: &[u8]| compare(&cell.path, key);
            bound(from).is_none_or(|from| order(from).is_some_and(|c| c.is_ge()))
                && bound(to).is_none_or(|to| order(to).is_some_and(|c| c.is_le()))
        }
        Part::Field(index) => cell.path == index.to_be_bytes(),
    };
    let mut found = cells.into_iter().filter(is_asked);
    match &step.part {
        Part::Slice(..) => Some(Asked::Cells(found.collect())),
        _ => Some(Asked::Value(found.next()?, part(on, step, column?))),
    }
}

/// A list with the time of each cell; of a user type, of each field.
fn each(cells: &[&CellTime], kind: TimeKind, cql_type: &CqlType) -> Vec<u8> {
    let one = |cell: &CellTime| match kind {
        TimeKind::Ttl => cell.ttl.map(|ttl| ttl.to_be_bytes().to_vec()),
        _ => Some(cell.timestamp.to_be_bytes().to_vec()),
    };
    let times: Vec<Option<Vec<u8>>> = match cql_type {
        CqlType::Udt(udt) => {
            let of_field = |index: usize| {
                let path = u16::try_from(index).unwrap_or(u16::MAX).to_be_bytes();
                cells.iter().find(|cell| cell.path == path).and_then(|cell| one(cell))
            };
            (0..udt.fields.len()).map(of_field).collect()
        }
        _ => cells.iter().map(|cell| one(cell)).collect(),
    };
    let mut out = Vec::new();
    out.put_i32(i32::try_from(times.len()).unwrap_or(i32::MAX));
    times.iter().for_each(|time| put_value(&mut out, time.as_deref()));
    out
}
