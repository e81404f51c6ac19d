//! Elements as Cassandra writes them: it makes objects of the elements of a collection that a client binds, and bytes of the objects.
//!
//! So an integer loses bytes that say nothing, a boolean is 0 or 1, sets and maps inside of a collection are in order, without what is
//! twice. Values that stand alone, and the fields of tuples and user types, stay as they came.

use std::borrow::Cow;
use std::collections::HashMap;

use halcyon_model::CqlType;
use halcyon_model::bytes::{Cursor, Put};
use halcyon_model::types::significant;
use halcyon_syntax::{Error, Result};

use super::collection::{collection_elements, join, put_value};

pub(super) type Value<'v> = Cow<'v, [u8]>;

/// A key with its value; an element of a set has none.
pub(super) type Entry<'v> = (Value<'v>, Option<Value<'v>>);

/// Whether a valid element can be written in another way, or not be made an object of.
pub(super) fn has_other_forms(element: &CqlType) -> bool {
    match element.thawed() {
        CqlType::Varint
        | CqlType::Decimal
        | CqlType::Boolean
        | CqlType::Inet
        | CqlType::Duration
        | CqlType::List(_)
        | CqlType::Set(_)
        | CqlType::Map(..) => true,
        CqlType::Vector(inner, _) => has_other_forms(inner),
        _ => false,
    }
}

/// Refuses a negative count, which a valid collection can have.
pub(super) fn check_count(bytes: &[u8], kind: &str) -> Result<()> {
    if matches!(bytes, [0x80..=0xFF, _, _, _, ..]) {
        let message = format!("The data cannot be deserialized as a {kind}");
        return Err(Error::InvalidRequest(message));
    }
    Ok(())
}

/// A valid element as it is written.
pub(super) fn composed<'v>(bytes: &'v [u8], element: &CqlType) -> Result<Value<'v>> {
    if bytes.is_empty() || !has_other_forms(element) {
        return Ok(Cow::Borrowed(bytes));
    }
    Ok(match element.thawed() {
        CqlType::Varint => Cow::Borrowed(significant(bytes)),
        CqlType::Decimal => decimal(bytes)?,
        CqlType::Boolean => Cow::Borrowed(if bytes == [0] { &[0] } else { &[1] }),
        CqlType::Inet => Cow::Borrowed(match bytes.strip_prefix(&MAPPED) {
            Some(v4) if v4.len() == 4 => v4,
            _ => bytes,
        }),
        CqlType::Duration => duration(bytes),
        CqlType::List(inner) => list(bytes, inner)?,
        CqlType::Vector(inner, _) => vector(bytes, inner)?,
        CqlType::Set(key) => {
            check_count(bytes, "set")?;
            let entries = entries(bytes, false, |part, _| composed(part, key))?;
            arranged(bytes, unique(entries), key, false)
        }
        CqlType::Map(key, value) => {
            check_count(bytes, "map")?;
            let part = |part, is_key| composed(part, if is_key { key } else { value });
            arranged(bytes, unique(entries(bytes, true, part)?), key, false)
        }
        _ => Cow::Borrowed(bytes),
    })
}

/// Whether two valid elements are equal as Java's objects: decimals of several scales are not, and neither are tuples of several lengths.
pub(crate) fn are_equal_objects(element: &CqlType, a: &[u8], b: &[u8]) -> bool {
    match element.thawed() {
        CqlType::Float | CqlType::Double => element.compare(a, b).is_eq(),
        _ => match (composed(a, element), composed(b, element)) {
            (Ok(a), Ok(b)) => a == b,
            _ => a == b,
        },
    }
}

/// The head of an IPv6 address that stands for an IPv4 one.
const MAPPED: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];

fn decimal(bytes: &[u8]) -> Result<Value<'_>> {
    let Some((scale, unscaled)) = bytes.split_first_chunk::<4>().filter(|(_, u)| !u.is_empty())
    else {
        return Err(Error::invalid_request("Zero length BigInteger"));
    };
    let digits = significant(unscaled);
    Ok(match digits.len() == unscaled.len() {
        true => Cow::Borrowed(bytes),
        false => Cow::Owned([scale.as_slice(), digits].concat()),
    })
}

fn duration(bytes: &[u8]) -> Value<'_> {
    let (mut cursor, mut out) = (Cursor::new(bytes), Vec::new());
    for _ in 0..3 {
        let Ok(part) = cursor.svint() else { return Cow::Borrowed(bytes) };
        out.put_svint(part);
    }
    Cow::Owned(out)
}

fn list<'v>(bytes: &'v [u8], element: &CqlType) -> Result<Value<'v>> {
    check_count(bytes, "list")?;
    if !has_other_forms(element) {
        return Ok(Cow::Borrowed(bytes));
    }
    let mut out = bytes.get(..4).unwrap_or_default().to_vec();
    for value in collection_elements(bytes) {
        let value = value.map(|value| composed(value, element)).transpose()?;
        put_value(&mut out, value.as_deref());
    }
    Ok(Cow::Owned(out))
}

fn vector<'v>(bytes: &'v [u8], element: &CqlType) -> Result<Value<'v>> {
    let (mut rest, mut out) = (Cursor::new(bytes), Vec::new());
    let mut index = 0;
    while rest.remaining() > 0 {
        match element.fixed_len() {
            Some(len) => {
                let Ok(value) = rest.take(len as usize) else { return Ok(Cow::Borrowed(bytes)) };
                out.put(&composed(value, element)?);
            }
            None => {
                let Ok(value) = rest.vbytes() else { return Ok(Cow::Borrowed(bytes)) };
                if value.is_empty() && element.is_null_if_empty() {
                    return Err(Error::InvalidRequest(format!(
                        "Element at index {index} is null (expected type {})",
                        element.cql_name()
                    )));
                }
                out.put_vbytes(&composed(value, element)?);
            }
        }
        index += 1;
    }
    Ok(Cow::Owned(out))
}

/// The entries of a valid set or map, in their given order; `make` gets a part and whether it is a key.
pub(super) fn entries<'v>(
    bytes: &'v [u8],
    is_map: bool,
    make: impl Fn(&'v [u8], bool) -> Result<Value<'v>>,
) -> Result<Vec<Entry<'v>>> {
    let items = collection_elements(bytes);
    let entry = |item: &[Option<&'v [u8]>]| {
        let part = |at: usize| item.get(at).copied().flatten().unwrap_or_default();
        let value = if is_map { Some(make(part(1), false)?) } else { None };
        Ok((make(part(0), true)?, value))
    };
    items.chunks(if is_map { 2 } else { 1 }).map(entry).collect()
}

/// Each of Java's objects once: where it stood first, with its last value.
pub(super) fn unique(entries: Vec<Entry<'_>>) -> Vec<Entry<'_>> {
    let mut kept: Vec<Entry<'_>> = Vec::with_capacity(entries.len());
    let mut places: HashMap<Value<'_>, usize> = HashMap::with_capacity(entries.len());
    for (key, value) in entries {
        match places.get(&key).and_then(|place| kept.get_mut(*place)) {
            Some(known) => known.1 = value,
            None => {
                places.insert(key.clone(), kept.len());
                kept.push((key, value));
            }
        }
    }
    kept
}

/// The entries in the order of their type, as a frozen collection: `bytes` if these are it. Of equal keys, `collapse` keeps the first,
/// with the last value.
pub(super) fn arranged<'v>(
    bytes: &'v [u8],
    mut entries: Vec<Entry<'v>>,
    key_type: &CqlType,
    collapse: bool,
) -> Value<'v> {
    entries.sort_by(|a, b| key_type.compare(&a.0, &b.0));
    if collapse {
        entries.dedup_by(|next, kept| {
            let is_equal = key_type.compare(&next.0, &kept.0).is_eq();
            if is_equal {
                kept.1 = next.1.take();
            }
            is_equal
        });
    }
    let items = entries.iter().flat_map(|(key, value)| std::iter::once(key).chain(value));
    let out = join(entries.len(), items.map(|item| item.as_ref()));
    if out == bytes { Cow::Borrowed(bytes) } else { Cow::Owned(out) }
}
