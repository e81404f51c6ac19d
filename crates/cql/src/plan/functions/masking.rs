//! Functions that hide data: `mask_null`, `mask_default`, `mask_replace`, `mask_inner`, `mask_outer`, `mask_hash`.

use sha2::Digest;

use halcyon_model::CqlType;
use halcyon_model::bytes::Put;

use super::inferred::{Shape, inferred, wrong_number};
use super::{Argument, Function};
use halcyon_syntax::{Error, Result};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mask {
    Null,
    Default,
    Replace,
    /// Masks the letters between the margins.
    Inner,
    /// Hides the margins.
    Outer,
    Hash,
}

pub(super) fn candidate(
    name: &str,
    arguments: &[&dyn Argument],
    receiver: Option<&CqlType>,
) -> Result<Option<(Shape, Mask)>> {
    const TEXTS: &str = "[text|varchar|ascii]";
    let (mask, counts, wanted) = match name {
        "mask_null" => (Mask::Null, 1..=1, "any".to_owned()),
        "mask_default" => (Mask::Default, 1..=1, "any".to_owned()),
        "mask_replace" => (Mask::Replace, 2..=2, "any, any".to_owned()),
        "mask_inner" => (Mask::Inner, 3..=4, format!("{TEXTS}, int, int, [text]")),
        "mask_outer" => (Mask::Outer, 3..=4, format!("{TEXTS}, int, int, [text]")),
        "mask_hash" => (Mask::Hash, 1..=2, "any, [text]".to_owned()),
        _ => return Ok(None),
    };
    if !counts.contains(&arguments.len()) {
        return Err(wrong_number(name, &wanted));
    }
    let of = match mask {
        // Null and markers are texts there.
        Mask::Inner | Mask::Outer => {
            let of = arguments.first().map(|of| of.compatible_type()).transpose()?;
            Some(of.flatten().unwrap_or(CqlType::Text))
        }
        Mask::Replace => inferred(name, arguments, receiver, &wanted)?,
        _ => inferred(name, arguments, None, &wanted)?,
    };
    let Some(of) = of else { return Err(wrong_number(name, &wanted)) };
    let mut types = vec![of.clone()];
    let mut returns = of.clone();
    match mask {
        Mask::Replace => types.push(of),
        Mask::Inner | Mask::Outer => {
            if !matches!(of, CqlType::Text | CqlType::Ascii) {
                return Err(wrong_type(name, TEXTS, arguments, 0));
            }
            let fixed = [CqlType::Int, CqlType::Int, CqlType::Text];
            for (at, (argument, of)) in (1..).zip(arguments.iter().skip(1).zip(fixed)) {
                if !argument.matches(&of)?.is_assignable() {
                    return Err(wrong_type(name, &of.cql_name(), arguments, at));
                }
                types.push(of);
            }
        }
        Mask::Hash => {
            if let Some(algorithm) = arguments.get(1) {
                if !algorithm.matches(&CqlType::Text)?.is_assignable() {
                    return Err(wrong_type(name, "text", arguments, 1));
                }
                types.push(CqlType::Text);
            }
            returns = CqlType::Blob;
        }
        Mask::Null | Mask::Default => {}
    }
    let shape = Shape { arguments: types, returns };
    Ok(Some((shape, mask)))
}

fn wrong_type(name: &str, wanted: &str, arguments: &[&dyn Argument], at: usize) -> Error {
    let argument = arguments.get(at);
    let text = argument.map(|argument| argument.text()).unwrap_or_default();
    let found = argument.and_then(|argument| argument.compatible_type().ok()?);
    Error::InvalidRequest(format!(
        "Function system.{name} requires an argument of type {wanted}, but found argument {text} of type {}",
        found.map(|found| found.cql_name()).unwrap_or_default()
    ))
}

/// By the names that Java knows: letters may be small, the dash may be left out of SHA-1 and SHA-2, and all but MD2 and MD5 have object
/// identifiers.
fn hash(algorithm: &str, value: &[u8]) -> Result<Vec<u8>> {
    let name = algorithm.to_ascii_uppercase();
    let name = match name.strip_prefix("OID.").unwrap_or(&name) {
        "1.3.14.3.2.26" => "SHA-1",
        "2.16.840.1.101.3.4.2.1" => "SHA-256",
        "2.16.840.1.101.3.4.2.2" => "SHA-384",
        "2.16.840.1.101.3.4.2.3" => "SHA-512",
        "2.16.840.1.101.3.4.2.4" => "SHA-224",
        "2.16.840.1.101.3.4.2.5" => "SHA-512/224",
        "2.16.840.1.101.3.4.2.6" => "SHA-512/256",
        "2.16.840.1.101.3.4.2.7" => "SHA3-224",
        "2.16.840.1.101.3.4.2.8" => "SHA3-256",
        "2.16.840.1.101.3.4.2.9" => "SHA3-384",
        "2.16.840.1.101.3.4.2.10" => "SHA3-512",
        _ => &name,
    };
    Ok(match name {
        "MD5" => md5::Md5::digest(value).to_vec(),
        "SHA" | "SHA1" | "SHA-1" => sha1::Sha1::digest(value).to_vec(),
        "SHA224" | "SHA-224" => sha2::Sha224::digest(value).to_vec(),
        "SHA256" | "SHA-256" => sha2::Sha256::digest(value).to_vec(),
        "SHA384" | "SHA-384" => sha2::Sha384::digest(value).to_vec(),
        "SHA512" | "SHA-512" => sha2::Sha512::digest(value).to_vec(),
        "SHA512/224" | "SHA-512/224" => sha2::Sha512_224::digest(value).to_vec(),
        "SHA512/256" | "SHA-512/256" => sha2::Sha512_256::digest(value).to_vec(),
        "MD2" => md2::Md2::digest(value).to_vec(),
        "SHA3-224" => sha3::Sha3_224::digest(value).to_vec(),
        "SHA3-256" => sha3::Sha3_256::digest(value).to_vec(),
        "SHA3-384" => sha3::Sha3_384::digest(value).to_vec(),
        "SHA3-512" => sha3::Sha3_512::digest(value).to_vec(),
        _ => {
            return Err(Error::InvalidRequest(format!("Hash algorithm not found: {algorithm}")));
        }
    })
}

/// The character that hides others.
fn padding(function: &Function, argument: Option<&[u8]>) -> Result<char> {
    let Some(bytes) = argument else { return Ok('*') };
    let text = String::from_utf8_lossy(bytes);
    // Java's characters are units of UTF-16.
    let mut units = text.encode_utf16();
    match (text.chars().next(), units.next(), units.next()) {
        (Some(only), Some(_), None) => Ok(only),
        _ => Err(Error::InvalidRequest(format!(
            "The padding argument for function {} should be single-character, but '{text}' has {} characters.",
            function.full_name(),
            text.encode_utf16().count()
        ))),
    }
}

impl Mask {
    /// Refuses a padding or an algorithm that is the same for each row (`Some`), whatever it hides.
    pub fn check<V: AsRef<[u8]>>(
        self,
        function: &Function,
        arguments: &[Option<Option<V>>],
    ) -> Result<()> {
        let given = |index: usize| {
            let argument = arguments.get(index).and_then(Option::as_ref);
            argument.map(|value| value.as_ref().map(AsRef::as_ref))
        };
        match self {
            Mask::Inner | Mask::Outer => {
                given(3).map_or(Ok(()), |text| padding(function, text).map(drop))
            }
            Mask::Hash => given(1)
                .flatten()
                .map_or(Ok(()), |text| hash(&String::from_utf8_lossy(text), &[]).map(drop)),
            Mask::Null | Mask::Default | Mask::Replace => Ok(()),
        }
    }

    pub(super) fn call(
        self,
        function: &Function,
        arguments: &[Option<&[u8]>],
    ) -> Result<Option<Vec<u8>>> {
        let argument = |index: usize| arguments.get(index).copied().flatten();
        match self {
            Mask::Null => Ok(None),
            Mask::Replace => Ok(argument(1).map(<[u8]>::to_vec)),
            Mask::Default => Ok(Some(blank(&function.returns))),
            Mask::Hash => {
                let algorithm = argument(1).map(String::from_utf8_lossy);
                let algorithm = algorithm.as_deref().unwrap_or("SHA-256");
                // An unknown name is refused whatever the value.
                let empty = hash(algorithm, &[])?;
                match argument(0) {
                    None => Ok(None),
                    Some([]) => Ok(Some(empty)),
                    Some(value) => hash(algorithm, value).map(Some),
                }
            }
            Mask::Inner | Mask::Outer => {
                let padding = padding(function, argument(3))?;
                let Some(value) = argument(0) else { return Ok(None) };
                let margin = |index: usize| {
                    let bytes = argument(index).and_then(|bytes| bytes.first_chunk::<4>());
                    usize::try_from(bytes.map_or(0, |bytes| i32::from_be_bytes(*bytes)))
                        .unwrap_or(0)
                };
                let text = String::from_utf8_lossy(value);
                // Java's encoder has a question mark for what is not ASCII.
                let is_ascii = *function.returns.base() == CqlType::Ascii && !padding.is_ascii();
                let padding = if is_ascii { '?' } else { padding };
                Ok(Some(self.hide(&text, margin(1), margin(2), padding)))
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

/// The masked value of a type (`AbstractType.getMaskedValue`).
fn blank(cql_type: &CqlType) -> Vec<u8> {
    match cql_type.thawed() {
        CqlType::Text | CqlType::Ascii => b"****".to_vec(),
        CqlType::Blob | CqlType::DynamicComposite(_) | CqlType::Custom(_) => Vec::new(),
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
        CqlType::Vector(element, dimension) => {
            let value = blank(element);
            let framed = element.fixed_len().is_none();
            let mut out = Vec::new();
            for _ in 0..*dimension {
                match framed {
                    true => out.put_vbytes(&value),
                    false => out.extend(&value),
                }
            }
            out
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
