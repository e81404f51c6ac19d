//! CQL types as SSTable headers spell them (`AbstractType.toString()`), and the facts that files depend on:
//! fixed value lengths and which columns are complex (multi-cell).
//!
//! Two spellings exist. Files use the *class* spelling (`parse`, `Display`); the schema and DESCRIBE use the *CQL*
//! spelling (`parse_cql`, `cql_name`).  Both parsers give the same `CqlType` for the same column:
//! `Frozen` is kept exactly where Cassandra writes `FrozenType(...)`, that is around the outermost frozen type only.

mod compare;
mod cql;
pub(crate) mod dynamic;
mod frames;
mod parse;
mod spell;
mod validate;

#[cfg(test)]
mod tests;

pub use compare::significant;
pub(crate) use compare::{reorder_uuid_time, split_decimal};
pub use cql::{DURATIONS_IN_SETS, UserTypes};
pub use dynamic::Aliases;
pub(crate) use frames::{take_component, take_count, take_framed, take_vector_element};

pub use spell::{RESERVED_KEYWORDS, quote_identifier_if_needed};

/// Deepest nesting of types that is accepted, so that no recursion over a type can exhaust the stack.
pub const MAX_DEPTH: usize = 128;

/// The largest number of types inside one type. Every use of a user type is a copy of it, so a chain of types that each use the one
/// before twice doubles at every step.
pub const MAX_PARTS: usize = 100_000;

/// Why a type string was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TypeError {
    #[error("type \"{text}\" is malformed at character {at}: {what}")]
    Syntax { text: String, at: usize, what: String },
    #[error("unknown type {0}")]
    Unknown(String),
    /// A known type that is not allowed here; the message is Cassandra's.
    #[error("{0}")]
    NotAllowed(String),
}

/// One type. `Frozen` appears where the header says `FrozenType(...)`; collections inside a frozen one are
/// implicitly frozen.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum CqlType {
    Ascii,
    Text,
    Blob,
    TinyInt,
    SmallInt,
    Int,
    BigInt,
    Varint,
    Boolean,
    Float,
    Double,
    Decimal,
    Timestamp,
    Date,
    Time,
    Duration,
    Uuid,
    TimeUuid,
    Inet,
    Counter,
    /// `EmptyType`: value column of some compact tables.
    Empty,
    /// `DateType`: timestamps compared as unsigned 8 bytes (pre-2.0).
    LegacyTimestamp,
    LexicalUuid,
    List(Box<CqlType>),
    Set(Box<CqlType>),
    Map(Box<CqlType>, Box<CqlType>),
    Frozen(Box<CqlType>),
    Tuple(Vec<CqlType>),
    Udt(Box<UserType>),
    /// Element type and dimension.
    Vector(Box<CqlType>, u32),
    /// DESC clustering.
    Reversed(Box<CqlType>),
    /// Composite partition key.
    Composite(Vec<CqlType>),
    /// Clustering of a legacy 2i table: the base table's decorated keys, in the partitioner's order.
    /// The optional string is the base table's partition key type.
    PartitionerDefinedOrder {
        partitioner: String,
        key_type: Option<Box<CqlType>>,
    },
    /// Types by their aliases, in the order in which Cassandra spells them.
    DynamicComposite(Vec<(u8, CqlType)>),
    /// User-written Java classes: kept as spelled, compared as bytes, shown as hex.
    Custom(String),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct UserType {
    pub keyspace: String,
    pub name: Vec<u8>,
    pub fields: Vec<(Vec<u8>, CqlType)>,
}

impl CqlType {
    /// Every native type, by name.
    pub const NATIVE: [CqlType; 20] = [
        CqlType::Ascii,
        CqlType::BigInt,
        CqlType::Blob,
        CqlType::Boolean,
        CqlType::Counter,
        CqlType::Date,
        CqlType::Decimal,
        CqlType::Double,
        CqlType::Duration,
        CqlType::Float,
        CqlType::Inet,
        CqlType::Int,
        CqlType::SmallInt,
        CqlType::Text,
        CqlType::Time,
        CqlType::Timestamp,
        CqlType::TimeUuid,
        CqlType::TinyInt,
        CqlType::Uuid,
        CqlType::Varint,
    ];

    /// Length of every value of this type where values are written without a length (`valueLengthIfFixed`).
    /// tinyint, smallint, date and time are *variable* here although their values have constant size.
    pub fn fixed_len(&self) -> Option<u32> {
        match self {
            CqlType::Boolean => Some(1),
            CqlType::Int | CqlType::Float => Some(4),
            CqlType::BigInt | CqlType::Double | CqlType::Timestamp | CqlType::LegacyTimestamp => {
                Some(8)
            }
            CqlType::Uuid | CqlType::TimeUuid | CqlType::LexicalUuid => Some(16),
            CqlType::Empty => Some(0),
            CqlType::Vector(element, dimension) => {
                element.fixed_len().and_then(|len| len.checked_mul(*dimension))
            }
            CqlType::Reversed(base) | CqlType::Frozen(base) => base.fixed_len(),
            _ => None,
        }
    }

    /// What Cassandra reads of a value: where all values have one size, that many bytes in front of a longer one.
    pub fn read_of<'v>(&self, value: &'v [u8]) -> &'v [u8] {
        let len = match self {
            CqlType::Boolean | CqlType::TinyInt => 1,
            CqlType::SmallInt => 2,
            CqlType::Int | CqlType::Float | CqlType::Date => 4,
            CqlType::BigInt
            | CqlType::Double
            | CqlType::Time
            | CqlType::Timestamp
            | CqlType::LegacyTimestamp => 8,
            CqlType::Uuid | CqlType::TimeUuid | CqlType::LexicalUuid => 16,
            _ => value.len(),
        };
        value.get(..len).unwrap_or(value)
    }

    /// Whether an empty value stands for null: Cassandra makes no object of it.
    pub fn is_null_if_empty(&self) -> bool {
        match self {
            CqlType::Reversed(base) | CqlType::Frozen(base) => base.is_null_if_empty(),
            CqlType::TinyInt
            | CqlType::SmallInt
            | CqlType::Int
            | CqlType::BigInt
            | CqlType::Counter
            | CqlType::Varint
            | CqlType::Boolean
            | CqlType::Float
            | CqlType::Double
            | CqlType::Decimal
            | CqlType::Timestamp
            | CqlType::LegacyTimestamp
            | CqlType::Date
            | CqlType::Time
            | CqlType::Duration
            | CqlType::Uuid
            | CqlType::TimeUuid
            | CqlType::LexicalUuid
            | CqlType::Inet => true,
            _ => false,
        }
    }

    /// Whether a column of this type is complex: its value is spread over cells with a path.
    pub fn is_multi_cell(&self) -> bool {
        matches!(self, CqlType::List(_) | CqlType::Set(_) | CqlType::Map(..) | CqlType::Udt(_))
    }

    pub fn is_counter(&self) -> bool {
        matches!(self.base(), CqlType::Counter)
    }

    /// The type without `Frozen` and `Reversed`.
    pub fn thawed(&self) -> &CqlType {
        match self {
            CqlType::Frozen(inner) | CqlType::Reversed(inner) => inner.thawed(),
            other => other,
        }
    }

    /// The frozen form of this type, spelled as Cassandra spells it. A type that cannot be frozen stays itself.
    #[must_use]
    pub fn freeze(self) -> CqlType {
        if self.is_multi_cell() { CqlType::Frozen(Box::new(self.implied_frozen())) } else { self }
    }

    /// Removes the `Frozen` marks that a frozen outer type makes redundant.
    #[must_use]
    fn implied_frozen(self) -> CqlType {
        let boxed = |inner: CqlType| Box::new(inner.implied_frozen());
        let all = |list: Vec<CqlType>| list.into_iter().map(CqlType::implied_frozen).collect();
        match self {
            CqlType::Frozen(inner) => inner.implied_frozen(),
            CqlType::List(e) => CqlType::List(boxed(*e)),
            CqlType::Set(e) => CqlType::Set(boxed(*e)),
            CqlType::Map(k, v) => CqlType::Map(boxed(*k), boxed(*v)),
            CqlType::Vector(e, n) => CqlType::Vector(boxed(*e), n),
            CqlType::Tuple(fields) => CqlType::Tuple(all(fields)),
            CqlType::Udt(udt) => CqlType::Udt(Box::new(UserType {
                fields: udt.fields.into_iter().map(|(n, t)| (n, t.implied_frozen())).collect(),
                ..*udt
            })),
            other => other,
        }
    }

    /// Types directly inside this one.
    pub fn children(&self) -> Vec<&CqlType> {
        match self {
            CqlType::List(e) | CqlType::Set(e) | CqlType::Vector(e, _) => vec![e],
            CqlType::Frozen(e) | CqlType::Reversed(e) => vec![e],
            CqlType::Map(k, v) => vec![k, v],
            CqlType::Tuple(all) | CqlType::Composite(all) => all.iter().collect(),
            CqlType::Udt(udt) => udt.fields.iter().map(|(_, t)| t).collect(),
            CqlType::DynamicComposite(aliases) => aliases.iter().map(|(_, t)| t).collect(),
            CqlType::PartitionerDefinedOrder { key_type: Some(t), .. } => vec![t],
            _ => Vec::new(),
        }
    }

    /// Whether values hold a duration at any depth (then they have no order that CQL would allow). As by
    /// `AbstractType.referencesDuration`, the elements of sets and vectors and the keys of maps do not count.
    pub fn references_duration(&self) -> bool {
        match self {
            CqlType::Duration => true,
            CqlType::Set(_) | CqlType::Vector(..) => false,
            CqlType::Map(_, value) => value.references_duration(),
            _ => self.children().iter().any(|child| child.references_duration()),
        }
    }

    /// The type without `Reversed`.
    pub fn base(&self) -> &CqlType {
        match self {
            CqlType::Reversed(base) => base,
            other => other,
        }
    }
}
