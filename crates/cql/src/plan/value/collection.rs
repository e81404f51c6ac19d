//! Serialized collections and tuples: checked by their type, put in order, taken apart.

use std::borrow::Cow;
use std::cmp::Ordering;

use halcyon_model::CqlType;
use halcyon_model::bytes::{Cursor, Put};

use halcyon_syntax::{Error, Result};

/// The bytes from a client, validated by their type; sets and maps are sorted, without duplicates.
pub(crate) fn checked<'v>(bytes: &'v [u8], cql_type: &CqlType) -> Result<Cow<'v, [u8]>> {
    let multi_cell = cql_type.is_multi_cell();
    match cql_type.thawed() {
        CqlType::List(element) => {
            let elements = list(bytes, element)?;
            if multi_cell && elements.contains(&None) {
                return Err(Error::invalid_request("null is not supported inside collections"));
            }
            Ok(Cow::Borrowed(bytes))
        }
        CqlType::Udt(_) if multi_cell && bytes.is_empty() => Ok(Cow::Borrowed(bytes)),
        other => {
            let is_negative = matches!(bytes, [0x80..=0xFF, _, _, _, ..]);
            match other {
                CqlType::Set(_) if is_negative => return Err(unreadable("set")),
                CqlType::Map(..) if is_negative => return Err(unreadable("map")),
                _ => {}
            }
            other.validate(bytes).map_err(Error::InvalidRequest)?;
            Ok(sorted_collection(bytes, other))
        }
    }
}

/// A negative count.
fn unreadable(what: &str) -> Error {
    Error::InvalidRequest(format!("The data cannot be deserialized as a {what}"))
}

/// The elements of a list, each valid; a frozen list may hold null.
fn list<'v>(bytes: &'v [u8], element: &CqlType) -> Result<Vec<Option<&'v [u8]>>> {
    let short = |_| Error::invalid_request("Not enough bytes to read a list");
    let mut cursor = Cursor::new(bytes);
    let count = cursor.i32().map_err(short)?;
    if count < 0 {
        return Err(unreadable("list"));
    }
    let mut elements = Vec::new();
    for _ in 0..count {
        let length = cursor.i32().map_err(short)?;
        let Ok(length) = usize::try_from(length) else {
            elements.push(None);
            continue;
        };
        let value = cursor.take(length).map_err(short)?;
        element.validate(value).map_err(Error::InvalidRequest)?;
        elements.push(Some(value));
    }
    if cursor.remaining() > 0 {
        return Err(Error::invalid_request("Unexpected extraneous bytes after list value"));
    }
    Ok(elements)
}

/// A valid set or map in the order of its type, the last of equal keys kept; other values as they are.
pub(crate) fn sorted_collection<'v>(bytes: &'v [u8], cql_type: &CqlType) -> Cow<'v, [u8]> {
    let (key_type, width) = match cql_type {
        CqlType::Set(element) => (element, 1),
        CqlType::Map(key, _) => (key, 2),
        _ => return Cow::Borrowed(bytes),
    };
    let Some(items) = items(bytes) else { return Cow::Borrowed(bytes) };
    let mut entries: Vec<&[&[u8]]> = items.chunks(width).collect();
    let compare = |a: &&[&[u8]], b: &&[&[u8]]| match (a.first(), b.first()) {
        (Some(a), Some(b)) => key_type.compare(a, b),
        _ => Ordering::Equal,
    };
    if entries.is_sorted_by(|a, b| compare(a, b) == Ordering::Less) {
        return Cow::Borrowed(bytes);
    }
    entries.sort_by(compare);
    // Among equal keys a set keeps the first, a map the last: values of equal keys may differ there.
    entries.dedup_by(|next, kept| {
        let equal = compare(next, kept) == Ordering::Equal;
        if equal && width == 2 {
            *kept = *next;
        }
        equal
    });
    Cow::Owned(join(entries.len(), entries.iter().flat_map(|entry| entry.iter().copied())))
}

/// Keys and values of a frozen collection, in turn; `None` if one is null.
fn items(bytes: &[u8]) -> Option<Vec<&[u8]>> {
    let mut cursor = Cursor::new(bytes);
    cursor.i32().ok()?;
    let mut items = Vec::new();
    while cursor.remaining() > 0 {
        items.push(cursor.ibytes().ok()?);
    }
    Some(items)
}

/// A frozen collection of `count` elements.
pub(crate) fn join<'a>(count: usize, items: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut out = (count as u32).to_be_bytes().to_vec();
    for item in items {
        out.extend_from_slice(&(item.len() as u32).to_be_bytes());
        out.extend_from_slice(item);
    }
    out
}

/// The elements of a valid frozen collection; a map's are keys and values in turn.
pub(crate) fn collection_elements(bytes: &[u8]) -> Vec<Option<&[u8]>> {
    tuple_fields(bytes.get(4..).unwrap_or_default())
}

/// The fields of a valid tuple or user type, as many as it has.
pub(crate) fn tuple_fields(bytes: &[u8]) -> Vec<Option<&[u8]>> {
    let mut cursor = Cursor::new(bytes);
    let mut fields = Vec::new();
    while let Ok(length) = cursor.i32() {
        match usize::try_from(length) {
            Err(_) => fields.push(None),
            Ok(length) => match cursor.take(length) {
                Ok(value) => fields.push(Some(value)),
                Err(_) => break,
            },
        }
    }
    fields
}

/// `i32` length (−1: null) and the value.
pub(crate) fn put_value(out: &mut Vec<u8>, value: Option<&[u8]>) {
    match value {
        None => out.put_i32(-1),
        Some(value) => out.put_ibytes(value),
    }
}
