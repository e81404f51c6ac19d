//! Reads Index.db: one entry after another, from windows of the file.
//!
//! ```text
//!   key:sbytes | position:uvint | size:uvint32 | promoted part, `size` bytes
//!   0004 00000001  80a2           00
//! ```
//!
//! A scan needs keys and positions only.  It reads an entry's head (at most 64 KiB and a few bytes) and steps over the
//! promoted part, which can be large and need not be in the window.

use std::ops::Range;

use halcyon_model::{Cursor, DecodeError, DecodeResult};

/// Longest head of an entry: key, position, size.
pub const MAX_ENTRY_HEAD: usize = 2 + 0xffff + 9 + 9;

/// One partition's entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Where the entry begins in Index.db.
    pub index_position: u64,
    pub key: &'a [u8],
    /// Of the partition in the uncompressed Data.db.
    pub data_position: u64,
    /// The range of the promoted index in Index.db; empty if there is none.
    pub promoted: Range<u64>,
}

/// Reads an entry up to its promoted part, which is left to the caller.
pub fn read_entry<'a>(cursor: &mut Cursor<'a>) -> DecodeResult<Entry<'a>> {
    let index_position = cursor.offset();
    let key = cursor.sbytes()?;
    cursor.note(|| format!("key of {} bytes", key.len()));
    let data_position = cursor.uvint()?;
    cursor.note(|| format!("partition at {data_position} in Data.db"));
    let at = cursor.offset();
    let size = cursor.count()?;
    cursor.note(|| format!("promoted index of {size} bytes"));
    let start = cursor.offset();
    let end = start.checked_add(size as u64).ok_or_else(|| DecodeError {
        offset: at,
        what: format!("promoted index of {size} bytes ends beyond any file"),
    })?;
    Ok(Entry { index_position, key, data_position, promoted: start..end })
}

/// Walks the entries of Index.db in windows that the caller reads.
///
/// ```text
///   loop: read a window at scan.offset(), then scan.next(window, window_offset) until it is Incomplete
/// ```
#[derive(Debug, Clone)]
pub struct EntryScan {
    offset: u64,
    end: u64,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Scanned<'a> {
    Entry(Entry<'a>),
    /// The head of the next entry is not, or not completely, in the window: continue at `EntryScan::offset`, at least
    /// `MAX_ENTRY_HEAD` bytes or to the end of the file.
    Incomplete,
    End,
}

impl EntryScan {
    /// Of the entries from `offset` (where an entry begins) to `end`, normally the file's length.
    pub fn new(offset: u64, end: u64) -> Self {
        Self { offset, end }
    }

    /// Where the next entry begins.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    pub fn next<'a>(&mut self, window: &'a [u8], window_offset: u64) -> DecodeResult<Scanned<'a>> {
        if self.offset >= self.end {
            return Ok(Scanned::End);
        }
        let rest = self.offset.checked_sub(window_offset).and_then(|skip| {
            window.get(usize::try_from(skip).ok()?..).filter(|rest| !rest.is_empty())
        });
        let Some(rest) = rest else { return Ok(Scanned::Incomplete) };
        let room = self.end - self.offset;
        let rest = rest.get(..usize::try_from(room).unwrap_or(usize::MAX)).unwrap_or(rest);
        let sees_whole_head = rest.len() as u64 >= room.min(MAX_ENTRY_HEAD as u64);
        let entry = match read_entry(&mut Cursor::at_offset(rest, self.offset)) {
            Ok(entry) => entry,
            Err(error) if sees_whole_head => return Err(error),
            Err(_) => return Ok(Scanned::Incomplete),
        };
        if entry.promoted.end > self.end {
            return Err(DecodeError {
                offset: entry.promoted.start,
                what: format!(
                    "promoted index ends at {}, beyond the end of the index at {}",
                    entry.promoted.end, self.end
                ),
            });
        }
        self.offset = entry.promoted.end;
        Ok(Scanned::Entry(entry))
    }
}
