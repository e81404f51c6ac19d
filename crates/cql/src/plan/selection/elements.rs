//! The elements of a set or map by their keys: `m[k]`, `m[from..to]`.

use halcyon_model::bytes::Put;
use halcyon_model::{CqlType, Cursor};

/// Keys and values of a map, or the elements twice of a set.
fn entries<'a>(
    bytes: &'a [u8],
    cql_type: &CqlType,
) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
    let is_map = matches!(cql_type.thawed(), CqlType::Map(..));
    let mut cursor = Cursor::new(bytes);
    let count = cursor.i32().unwrap_or(0).max(0);
    (0..count).map_while(move |_| {
        let key = cursor.ibytes().ok()?;
        let value = if is_map { cursor.ibytes().ok()? } else { key };
        Some((key, value))
    })
}

pub(super) fn key_type(cql_type: &CqlType) -> Option<&CqlType> {
    match cql_type.thawed() {
        CqlType::Map(key, _) | CqlType::Set(key) => Some(key),
        _ => None,
    }
}

pub(super) fn element(collection: &[u8], cql_type: &CqlType, key: &[u8]) -> Option<Vec<u8>> {
    let key_type = key_type(cql_type)?;
    entries(collection, cql_type)
        .find(|(k, _)| key_type.compare(k, key).is_eq())
        .map(|(_, value)| value.to_vec())
}

pub(super) fn slice(
    collection: &[u8],
    cql_type: &CqlType,
    from: Option<&[u8]>,
    to: Option<&[u8]>,
) -> Vec<u8> {
    let Some(key_type) = key_type(cql_type) else { return collection.to_vec() };
    let is_map = matches!(cql_type.thawed(), CqlType::Map(..));
    let mut out = vec![0; 4];
    let mut count = 0_u32;
    for (key, value) in entries(collection, cql_type) {
        let above = from.is_none_or(|from| key_type.compare(key, from).is_ge());
        if above && to.is_none_or(|to| key_type.compare(key, to).is_le()) {
            count += 1;
            out.put_ibytes(key);
            if is_map {
                out.put_ibytes(value);
            }
        }
    }
    if let Some(head) = out.first_chunk_mut::<4>() {
        *head = count.to_be_bytes();
    }
    out
}

/// The bytes of a field of a user type or a tuple.
pub(super) fn field(value: &[u8], index: usize) -> Option<Vec<u8>> {
    let mut cursor = Cursor::new(value);
    for at in 0..=index {
        let len = usize::try_from(cursor.i32().ok()?);
        let field = match len {
            Ok(len) => Some(cursor.take(len).ok()?),
            Err(_) => None,
        };
        if at == index {
            return field.map(<[u8]>::to_vec);
        }
    }
    None
}
