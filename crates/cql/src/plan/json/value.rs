//! JSON to serialized values (`AbstractType.fromJSONObject`). The error is Cassandra's message.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use halcyon_model::CqlType;
use halcyon_model::bytes::Put;
use halcyon_model::types::UserType;
use halcyon_model::value::from_string;

use super::parse::{Json, parse};
use crate::plan::value::checked::sorted_collection;
use crate::plan::value::number::parse_decimal;

/// Why a value cannot be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fault {
    /// `MarshalException`
    Marshal(String),
    /// `InvalidRequestException`: the message of an invalid duration, which does not name its column.
    Invalid(String),
}

type Value = Result<Vec<u8>, Fault>;

fn expected(what: &str, found: &Json) -> Fault {
    Fault::Marshal(format!("Expected {what}, but got a {}: {found}", found.class()))
}

fn refuse<T>(message: String) -> Result<T, Fault> {
    Err(Fault::Marshal(message))
}

fn of_text(cql_type: &CqlType, text: &str) -> Value {
    let invalid = *cql_type == CqlType::Duration;
    if invalid && text.is_empty() {
        return Ok(Vec::new());
    }
    from_string(cql_type, text)
        .map_err(|why| if invalid { Fault::Invalid(why) } else { Fault::Marshal(why) })
}

/// A value of the type; collections in their frozen form. `json` is not null.
pub(super) fn value(cql_type: &CqlType, json: &Json) -> Value {
    use CqlType as T;
    match cql_type.thawed() {
        T::Reversed(inner) => value(inner, json),
        T::List(element) => list(element, json),
        T::Set(element) => set(cql_type.thawed(), element, json),
        T::Map(key, element) => map(cql_type.thawed(), key, element, json),
        T::Vector(element, dimension) => vector(element, *dimension, json),
        T::Tuple(fields) => tuple(fields, json),
        T::Udt(udt) => user_type(udt, json),
        T::Blob | T::Custom(_) => blob(json),
        T::TinyInt => small(cql_type, "a byte", json),
        T::SmallInt => small(cql_type, "a short", json),
        T::Int => integer(cql_type, "an int", json),
        T::BigInt | T::Counter => integer(cql_type, "a bigint", json),
        T::Varint => varint(json),
        T::Decimal => decimal(json),
        T::Float => float("a float", json, cql_type),
        T::Double => float("a double", json, cql_type),
        T::Boolean => match json {
            Json::Boolean(value) => Ok(vec![u8::from(*value)]),
            Json::String(text) if text.is_empty() => Ok(vec![0]),
            Json::String(text) => of_text(&T::Boolean, text),
            other => Err(expected("a boolean value", other)),
        },
        T::Timestamp | T::LegacyTimestamp => match json {
            Json::Integer(_) if json.class() == "Long" => integer(&T::BigInt, "a bigint", json),
            Json::String(text) => of_text(cql_type, text),
            other => {
                Err(expected("a long or a datestring representation of a timestamp value", other))
            }
        },
        other => match json {
            Json::String(text) => of_text(other, text),
            found => Err(expected(string_of(other), found)),
        },
    }
}

fn string_of(cql_type: &CqlType) -> &'static str {
    match cql_type {
        CqlType::Ascii => "an ascii string",
        CqlType::Text => "a UTF-8 string",
        CqlType::Uuid => "a string representation of a uuid",
        CqlType::TimeUuid => "a string representation of a timeuuid",
        CqlType::Inet => "a string representation of an inet value",
        CqlType::Date => "a string representation of a date value",
        CqlType::Time => "a string representation of a time value",
        CqlType::Duration => "a string representation of a duration",
        _ => "a string",
    }
}

fn small(cql_type: &CqlType, what: &str, json: &Json) -> Value {
    match json {
        Json::String(text) => of_text(cql_type, text),
        Json::Integer(_) | Json::Double(_) => of_text(cql_type, &json.to_string()),
        other => Err(expected(&format!("{what} value"), other)),
    }
}

fn integer(cql_type: &CqlType, what: &str, json: &Json) -> Value {
    let refused = || expected(&format!("{what} value"), json);
    match json {
        Json::String(text) => of_text(cql_type, text),
        Json::Integer(number) if *cql_type.base() == CqlType::Int => {
            Ok(i32::try_from(number).map_err(|_| refused())?.to_be_bytes().to_vec())
        }
        Json::Integer(number) => {
            Ok(i64::try_from(number).map_err(|_| refused())?.to_be_bytes().to_vec())
        }
        _ => Err(refused()),
    }
}

fn varint(json: &Json) -> Value {
    let text = json.to_string();
    match from_string(&CqlType::Varint, &text) {
        Ok(bytes) if !bytes.is_empty() => Ok(bytes),
        _ => refuse(format!("Value '{text}' is not a valid representation of a varint value")),
    }
}

fn decimal(json: &Json) -> Value {
    let text = json.to_string();
    if text.is_empty() {
        return Ok(Vec::new());
    }
    match parse_decimal(&text) {
        Some(decimal) => Ok(decimal.to_bytes()),
        None => refuse(format!("Value '{text}' is not a valid representation of a decimal value")),
    }
}

fn float(what: &str, json: &Json, cql_type: &CqlType) -> Value {
    match json {
        Json::String(text) => of_text(cql_type, text),
        Json::Integer(_) | Json::Double(_) => of_text(cql_type, &json.to_string()),
        other => Err(expected(&format!("{what} value"), other)),
    }
}

fn blob(json: &Json) -> Value {
    let refused = |why: String| {
        Fault::Marshal(format!("Value '{json}' is not a valid blob representation: {why}"))
    };
    let Json::String(text) = json else {
        let (class, package) = (json.class(), json.package());
        return Err(refused(format!(
            "class {package}.{class} cannot be cast to class java.lang.String ({package}.{class} and java.lang.String \
             are in module java.base of loader 'bootstrap')"
        )));
    };
    let Some(digits) = text.strip_prefix("0x") else {
        return Err(refused(format!("String representation of blob is missing 0x prefix: {text}")));
    };
    from_string(&CqlType::Blob, digits).map_err(refused)
}

/// A collection may stand in a string, as keys of a map must.
fn unwrapped(json: &Json) -> Result<Cow<'_, Json>, Fault> {
    let Json::String(text) = json else { return Ok(Cow::Borrowed(json)) };
    match parse(text) {
        Ok(parsed) => Ok(Cow::Owned(parsed)),
        Err(malformed) => refuse(format!("Error decoding JSON string: {}", malformed.message)),
    }
}

fn join(count: usize, items: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    out.put_i32(i32::try_from(count).unwrap_or(i32::MAX));
    for item in items {
        out.put_ibytes(item);
    }
    out
}

fn elements(items: &[Json], element: &CqlType, of: &str) -> Result<Vec<Vec<u8>>, Fault> {
    let one = |item: &Json| match item {
        Json::Null => refuse(format!("Invalid null element in {of}")),
        item => value(element, item),
    };
    items.iter().map(one).collect()
}

fn list(element: &CqlType, json: &Json) -> Value {
    let json = unwrapped(json)?;
    let Json::List(items) = json.as_ref() else { return Err(expected("a list", &json)) };
    let items = elements(items, element, "list")?;
    Ok(join(items.len(), &items))
}

fn set(cql_type: &CqlType, element: &CqlType, json: &Json) -> Value {
    let json = unwrapped(json)?;
    let Json::List(items) = json.as_ref() else {
        return Err(expected("a list (representing a set)", &json));
    };
    let items = elements(items, element, "set")?;
    Ok(sorted_collection(&join(items.len(), &items), cql_type).into_owned())
}

fn map(cql_type: &CqlType, key: &CqlType, element: &CqlType, json: &Json) -> Value {
    let json = unwrapped(json)?;
    let Json::Map(members) = json.as_ref() else { return Err(expected("a map", &json)) };
    let mut items = Vec::with_capacity(members.len() * 2);
    for (name, member) in members {
        if *member == Json::Null {
            return refuse("Invalid null value in map".to_owned());
        }
        items.push(value(key, &Json::String(name.clone()))?);
        items.push(value(element, member)?);
    }
    Ok(sorted_collection(&join(members.len(), &items), cql_type).into_owned())
}

fn vector(element: &CqlType, dimension: u32, json: &Json) -> Value {
    let json = unwrapped(json)?;
    let Json::List(items) = json.as_ref() else { return Err(expected("a list", &json)) };
    if u32::try_from(items.len()) != Ok(dimension) {
        return refuse(format!(
            "List had incorrect size: expected {dimension} but given {}; {json}",
            items.len()
        ));
    }
    let fixed = element.fixed_len().is_some();
    let mut out = Vec::new();
    for item in elements(items, element, "list")? {
        if fixed {
            out.extend(item);
        } else {
            out.put_vbytes(&item);
        }
    }
    Ok(out)
}

fn put_nullable(out: &mut Vec<u8>, cql_type: &CqlType, json: Option<&Json>) -> Result<(), Fault> {
    match json {
        None | Some(Json::Null) => out.put_i32(-1),
        Some(json) => out.put_ibytes(&value(cql_type, json)?),
    }
    Ok(())
}

fn tuple(fields: &[CqlType], json: &Json) -> Value {
    let json = unwrapped(json)?;
    let Json::List(items) = json.as_ref() else {
        return Err(expected("a list representation of a tuple", &json));
    };
    let (wanted, found) = (fields.len(), items.len());
    if found > wanted {
        return refuse(format!("Tuple contains extra items (expected {wanted}): {json}"));
    }
    if found < wanted {
        return refuse(format!("Tuple is missing items (expected {wanted}): {json}"));
    }
    let mut out = Vec::new();
    for (field, item) in fields.iter().zip(items) {
        put_nullable(&mut out, field, Some(item))?;
    }
    Ok(out)
}

fn user_type(udt: &UserType, json: &Json) -> Value {
    let json = unwrapped(json)?;
    let Json::Map(members) = json.as_ref() else { return Err(expected("a map", &json)) };
    let members = named_as_columns(members.clone());
    let of_name: HashMap<&[u8], &Json> =
        members.iter().map(|(name, json)| (name.as_bytes(), json)).collect();
    let mut out = Vec::new();
    for (name, cql_type) in &udt.fields {
        put_nullable(&mut out, cql_type, of_name.get(name.as_slice()).copied())?;
    }
    let fields: HashSet<&[u8]> = udt.fields.iter().map(|(field, _)| field.as_slice()).collect();
    let unknown = |(name, _): &&(String, Json)| !fields.contains(name.as_bytes());
    match members.iter().find(unknown) {
        None => Ok(out),
        Some((name, _)) => refuse(format!(
            "Unknown field '{name}' in value of user defined type {}",
            String::from_utf8_lossy(&udt.name)
        )),
    }
}

/// Members under the names that columns have (`JsonUtils.handleCaseSensitivity`); of equal names the last counts.
pub(super) fn named_as_columns(members: Vec<(String, Json)>) -> Vec<(String, Json)> {
    let mut named: Vec<(String, Json)> = Vec::with_capacity(members.len());
    let mut places = HashMap::new();
    let mut renamed = Vec::new();
    for (name, value) in members {
        let quoted = name.strip_prefix('"').and_then(|name| name.strip_suffix('"'));
        let lowered = quoted.map_or_else(|| name.to_lowercase(), str::to_owned);
        if lowered == name {
            places.insert(name.clone(), named.len());
            named.push((name, value));
        } else {
            renamed.push((lowered, value));
        }
    }
    for (name, value) in renamed {
        match places.get(&name).and_then(|place: &usize| named.get_mut(*place)) {
            Some((_, known)) => *known = value,
            None => {
                places.insert(name.clone(), named.len());
                named.push((name, value));
            }
        }
    }
    named
}
