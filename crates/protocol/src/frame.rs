//! The frames of version 5: checksums around whole envelopes, or around a part of a large one.
//!
//! ```text
//!  uncompressed   header, 6 bytes, little-endian          LZ4   header, 8 bytes, little-endian
//!                 bits 0..17   payload length                   bits 0..17   length on the wire
//!                 bit  17      self-contained                   bits 17..34  length without compression; 0: not compressed
//!                 bits 24..48  CRC24 of the first 3 bytes       bit  34      self-contained
//!                                                               bits 40..64  CRC24 of the first 5 bytes
//!  then the payload as it is on the wire, then its CRC32, little-endian
//! ```
//! 1. A self-contained frame has whole envelopes only. A larger envelope is split over several frames of its own.
//! 2. Both checksums start with fixed bytes, so that the checksum of zeros is not zero. A mismatch closes the connection: the
//!    streams of the lost messages are unknown.
//! 3. A frame is compressed only if that makes it shorter.

use halcyon_codec::{Algorithm, Crc32, Decompressor, Method, append_once};

/// The largest payload of a frame before compression: its length has 17 bits.
pub const MAX_PAYLOAD: usize = 128 * 1024 - 1;

pub(crate) const TRAILER: usize = 4;
const CRC24_INIT: u32 = 0x0087_5060;
const CRC24_POLY: u32 = 0x0197_4F0B;
const CRC32_PREFIX: [u8; 4] = [0xFA, 0x2D, 0x55, 0xCA];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    Plain,
    Lz4,
}

impl Framing {
    pub(crate) fn header_len(self) -> usize {
        match self {
            Framing::Plain => 6,
            Framing::Lz4 => 8,
        }
    }

    /// The number of header bytes before their checksum.
    fn summed(self) -> usize {
        self.header_len() - 3
    }
}

/// Bytes from the lowest, bits from the highest.
fn crc24(bytes: &[u8]) -> u32 {
    let mut crc = CRC24_INIT;
    for byte in bytes {
        crc ^= u32::from(*byte) << 16;
        for _ in 0..8 {
            crc <<= 1;
            if crc & 0x0100_0000 != 0 {
                crc ^= CRC24_POLY;
            }
        }
    }
    crc
}

fn crc32(payload: &[u8]) -> u32 {
    let mut hasher = Crc32::new();
    hasher.update(&CRC32_PREFIX);
    hasher.update(payload);
    hasher.finalize()
}

/// Why a frame is invalid. Checksums are printed as Java prints an `int`.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FrameError {
    #[error(
        "invalid, unrecoverable CRC mismatch detected in frame {part}. Read {read}, Computed {computed}"
    )]
    Checksum { part: &'static str, read: i32, computed: i32 },
    #[error("frame payload does not decompress: {0}")]
    Compressed(#[from] halcyon_codec::Error),
}

/// A header with a valid checksum.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FrameHeader {
    on_wire: usize,
    /// 0: not compressed.
    plain: usize,
    pub(crate) self_contained: bool,
}

impl FrameHeader {
    /// `None`: more bytes are needed.
    pub(crate) fn read(input: &[u8], framing: Framing) -> Result<Option<FrameHeader>, FrameError> {
        let Some((header, _)) = input.split_at_checked(framing.header_len()) else {
            return Ok(None);
        };
        let word = header.iter().rev().fold(0_u64, |word, byte| word << 8 | u64::from(*byte));
        let (summed, _) = header.split_at(framing.summed());
        let read = (word >> (8 * summed.len())) as u32;
        let computed = crc24(summed);
        if read != computed {
            let (read, computed) = (read.cast_signed(), computed.cast_signed());
            return Err(FrameError::Checksum { part: "header", read, computed });
        }
        let length = |shift: u32| ((word >> shift) & 0x1FFFF) as usize;
        let header = match framing {
            Framing::Plain => {
                FrameHeader { on_wire: length(0), plain: 0, self_contained: word >> 17 & 1 == 1 }
            }
            Framing::Lz4 => FrameHeader {
                on_wire: length(0),
                plain: length(17),
                self_contained: word >> 34 & 1 == 1,
            },
        };
        Ok(Some(header))
    }

    /// Bytes of the whole frame.
    pub(crate) fn frame_len(&self, framing: Framing) -> usize {
        framing.header_len() + self.on_wire + TRAILER
    }

    /// Appends the payload of `frame`, which has `frame_len` bytes, to `out`.
    pub(crate) fn open(
        &self,
        frame: &[u8],
        framing: Framing,
        out: &mut Vec<u8>,
    ) -> Result<(), FrameError> {
        let rest = frame.get(framing.header_len()..).unwrap_or_default();
        let (payload, trailer) = rest.split_at_checked(self.on_wire).unwrap_or_default();
        let read = trailer.first_chunk().map_or(0, |crc| u32::from_le_bytes(*crc));
        let computed = crc32(payload);
        if read != computed {
            let (read, computed) = (read.cast_signed(), computed.cast_signed());
            return Err(FrameError::Checksum { part: "body", read, computed });
        }
        if self.plain == 0 {
            out.extend_from_slice(payload);
            return Ok(());
        }
        Decompressor::new(Algorithm::Lz4)?.append(payload, self.plain, MAX_PAYLOAD, out)?;
        Ok(())
    }
}

/// Begins a frame at the end of `out`: the payload is appended next, then [`seal`] completes it.
pub(crate) fn begin(out: &mut Vec<u8>, framing: Framing) -> usize {
    let at = out.len();
    out.resize(at + framing.header_len(), 0);
    at
}

/// Completes the frame that begins at `at` and ends with `out`. The payload is at most [`MAX_PAYLOAD`].
pub(crate) fn seal(
    out: &mut Vec<u8>,
    at: usize,
    framing: Framing,
    self_contained: bool,
    scratch: &mut Vec<u8>,
) {
    let begin = at + framing.header_len();
    let plain = out.len() - begin;
    let contained = u64::from(self_contained);
    let word = match framing {
        Framing::Plain => plain as u64 | contained << 17,
        Framing::Lz4 => {
            let uncompressed = if compress(out, begin, scratch) { plain as u64 } else { 0 };
            (out.len() - begin) as u64 | uncompressed << 17 | contained << 34
        }
    };
    let bytes = word.to_le_bytes();
    let (summed, _) = bytes.split_at(framing.summed());
    let header = summed.iter().copied().chain(crc24(summed).to_le_bytes());
    for (slot, byte) in out.iter_mut().skip(at).zip(header.take(framing.header_len())) {
        *slot = byte;
    }
    let crc = crc32(out.get(begin..).unwrap_or_default());
    out.extend(crc.to_le_bytes());
}

/// Replaces the bytes from `begin` with their compressed form, if that is shorter.
fn compress(out: &mut Vec<u8>, begin: usize, scratch: &mut Vec<u8>) -> bool {
    let payload = out.get(begin..).unwrap_or_default();
    scratch.clear();
    let compressed = append_once(Method::LZ4, payload, scratch);
    let is_shorter = compressed.is_ok() && scratch.len() < payload.len();
    if is_shorter {
        out.truncate(begin);
        out.extend_from_slice(scratch);
    }
    is_shorter
}
