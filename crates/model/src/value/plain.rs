//! `AbstractType.getString`, and the text of single values that the other renderings share.

use num_bigint::BigInt;

use super::calendar::{date_string, duration_string, time_string, timestamp_iso_string};
use super::java_float::{double_to_string, float_to_string};
use super::number::decimal_string;
use crate::bytes::Cursor;
use crate::hex;
use crate::types::dynamic::{self, Comparator};
use crate::types::{CqlType, split_decimal, take_component, take_framed};

/// A value as `AbstractType.getString` shows it: collections and vectors as hex, the fields of tuples and user types
/// between colons.
pub fn to_string(cql_type: &CqlType, v: &[u8]) -> String {
    match cql_type {
        CqlType::Frozen(inner) | CqlType::Reversed(inner) => to_string(inner, v),
        CqlType::Tuple(fields) => tuple(&mut fields.iter(), v),
        CqlType::Udt(udt) => tuple(&mut udt.fields.iter().map(|(_, t)| t), v),
        CqlType::Composite(types) => {
            let mut types = types.iter();
            composite(v.strip_prefix(&[0xff, 0xff]).unwrap_or(v), |rest| {
                let (value, end) = take_component(rest)?;
                Some((None, to_string(types.next()?, value), end))
            })
            .unwrap_or_else(|| hex::encode(v))
        }
        CqlType::DynamicComposite(aliases) => composite(v, |rest| {
            let found = dynamic::take(aliases, rest)?;
            let name = match found.comparator {
                Comparator::Alias(alias) => char::from(alias).to_string(),
                Comparator::Class(name) => name.to_owned(),
            };
            Some((Some(name), to_string(&found.of, found.value), found.end))
        })
        .unwrap_or_else(|| hex::encode(v)),
        scalar => scalar_text(scalar, v).unwrap_or_else(|| hex::encode(v)),
    }
}

/// `TypeSerializer.toString` of a value; an empty one is the empty string. `None` if the bytes are not a value of
/// the type, or if the type is shown as hex.
pub(super) fn scalar_text(cql_type: &CqlType, v: &[u8]) -> Option<String> {
    let integer = |v: &[u8]| BigInt::from_signed_bytes_be(v).to_string();
    match cql_type {
        CqlType::Text => return std::str::from_utf8(v).ok().map(str::to_owned),
        CqlType::Ascii => {
            return std::str::from_utf8(v).ok().filter(|s| s.is_ascii()).map(str::to_owned);
        }
        CqlType::Blob | CqlType::Counter | CqlType::Custom(_) => return None,
        CqlType::List(_) | CqlType::Set(_) | CqlType::Map(..) | CqlType::Vector(..) => return None,
        CqlType::PartitionerDefinedOrder { .. } => return None,
        _ if v.is_empty() => return Some(String::new()),
        _ => {}
    }
    Some(match cql_type {
        CqlType::TinyInt => i8::from_be_bytes(v.try_into().ok()?).to_string(),
        CqlType::SmallInt => i16::from_be_bytes(v.try_into().ok()?).to_string(),
        CqlType::Int => i32::from_be_bytes(v.try_into().ok()?).to_string(),
        CqlType::BigInt => i64::from_be_bytes(v.try_into().ok()?).to_string(),
        CqlType::Varint => integer(v),
        CqlType::Boolean => <[u8; 1]>::try_from(v).map(|[byte]| byte != 0).ok()?.to_string(),
        CqlType::Float => float_to_string(f32::from_be_bytes(v.try_into().ok()?)),
        CqlType::Double => double_to_string(f64::from_be_bytes(v.try_into().ok()?)),
        CqlType::Decimal => {
            let (scale, unscaled) = split_decimal(v)?;
            decimal_string(scale, &unscaled)
        }
        CqlType::Timestamp | CqlType::LegacyTimestamp => {
            timestamp_iso_string(i64::from_be_bytes(v.try_into().ok()?))
        }
        CqlType::Date => date_string(u32::from_be_bytes(v.try_into().ok()?)),
        CqlType::Time => time_string(i64::from_be_bytes(v.try_into().ok()?)),
        CqlType::Duration => duration(v)?,
        CqlType::Uuid | CqlType::TimeUuid | CqlType::LexicalUuid => {
            crate::uuid::text(v.try_into().ok()?)
        }
        CqlType::Inet => inet(v)?,
        _ => return None,
    })
}

fn duration(v: &[u8]) -> Option<String> {
    let mut cursor = Cursor::new(v);
    let months = i32::try_from(cursor.svint().ok()?).ok()?;
    let days = i32::try_from(cursor.svint().ok()?).ok()?;
    Some(duration_string(months, days, cursor.svint().ok()?))
}

/// Java's `getHostAddress`: IPv6 groups without compression; IPv4-mapped addresses are IPv4.
fn inet(v: &[u8]) -> Option<String> {
    if let Ok(v4) = <[u8; 4]>::try_from(v) {
        return Some(std::net::Ipv4Addr::from(v4).to_string());
    }
    let v6 = std::net::Ipv6Addr::from(<[u8; 16]>::try_from(v).ok()?);
    Some(match v6.to_ipv4_mapped() {
        Some(v4) => v4.to_string(),
        None => v6.segments().map(|group| format!("{group:x}")).join(":"),
    })
}

/// Null is `@`; colons and at signs of fields are escaped.
fn tuple(types: &mut dyn Iterator<Item = &CqlType>, v: &[u8]) -> String {
    let mut out = String::new();
    let mut rest = v;
    for (i, t) in types.enumerate() {
        if rest.is_empty() {
            break;
        }
        if i > 0 {
            out.push(':');
        }
        match take_framed(&mut rest) {
            Some(Some(field)) => {
                out.push_str(&to_string(t, field).replace(':', "\\:").replace('@', "\\@"));
            }
            Some(None) => out.push('@'),
            None => return hex::encode(v),
        }
    }
    out
}

/// Components between colons, each perhaps behind the name of its type and `@`; an end-of-component byte other than zero shows as `_`
/// (before) or `!` (after). `None` if the bytes are not a composite.
fn composite(
    v: &[u8],
    mut next: impl FnMut(&mut &[u8]) -> Option<(Option<String>, String, i8)>,
) -> Option<String> {
    let mut out = String::new();
    let mut rest = v;
    while !rest.is_empty() {
        if rest.len() < v.len() {
            out.push(':');
        }
        let (of, text, end) = next(&mut rest)?;
        if let Some(of) = of {
            out.push_str(&of);
            out.push('@');
        }
        let mut text = text.replace(':', "\\:");
        if text.ends_with(['\\', '!']) {
            text.push('!');
        }
        out.push_str(&text);
        if end != 0 {
            out.push_str(if end < 0 { ":_" } else { ":!" });
            break;
        }
    }
    Some(out)
}
