//! What trie nodes carry: the position of a partition, or a block of rows.
//!
//! ```text
//!  Partitions.db   bits 8..15:  hash:u8  position:int(bits-7)     position ≥ 0: entry in Rows.db
//!                  bits 1..7:            position:int(bits)       position < 0: partition at !position in Data.db
//!  Rows.db         bits 0nnn:   offset:int(nnn)
//!                  bits 1nnn:   offset:int(nnn)  DeletionTime (§deletion_time, form of oa)
//! ```
//!
//! `int(n)` is the shortest signed big-endian integer of n bytes that holds the value.

use halcyon_model::{Cursor, DecodeResult, DeletionTime};

use crate::format::deletion_time::{deletion_time_len, read_deletion_time, write_deletion_time};

/// Four bits in the node's first byte and the bytes behind the node. Zero bits mean "no payload".
pub trait Payload: Copy + std::fmt::Debug {
    fn bits(&self) -> u8;
    fn size(&self) -> usize;
    fn write(&self, out: &mut Vec<u8>);
    fn read(bits: u8, cursor: &mut Cursor<'_>) -> DecodeResult<Self>;
}

/// Bytes of the shortest signed integer that holds `value`, at least one.
pub(crate) fn sized_int_len(value: i64) -> usize {
    let magnitude = if value < 0 { !value } else { value };
    let bits = 64 - magnitude.leading_zeros() as usize + 1;
    bits.div_ceil(8)
}

fn write_sized_int(value: i64, len: usize, out: &mut Vec<u8>) {
    let bytes = value.to_be_bytes();
    out.extend_from_slice(bytes.get(bytes.len().saturating_sub(len)..).unwrap_or(&bytes));
}

fn read_sized_int(cursor: &mut Cursor<'_>, len: usize) -> DecodeResult<i64> {
    let bytes = cursor.take(len)?;
    let sign = if bytes.first().is_some_and(|byte| byte & 0x80 != 0) { -1 } else { 0 };
    Ok(bytes.iter().fold(sign, |value: i64, &byte| value << 8 | i64::from(byte)))
}

/// Where a partition is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartitionPosition {
    /// It has a row index: its entry in Rows.db.
    Rows(u64),
    /// It has none: the partition in Data.db.
    Data(u64),
}

/// Payload of a node of Partitions.db.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartitionPayload {
    /// Low byte of the second half of the key's hash; readers skip a partition whose byte differs.
    pub hash: Option<u8>,
    pub position: PartitionPosition,
}

const HAS_HASH: u8 = 8;

impl PartitionPayload {
    fn stored(&self) -> i64 {
        // Positions are below 2^63: files are.
        match self.position {
            PartitionPosition::Rows(position) => position as i64,
            PartitionPosition::Data(position) => !(position as i64),
        }
    }
}

impl Payload for PartitionPayload {
    fn bits(&self) -> u8 {
        let len = sized_int_len(self.stored()) as u8;
        if self.hash.is_some() { HAS_HASH - 1 + len } else { len }
    }

    fn size(&self) -> usize {
        usize::from(self.hash.is_some()) + sized_int_len(self.stored())
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.hash);
        let stored = self.stored();
        write_sized_int(stored, sized_int_len(stored), out);
    }

    fn read(bits: u8, cursor: &mut Cursor<'_>) -> DecodeResult<Self> {
        let (hash, len) = if bits >= HAS_HASH {
            (Some(cursor.u8()?), bits - (HAS_HASH - 1))
        } else {
            (None, bits)
        };
        let stored = read_sized_int(cursor, usize::from(len))?;
        let position = if stored < 0 {
            PartitionPosition::Data(!stored as u64)
        } else {
            PartitionPosition::Rows(stored as u64)
        };
        cursor.note(|| match hash {
            Some(hash) => format!("payload: hash {hash:#04x}, {position:?}"),
            None => format!("payload: no hash, {position:?}"),
        });
        Ok(Self { hash, position })
    }
}

/// Payload of a node of a row index: where reading starts for clusterings from this separator on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowPayload {
    /// Start of the block, relative to the partition's start.
    pub offset: u64,
    /// Range tombstone open where the block starts.
    pub open: Option<DeletionTime>,
}

const HAS_OPEN: u8 = 8;
/// Offsets have seven bytes at most.
pub(crate) const MAX_ROW_OFFSET: u64 = (1 << 55) - 1;

impl Payload for RowPayload {
    fn bits(&self) -> u8 {
        let len = sized_int_len(self.offset as i64) as u8;
        if self.open.is_some() { HAS_OPEN | len } else { len }
    }

    fn size(&self) -> usize {
        sized_int_len(self.offset as i64)
            + self.open.map_or(0, |deletion| deletion_time_len(true, &deletion))
    }

    fn write(&self, out: &mut Vec<u8>) {
        let offset = self.offset as i64;
        write_sized_int(offset, sized_int_len(offset), out);
        if let Some(deletion) = &self.open {
            let written = write_deletion_time(true, deletion, out);
            debug_assert!(written.is_ok(), "checked when the block was added");
        }
    }

    fn read(bits: u8, cursor: &mut Cursor<'_>) -> DecodeResult<Self> {
        let at = cursor.offset();
        let len = usize::from(bits & !HAS_OPEN);
        if len == 0 {
            return Err(cursor.error("row index payload without an offset"));
        }
        let stored = read_sized_int(cursor, len)?;
        let offset = u64::try_from(stored).map_err(|_| halcyon_model::DecodeError {
            offset: at,
            what: format!("row index payload with the negative offset {stored}"),
        })?;
        let open =
            if bits & HAS_OPEN != 0 { Some(read_deletion_time(true, cursor)?) } else { None };
        cursor.note(|| format!("payload: rows from offset {offset}, open deletion {open:?}"));
        Ok(Self { offset, open })
    }
}
