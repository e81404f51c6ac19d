//! Types in metadata: an [option], which is an id and its parameters.
//!
//! A type that the version lacks is sent as `CUSTOM` with the name of Cassandra's class: date, time, smallint and tinyint
//! before v4, duration before v5, vectors and types without a CQL name in all versions. `Reversed` and `Frozen` are not sent.

use halcyon_model::CqlType;

use crate::{Version, write};

const CUSTOM: u16 = 0x0000;
const LIST: u16 = 0x0020;
const MAP: u16 = 0x0021;
const SET: u16 = 0x0022;
const UDT: u16 = 0x0030;
const TUPLE: u16 = 0x0031;

/// The id of a simple type, and the first version that has it.
fn simple(cql_type: &CqlType) -> Option<(u16, Version)> {
    Some(match cql_type {
        CqlType::Ascii => (0x0001, Version::V3),
        CqlType::BigInt => (0x0002, Version::V3),
        CqlType::Blob => (0x0003, Version::V3),
        CqlType::Boolean => (0x0004, Version::V3),
        CqlType::Counter => (0x0005, Version::V3),
        CqlType::Decimal => (0x0006, Version::V3),
        CqlType::Double => (0x0007, Version::V3),
        CqlType::Float => (0x0008, Version::V3),
        CqlType::Int => (0x0009, Version::V3),
        CqlType::Timestamp | CqlType::LegacyTimestamp => (0x000B, Version::V3),
        CqlType::Uuid => (0x000C, Version::V3),
        // VARCHAR: Cassandra never sends the older id TEXT (0x000A).
        CqlType::Text => (0x000D, Version::V3),
        CqlType::Varint => (0x000E, Version::V3),
        CqlType::TimeUuid => (0x000F, Version::V3),
        CqlType::Inet => (0x0010, Version::V3),
        CqlType::Date => (0x0011, Version::V4),
        CqlType::Time => (0x0012, Version::V4),
        CqlType::SmallInt => (0x0013, Version::V4),
        CqlType::TinyInt => (0x0014, Version::V4),
        CqlType::Duration => (0x0015, Version::V5),
        _ => return None,
    })
}

pub(crate) fn encode(out: &mut Vec<u8>, cql_type: &CqlType, version: Version) {
    match cql_type {
        CqlType::Reversed(inner) | CqlType::Frozen(inner) => encode(out, inner, version),
        CqlType::List(element) => {
            write::short(out, LIST);
            encode(out, element, version);
        }
        CqlType::Set(element) => {
            write::short(out, SET);
            encode(out, element, version);
        }
        CqlType::Map(key, value) => {
            write::short(out, MAP);
            encode(out, key, version);
            encode(out, value, version);
        }
        CqlType::Udt(udt) => {
            write::short(out, UDT);
            write::string(out, &udt.keyspace);
            write::string(out, &String::from_utf8_lossy(&udt.name));
            write::short(out, write::count(udt.fields.len()));
            for (name, field) in &udt.fields {
                write::string(out, &String::from_utf8_lossy(name));
                encode(out, field, version);
            }
        }
        CqlType::Tuple(fields) => {
            write::short(out, TUPLE);
            write::short(out, write::count(fields.len()));
            for field in fields {
                encode(out, field, version);
            }
        }
        other => match simple(other) {
            Some((id, since)) if version >= since => write::short(out, id),
            _ => {
                write::short(out, CUSTOM);
                write::string(out, &other.to_string());
            }
        },
    }
}
