//! Serialized collections and tuples, put together and taken apart.

use std::borrow::Cow;
use std::net::IpAddr;

use num_bigint::BigInt;

use halcyon_model::CqlType;
use halcyon_model::bytes::{Cursor, Put};

use super::number::Decimal;

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

/// What Cassandra's `TypeSerializer` writes of the value that it reads: a function that takes a collection apart returns its elements so.
/// Of one number, boolean or address, several byte strings are valid; the serializers of tuples leave bytes as they are.
pub(crate) fn reserialized<'a>(cql_type: &CqlType, bytes: &'a [u8]) -> Cow<'a, [u8]> {
    if bytes.is_empty() {
        return Cow::Borrowed(bytes);
    }
    let made = match cql_type.thawed() {
        CqlType::Varint => Some(BigInt::from_signed_bytes_be(bytes).to_signed_bytes_be()),
        CqlType::Decimal => Decimal::parse(bytes).map(|decimal| decimal.to_bytes()),
        CqlType::Boolean => Some(vec![u8::from(bytes != [0])]),
        CqlType::Inet => <[u8; 16]>::try_from(bytes).ok().and_then(|address| {
            match IpAddr::from(address).to_canonical() {
                IpAddr::V4(address) => Some(address.octets().to_vec()),
                IpAddr::V6(_) => None,
            }
        }),
        of @ (CqlType::List(_) | CqlType::Set(_) | CqlType::Map(..)) => {
            let (types, elements) = (of.children(), collection_elements(bytes));
            let mut out = bytes.get(..4).unwrap_or_default().to_vec();
            for (element, cql_type) in elements.into_iter().zip(types.iter().cycle()) {
                put_value(
                    &mut out,
                    element.map(|element| reserialized(cql_type, element)).as_deref(),
                );
            }
            Some(out)
        }
        _ => None,
    };
    made.map_or(Cow::Borrowed(bytes), Cow::Owned)
}
