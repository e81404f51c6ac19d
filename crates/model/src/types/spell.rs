//! Both spellings of a type, written.

use std::fmt::{self, Write as _};

use super::parse::{MARSHAL, SIMPLE};
use super::{CqlType, UserType};
use crate::hex;

impl fmt::Display for CqlType {
    /// The class spelling, byte for byte as Cassandra writes it into headers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CqlType::List(e) => write!(f, "{MARSHAL}ListType({e})"),
            CqlType::Set(e) => write!(f, "{MARSHAL}SetType({e})"),
            CqlType::Map(k, v) => write!(f, "{MARSHAL}MapType({k},{v})"),
            CqlType::Frozen(inner) => write!(f, "{MARSHAL}FrozenType({inner})"),
            CqlType::Reversed(base) => write!(f, "{MARSHAL}ReversedType({base})"),
            CqlType::Vector(e, n) => write!(f, "{MARSHAL}VectorType({e} , {n})"),
            CqlType::Tuple(fields) => list(f, "TupleType", fields),
            CqlType::Composite(fields) => list(f, "CompositeType", fields),
            CqlType::Udt(udt) => user_type(f, udt),
            CqlType::DynamicComposite(aliases) => {
                let spelled = |(alias, of): &(u8, CqlType)| format!("{}=>{of}", char::from(*alias));
                let aliases: Vec<String> = aliases.iter().map(spelled).collect();
                write!(f, "{MARSHAL}DynamicCompositeType({})", aliases.join(","))
            }
            CqlType::PartitionerDefinedOrder { partitioner, key_type: None } => {
                write!(f, "{MARSHAL}PartitionerDefinedOrder({partitioner})")
            }
            CqlType::PartitionerDefinedOrder { partitioner, key_type: Some(key) } => {
                write!(f, "{MARSHAL}PartitionerDefinedOrder({partitioner}:{key})")
            }
            CqlType::Custom(spelled) => f.write_str(spelled),
            simple => match SIMPLE.iter().find(|(_, known)| known == simple) {
                Some((name, _)) => write!(f, "{MARSHAL}{name}"),
                None => Err(fmt::Error),
            },
        }
    }
}

fn list(f: &mut fmt::Formatter<'_>, name: &str, types: &[CqlType]) -> fmt::Result {
    write!(f, "{MARSHAL}{name}(")?;
    for (i, t) in types.iter().enumerate() {
        let comma = if i == 0 { "" } else { "," };
        write!(f, "{comma}{t}")?;
    }
    f.write_char(')')
}

fn user_type(f: &mut fmt::Formatter<'_>, udt: &UserType) -> fmt::Result {
    write!(f, "{MARSHAL}UserType({},", udt.keyspace)?;
    f.write_str(&hex::encode(&udt.name))?;
    for (name, t) in &udt.fields {
        f.write_char(',')?;
        f.write_str(&hex::encode(name))?;
        write!(f, ":{t}")?;
    }
    f.write_char(')')
}

impl CqlType {
    /// The CQL spelling, as in `system_schema.columns` and DESCRIBE.
    pub fn cql_name(&self) -> String {
        let mut out = String::new();
        self.push_cql(&mut out, false);
        out
    }

    /// `frozen`: the type is inside one that implies `frozen<>`.
    fn push_cql(&self, out: &mut String, frozen: bool) {
        let wrapped = frozen && self.is_multi_cell() || matches!(self, CqlType::Tuple(_));
        if wrapped {
            out.push_str("frozen<");
        }
        match self {
            CqlType::List(e) => push_args(out, "list", &[e], true),
            CqlType::Set(e) => push_args(out, "set", &[e], true),
            CqlType::Map(k, v) => push_args(out, "map", &[k, v], true),
            CqlType::Tuple(fields) => {
                push_args(out, "tuple", &fields.iter().collect::<Vec<_>>(), true);
            }
            CqlType::Vector(e, n) => {
                out.push_str("vector<");
                // It implies nothing of its elements.
                e.push_cql(out, false);
                out.push_str(&format!(", {n}>"));
            }
            CqlType::Udt(udt) => {
                out.push_str(&quote_identifier_if_needed(&String::from_utf8_lossy(&udt.name)));
            }
            CqlType::Frozen(inner) => inner.push_cql(out, true),
            CqlType::Reversed(base) => base.push_cql(out, frozen),
            simple => match simple.native_name() {
                Some(name) => out.push_str(name),
                None => out.push_str(&format!("'{simple}'")),
            },
        }
        if wrapped {
            out.push('>');
        }
    }

    /// Name of a native CQL type.
    pub fn native_name(&self) -> Option<&'static str> {
        Some(match self {
            CqlType::Ascii => "ascii",
            CqlType::Text => "text",
            CqlType::Blob => "blob",
            CqlType::TinyInt => "tinyint",
            CqlType::SmallInt => "smallint",
            CqlType::Int => "int",
            CqlType::BigInt => "bigint",
            CqlType::Varint => "varint",
            CqlType::Boolean => "boolean",
            CqlType::Float => "float",
            CqlType::Double => "double",
            CqlType::Decimal => "decimal",
            CqlType::Timestamp | CqlType::LegacyTimestamp => "timestamp",
            CqlType::Date => "date",
            CqlType::Time => "time",
            CqlType::Duration => "duration",
            CqlType::Uuid => "uuid",
            CqlType::TimeUuid => "timeuuid",
            CqlType::Inet => "inet",
            CqlType::Counter => "counter",
            CqlType::Empty => "empty",
            _ => return None,
        })
    }
}

fn push_args(out: &mut String, name: &str, args: &[&CqlType], frozen: bool) {
    out.push_str(name);
    out.push('<');
    for (i, arg) in args.iter().enumerate() {
        if i > 0 {
            out.push_str(", ");
        }
        arg.push_cql(out, frozen);
    }
    out.push('>');
}

/// Sorted words that CQL quotes wherever they are identifiers (`ReservedKeywords`).
pub const RESERVED_KEYWORDS: &[&str] = &[
    "add",
    "allow",
    "alter",
    "and",
    "apply",
    "asc",
    "authorize",
    "batch",
    "begin",
    "by",
    "columnfamily",
    "create",
    "delete",
    "desc",
    "describe",
    "drop",
    "entries",
    "execute",
    "from",
    "full",
    "grant",
    "if",
    "in",
    "index",
    "infinity",
    "insert",
    "into",
    "is",
    "keyspace",
    "limit",
    "materialized",
    "modify",
    "nan",
    "norecursive",
    "not",
    "null",
    "of",
    "on",
    "or",
    "order",
    "primary",
    "rename",
    "revoke",
    "schema",
    "select",
    "set",
    "table",
    "to",
    "token",
    "truncate",
    "unlogged",
    "update",
    "use",
    "using",
    "view",
    "where",
    "with",
];

/// `ColumnIdentifier.maybeQuote`: an identifier as CQL text must spell it.
pub fn quote_identifier_if_needed(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if plain && !RESERVED_KEYWORDS.contains(&name) {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
    }
}
