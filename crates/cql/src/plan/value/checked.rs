//! Values from outside: checked by their type, and in the form in which Cassandra stores them.

use std::borrow::Cow;
use std::cmp::Ordering;

use halcyon_model::CqlType;
use halcyon_model::bytes::{Cursor, Put};

use super::collection::{collection_elements, put_value};
use super::composed::{arranged, check_count, composed, entries, has_other_forms, unique};
use halcyon_syntax::{Error, Result};

/// The bytes from a client, validated by their type; of collections, the elements as Cassandra writes them, sets and maps in order and
/// without duplicates.
pub(crate) fn checked<'v>(bytes: &'v [u8], cql_type: &CqlType) -> Result<Cow<'v, [u8]>> {
    let multi_cell = cql_type.is_multi_cell();
    let valid = |of: &CqlType| of.validate(bytes).map_err(Error::InvalidRequest);
    match cql_type.thawed() {
        CqlType::List(element) => list(bytes, element, multi_cell),
        CqlType::Udt(_) if multi_cell && bytes.is_empty() => Ok(Cow::Borrowed(bytes)),
        of @ CqlType::Set(key) => {
            check_count(bytes, "set")?;
            valid(of)?;
            sorted_objects(bytes, key, None)
        }
        of @ CqlType::Map(key, value) => {
            check_count(bytes, "map")?;
            valid(of)?;
            sorted_objects(bytes, key, Some(value))
        }
        other => {
            valid(other)?;
            Ok(Cow::Borrowed(bytes))
        }
    }
}

/// A list, whose elements are valid; a frozen list may hold null, for which an empty number stands too.
fn list<'v>(bytes: &'v [u8], element: &CqlType, multi_cell: bool) -> Result<Cow<'v, [u8]>> {
    let short = |_| Error::invalid_request("Not enough bytes to read a list");
    let mut cursor = Cursor::new(bytes);
    let count = cursor.i32().map_err(short)?;
    check_count(bytes, "list")?;
    let (has_other_forms, mut is_as_written) = (has_other_forms(element), true);
    let mut elements = Vec::new();
    for _ in 0..count {
        let length = cursor.i32().map_err(short)?;
        let mut value = None;
        if let Ok(length) = usize::try_from(length) {
            let given = cursor.take(length).map_err(short)?;
            element.validate(given).map_err(Error::InvalidRequest)?;
            if length > 0 || !element.is_null_if_empty() {
                let made = if has_other_forms { composed(given, element)? } else { given.into() };
                is_as_written &= made == given;
                value = Some(made);
            } else {
                is_as_written = false;
            }
        }
        elements.push(value);
    }
    if cursor.remaining() > 0 {
        return Err(Error::invalid_request("Unexpected extraneous bytes after list value"));
    }
    if multi_cell && elements.contains(&None) {
        return Err(Error::invalid_request("null is not supported inside collections"));
    }
    if is_as_written {
        return Ok(Cow::Borrowed(bytes));
    }
    let mut out = Vec::with_capacity(bytes.len());
    out.put_i32(count);
    elements.iter().for_each(|value| put_value(&mut out, value.as_deref()));
    Ok(Cow::Owned(out))
}

/// A valid set or map of objects, each once.
fn sorted_objects<'v>(
    bytes: &'v [u8],
    key: &CqlType,
    value: Option<&CqlType>,
) -> Result<Cow<'v, [u8]>> {
    let has_other_forms = has_other_forms(key) || value.is_some_and(has_other_forms);
    if !has_other_forms && is_in_order(bytes, key, value.is_some()) {
        return Ok(Cow::Borrowed(bytes));
    }
    let entries = entries(bytes, value.is_some(), |part, is_key| {
        composed(part, value.filter(|_| !is_key).unwrap_or(key))
    })?;
    Ok(arranged(bytes, unique(entries), key, true))
}

/// A valid set or map in the order of its type: of equal keys the first, with the last value; other values as they are.
pub(crate) fn sorted_collection<'v>(bytes: &'v [u8], cql_type: &CqlType) -> Cow<'v, [u8]> {
    let (key, is_map) = match cql_type {
        CqlType::Set(element) => (element, false),
        CqlType::Map(key, _) => (key, true),
        _ => return Cow::Borrowed(bytes),
    };
    if is_in_order(bytes, key, is_map) {
        return Cow::Borrowed(bytes);
    }
    match entries(bytes, is_map, |part, _| Ok(Cow::Borrowed(part))) {
        Ok(entries) => arranged(bytes, entries, key, true),
        Err(_) => Cow::Borrowed(bytes),
    }
}

/// Whether each key is above the one before. A null, which a selection can hold, has no place.
fn is_in_order(bytes: &[u8], key_type: &CqlType, is_map: bool) -> bool {
    let items = collection_elements(bytes);
    let keys = items.iter().step_by(if is_map { 2 } else { 1 });
    let above = |a: &Option<&[u8]>, b: &Option<&[u8]>| match (a, b) {
        (Some(a), Some(b)) => key_type.compare(a, b) == Ordering::Less,
        _ => true,
    };
    items.contains(&None) || keys.is_sorted_by(|a, b| above(a, b))
}
