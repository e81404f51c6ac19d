//! Checked reading and writing of Cassandra's primitive encodings.
//!
//! `Cursor` walks a byte slice; every read is bounds-checked and an error names the offset.  A cursor can
//! also *name* the bytes that it passes (`Cursor::describing`): decoders call `note` after each field, so one
//! decoder serves both reading and `halcyon sstable describe --bytes`.
//!
//! All integers are big-endian.  `uvint` is Cassandra's unsigned vint (`VIntCoding`): the count of leading one
//! bits of the first byte is the number of extra bytes.  `uvint32` is a *signed* 32-bit int sign-extended to 64
//! bits and then written as `uvint`, so a negative one takes nine bytes.

use std::fmt;

/// The defect of malformed bytes, and its offset from the start of the component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodeError {
    pub offset: u64,
    pub what: String,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at offset {}: {}", self.offset, self.what)
    }
}

impl std::error::Error for DecodeError {}

pub type DecodeResult<T> = Result<T, DecodeError>;

/// A named run of bytes, for `describe --bytes`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    pub start: u64,
    pub end: u64,
    pub meaning: String,
}

#[derive(Debug)]
pub struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    base: u64,
    notes: Option<Vec<Note>>,
    noted_to: usize,
    remarks: Vec<Remark>,
}

/// On what only helps (a statistic, an estimate), in whose place a decoder has put something harmless, because readers do without it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    pub offset: u64,
    pub what: String,
    /// The file has changed since it was written; otherwise it was written so.
    pub is_damage: bool,
}

impl<'a> Cursor<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self::at_offset(bytes, 0)
    }

    /// A cursor over `bytes` at offset `base` of their component: errors and notes have absolute offsets.
    pub fn at_offset(bytes: &'a [u8], base: u64) -> Self {
        Self { bytes, at: 0, base, notes: None, noted_to: 0, remarks: Vec::new() }
    }

    /// A cursor that also records notes.
    pub fn describing(bytes: &'a [u8], base: u64) -> Self {
        Self { notes: Some(Vec::new()), ..Self::at_offset(bytes, base) }
    }

    /// Names the bytes read since the last note. Costs nothing unless describing.
    #[inline]
    pub fn note(&mut self, meaning: impl FnOnce() -> String) {
        if let Some(notes) = &mut self.notes {
            notes.push(Note {
                start: self.base + self.noted_to as u64,
                end: self.base + self.at as u64,
                meaning: meaning(),
            });
            self.noted_to = self.at;
        }
    }

    pub fn into_notes(self) -> Vec<Note> {
        self.notes.unwrap_or_default()
    }

    #[cold]
    pub fn remark(&mut self, what: impl Into<String>) {
        self.remarks.push(Remark { offset: self.offset(), what: what.into(), is_damage: false });
    }

    /// A remark on an error that would be one for what is needed.
    #[cold]
    pub fn remark_damage(&mut self, error: DecodeError) {
        let DecodeError { offset, what } = error;
        self.remarks.push(Remark { offset, what, is_damage: true });
    }

    pub fn remarks(&self) -> &[Remark] {
        &self.remarks
    }

    /// Absolute offset of the next byte.
    #[inline]
    pub fn offset(&self) -> u64 {
        self.base + self.at as u64
    }

    /// Index of the next byte in the slice that the cursor was made of.
    #[inline]
    pub fn index(&self) -> usize {
        self.at
    }

    #[inline]
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    pub fn error(&self, what: impl Into<String>) -> DecodeError {
        DecodeError { offset: self.offset(), what: what.into() }
    }

    #[cold]
    fn short(&self, wanted: u64) -> DecodeError {
        self.error(format!("{wanted} bytes expected, {} left", self.remaining()))
    }

    #[inline]
    pub fn take(&mut self, n: usize) -> DecodeResult<&'a [u8]> {
        match self.bytes.get(self.at..).and_then(|rest| rest.get(..n)) {
            Some(taken) => {
                self.at += n;
                Ok(taken)
            }
            None => Err(self.short(n as u64)),
        }
    }

    /// `take` for a length that came from the bytes themselves.
    #[inline(always)]
    pub fn take_u64(&mut self, n: u64) -> DecodeResult<&'a [u8]> {
        if n > self.remaining() as u64 {
            return Err(self.short(n));
        }
        self.take(n as usize)
    }

    #[inline]
    pub fn array<const N: usize>(&mut self) -> DecodeResult<[u8; N]> {
        match self.bytes.get(self.at..).and_then(|rest| rest.first_chunk::<N>()) {
            Some(chunk) => {
                self.at += N;
                Ok(*chunk)
            }
            None => Err(self.short(N as u64)),
        }
    }

    #[inline]
    pub fn u8(&mut self) -> DecodeResult<u8> {
        Ok(self.array::<1>()?[0])
    }
    pub fn bool(&mut self) -> DecodeResult<bool> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            other => {
                self.at -= 1;
                Err(self.error(format!("boolean expected (0 or 1), found {other}")))
            }
        }
    }
    #[inline]
    pub fn u16(&mut self) -> DecodeResult<u16> {
        Ok(u16::from_be_bytes(self.array()?))
    }
    #[inline]
    pub fn i16(&mut self) -> DecodeResult<i16> {
        Ok(i16::from_be_bytes(self.array()?))
    }
    #[inline]
    pub fn u32(&mut self) -> DecodeResult<u32> {
        Ok(u32::from_be_bytes(self.array()?))
    }
    #[inline]
    pub fn i32(&mut self) -> DecodeResult<i32> {
        Ok(i32::from_be_bytes(self.array()?))
    }
    #[inline]
    pub fn u64(&mut self) -> DecodeResult<u64> {
        Ok(u64::from_be_bytes(self.array()?))
    }
    #[inline]
    pub fn i64(&mut self) -> DecodeResult<i64> {
        Ok(i64::from_be_bytes(self.array()?))
    }
    pub fn f64(&mut self) -> DecodeResult<f64> {
        Ok(f64::from_be_bytes(self.array()?))
    }

    #[inline]
    pub fn uvint(&mut self) -> DecodeResult<u64> {
        let rest = self.rest();
        let Some(&first) = rest.first() else { return Err(self.short(1)) };
        if first < 0x80 {
            self.at += 1;
            return Ok(u64::from(first));
        }
        let extra = first.leading_ones() as usize;
        if let Some(word) = rest.get(1..).and_then(|tail| tail.first_chunk::<8>()) {
            let tail = u64::from_be_bytes(*word) >> (64 - 8 * extra as u32);
            self.at += 1 + extra;
            return Ok(if extra >= 7 {
                tail
            } else {
                (u64::from(first) & (0x7f >> extra)) << (8 * extra) | tail
            });
        }
        self.uvint_near_end(first, extra)
    }

    #[cold]
    fn uvint_near_end(&mut self, first: u8, extra: usize) -> DecodeResult<u64> {
        let bytes = self.take(1 + extra)?;
        let head = if extra >= 7 { 0 } else { u64::from(first) & (0x7f >> extra) };
        Ok(bytes.iter().skip(1).fold(head, |value, &byte| value << 8 | u64::from(byte)))
    }

    #[inline]
    pub fn svint(&mut self) -> DecodeResult<i64> {
        let raw = self.uvint()?;
        Ok((raw >> 1) as i64 ^ -((raw & 1) as i64))
    }

    #[inline]
    pub fn uvint32(&mut self) -> DecodeResult<i32> {
        let start = self.at;
        let raw = self.uvint()? as i64;
        i32::try_from(raw).map_err(|_| {
            self.at = start;
            self.error(format!("32-bit vint expected, found {raw}"))
        })
    }

    /// A count or length that must not be negative.
    pub fn count(&mut self) -> DecodeResult<usize> {
        let start = self.at;
        let n = self.uvint32()?;
        usize::try_from(n).map_err(|_| {
            self.at = start;
            self.error(format!("count must not be negative, found {n}"))
        })
    }

    /// u16 length, bytes.
    pub fn sbytes(&mut self) -> DecodeResult<&'a [u8]> {
        let n = self.u16()?;
        self.take(usize::from(n))
    }

    /// i32 length, bytes.
    pub fn ibytes(&mut self) -> DecodeResult<&'a [u8]> {
        let n = self.i32()?;
        let n = u64::try_from(n).map_err(|_| self.error(format!("negative length {n}")))?;
        self.take_u64(n)
    }

    /// uvint length, bytes.
    #[inline(always)]
    pub fn vbytes(&mut self) -> DecodeResult<&'a [u8]> {
        let n = self.uvint()?;
        self.take_u64(n)
    }

    /// u16 length, modified UTF-8 (Java `writeUTF`). The names stored this way are ASCII in practice.
    pub fn utf(&mut self) -> DecodeResult<String> {
        let start = self.offset();
        let bytes = self.sbytes()?;
        String::from_utf8(bytes.to_vec())
            .map_err(|_| DecodeError { offset: start, what: "string is not UTF-8".into() })
    }
}

/// Appends Cassandra's primitive encodings to a buffer.
pub trait Put {
    fn put(&mut self, bytes: &[u8]);

    #[inline]
    fn put_u8(&mut self, v: u8) {
        self.put(&[v]);
    }
    #[inline]
    fn put_bool(&mut self, v: bool) {
        self.put(&[u8::from(v)]);
    }
    #[inline]
    fn put_u16(&mut self, v: u16) {
        self.put(&v.to_be_bytes());
    }
    #[inline]
    fn put_i32(&mut self, v: i32) {
        self.put(&v.to_be_bytes());
    }
    #[inline]
    fn put_u32(&mut self, v: u32) {
        self.put(&v.to_be_bytes());
    }
    #[inline]
    fn put_i64(&mut self, v: i64) {
        self.put(&v.to_be_bytes());
    }
    #[inline]
    fn put_f64(&mut self, v: f64) {
        self.put(&v.to_be_bytes());
    }

    #[inline]
    fn put_uvint(&mut self, v: u64) {
        if v < 0x80 {
            return self.put(&[v as u8]);
        }
        let (bytes, n) = encode_uvint(v);
        self.put(bytes.get(..n).unwrap_or(&bytes));
    }
    #[inline]
    fn put_svint(&mut self, v: i64) {
        self.put_uvint((v << 1 ^ v >> 63) as u64);
    }
    #[inline]
    fn put_uvint32(&mut self, v: i32) {
        self.put_uvint(i64::from(v) as u64);
    }
    /// u16 length, bytes. The caller has checked that the length fits.
    fn put_sbytes(&mut self, v: &[u8]) {
        debug_assert!(v.len() <= usize::from(u16::MAX));
        self.put_u16(v.len() as u16);
        self.put(v);
    }
    fn put_ibytes(&mut self, v: &[u8]) {
        self.put_i32(v.len() as i32);
        self.put(v);
    }
    #[inline]
    fn put_vbytes(&mut self, v: &[u8]) {
        self.put_uvint(v.len() as u64);
        self.put(v);
    }
    fn put_utf(&mut self, v: &str) {
        self.put_sbytes(v.as_bytes());
    }
}

impl Put for Vec<u8> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    #[inline]
    fn put_u8(&mut self, v: u8) {
        self.push(v);
    }

    #[inline]
    fn put_uvint(&mut self, v: u64) {
        if v < 0x80 {
            return self.push(v as u8);
        }
        let (bytes, n) = encode_uvint(v);
        let end = self.len() + n;
        // All nine, then cut: a copy of constant length is a few instructions, another one a call.
        self.extend_from_slice(&bytes);
        self.truncate(end);
    }
}

/// Number of bytes that `put_uvint` writes.
#[inline]
pub fn uvint_len(v: u64) -> usize {
    let bits = 64 - (v | 1).leading_zeros() as usize;
    if bits > 56 { 9 } else { bits.div_ceil(7) }
}

#[inline]
fn encode_uvint(v: u64) -> ([u8; 9], usize) {
    let mut out = [0xff; 9];
    let n = uvint_len(v);
    if n == 9 {
        out[1..9].copy_from_slice(&v.to_be_bytes());
        return (out, 9);
    }
    let extra = n - 1;
    // The length prefix (extra one bits) sits above the value's 7·n bits.
    let marked = v | (0xffu64 << (8 - extra) & 0xff) << (8 * extra);
    let be = (marked << (8 * (8 - n))).to_be_bytes();
    out[..8].copy_from_slice(&be);
    (out, n)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uvint(v: u64) -> Vec<u8> {
        let mut out = Vec::new();
        out.put_uvint(v);
        out
    }

    /// Values given by Cassandra's own VIntCoding.
    #[test]
    fn uvint_is_cassandras() {
        let golden: &[(u64, &[u8])] = &[
            (0, &[0]),
            (127, &[0x7f]),
            (128, &[0x80, 0x80]),
            (255, &[0x80, 0xff]),
            (16383, &[0xbf, 0xff]),
            (16384, &[0xc0, 0x40, 0]),
            (1 << 21, &[0xe0, 0x20, 0, 0]),
            (1 << 28, &[0xf0, 0x10, 0, 0, 0]),
            (1 << 35, &[0xf8, 8, 0, 0, 0, 0]),
            (1 << 42, &[0xfc, 4, 0, 0, 0, 0, 0]),
            (1 << 49, &[0xfe, 2, 0, 0, 0, 0, 0, 0]),
            ((1 << 56) - 1, &[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
            (1 << 56, &[0xff, 1, 0, 0, 0, 0, 0, 0, 0]),
            (u64::MAX, &[0xff; 9]),
        ];
        for (value, bytes) in golden {
            assert_eq!(uvint(*value), *bytes, "{value}");
            for padding in [0, 16] {
                let mut padded = bytes.to_vec();
                padded.resize(bytes.len() + padding, 0xaa);
                let mut cursor = Cursor::new(&padded);
                assert_eq!(cursor.uvint(), Ok(*value));
                assert_eq!(cursor.index(), bytes.len());
            }
            assert!(Cursor::new(&bytes[..bytes.len() - 1]).uvint().is_err());
        }
    }

    #[test]
    fn svint_is_cassandras() {
        let golden: &[(i64, &[u8])] =
            &[(-1, &[1]), (1, &[2]), (64, &[0x80, 0x80]), (-65536, &[0xc1, 0xff, 0xff])];
        for (value, bytes) in golden {
            let mut out = Vec::new();
            out.put_svint(*value);
            assert_eq!(out, *bytes);
            assert_eq!(Cursor::new(bytes).svint(), Ok(*value));
        }
    }

    #[test]
    fn every_length_round_trips() {
        for shift in 0..64 {
            for v in [1u64 << shift, (1 << shift) - 1, u64::MAX >> shift] {
                let bytes = uvint(v);
                assert_eq!(bytes.len(), uvint_len(v));
                assert_eq!(Cursor::new(&bytes).uvint(), Ok(v));
            }
        }
        let mut out = Vec::new();
        out.put_uvint32(-3);
        assert_eq!(out.len(), 9);
        assert_eq!(Cursor::new(&out).uvint32(), Ok(-3));
    }
}
