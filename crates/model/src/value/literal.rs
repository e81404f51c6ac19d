//! `CQL3Type.toCQLLiteral`: a value as a literal of a CQL statement.

use super::plain::scalar_text;
use crate::hex;
use crate::types::{
    CqlType, quote_identifier_if_needed, take_count, take_framed, take_vector_element,
};

/// A value as a CQL literal. Types without a CQL spelling are blobs.
pub fn to_cql_literal(cql_type: &CqlType, v: &[u8]) -> String {
    let mut out = String::new();
    push(cql_type, v, &mut out);
    out
}

fn push(cql_type: &CqlType, v: &[u8], out: &mut String) {
    let start = out.len();
    if value(cql_type, v, out).is_none() {
        out.truncate(start);
        push_blob(v, out);
    }
}

fn push_blob(v: &[u8], out: &mut String) {
    out.push_str("0x");
    out.push_str(&hex::encode(v));
}

fn push_nullable(cql_type: &CqlType, v: Option<&[u8]>, out: &mut String) {
    match v {
        Some(v) => push(cql_type, v, out),
        None => out.push_str("null"),
    }
}

/// `None` if the bytes are not a value of the type; the caller must then drop the partial output.
fn value(cql_type: &CqlType, v: &[u8], out: &mut String) -> Option<()> {
    match cql_type {
        CqlType::Frozen(inner) | CqlType::Reversed(inner) => push(inner, v, out),
        CqlType::Blob
        | CqlType::Custom(_)
        | CqlType::Composite(_)
        | CqlType::DynamicComposite(_)
        | CqlType::LexicalUuid
        | CqlType::PartitionerDefinedOrder { .. } => push_blob(v, out),
        CqlType::Text | CqlType::Ascii => {
            quoted(&scalar_text(cql_type, v)?.replace('\'', "''"), out);
        }
        CqlType::Tuple(fields) => {
            out.push('(');
            fields_of(&mut fields.iter().map(|t| (None, t)), v, out)?;
            out.push(')');
        }
        CqlType::Udt(udt) => {
            let name = |name: &[u8]| quote_identifier_if_needed(&String::from_utf8_lossy(name));
            out.push('{');
            fields_of(&mut udt.fields.iter().map(|(n, t)| (Some(name(n)), t)), v, out)?;
            out.push('}');
        }
        _ if v.is_empty() => out.push_str("null"),
        CqlType::Counter => out.push_str(&i64::from_be_bytes(*v.first_chunk()?).to_string()),
        CqlType::List(e) => collection(&[e], ['[', ']'], v, out)?,
        CqlType::Set(e) => collection(&[e], ['{', '}'], v, out)?,
        CqlType::Map(key, element) => collection(&[key, element], ['{', '}'], v, out)?,
        CqlType::Vector(e, dimension) => vector(e, *dimension, v, out)?,
        CqlType::Timestamp
        | CqlType::LegacyTimestamp
        | CqlType::Date
        | CqlType::Time
        | CqlType::Inet => quoted(&scalar_text(cql_type, v)?, out),
        bare => out.push_str(&scalar_text(bare, v)?),
    }
    Some(())
}

fn quoted(text: &str, out: &mut String) {
    out.push('\'');
    out.push_str(text);
    out.push('\'');
}

fn collection(
    types: &[&CqlType],
    [open, close]: [char; 2],
    v: &[u8],
    out: &mut String,
) -> Option<()> {
    let mut rest = v;
    out.push(open);
    for i in 0..take_count(&mut rest)? {
        if i > 0 {
            out.push_str(", ");
        }
        for (j, t) in types.iter().enumerate() {
            if j > 0 {
                out.push_str(": ");
            }
            push_nullable(t, take_framed(&mut rest)?, out);
        }
    }
    out.push(close);
    Some(())
}

/// The fields of the value, which can be fewer than its type has.
fn fields_of(
    fields: &mut dyn Iterator<Item = (Option<String>, &CqlType)>,
    v: &[u8],
    out: &mut String,
) -> Option<()> {
    let mut rest = v;
    for (i, (name, t)) in fields.enumerate() {
        if rest.is_empty() {
            break;
        }
        if i > 0 {
            out.push_str(", ");
        }
        if let Some(name) = name {
            out.push_str(&name);
            out.push_str(": ");
        }
        push_nullable(t, take_framed(&mut rest)?, out);
    }
    Some(())
}

fn vector(element: &CqlType, dimension: u32, v: &[u8], out: &mut String) -> Option<()> {
    let fixed = element.fixed_len();
    let mut rest = v;
    out.push('[');
    for i in 0..dimension {
        if i > 0 {
            out.push_str(", ");
        }
        push(element, take_vector_element(&mut rest, fixed)?, out);
    }
    out.push(']');
    rest.is_empty().then_some(())
}
