//! Constants: which types they may have, and their serialized value.

use halcyon_model::CqlType;
use halcyon_model::request::ColumnSpec;
use halcyon_model::value::{from_string, is_exact_double};

use crate::plan::functions::Match;
use halcyon_syntax::ast::LiteralKind;
use halcyon_syntax::{Error, Result};

/// The serialized value of a constant, for a receiver that may have it.
pub fn parse_literal(kind: LiteralKind, text: &str, receiver: &ColumnSpec) -> Result<Vec<u8>> {
    if !matches(kind, text, receiver.cql_type.base()).is_assignable() {
        return Err(Error::InvalidRequest(format!(
            "Invalid {kind} constant ({text}) for \"{}\" of type {}",
            receiver.name,
            receiver.cql_type.cql_name()
        )));
    }
    let value = match kind {
        LiteralKind::Hex => from_string(&CqlType::Blob, text.get(2..).unwrap_or_default()),
        _ => from_string(&receiver.cql_type, text),
    };
    value.map_err(Error::InvalidRequest)
}

/// `Constants.Literal.testAssignment`.
pub(super) fn matches(kind: LiteralKind, text: &str, receiver: &CqlType) -> Match {
    use CqlType as T;
    if preferred(kind, text).as_ref() == Some(receiver) {
        return Match::Exact;
    }
    let weak = match receiver {
        T::Tuple(_) | T::Composite(_) | T::DynamicComposite(_) | T::Custom(_) | T::LexicalUuid => {
            true
        }
        T::Ascii | T::Text | T::Inet => kind == LiteralKind::String,
        T::Date | T::Time | T::Timestamp | T::LegacyTimestamp => {
            matches!(kind, LiteralKind::String | LiteralKind::Integer)
        }
        // `0x01` may be a tinyint.
        T::TinyInt => matches!(kind, LiteralKind::Integer | LiteralKind::Hex),
        T::SmallInt | T::Int | T::BigInt | T::Varint | T::Counter => kind == LiteralKind::Integer,
        T::Decimal | T::Double | T::Float => {
            matches!(kind, LiteralKind::Integer | LiteralKind::Float)
        }
        T::Duration => matches!(kind, LiteralKind::Integer | LiteralKind::Duration),
        T::Uuid | T::TimeUuid => kind == LiteralKind::Uuid,
        T::Boolean => kind == LiteralKind::Boolean,
        T::Blob => kind == LiteralKind::Hex,
        _ => false,
    };
    if weak { Match::Weak } else { Match::No }
}

/// The type that a constant has where nothing else decides.
pub(super) fn preferred(kind: LiteralKind, text: &str) -> Option<CqlType> {
    Some(match kind {
        LiteralKind::String if text.is_ascii() => CqlType::Ascii,
        LiteralKind::String => CqlType::Text,
        LiteralKind::Integer if text.parse::<i32>().is_ok() => CqlType::Int,
        LiteralKind::Integer if text.parse::<i64>().is_ok() => CqlType::BigInt,
        LiteralKind::Integer => CqlType::Varint,
        LiteralKind::Uuid if text.as_bytes().get(14) == Some(&b'1') => CqlType::TimeUuid,
        LiteralKind::Uuid => CqlType::Uuid,
        LiteralKind::Float if is_exact_double(text) => CqlType::Double,
        LiteralKind::Float => CqlType::Decimal,
        LiteralKind::Boolean => CqlType::Boolean,
        LiteralKind::Hex => CqlType::TinyInt,
        LiteralKind::Duration => CqlType::Duration,
    })
}
