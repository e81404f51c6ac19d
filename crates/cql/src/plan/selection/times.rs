//! `writetime`, `maxwritetime` and `ttl`: of a value, of one of its cells, or of each.

use halcyon_model::CqlType;
use halcyon_model::bytes::Put;

use super::elements::{entries, field, key_type};
use super::{CellTime, Evaluation, Part, TimeKind};
use crate::plan::value::collection::put_value;

pub(super) fn time(
    on: &Evaluation<'_>,
    fetch: usize,
    kind: TimeKind,
    part: &Part,
    list: bool,
    cql_type: &CqlType,
) -> Option<Vec<u8>> {
    let is_within = |path: &[u8]| match part {
        Part::Whole => true,
        Part::Element(key) => on.term(*key).is_some_and(|key| {
            key_type(cql_type).is_some_and(|key_type| key_type.compare(path, key).is_eq())
        }),
        Part::Slice(from, to) => key_type(cql_type).is_some_and(|key_type| {
            let bound = |term: &Option<usize>| term.and_then(|term| on.term(term));
            bound(from).is_none_or(|from| key_type.compare(path, from).is_ge())
                && bound(to).is_none_or(|to| key_type.compare(path, to).is_le())
        }),
        Part::Field(index) => path == index.to_be_bytes(),
    };
    // The cell of a frozen collection has the time of each element that is there.
    let has_part = || match part {
        Part::Element(_) | Part::Slice(..) => on
            .row
            .value(fetch)
            .is_some_and(|value| entries(value, cql_type).any(|(key, _)| is_within(key))),
        Part::Field(index) => {
            let value = on.row.value(fetch);
            value.is_some_and(|value| field(value, usize::from(*index)).is_some())
        }
        Part::Whole => true,
    };
    let cells = on.row.times(fetch);
    let chosen: Vec<&CellTime> = cells
        .iter()
        .filter(|cell| if cell.simple { has_part() } else { is_within(&cell.path) })
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
