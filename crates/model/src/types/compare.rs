//! The order of values: `AbstractType.compare`, made total.
//!
//! Where Cassandra would throw on a malformed value, the value sorts after all well-formed ones, by its bytes, so
//! that a merge of damaged data still terminates with the same result wherever it runs.  An empty value sorts first.

use std::cmp::Ordering;

use num_bigint::{BigInt, Sign};

use super::{CqlType, take_component, take_count, take_framed, take_vector_element};
use crate::token::Partitioner;

impl CqlType {
    /// Order of two non-null values of this type. `Reversed` inverts.
    #[inline]
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            CqlType::Int => signed_fixed::<4>(a, b),
            CqlType::BigInt | CqlType::Timestamp => signed_fixed::<8>(a, b),
            CqlType::Text | CqlType::Blob | CqlType::Ascii => a.cmp(b),
            CqlType::Uuid => keyed(a, b, uuid_key),
            CqlType::TimeUuid => keyed(a, b, timeuuid_key),
            other => other.compare_rarer(a, b),
        }
    }

    fn compare_rarer(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            CqlType::TinyInt => signed_fixed::<1>(a, b),
            CqlType::SmallInt => signed_fixed::<2>(a, b),
            CqlType::Counter => signed_fixed::<8>(a, b),
            CqlType::Boolean => keyed(a, b, |v| v.first().map(|byte| *byte != 0)),
            CqlType::Float => keyed(a, b, float_key),
            CqlType::Double => keyed(a, b, double_key),
            CqlType::Varint => varint(a, b),
            CqlType::Decimal => decimal(a, b),
            CqlType::LexicalUuid => keyed(a, b, lexical_uuid_key),
            CqlType::Empty => Ordering::Equal,
            CqlType::List(e) | CqlType::Set(e) => collection(&[e], a, b),
            CqlType::Map(k, v) => collection(&[k, v], a, b),
            CqlType::Tuple(fields) => tuple(fields.iter(), a, b),
            CqlType::Udt(udt) => tuple(udt.fields.iter().map(|(_, t)| t), a, b),
            CqlType::Vector(e, n) => vector(e, *n, a, b),
            CqlType::Composite(types) => composite(types, a, b),
            CqlType::DynamicComposite(aliases) => super::dynamic::compare(aliases, a, b),
            CqlType::Frozen(inner) => inner.compare(a, b),
            CqlType::Reversed(base) => base.compare(b, a),
            CqlType::PartitionerDefinedOrder { partitioner, .. } => {
                Partitioner::parse(partitioner).map_or_else(|_| a.cmp(b), |p| p.compare(a, b))
            }
            _ => a.cmp(b),
        }
    }
}

/// Two's complement big-endian of `N` bytes. Other lengths compare as if they were one signed byte and then unsigned
/// ones, as Cassandra does.
#[inline]
fn signed_fixed<const N: usize>(a: &[u8], b: &[u8]) -> Ordering {
    if let (Ok(a), Ok(b)) = (<&[u8; N]>::try_from(a), <&[u8; N]>::try_from(b)) {
        let flip = |v: &[u8; N]| {
            let mut v = *v;
            if let Some(first) = v.first_mut() {
                *first ^= 0x80;
            }
            v
        };
        return flip(a).cmp(&flip(b));
    }
    match (a.split_first(), b.split_first()) {
        (Some((a0, a)), Some((b0, b))) => (*a0 as i8).cmp(&(*b0 as i8)).then_with(|| a.cmp(b)),
        (a, b) => a.is_some().cmp(&b.is_some()),
    }
}

/// Orders by a key that well-formed values have; empty first, malformed last.
#[inline]
fn keyed<K: Ord>(a: &[u8], b: &[u8], key: impl Fn(&[u8]) -> Option<K>) -> Ordering {
    match (key(a), key(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (ka, kb) => {
            let class = |v: &[u8], well_formed: bool| match (v.is_empty(), well_formed) {
                (true, _) => 0,
                (_, true) => 1,
                _ => 2,
            };
            class(a, ka.is_some()).cmp(&class(b, kb.is_some())).then_with(|| a.cmp(b))
        }
    }
}

/// Timestamp of a version 1 UUID moved to the front: version, time high, middle, low.
#[inline]
pub(crate) fn reorder_uuid_time(msb: u64) -> u64 {
    msb << 48 | msb << 16 & 0xffff_0000_0000 | msb >> 32
}

#[inline]
fn halves(v: &[u8]) -> Option<(u64, u64)> {
    let both = u128::from_be_bytes(*<&[u8; 16]>::try_from(v).ok()?);
    Some(((both >> 64) as u64, both as u64))
}

#[inline]
fn uuid_key(v: &[u8]) -> Option<(u64, u64, u64)> {
    let (msb, lsb) = halves(v)?;
    let version = msb >> 12 & 0xf;
    // Version 1 timestamps compare signed in Cassandra; the version nibble keeps them positive.
    Some((version, if version == 1 { reorder_uuid_time(msb) } else { msb }, lsb))
}

/// The least significant half compares as eight signed bytes, for the sake of history.
#[inline]
fn timeuuid_key(v: &[u8]) -> Option<(i64, u64)> {
    let (msb, lsb) = halves(v)?;
    Some((reorder_uuid_time(msb) as i64, lsb ^ 0x8080_8080_8080_8080))
}

fn lexical_uuid_key(v: &[u8]) -> Option<(i64, i64)> {
    halves(v).map(|(msb, lsb)| (msb as i64, lsb as i64))
}

/// Java's order of floats: −0.0 below 0.0, every NaN equal and greatest.
fn float_key(v: &[u8]) -> Option<i32> {
    let value = f32::from_be_bytes(v.try_into().ok()?);
    let bits = if value.is_nan() { i32::MAX } else { value.to_bits() as i32 };
    Some(if bits < 0 { bits ^ i32::MAX } else { bits })
}

fn double_key(v: &[u8]) -> Option<i64> {
    let value = f64::from_be_bytes(v.try_into().ok()?);
    let bits = if value.is_nan() { i64::MAX } else { value.to_bits() as i64 };
    Some(if bits < 0 { bits ^ i64::MAX } else { bits })
}

/// Bytes of a two's complement integer without redundant sign bytes; none for an empty one.
pub fn significant(v: &[u8]) -> &[u8] {
    let mut v = v;
    while let [first, rest @ ..] = v {
        let redundant = match rest.first() {
            Some(next) => *first == if *next & 0x80 == 0 { 0 } else { 0xff },
            None => false,
        };
        if !redundant {
            break;
        }
        v = rest;
    }
    v
}

/// Any two's complement integers, minimal or not.
fn varint(a: &[u8], b: &[u8]) -> Ordering {
    if a.is_empty() || b.is_empty() {
        return b.is_empty().cmp(&a.is_empty());
    }
    let (a, b) = (significant(a), significant(b));
    let negative = |v: &[u8]| v.first().is_some_and(|byte| byte & 0x80 != 0);
    match (negative(a), negative(b)) {
        (false, true) => Ordering::Greater,
        (true, false) => Ordering::Less,
        (false, false) => a.len().cmp(&b.len()).then_with(|| a.cmp(b)),
        (true, true) => b.len().cmp(&a.len()).then_with(|| a.cmp(b)),
    }
}

/// `i32` scale and unscaled value, or `None` where `BigDecimal` would refuse.
pub(crate) fn split_decimal(v: &[u8]) -> Option<(i32, BigInt)> {
    let (scale, unscaled) = v.split_first_chunk::<4>()?;
    if unscaled.is_empty() {
        return None;
    }
    Some((i32::from_be_bytes(*scale), BigInt::from_signed_bytes_be(significant(unscaled))))
}

/// Numeric order, independent of scale: 1.0 equals 1.00.
fn decimal(a: &[u8], b: &[u8]) -> Ordering {
    match (split_decimal(a), split_decimal(b)) {
        (Some(a), Some(b)) => compare_decimals(&a, &b),
        (ka, kb) => keyed(a, b, |v| {
            let well_formed = if std::ptr::eq(v, a) { ka.is_some() } else { kb.is_some() };
            well_formed.then_some(())
        }),
    }
}

fn compare_decimals(a: &(i32, BigInt), b: &(i32, BigInt)) -> Ordering {
    let (sign, other) = (a.1.sign(), b.1.sign());
    if sign != other || sign == Sign::NoSign {
        return sign.cmp(&other);
    }
    if a.0 == b.0 {
        return a.1.cmp(&b.1);
    }
    // Compare as 0.ddd × 10^exponent, so that huge scales cost nothing.
    let (left, right) = (a.1.magnitude().to_string(), b.1.magnitude().to_string());
    let exponent = |digits: &str, scale: i32| digits.len() as i64 - i64::from(scale);
    let (l, r) = (left.trim_end_matches('0'), right.trim_end_matches('0'));
    let order = exponent(&left, a.0).cmp(&exponent(&right, b.0)).then_with(|| l.cmp(r));
    if sign == Sign::Minus { order.reverse() } else { order }
}

/// Frozen collections: element by element (a map's are keys and values in turn), then by declared size. An element
/// that the bytes do not hold sorts before null, null before any value.
fn collection(types: &[&CqlType], a: &[u8], b: &[u8]) -> Ordering {
    if a.is_empty() || b.is_empty() {
        return b.is_empty().cmp(&a.is_empty());
    }
    let (mut left, mut right) = (a, b);
    let (Some(size_left), Some(size_right)) = (take_count(&mut left), take_count(&mut right))
    else {
        return keyed(a, b, |v| take_count(&mut &*v));
    };
    let common = i64::from(size_left.min(size_right));
    for (_, t) in (0..common * types.len() as i64).zip(types.iter().cycle()) {
        let (l, r) = (take_framed(&mut left), take_framed(&mut right));
        let order = match (l, r) {
            (Some(Some(l)), Some(Some(r))) => t.compare(l, r),
            (None, None) => break,
            (l, r) => l.cmp(&r),
        };
        if order != Ordering::Equal {
            return order;
        }
        if l.is_none() {
            break;
        }
    }
    size_left.cmp(&size_right)
}

/// Field by field; a missing field equals null and sorts before any value.
fn tuple<'t>(types: impl Iterator<Item = &'t CqlType>, a: &[u8], b: &[u8]) -> Ordering {
    if a.is_empty() || b.is_empty() {
        return b.is_empty().cmp(&a.is_empty());
    }
    let (mut left, mut right) = (a, b);
    for t in types {
        let l = take_framed(&mut left).flatten();
        let r = take_framed(&mut right).flatten();
        let order = match (l, r) {
            (Some(l), Some(r)) => t.compare(l, r),
            (l, r) => l.is_some().cmp(&r.is_some()),
        };
        if order != Ordering::Equal {
            return order;
        }
    }
    Ordering::Equal
}

fn vector(element: &CqlType, dimension: u32, a: &[u8], b: &[u8]) -> Ordering {
    let fixed = element.fixed_len();
    let (mut left, mut right) = (a, b);
    for _ in 0..dimension {
        let l = take_vector_element(&mut left, fixed);
        let r = take_vector_element(&mut right, fixed);
        let order = match (l, r) {
            (Some(l), Some(r)) => element.compare(l, r),
            (None, None) => return left.cmp(right),
            (l, r) => l.is_some().cmp(&r.is_some()),
        };
        if order != Ordering::Equal {
            return order;
        }
    }
    Ordering::Equal
}

/// `CompositeType`: components of `u16` length, bytes, end-of-component byte (signed), static ones first.
fn composite(types: &[CqlType], a: &[u8], b: &[u8]) -> Ordering {
    if a.is_empty() || b.is_empty() {
        return b.is_empty().cmp(&a.is_empty());
    }
    let is_static = |v: &[u8]| v.starts_with(&[0xff, 0xff]);
    if is_static(a) != is_static(b) {
        return is_static(b).cmp(&is_static(a));
    }
    let skip = if is_static(a) { 2 } else { 0 };
    let mut left = a.get(skip..).unwrap_or_default();
    let mut right = b.get(skip..).unwrap_or_default();
    let bytes = CqlType::Blob;
    for t in types.iter().chain(std::iter::repeat(&bytes)) {
        let (l, r) = (take_component(&mut left), take_component(&mut right));
        let order = match (l, r) {
            (Some((l, l_end)), Some((r, r_end))) => t.compare(l, r).then(l_end.cmp(&r_end)),
            (None, None) => return left.cmp(right),
            (l, r) => l.is_some().cmp(&r.is_some()),
        };
        if order != Ordering::Equal {
            return order;
        }
    }
    Ordering::Equal
}
