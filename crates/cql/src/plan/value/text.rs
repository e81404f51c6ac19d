//! The serialized value that a text stands for (`AbstractType.fromString`).

use std::net::{Ipv4Addr, Ipv6Addr};

use halcyon_model::CqlType;
use halcyon_model::bytes::Put;
use halcyon_model::{hex, uuid};

use super::duration::parse_duration;
use super::number_text as number;
use super::temporal::{parse_date, parse_time, parse_timestamp};

/// `AbstractType.fromString`; the error is the message.
pub(crate) fn from_string(cql_type: &CqlType, text: &str) -> Result<Vec<u8>, String> {
    macro_rules! number {
        ($int:ty, $name:literal) => {
            text.parse::<$int>()
                .map(|value| value.to_be_bytes().to_vec())
                .map_err(|_| format!(concat!("Unable to make ", $name, " from '{}'"), text))
        };
    }
    if text.is_empty() && is_empty_for(cql_type) {
        return Ok(Vec::new());
    }
    match cql_type {
        CqlType::Reversed(inner) | CqlType::Frozen(inner) => from_string(inner, text),
        CqlType::Ascii => ascii(text),
        CqlType::Text => Ok(text.as_bytes().to_vec()),
        CqlType::TinyInt => number!(i8, "byte"),
        CqlType::SmallInt => number!(i16, "short"),
        CqlType::Int => number!(i32, "int"),
        CqlType::BigInt | CqlType::Counter => number!(i64, "long"),
        CqlType::Varint => {
            number::varint(text).ok_or_else(|| format!("unable to make int from '{text}'"))
        }
        CqlType::Decimal => {
            number::decimal(text).ok_or_else(|| format!("unable to make BigDecimal from '{text}'"))
        }
        CqlType::Float => match number::float(text) {
            Some(value) => Ok(number::java_float(value).to_be_bytes().to_vec()),
            None => Err(format!("Unable to make float from '{text}'")),
        },
        CqlType::Double => match number::float(text) {
            Some(value) => Ok(number::java_double(value).to_be_bytes().to_vec()),
            None => Err(format!("Unable to make double from '{text}'")),
        },
        CqlType::Boolean if text.eq_ignore_ascii_case("true") => Ok(vec![1]),
        CqlType::Boolean if text.eq_ignore_ascii_case("false") => Ok(vec![0]),
        CqlType::Boolean => Err(format!("Unable to make boolean from '{text}'")),
        CqlType::Blob => {
            hex::decode(text).ok_or_else(|| format!("cannot parse '{text}' as hex bytes"))
        }
        CqlType::Timestamp | CqlType::LegacyTimestamp => {
            parse_timestamp(text).map(|millis| millis.to_be_bytes().to_vec())
        }
        CqlType::Date => parse_date(text).map(|days| days.to_be_bytes().to_vec()),
        CqlType::Time => parse_time(text).map(|nanos| nanos.to_be_bytes().to_vec()),
        CqlType::Duration => parse_duration(text),
        CqlType::Uuid | CqlType::TimeUuid => uuid_bytes(cql_type, text),
        CqlType::Inet => {
            inet(text).ok_or_else(|| format!("Unable to make inet address from '{text}'"))
        }
        CqlType::Tuple(fields) => tuple(fields, text),
        other => Err(format!("cannot parse '{text}' as {}", other.cql_name())),
    }
}

/// Whether the empty text is the empty value.
fn is_empty_for(cql_type: &CqlType) -> bool {
    !matches!(cql_type.thawed(), CqlType::Date | CqlType::Time | CqlType::Duration)
}

fn ascii(text: &str) -> Result<Vec<u8>, String> {
    match text.chars().find(|c| !c.is_ascii()) {
        None => Ok(text.as_bytes().to_vec()),
        Some(c) => Err(format!(
            "Invalid ASCII character in string literal: java.nio.charset.UnmappableCharacterException: Input length = {}",
            c.len_utf16()
        )),
    }
}

fn uuid_bytes(cql_type: &CqlType, text: &str) -> Result<Vec<u8>, String> {
    let is_time = *cql_type == CqlType::TimeUuid;
    match uuid::parse(text) {
        None if is_time => Err(format!("Unknown timeuuid representation: {text}")),
        None => Err(format!("Unable to make UUID from '{text}'")),
        Some(uuid) if is_time && !uuid::is_time_based(&uuid) => {
            Err("TimeUUID supports only version 1 UUIDs".to_owned())
        }
        Some(uuid) => Ok(uuid.to_vec()),
    }
}

/// `InetAddress.getByName` of what needs no name server. IPv4 may leave out groups in front of the last.
fn inet(text: &str) -> Option<Vec<u8>> {
    if text == "localhost" {
        return Some(Ipv4Addr::LOCALHOST.octets().to_vec());
    }
    let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let without_zone = inner.split_once('%').map_or(inner, |(address, _)| address);
    if let Ok(v6) = without_zone.parse::<Ipv6Addr>() {
        return Some(match v6.to_ipv4_mapped() {
            Some(v4) => v4.octets().to_vec(),
            None => v6.octets().to_vec(),
        });
    }
    let parts: Vec<u64> = text
        .split('.')
        .map(|part| if part.len() > 10 { None } else { part.parse().ok() })
        .collect::<Option<_>>()?;
    let (last, first) = parts.split_last()?;
    let rest = 4usize.checked_sub(first.len())?;
    if rest == 0 || first.iter().any(|part| *part > 255) || *last >= 1 << (8 * rest) {
        return None;
    }
    let mut octets: Vec<u8> = first.iter().map(|part| *part as u8).collect();
    octets.extend(last.to_be_bytes().into_iter().skip(8 - rest));
    Some(octets)
}

/// Fields between colons; `@` is null; both may be escaped.
fn tuple(types: &[CqlType], text: &str) -> Result<Vec<u8>, String> {
    let mut fields = vec![String::new()];
    let mut escaped = false;
    for c in text.chars() {
        match (c, fields.last_mut()) {
            ('\\', _) if !escaped => {
                escaped = true;
                continue;
            }
            (':', _) if !escaped => fields.push(String::new()),
            ('@', Some(field)) if !escaped => field.push('\0'),
            (c, Some(field)) => field.push(c),
            (_, None) => {}
        }
        escaped = false;
    }
    if fields.len() > types.len() {
        return Err(format!(
            "Invalid tuple literal: too many elements. Type {} expects {} but got {}",
            CqlType::Tuple(types.to_vec()).cql_name(),
            types.len(),
            fields.len()
        ));
    }
    let mut out = Vec::new();
    for (field, cql_type) in fields.iter().zip(types) {
        if field == "\0" {
            out.put_i32(-1);
        } else {
            out.put_ibytes(&from_string(cql_type, field)?);
        }
    }
    Ok(out)
}
