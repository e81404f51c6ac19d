//! Whether bytes are a value of a type: `TypeSerializer.validate`, with Cassandra's messages.

use super::frames::component_message;
use super::{CqlType, UserType, take_component, take_count, take_framed, take_vector_element};
use crate::bytes::Cursor;
use crate::hex;

type Validity = Result<(), String>;

impl CqlType {
    /// Checks a serialized, non-null value. A counter's is the number that clients see; the context in a counter
    /// cell is checked by `CounterContext::decode`.
    pub fn validate(&self, v: &[u8]) -> Validity {
        let n = v.len();
        let or_empty =
            |len: usize, what: &str| require(n == len || n == 0, || format!("{what} ({n})"));
        let exactly = |len: usize, what: &str| require(n == len, || format!("{what} ({n})"));
        match self {
            CqlType::Ascii => match v.iter().find(|byte| !byte.is_ascii()) {
                Some(byte) => Err(format!("Invalid byte for ascii: {}", *byte as i8)),
                None => Ok(()),
            },
            CqlType::Text => {
                require(std::str::from_utf8(v).is_ok(), || "String didn't validate.".into())
            }
            CqlType::Boolean => require(n <= 1, || format!("Expected 1 or 0 byte value ({n})")),
            CqlType::TinyInt => exactly(1, "Expected 1 byte for a tinyint"),
            CqlType::SmallInt => exactly(2, "Expected 2 bytes for a smallint"),
            CqlType::Int => or_empty(4, "Expected 4 or 0 byte int"),
            CqlType::BigInt | CqlType::Counter => or_empty(8, "Expected 8 or 0 byte long"),
            CqlType::Float => or_empty(4, "Expected 4 or 0 byte value for a float"),
            CqlType::Double => or_empty(8, "Expected 8 or 0 byte value for a double"),
            CqlType::Timestamp | CqlType::LegacyTimestamp => {
                or_empty(8, "Expected 8 or 0 byte long for date")
            }
            CqlType::Date => exactly(4, "Expected 4 byte long for date"),
            CqlType::Time => exactly(8, "Expected 8 byte long for time"),
            CqlType::Uuid | CqlType::LexicalUuid => or_empty(16, "UUID should be 16 or 0 bytes"),
            CqlType::TimeUuid => {
                or_empty(16, "UUID should be 16 or 0 bytes").and_then(|()| timeuuid_version(v))
            }
            CqlType::Decimal => {
                require(n == 0 || n >= 4, || format!("Expected 0 or at least 4 bytes ({n})"))
            }
            CqlType::Duration => duration(v),
            CqlType::Inet => require(matches!(n, 0 | 4 | 16), || {
                format!("Expected 4 or 16 byte inetaddress; got {}", hex::encode(v))
            }),
            CqlType::Empty => require(n == 0, || "EmptyType only accept empty values".into()),
            CqlType::List(e) => collection(&[e], "list", v),
            CqlType::Set(e) => collection(&[e], "set", v),
            CqlType::Map(k, value) => collection(&[k, value], "map", v),
            CqlType::Tuple(fields) => tuple(fields, v),
            CqlType::Udt(udt) => user_type(udt, v),
            CqlType::Vector(e, dimension) => vector(self, e, *dimension, v),
            CqlType::Composite(types) => composite(types, v),
            CqlType::DynamicComposite(aliases) => super::dynamic::validate(aliases, v),
            CqlType::Frozen(inner) | CqlType::Reversed(inner) => inner.validate(v),
            CqlType::Blob
            | CqlType::Varint
            | CqlType::PartitionerDefinedOrder { .. }
            | CqlType::Custom(_) => Ok(()),
        }
    }
}

fn require(holds: bool, message: impl FnOnce() -> String) -> Validity {
    if holds { Ok(()) } else { Err(message()) }
}

/// The message names the first nibble of the value, as Cassandra's does.
fn timeuuid_version(v: &[u8]) -> Validity {
    let (first, version) = (v.first().unwrap_or(&0), v.get(6).unwrap_or(&0x10));
    require(version & 0xf0 == 0x10, || {
        format!("Invalid version for TimeUUID type: 0x{:x}", first >> 4)
    })
}

fn duration(v: &[u8]) -> Validity {
    if v.len() < 3 {
        return Err(format!("Expected at least 3 bytes for a duration ({})", v.len()));
    }
    let mut cursor = Cursor::new(v);
    let mut part = || cursor.svint().map_err(|_| "Not enough bytes to read a duration".to_owned());
    let (months, days, nanos) = (part()?, part()?, part()?);
    for (name, value) in [("months", months), ("days", days)] {
        require(i32::try_from(value).is_ok(), || {
            format!("The duration {name} must be a 32 bits integer but was: {value}")
        })?;
    }
    let same_sign = |holds: fn(&i64) -> bool| [months, days, nanos].iter().all(holds);
    require(same_sign(|part| *part >= 0) || same_sign(|part| *part <= 0), || {
        format!(
            "The duration months, days and nanoseconds must be all of the same sign ({months}, {days}, {nanos})"
        )
    })
}

fn collection(types: &[&CqlType], name: &str, v: &[u8]) -> Validity {
    let short = || format!("Not enough bytes to read a {name}");
    let mut rest = v;
    let count = i64::from(take_count(&mut rest).ok_or_else(short)?);
    for (_, t) in (0..count * types.len() as i64).zip(types.iter().cycle()) {
        match take_framed(&mut rest) {
            Some(Some(value)) => t.validate(value)?,
            Some(None) => return Err("Null value read when not allowed".into()),
            None => return Err(short()),
        }
    }
    require(rest.is_empty(), || format!("Unexpected extraneous bytes after {name} value"))
}

fn tuple(fields: &[CqlType], v: &[u8]) -> Validity {
    let mut rest = v;
    for (i, t) in fields.iter().enumerate() {
        if rest.is_empty() {
            return Ok(());
        }
        match take_framed(&mut rest) {
            Some(Some(value)) => t.validate(value)?,
            Some(None) => {}
            None if rest.len() < 4 => {
                return Err(format!("Not enough bytes to read size of {i}th component"));
            }
            None => return Err(format!("Not enough bytes to read {i}th component")),
        }
    }
    require(rest.is_empty(), || "Invalid remaining data after end of tuple value".into())
}

fn user_type(udt: &UserType, v: &[u8]) -> Validity {
    let mut rest = v;
    for (i, (name, t)) in udt.fields.iter().enumerate() {
        if rest.is_empty() {
            return Ok(());
        }
        let name = String::from_utf8_lossy(name);
        match take_framed(&mut rest) {
            Some(Some(value)) => t
                .validate(value)
                .map_err(|why| format!("Failure validating the {i}th field {name}; {why}"))?,
            Some(None) => {}
            None if rest.len() < 4 => {
                return Err(format!("Not enough bytes to read size of {i}th field {name}"));
            }
            None => return Err(format!("Not enough bytes to read {i}th field {name}")),
        }
    }
    require(rest.is_empty(), || "Invalid remaining data after end of UDT value".into())
}

fn vector(whole: &CqlType, element: &CqlType, dimension: u32, v: &[u8]) -> Validity {
    if v.is_empty() {
        return Err("Invalid empty vector value".into());
    }
    let fixed = element.fixed_len();
    let mut rest = v;
    for _ in 0..dimension {
        match take_vector_element(&mut rest, fixed) {
            Some(value) => element.validate(value)?,
            None => return Err(format!("Not enough bytes to read a {}", whole.cql_name())),
        }
    }
    require(rest.is_empty(), || {
        format!("Unexpected {} extraneous bytes after {} value", rest.len(), whole.cql_name())
    })
}

fn composite(types: &[CqlType], v: &[u8]) -> Validity {
    let mut rest = v.strip_prefix(&[0xff, 0xff]).unwrap_or(v);
    let mut i = 0;
    while !rest.is_empty() {
        let Some(t) = types.get(i) else {
            return Err("Too many bytes for comparator".to_owned());
        };
        let Some((value, end)) = take_component(&mut rest) else {
            return Err(component_message(rest, i));
        };
        t.validate(value)?;
        if end != 0 && !rest.is_empty() {
            return Err(format!(
                "Invalid bytes remaining after an end-of-component at component{i}"
            ));
        }
        i += 1;
    }
    Ok(())
}
