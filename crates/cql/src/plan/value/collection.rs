//! Serialized collections and tuples, put together and taken apart.

use halcyon_model::bytes::{Cursor, Put};

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
