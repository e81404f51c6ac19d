//! The serialized value that a text stands for (`AbstractType.fromString`).

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::bytes::Put;
use crate::types::dynamic::Comparator;
use crate::types::{Aliases, CqlType};
use crate::{hex, uuid};

use super::duration::parse_duration;
use super::number_text as number;
use super::temporal::{parse_date, parse_time, parse_timestamp};

/// `AbstractType.fromString`; the error is the message.
pub fn from_string(cql_type: &CqlType, text: &str) -> Result<Vec<u8>, String> {
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
        CqlType::Blob
        | CqlType::List(_)
        | CqlType::Set(_)
        | CqlType::Map(..)
        | CqlType::Vector(..) => {
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
        CqlType::Udt(udt) => {
            let fields: Vec<CqlType> = udt.fields.iter().map(|(_, field)| field.clone()).collect();
            tuple(&fields, text)
        }
        CqlType::Composite(types) => composite(text, |i, part| match types.get(i) {
            Some(of) => Ok((Vec::new(), of.clone(), part.to_owned())),
            None => Err(format!("'{text}' has more components than {cql_type}")),
        }),
        CqlType::DynamicComposite(aliases) => composite(text, |_, part| typed(aliases, part)),
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

/// Components between colons that no backslash escapes; `!` and `_` at the end are an end-of-component byte after or before what follows.
/// `part` tells the bytes in front of a component, its type and its text.
fn composite(
    text: &str,
    part: impl Fn(usize, &str) -> Result<(Vec<u8>, CqlType, String), String>,
) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    for (i, text) in components(text).into_iter().enumerate() {
        let end = match text {
            "!" => 1,
            "_" => 0xff,
            _ => {
                let (before, of, text) = part(i, text)?;
                let value = from_string(&of, &unescaped(&text))?;
                of.validate(&value)?;
                let length = u16::try_from(value.len());
                let length = length.map_err(|_| format!("component {i} is too long"))?;
                out.extend(before);
                out.extend(length.to_be_bytes());
                out.extend(value);
                out.push(0);
                continue;
            }
        };
        let Some(last) = out.last_mut() else {
            return Err("an end of component without a component".to_owned());
        };
        *last = end;
        break;
    }
    Ok(out)
}

fn components(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    let mut from = 0;
    while let Some(colon) = rest.get(from..).and_then(|rest| rest.find(':')) {
        let at = from + colon;
        let (part, tail) = rest.split_at(at);
        if part.ends_with('\\') {
            from = at + 1;
            continue;
        }
        parts.push(part);
        rest = tail.strip_prefix(':').unwrap_or(tail);
        from = 0;
    }
    if !text.is_empty() {
        parts.push(rest);
    }
    parts
}

/// `\:` is a colon, and a `!` at the end says nothing.
fn unescaped(text: &str) -> String {
    let text = text.replace("\\:", ":");
    text.strip_suffix('!').map(str::to_owned).unwrap_or(text)
}

/// `a@text`: behind the alias of a type, or the name of its class.
fn typed(aliases: &Aliases, part: &str) -> Result<(Vec<u8>, CqlType, String), String> {
    let wrong = || format!("Invalid component representation: {part}");
    let trimmed = part.trim_end_matches('@');
    let (name, text) = trimmed.split_once('@').unwrap_or((trimmed, ""));
    if text.contains('@') {
        return Err(wrong());
    }
    if let &[alias] = name.as_bytes()
        && let Some(of) = Comparator::Alias(alias).type_in(aliases)
    {
        return Ok((vec![0x80, alias], of, text.to_owned()));
    }
    let of = Comparator::Class(name).type_in(aliases).ok_or_else(wrong)?;
    let mut before = u16::try_from(name.len()).map_err(|_| wrong())?.to_be_bytes().to_vec();
    before.extend(name.as_bytes());
    Ok((before, of, text.to_owned()))
}
