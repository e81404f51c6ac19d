//! Reads the protocol's notations from a body. Each length is checked before it is used.

use halcyon_model::hex;
use halcyon_model::request::Consistency;

/// Why a body is malformed; the text of a PROTOCOL_ERROR.
#[derive(Debug)]
pub(crate) struct Malformed(pub(crate) String);

pub(crate) type Result<T> = std::result::Result<T, Malformed>;

impl From<&str> for Malformed {
    fn from(text: &str) -> Malformed {
        Malformed(text.to_owned())
    }
}

/// An error shows bytes that are not UTF-8 as hexadecimal digits.
const BAD_TEXT_SHOWN: usize = 1024;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let left = self.rest.len();
        match self.rest.split_first_chunk::<N>() {
            Some((taken, rest)) => {
                self.rest = rest;
                Ok(*taken)
            }
            None => Err(Malformed(format!(
                "Not enough bytes to read a number of {N} bytes, only {left} bytes remaining in the message"
            ))),
        }
    }

    pub(crate) fn byte(&mut self) -> Result<u8> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn short(&mut self) -> Result<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn int(&mut self) -> Result<i32> {
        self.array().map(i32::from_be_bytes)
    }

    pub(crate) fn long(&mut self) -> Result<i64> {
        self.array().map(i64::from_be_bytes)
    }

    pub(crate) fn uuid(&mut self) -> Result<[u8; 16]> {
        self.array()
    }

    fn text(bytes: &'a [u8]) -> Result<&'a str> {
        std::str::from_utf8(bytes).map_err(|error| {
            let (_, bad) = bytes.split_at(error.valid_up_to());
            // Cassandra's message has all of it, however much that is.
            let (shown, more) = match bad.split_at_checked(BAD_TEXT_SHOWN) {
                Some((shown, _)) => (shown, "..."),
                None => (bad, ""),
            };
            let hex = hex::encode(shown);
            let len = error.error_len().unwrap_or(bad.len());
            Malformed(format!(
                "Cannot decode string as UTF8: '{hex}{more}'; java.nio.charset.MalformedInputException: Input length = {len}"
            ))
        })
    }

    fn string_of(&mut self, len: Option<usize>, width: u8) -> Result<&'a str> {
        match len.and_then(|len| self.take(len)) {
            Some(bytes) => Reader::text(bytes),
            None => Err(Malformed(format!(
                "Not enough bytes to read an UTF8 serialized string preceded by its {width} bytes length"
            ))),
        }
    }

    /// [string]
    pub(crate) fn string(&mut self) -> Result<&'a str> {
        let len = self.short().ok().map(usize::from);
        self.string_of(len, 2)
    }

    /// [long string]
    pub(crate) fn long_string(&mut self) -> Result<&'a str> {
        let len = self.int().ok().and_then(|len| usize::try_from(len).ok());
        self.string_of(len, 4)
    }

    /// [short bytes]
    pub(crate) fn short_bytes(&mut self) -> Result<&'a [u8]> {
        let len = self.short().ok().map(usize::from);
        len.and_then(|len| self.take(len)).ok_or_else(|| {
            "Not enough bytes to read a byte array preceded by its 2 bytes length".into()
        })
    }

    /// [bytes]: a negative length is null.
    pub(crate) fn bytes(&mut self) -> Result<Option<&'a [u8]>> {
        match usize::try_from(self.int()?) {
            Ok(len) => self.raw(len).map(Some),
            Err(_) => Ok(None),
        }
    }

    pub(crate) fn raw(&mut self, len: usize) -> Result<&'a [u8]> {
        let left = self.rest.len();
        self.take(len).ok_or_else(|| {
            let what = format!(
                "Cannot read value of length {len}, only {left} bytes remaining in the message"
            );
            Malformed(what)
        })
    }

    /// [consistency]
    pub(crate) fn consistency(&mut self) -> Result<Consistency> {
        let code = self.short()?;
        Consistency::from_code(code)
            .ok_or_else(|| Malformed(format!("Unknown code {code} for a consistency level")))
    }

    /// [string list]
    pub(crate) fn string_list(&mut self) -> Result<Vec<&'a str>> {
        (0..self.short()?).map(|_| self.string()).collect()
    }

    /// [bytes map]
    #[allow(clippy::type_complexity, reason = "a map, in the order of the wire")]
    pub(crate) fn bytes_map(&mut self) -> Result<Vec<(&'a str, Option<&'a [u8]>)>> {
        (0..self.short()?).map(|_| Ok((self.string()?, self.bytes()?))).collect()
    }

    /// [string map]
    pub(crate) fn string_map(&mut self) -> Result<Vec<(&'a str, &'a str)>> {
        (0..self.short()?).map(|_| Ok((self.string()?, self.string()?))).collect()
    }
}
