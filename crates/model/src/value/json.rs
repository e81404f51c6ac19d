//! `AbstractType.toJSONString`.

use super::calendar::timestamp_json_string;
use super::plain::scalar_text;
use crate::hex;
use crate::types::{CqlType, UserType, take_count, take_framed, take_vector_element};

/// A value as JSON. A counter's bytes are read as one `i64`, which for a counter cell is the head of its context:
/// that is what sstabledump prints (`counter::total` is the number that a reader wants).
pub fn to_json_string(cql_type: &CqlType, v: &[u8]) -> String {
    let mut out = String::new();
    push(cql_type, v, &mut out);
    out
}

fn push(cql_type: &CqlType, v: &[u8], out: &mut String) {
    let start = out.len();
    if value(cql_type, v, out).is_none() {
        out.truncate(start);
        push_hex(v, out);
    }
}

fn push_hex(v: &[u8], out: &mut String) {
    out.push_str("\"0x");
    out.push_str(&hex::encode(v));
    out.push('"');
}

/// `None` if the bytes are not a value of the type; the caller must then drop the partial output.
fn value(cql_type: &CqlType, v: &[u8], out: &mut String) -> Option<()> {
    let v = cql_type.read_of(v);
    match cql_type {
        CqlType::Frozen(inner) | CqlType::Reversed(inner) => push(inner, v, out),
        CqlType::Blob
        | CqlType::Custom(_)
        | CqlType::Composite(_)
        | CqlType::DynamicComposite(_) => push_hex(v, out),
        CqlType::PartitionerDefinedOrder { .. } => push_hex(v, out),
        CqlType::Text | CqlType::Ascii => quoted(&quote_json(&scalar_text(cql_type, v)?), out),
        CqlType::Tuple(fields) => tuple(fields, v, out)?,
        CqlType::Udt(udt) => user_type(udt, v, out)?,
        CqlType::Time if v.is_empty() => out.push_str("\"null\""),
        _ if v.is_empty() => out.push_str("\"\""),
        CqlType::Counter => out.push_str(&i64::from_be_bytes(*v.first_chunk()?).to_string()),
        CqlType::Float | CqlType::Double => {
            let text = scalar_text(cql_type, v)?;
            // JSON has no NaN and no infinities.
            let finite = !text.ends_with(['N', 'y']);
            out.push_str(if finite { &text } else { "null" });
        }
        CqlType::Timestamp | CqlType::LegacyTimestamp => {
            quoted(&timestamp_json_string(i64::from_be_bytes(v.try_into().ok()?)), out);
        }
        CqlType::List(e) | CqlType::Set(e) => list(e, v, out)?,
        CqlType::Map(key, element) => map(key, element, v, out)?,
        CqlType::Vector(e, dimension) => vector(e, *dimension, v, out)?,
        CqlType::TinyInt
        | CqlType::SmallInt
        | CqlType::Int
        | CqlType::BigInt
        | CqlType::Varint
        | CqlType::Decimal
        | CqlType::Boolean => out.push_str(&scalar_text(cql_type, v)?),
        quoted_type => quoted(&scalar_text(quoted_type, v)?, out),
    }
    Some(())
}

fn quoted(text: &str, out: &mut String) {
    out.push('"');
    out.push_str(text);
    out.push('"');
}

/// The text between the quotes of a JSON string.
pub fn quote_json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            control if control < ' ' => out.push_str(&format!("\\u{:04X}", u32::from(control))),
            other => out.push(other),
        }
    }
    out
}

fn push_nullable(cql_type: &CqlType, v: Option<&[u8]>, out: &mut String) {
    match v {
        Some(v) => push(cql_type, v, out),
        None => out.push_str("null"),
    }
}

fn separate(i: impl Into<i64>, out: &mut String) {
    if i.into() > 0 {
        out.push_str(", ");
    }
}

fn list(element: &CqlType, v: &[u8], out: &mut String) -> Option<()> {
    let mut rest = v;
    out.push('[');
    for i in 0..take_count(&mut rest)? {
        separate(i, out);
        push_nullable(element, take_framed(&mut rest)?, out);
    }
    out.push(']');
    Some(())
}

/// Keys that are not JSON strings become strings of their JSON.
fn map(key: &CqlType, element: &CqlType, v: &[u8], out: &mut String) -> Option<()> {
    let mut rest = v;
    out.push('{');
    for i in 0..take_count(&mut rest)? {
        separate(i, out);
        let mut name = String::new();
        push_nullable(key, take_framed(&mut rest)?, &mut name);
        if name.starts_with('"') {
            out.push_str(&name);
        } else {
            quoted(&quote_json(&name), out);
        }
        out.push_str(": ");
        push_nullable(element, take_framed(&mut rest)?, out);
    }
    out.push('}');
    Some(())
}

/// The next field; null once the value has ended.
#[expect(clippy::option_option, reason = "outer: framing is sound; inner: null")]
fn take_field<'a>(rest: &mut &'a [u8]) -> Option<Option<&'a [u8]>> {
    if rest.is_empty() { Some(None) } else { take_framed(rest) }
}

fn tuple(fields: &[CqlType], v: &[u8], out: &mut String) -> Option<()> {
    let mut rest = v;
    out.push('[');
    for (i, t) in fields.iter().enumerate() {
        separate(i as i64, out);
        push_nullable(t, take_field(&mut rest)?, out);
    }
    out.push(']');
    Some(())
}

fn user_type(udt: &UserType, v: &[u8], out: &mut String) -> Option<()> {
    let mut rest = v;
    out.push('{');
    for (i, (name, t)) in udt.fields.iter().enumerate() {
        separate(i as i64, out);
        let mut name = String::from_utf8_lossy(name).into_owned();
        if name != name.to_lowercase() {
            name = format!("\"{name}\"");
        }
        quoted(&quote_json(&name), out);
        out.push_str(": ");
        push_nullable(t, take_field(&mut rest)?, out);
    }
    out.push('}');
    rest.is_empty().then_some(())
}

fn vector(element: &CqlType, dimension: u32, v: &[u8], out: &mut String) -> Option<()> {
    let fixed = element.fixed_len();
    let mut rest = v;
    out.push('[');
    for i in 0..dimension {
        separate(i, out);
        push(element, take_vector_element(&mut rest, fixed)?, out);
    }
    out.push(']');
    rest.is_empty().then_some(())
}
