//! What a call costs, known from its arguments before it is made.
//!
//! Sums over numbers of any size are the only functions that take more than time in proportion to the bytes of their arguments: division
//! and decimal digits take their square. Cassandra counts with numbers of any size, for hours if need be. Here numbers with more than
//! 39,000 digits can be stored, read and compared, but not be counted with.

use halcyon_model::CqlType;

use crate::plan::value::collection::{collection_elements, tuple_fields};
use crate::plan::value::number::MAX_NUMBER;

/// A call itself.
const CALL: u64 = 100;
/// Powers and logarithms: sums of hundreds of terms, of up to a thousand digits.
const POWER: u64 = 2_000_000;

/// What a function does with its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cost {
    /// It looks at each byte.
    Bytes,
    /// It reads or writes JSON.
    Json,
    /// It shows or converts numbers.
    Digits,
    /// It counts with numbers of any size.
    Sum,
    /// A power or logarithm of such.
    Power,
}

/// Units of work; `None` if a number is too large.
pub(super) fn of_call(cost: Cost, types: &[CqlType], arguments: &[Option<&[u8]>]) -> Option<u64> {
    let values = || types.iter().zip(arguments).filter_map(|(t, value)| Some((t, (*value)?)));
    if cost != Cost::Bytes && values().any(|(t, value)| has_large_number(t, value)) {
        return None;
    }
    let bytes: u64 = values().map(|(_, value)| value.len() as u64).sum();
    Some(
        CALL + match cost {
            Cost::Bytes => 2 * bytes,
            Cost::Json => 40 * bytes,
            Cost::Digits => bytes * bytes.min(2_000) / 64,
            Cost::Sum => bytes * bytes / 256,
            Cost::Power => bytes * bytes / 256 + POWER,
        },
    )
}

/// Whether a number of any size, or one within a collection, is larger than those that are counted with.
pub fn has_large_number(cql_type: &CqlType, value: &[u8]) -> bool {
    if value.len() <= MAX_NUMBER {
        return false;
    }
    let any = |parts: Vec<Option<&[u8]>>, types: &[&CqlType]| {
        let pairs = parts.iter().flatten().zip(types.iter().cycle());
        pairs.into_iter().any(|(part, cql_type)| has_large_number(cql_type, part))
    };
    match cql_type.thawed() {
        CqlType::Varint | CqlType::Decimal => true,
        CqlType::Reversed(inner) => has_large_number(inner, value),
        CqlType::List(element) | CqlType::Set(element) => {
            any(collection_elements(value), &[element])
        }
        CqlType::Map(key, element) => any(collection_elements(value), &[key, element]),
        CqlType::Tuple(types) => any(tuple_fields(value), &types.iter().collect::<Vec<_>>()),
        CqlType::Udt(udt) => {
            any(tuple_fields(value), &udt.fields.iter().map(|(_, t)| t).collect::<Vec<_>>())
        }
        // Its elements stand without lengths, or are not read one by one: all of it is looked at as one.
        CqlType::Vector(element, _) => has_large_number(element, value),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that large numbers are found in what holds them, and only they.
    #[test]
    fn large_numbers_are_found() {
        let large = vec![1; MAX_NUMBER + 1];
        let list = |value: &[u8]| {
            let length = u32::try_from(value.len()).unwrap().to_be_bytes();
            [&1_u32.to_be_bytes(), length.as_slice(), value].concat()
        };
        let of = |element| CqlType::List(Box::new(element));
        assert!(has_large_number(&CqlType::Varint, &large));
        assert!(!has_large_number(&CqlType::Varint, &large[1..]));
        assert!(!has_large_number(&CqlType::Blob, &large));
        assert!(has_large_number(&of(CqlType::Varint), &list(&large)));
        assert!(!has_large_number(&of(CqlType::Varint), &list(&large[10..])));
        assert!(!has_large_number(&of(CqlType::Text), &list(&large)));
    }
}
