//! Functions that hide data: `mask_null`, `mask_default`, `mask_replace`, `mask_inner`, `mask_outer`.

use halcyon_model::CqlType;

use super::natives::{Scalar, inferred, native};
use super::{Argument, Function};
use crate::error::{Error, Result};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mask {
    Null,
    Default,
    Replace,
    /// Hides what is within the margins.
    Inner,
    /// Hides the margins.
    Outer,
}

pub(super) fn candidate(name: &str, arguments: &[&dyn Argument]) -> Result<Option<Function>> {
    let mask = match name {
        "mask_null" => Mask::Null,
        "mask_default" => Mask::Default,
        "mask_replace" => Mask::Replace,
        "mask_inner" => Mask::Inner,
        "mask_outer" => Mask::Outer,
        "mask_hash" => return Err(Error::NotSupportedYet("mask_hash".into())),
        _ => return Ok(None),
    };
    let Some(of) = inferred(name, arguments, 0, "any")? else {
        return Err(Error::InvalidRequest(format!(
            "Invalid number of arguments for function system.{name}(any)"
        )));
    };
    let mut types = vec![of.clone()];
    match mask {
        Mask::Replace => types.push(of.clone()),
        Mask::Inner | Mask::Outer => {
            types.extend([CqlType::Int, CqlType::Int]);
            if arguments.len() > 3 {
                types.push(CqlType::Text);
            }
        }
        _ => {}
    }
    Ok(Some(native(name, types, of, Scalar::Mask(mask))))
}

impl Mask {
    pub(super) fn call(
        self,
        function: &Function,
        arguments: &[Option<&[u8]>],
    ) -> Result<Option<Vec<u8>>> {
        let argument = |index: usize| arguments.get(index).copied().flatten();
        match self {
            Mask::Null => Ok(None),
            Mask::Replace => Ok(argument(1).map(<[u8]>::to_vec)),
            Mask::Default => Ok(argument(0).map(|_| blank(&function.returns))),
            Mask::Inner | Mask::Outer => {
                let Some(value) = argument(0) else { return Ok(None) };
                let margin = |index: usize| {
                    let bytes = argument(index).and_then(|bytes| bytes.first_chunk::<4>());
                    usize::try_from(bytes.map_or(0, |bytes| i32::from_be_bytes(*bytes)))
                        .unwrap_or(0)
                };
                let padding =
                    argument(3).map(String::from_utf8_lossy).and_then(|text| text.chars().next());
                let text = String::from_utf8_lossy(value);
                Ok(Some(self.hide(&text, margin(1), margin(2), padding.unwrap_or('*'))))
            }
        }
    }

    fn hide(self, text: &str, begin: usize, end: usize, padding: char) -> Vec<u8> {
        let count = text.chars().count();
        let hidden = |index: usize| {
            let margin = index < begin || index >= count.saturating_sub(end);
            margin == (self == Mask::Outer)
        };
        let show = |(index, c): (usize, char)| if hidden(index) { padding } else { c };
        text.chars().enumerate().map(show).collect::<String>().into_bytes()
    }
}

/// What stands for every value of a type (`AbstractType.getMaskedValue`).
fn blank(cql_type: &CqlType) -> Vec<u8> {
    match cql_type.thawed() {
        CqlType::Text | CqlType::Ascii => b"****".to_vec(),
        CqlType::Blob | CqlType::Custom(_) => Vec::new(),
        CqlType::Boolean | CqlType::TinyInt | CqlType::Varint => vec![0],
        CqlType::SmallInt => vec![0; 2],
        CqlType::Int | CqlType::Float => vec![0; 4],
        CqlType::Date => (1_u32 << 31).to_be_bytes().to_vec(),
        CqlType::Decimal => vec![0; 5],
        CqlType::Duration => vec![0; 3],
        CqlType::Inet => vec![0; 4],
        CqlType::Uuid => vec![0; 16],
        CqlType::TimeUuid => {
            vec![
                0x13, 0x81, 0x40, 0, 0x1d, 0xd2, 0x11, 0xb2, 128, 128, 128, 128, 128, 128, 128, 128,
            ]
        }
        CqlType::List(_) | CqlType::Set(_) | CqlType::Map(..) => vec![0; 4],
        CqlType::Tuple(fields) => fields.iter().flat_map(framed).collect(),
        CqlType::Udt(udt) => udt.fields.iter().flat_map(|(_, field)| framed(field)).collect(),
        _ => vec![0; 8],
    }
}

fn framed(cql_type: &CqlType) -> Vec<u8> {
    let value = blank(cql_type);
    let mut out = u32::try_from(value.len()).unwrap_or(0).to_be_bytes().to_vec();
    out.extend(value);
    out
}
