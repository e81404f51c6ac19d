//! `writetime`, `maxwritetime` and `ttl`: of a value, of one of its cells, or of each.

use halcyon_model::CqlType;
use halcyon_model::bytes::Put;

use super::{CellTime, Evaluation, Part, TimeKind};
use crate::plan::value::collection::put_value;

fn key_type(cql_type: &CqlType) -> Option<&CqlType> {
    match cql_type.thawed() {
        CqlType::Map(key, _) | CqlType::Set(key) => Some(key),
        _ => None,
    }
}

pub(super) fn time(
    on: &Evaluation<'_>,
    fetch: usize,
    kind: TimeKind,
    part: &Part,
    list: bool,
    cql_type: &CqlType,
) -> Option<Vec<u8>> {
    let is_key = |cell: &CellTime, key: &[u8]| {
        key_type(cql_type).is_some_and(|key_type| key_type.compare(&cell.path, key).is_eq())
    };
    let inside = |cell: &CellTime, from: Option<&[u8]>, to: Option<&[u8]>| {
        key_type(cql_type).is_some_and(|key_type| {
            from.is_none_or(|from| key_type.compare(&cell.path, from).is_ge())
                && to.is_none_or(|to| key_type.compare(&cell.path, to).is_le())
        })
    };
    let cells = on.row.times(fetch);
    let chosen: Vec<&CellTime> = cells
        .iter()
        .filter(|cell| match part {
            _ if cell.simple => true,
            Part::Whole => true,
            Part::Element(key) => on.term(*key).is_some_and(|key| is_key(cell, key)),
            Part::Slice(from, to) => {
                let bound = |term: &Option<usize>| term.and_then(|term| on.term(term));
                inside(cell, bound(from), bound(to))
            }
            Part::Field(index) => cell.path == index.to_be_bytes(),
        })
        .collect();
    if chosen.is_empty() {
        return None;
    }
    if list {
        return Some(each(&chosen, kind, part, cql_type));
    }
    match kind {
        TimeKind::Ttl => chosen.first()?.ttl.map(|ttl| ttl.to_be_bytes().to_vec()),
        TimeKind::WriteTime => Some(chosen.first()?.timestamp.to_be_bytes().to_vec()),
        TimeKind::MaxWriteTime => {
            chosen.iter().map(|cell| cell.timestamp).max().map(|t| t.to_be_bytes().to_vec())
        }
    }
}

/// A list with the time of each cell; of a user type, of each field.
fn each(cells: &[&CellTime], kind: TimeKind, part: &Part, cql_type: &CqlType) -> Vec<u8> {
    let one = |cell: &CellTime| match kind {
        TimeKind::Ttl => cell.ttl.map(|ttl| ttl.to_be_bytes().to_vec()),
        _ => Some(cell.timestamp.to_be_bytes().to_vec()),
    };
    let times: Vec<Option<Vec<u8>>> = match (cql_type, part) {
        (CqlType::Udt(udt), Part::Whole) => {
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
