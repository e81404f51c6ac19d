//! Byte-comparable encodings (Cassandra's version OSS50): keys and clusterings turned into byte sequences whose
//! unsigned order is the order of the values, so that a trie can hold them.
//!
//! 1. A sequence is its components, each after a marker, and one terminator that no marker equals:
//!
//!    ```text
//!    40 <component> 40 <component> … 38        38: clustering, key, tuple, collection or vector
//!                                              20 / 60: bound before / after its prefix, 18: static row
//!    3f or 41: the component is empty (41 on DESC columns)        3e: the component is null
//!    ```
//! 2. What follows a component never decides between two different values: either neither encoding is a prefix of the
//!    other (numbers, whose lengths are fixed or describe themselves), or the longer continues with `fe` or `ff`, above
//!    every marker (byte strings, whose zeros are escaped).
//! 3. DESC inverts every byte of the component; not the markers.
//!
//! A damaged value is encoded up to its damage. Encodings are never decoded: the index leads to the real key in Data.db.

use num_bigint::Sign;

use crate::clustering::{BoundKind, ClusteringValue, Clusterings, Position};
use crate::token::{Partitioner, Token};
use crate::types::dynamic;
use crate::types::{
    Aliases, CqlType, reorder_uuid_time, split_decimal, take_component, take_count, take_framed,
    take_vector_element,
};

const NEXT: u8 = 0x40;
const NEXT_EMPTY: u8 = 0x3f;
const NEXT_EMPTY_REVERSED: u8 = 0x41;
const NEXT_NULL: u8 = 0x3e;
const TERMINATOR: u8 = 0x38;

/// Encodes a key of Murmur3Partitioner (`DecoratedKey.asComparableBytes`).
pub fn encode_decorated_key(token: Token, key: &[u8], out: &mut Vec<u8>) {
    out.reserve(key.len() + 13);
    out.push(NEXT);
    out.extend_from_slice(&(token.0 ^ i64::MIN).to_be_bytes());
    push_key(key, out);
}

fn push_key(key: &[u8], out: &mut Vec<u8>) {
    out.push(NEXT);
    escape(key, out);
    out.push(TERMINATOR);
}

/// Encodes a key of any partitioner.
pub fn encode_key(partitioner: &Partitioner, key: &[u8], out: &mut Vec<u8>) {
    match partitioner {
        Partitioner::Murmur3 => return encode_decorated_key(partitioner.token(key), key, out),
        Partitioner::Local(key_type) => component(key_type, Some(key), out),
        Partitioner::ReversedLongLocal => {
            out.push(NEXT);
            out.extend_from_slice(&(partitioner.token(key).0 ^ i64::MIN).to_be_bytes());
        }
        Partitioner::ByteOrdered | Partitioner::OrderPreserving | Partitioner::Random => {
            out.push(NEXT);
            escape(key, out);
        }
    }
    push_key(key, out);
}

/// Encodes a clustering or bound (`ClusteringComparator.asByteComparable`).
pub fn encode_position(clusterings: &Clusterings, position: Position<'_>, out: &mut Vec<u8>) {
    for (i, value) in clusterings.values(position.serialized, position.count).enumerate() {
        let (ClusteringValue::Bytes(bytes), Some(cql_type)) = (value, clusterings.type_at(i))
        else {
            out.push(NEXT_NULL);
            continue;
        };
        let reversed = clusterings.is_reversed(i);
        let marker = out.len();
        out.push(NEXT);
        if encode(cql_type, bytes, out) {
            if reversed {
                invert(out, marker + 1);
            }
        } else if let Some(marker) = out.get_mut(marker) {
            *marker = if reversed { NEXT_EMPTY_REVERSED } else { NEXT_EMPTY };
        }
    }
    out.push(terminator(position.kind));
}

/// The byte that ends a sequence of this kind.
pub fn terminator(kind: BoundKind) -> u8 {
    match kind {
        BoundKind::ExclEnd | BoundKind::InclStart | BoundKind::ExclEndInclStart => 0x20,
        BoundKind::Static => 0x18,
        BoundKind::Clustering => TERMINATOR,
        BoundKind::InclEndExclStart | BoundKind::InclEnd | BoundKind::ExclStart => 0x60,
    }
}

/// Encodes one value (`AbstractType.asComparableBytes`). `false`, and nothing written, where Cassandra has no bytes
/// for it: an empty value of a type for which empty is not a value of its own.
pub fn encode(cql_type: &CqlType, v: &[u8], out: &mut Vec<u8>) -> bool {
    match cql_type {
        CqlType::Ascii
        | CqlType::Text
        | CqlType::Blob
        | CqlType::Inet
        | CqlType::Duration
        | CqlType::Counter
        | CqlType::Custom(_) => {
            escape(v, out);
            return true;
        }
        CqlType::Frozen(inner) => return encode(inner, v, out),
        CqlType::Tuple(fields) => return tuple(&mut fields.iter(), v, out),
        CqlType::Udt(udt) => return tuple(&mut udt.fields.iter().map(|(_, t)| t), v, out),
        CqlType::Reversed(base) => {
            let start = out.len();
            let has_bytes = encode(base, v, out);
            invert(out, start);
            return has_bytes;
        }
        CqlType::Empty => return false,
        _ if v.is_empty() => return false,
        CqlType::Int | CqlType::SmallInt | CqlType::TinyInt | CqlType::Timestamp => {
            flip_first(v, out);
        }
        CqlType::Date | CqlType::Time | CqlType::LegacyTimestamp => out.extend_from_slice(v),
        CqlType::BigInt => match v.try_into() {
            Ok(bytes) => variable_length(i64::from_be_bytes(bytes), out),
            Err(_) => varint(v, out),
        },
        CqlType::Varint => varint(v, out),
        CqlType::Boolean => out.push(u8::from(v.first().is_some_and(|byte| *byte != 0))),
        CqlType::Float | CqlType::Double => float(v, out),
        CqlType::Decimal => decimal(v, out),
        CqlType::Uuid => uuid(v, out),
        CqlType::TimeUuid => timeuuid(v, out),
        CqlType::LexicalUuid => {
            let start = out.len();
            out.extend_from_slice(v);
            flip_sign(out, start);
            flip_sign(out, start + 8);
        }
        CqlType::List(e) | CqlType::Set(e) => collection(&[e], v, out),
        CqlType::Map(key, value) => collection(&[key, value], v, out),
        CqlType::Vector(e, dimension) => vector(e, *dimension, v, out),
        CqlType::Composite(types) => composite(types, v, out),
        CqlType::DynamicComposite(aliases) => dynamic_composite(aliases, v, out),
        CqlType::PartitionerDefinedOrder { partitioner, .. } => {
            let partitioner = Partitioner::parse(partitioner).unwrap_or(Partitioner::ByteOrdered);
            encode_key(&partitioner, v, out);
        }
    }
    true
}

/// One component of a sequence in a value or key, with its marker.
fn component(cql_type: &CqlType, v: Option<&[u8]>, out: &mut Vec<u8>) {
    let marker = out.len();
    out.push(NEXT);
    if !v.is_some_and(|v| encode(cql_type, v, out)) {
        out.truncate(marker);
        out.push(NEXT_NULL);
    }
}

fn invert(out: &mut [u8], from: usize) {
    out.iter_mut().skip(from).for_each(|byte| *byte ^= 0xff);
}

fn flip_sign(out: &mut [u8], at: usize) {
    if let Some(byte) = out.get_mut(at) {
        *byte ^= 0x80;
    }
}

fn flip_first(v: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(v);
    flip_sign(out, start);
}

/// Bytes with zeros escaped: a run of zeros is `00`, then `fe` for each further one, then `ff` if data follows. The
/// end is a `00` of its own, or an `fe` more in a run.
fn escape(v: &[u8], out: &mut Vec<u8>) {
    out.reserve(v.len() + 1);
    let mut in_run = false;
    for &byte in v {
        match (byte, in_run) {
            (0, true) => out.push(0xfe),
            (0, false) => out.push(0),
            (byte, true) => out.extend_from_slice(&[0xff, byte]),
            (byte, false) => out.push(byte),
        }
        in_run = byte == 0;
    }
    out.push(if in_run { 0xfe } else { 0 });
}

/// A signed integer of up to 9 bytes whose first bits encode the length: inverted sign, then one bit equal to it per
/// further byte.
fn variable_length(value: i64, out: &mut Vec<u8>) {
    let negative = value >> 63;
    let magnitude = (value ^ negative) as u64;
    let bits = 64 - (magnitude | 1).leading_zeros() as usize;
    let bytes = bits / 7 + 1;
    let start = out.len();
    if bytes >= 9 {
        out.push(0xff);
        out.extend_from_slice(&(magnitude | 1 << 63).to_be_bytes());
    } else {
        let lead = (0xff00u64 >> bytes) & 0xff;
        let marked = magnitude | lead << (8 * (bytes - 1));
        out.extend(marked.to_be_bytes().into_iter().skip(8 - bytes));
    }
    if negative != 0 {
        invert(out, start);
    }
}

/// From seven bytes beyond the sign bytes, the number of bytes is a prefix.
const FULL_FORM: usize = 7;

fn varint(v: &[u8], out: &mut Vec<u8>) {
    let Some(&first) = v.first() else { return };
    let negative = first & 0x80 != 0;
    let sign = if negative { 0xff } else { 0 };
    let skipped = v.iter().take_while(|byte| **byte == sign).count().min(v.len() - 1);
    let rest = v.get(skipped..).unwrap_or_default();
    if rest.len() < FULL_FORM {
        let extend = if negative { -1i64 } else { 0 };
        let value = rest.iter().fold(extend, |value, byte| value << 8 | i64::from(*byte));
        return variable_length(value, out);
    }
    out.push(!sign);
    let start = out.len();
    unsigned_length((rest.len() - FULL_FORM) as u64, out);
    if negative {
        invert(out, start);
    }
    out.extend_from_slice(rest);
}

/// The same form as Cassandra's unsigned vint.
fn unsigned_length(value: u64, out: &mut Vec<u8>) {
    use crate::bytes::Put;
    out.put_uvint(value);
}

fn float(v: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(v);
    if v.first().is_some_and(|byte| byte & 0x80 != 0) {
        invert(out, start);
    } else {
        flip_sign(out, start);
    }
}

/// Sign and exponent (base 100), then the digits of the mantissa in base 100, `00`. Digits of a negative number are
/// those of its floor: first −(q+1), then the complements.
fn decimal(v: &[u8], out: &mut Vec<u8>) {
    let Some((scale, unscaled)) = split_decimal(v) else {
        return out.extend_from_slice(v);
    };
    let negative = match unscaled.sign() {
        Sign::NoSign => return out.push(0x80),
        Sign::Minus => true,
        Sign::Plus => false,
    };
    let digits = unscaled.magnitude().to_string();
    let adjusted = i64::from(scale) - digits.len() as i64;
    let exponent = -(adjusted & !1) >> 1;
    let modulated = if negative { -exponent } else { exponent };
    let length = 8 - modulated.unsigned_abs().leading_zeros() / 8;
    let header = if modulated < 0 { 0x40 - length as i32 } else { 0x40 + length as i32 };
    out.push((header + if negative { 0 } else { 0x80 }) as u8);
    out.extend(modulated.to_be_bytes().into_iter().skip(8 - length as usize));

    let digits = digits.trim_end_matches('0').as_bytes();
    // An odd exponent puts one zero in front of the first pair.
    let padded: Vec<u8> =
        (0..(adjusted & 1)).map(|_| 0).chain(digits.iter().map(|digit| digit - b'0')).collect();
    let pairs = padded.chunks(2).map(|pair| {
        10 * i32::from(*pair.first().unwrap_or(&0)) + i32::from(*pair.get(1).unwrap_or(&0))
    });
    let last = padded.len().div_ceil(2).saturating_sub(1);
    for (i, pair) in pairs.enumerate() {
        let digit = match (negative, i == 0, i == last) {
            (false, ..) => pair,
            (true, true, true) => -pair,
            (true, true, false) => -pair - 1,
            (true, false, true) => 100 - pair,
            (true, false, false) => 99 - pair,
        };
        out.push((digit + 0x80) as u8);
    }
    out.push(0);
}

fn uuid(v: &[u8], out: &mut Vec<u8>) {
    let Some((msb, lsb)) = v.split_first_chunk::<8>() else {
        return out.extend_from_slice(v);
    };
    let msb = u64::from_be_bytes(*msb);
    let version = msb >> 12 & 0xf;
    let reordered = if version == 1 {
        reorder_uuid_time(msb)
    } else {
        version << 60 | msb >> 4 & 0x0fff_ffff_ffff_f000 | msb & 0xfff
    };
    out.extend_from_slice(&reordered.to_be_bytes());
    out.extend_from_slice(lsb);
}

fn timeuuid(v: &[u8], out: &mut Vec<u8>) {
    let Some((msb, lsb)) = v.split_first_chunk::<8>() else {
        return out.extend_from_slice(v);
    };
    out.extend_from_slice(&reorder_uuid_time(u64::from_be_bytes(*msb)).to_be_bytes());
    out.extend(lsb.iter().map(|byte| byte ^ 0x80));
}

fn collection(types: &[&CqlType], v: &[u8], out: &mut Vec<u8>) {
    let mut rest = v;
    let count = take_count(&mut rest).map_or(0, i64::from);
    for (_, t) in (0..count * types.len() as i64).zip(types.iter().cycle()) {
        match take_framed(&mut rest) {
            Some(element) => component(t, element, out),
            None => break,
        }
    }
    out.push(TERMINATOR);
}

/// Fields up to the last that is not null; no bytes for an empty value.
fn tuple(types: &mut dyn Iterator<Item = &CqlType>, v: &[u8], out: &mut Vec<u8>) -> bool {
    if v.is_empty() {
        return false;
    }
    let mut rest = v;
    let mut end = out.len();
    for t in types {
        match take_framed(&mut rest) {
            Some(field) => {
                component(t, field, out);
                if field.is_some() {
                    end = out.len();
                }
            }
            None => break,
        }
    }
    out.truncate(end);
    out.push(TERMINATOR);
    true
}

fn vector(element: &CqlType, dimension: u32, v: &[u8], out: &mut Vec<u8>) {
    let fixed = element.fixed_len();
    let mut rest = v;
    for _ in 0..dimension {
        match take_vector_element(&mut rest, fixed) {
            Some(value) => component(element, Some(value), out),
            None => break,
        }
    }
    out.push(TERMINATOR);
}

/// Static flag, then each component and its end-of-component byte as components.
fn composite(types: &[CqlType], v: &[u8], out: &mut Vec<u8>) {
    let mut rest = v;
    match v.strip_prefix(&[0xff, 0xff]) {
        Some(after) => {
            rest = after;
            out.push(NEXT_NULL);
        }
        None => out.push(NEXT),
    }
    for t in types {
        let Some((value, end)) = take_component(&mut rest) else { break };
        component(t, Some(value), out);
        out.extend_from_slice(&[NEXT, end as u8 ^ 0x80]);
    }
    out.push(TERMINATOR);
}

/// Each component is the names of its type's class, its value and its end-of-component byte. Of reversed types it is the names of the
/// base, and before them that they are reversed.
fn dynamic_composite(aliases: &Aliases, v: &[u8], out: &mut Vec<u8>) {
    let mut rest = v;
    out.push(NEXT);
    while let Some(found) = dynamic::take(aliases, &mut rest) {
        let mut text = |text: &str| component(&CqlType::Text, Some(text.as_bytes()), out);
        if matches!(found.of, CqlType::Reversed(_)) {
            text("ReversedType");
        }
        let (simple, full) = dynamic::class_names(found.of.base());
        text(&simple);
        text(&full);
        component(&found.of, Some(found.value), out);
        out.extend_from_slice(&[NEXT, found.end as u8 ^ 0x80]);
    }
    out.push(TERMINATOR);
}

#[cfg(test)]
mod tests;
