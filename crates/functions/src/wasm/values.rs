//! How values pass between statements and modules.

use halcyon_model::CqlType;
use wasmi::{F32, F64, Val, ValType};

/// The unit in which a module's memory grows.
pub(super) const PAGE: usize = 64 << 10;
/// A span of the length -1.
pub(super) const NULL: i64 = -1 << 32;

/// What a value is passed as.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Form {
    Boolean,
    TinyInt,
    SmallInt,
    Int,
    BigInt,
    Float,
    Double,
    /// Where its serialized form lies.
    Span,
}

impl Form {
    pub(super) fn of(of: &CqlType, called_on_null: bool) -> Form {
        match of {
            _ if called_on_null => Form::Span,
            CqlType::Boolean => Form::Boolean,
            CqlType::TinyInt => Form::TinyInt,
            CqlType::SmallInt => Form::SmallInt,
            CqlType::Int => Form::Int,
            CqlType::BigInt => Form::BigInt,
            CqlType::Float => Form::Float,
            CqlType::Double => Form::Double,
            _ => Form::Span,
        }
    }

    pub(super) fn passed(self) -> ValType {
        match self {
            Form::Boolean | Form::TinyInt | Form::SmallInt | Form::Int => ValType::I32,
            Form::BigInt | Form::Span => ValType::I64,
            Form::Float => ValType::F32,
            Form::Double => ValType::F64,
        }
    }

    /// A valid value as a number, if it is passed as one.
    pub(super) fn number(self, value: &[u8]) -> Option<Val> {
        Some(match self {
            Form::Span => return None,
            Form::Boolean => Val::I32(i32::from(value.first().copied()? != 0)),
            Form::TinyInt => Val::I32(i8::from_be_bytes(value.try_into().ok()?).into()),
            Form::SmallInt => Val::I32(i16::from_be_bytes(value.try_into().ok()?).into()),
            Form::Int => Val::I32(i32::from_be_bytes(value.try_into().ok()?)),
            Form::BigInt => Val::I64(i64::from_be_bytes(value.try_into().ok()?)),
            Form::Float => Val::F32(F32::from_bits(u32::from_be_bytes(value.try_into().ok()?))),
            Form::Double => Val::F64(F64::from_bits(u64::from_be_bytes(value.try_into().ok()?))),
        })
    }

    /// A result that is a number; `None` for a span.
    pub(super) fn bytes(self, result: &Val) -> Result<Option<Vec<u8>>, String> {
        let range = |value: i32| format!("{value} is not in the range of {self:?}");
        Ok(Some(match (self, result) {
            (Form::Boolean, Val::I32(value)) => vec![u8::from(*value != 0)],
            (Form::TinyInt, Val::I32(value)) => {
                i8::try_from(*value).map_err(|_| range(*value))?.to_be_bytes().into()
            }
            (Form::SmallInt, Val::I32(value)) => {
                i16::try_from(*value).map_err(|_| range(*value))?.to_be_bytes().into()
            }
            (Form::Int, Val::I32(value)) => value.to_be_bytes().into(),
            (Form::BigInt, Val::I64(value)) => value.to_be_bytes().into(),
            (Form::Float, Val::F32(value)) => value.to_bits().to_be_bytes().into(),
            (Form::Double, Val::F64(value)) => value.to_bits().to_be_bytes().into(),
            _ => return Ok(None),
        }))
    }
}

/// Whether bytes are a value: no bytes are null where a type has no empty value, as in Java.
pub(super) fn is_value(of: &CqlType, value: &[u8]) -> bool {
    use CqlType::{Ascii, Blob, Text, Tuple, Udt};
    !value.is_empty() || matches!(of.thawed(), Ascii | Blob | Text | Tuple(_) | Udt(_))
}

pub(super) fn span(len: usize, place: u32) -> i64 {
    ((len as i64) << 32) | i64::from(place)
}

/// Length and place of what a module returned; `None` for null.
pub(super) fn parts(span: i64) -> Option<(usize, usize)> {
    let len = u32::try_from(span >> 32).ok()?;
    Some((len as usize, (span & 0xFFFF_FFFF) as usize))
}
