//! Walks Index.db, entry by entry, in windows of the file.

use std::ops::Range;

use crate::big::{EntryScan, MAX_ENTRY_HEAD, Scanned};
use crate::row_index::{IndexSource, OrCorrupt};
use crate::{Error, Result};

pub(crate) struct Entries<'i, S: IndexSource> {
    file: &'i S,
    scan: EntryScan,
    window: Option<(u64, S::Bytes)>,
    window_length: usize,
    pub(crate) key: Vec<u8>,
}

/// An entry but for its key, which is left in `Entries::key`.
#[derive(Debug, Clone)]
pub(crate) struct EntryHead {
    pub(crate) index_position: u64,
    pub(crate) data_position: u64,
    /// The range of the promoted index; empty if there is none.
    pub(crate) promoted: Range<u64>,
}

impl<'i, S: IndexSource<Error = Error>> Entries<'i, S> {
    /// From the entry at `offset` on, reading `window_length` bytes at a time.
    pub(crate) fn new(file: &'i S, offset: u64, window_length: usize) -> Entries<'i, S> {
        let scan = EntryScan::new(offset, file.len());
        Entries { file, scan, window: None, window_length, key: Vec::new() }
    }

    pub(crate) fn file(&self) -> &'i S {
        self.file
    }

    pub(crate) async fn next(&mut self) -> Result<Option<EntryHead>> {
        self.next_of(u64::MAX, |_| true).await
    }

    /// The next entry whose key is wanted, of those that begin before `until`.
    pub(crate) async fn next_of(
        &mut self,
        until: u64,
        is_wanted: impl Fn(&[u8]) -> bool,
    ) -> Result<Option<EntryHead>> {
        let mut length = self.window_length;
        while self.scan.offset() < until {
            if let Some((start, window)) = &self.window {
                match self.scan.next(window.as_ref(), *start).or_corrupt(self.file)? {
                    Scanned::Entry(entry) if !is_wanted(entry.key) => continue,
                    Scanned::Entry(entry) => {
                        self.key.clear();
                        self.key.extend_from_slice(entry.key);
                        return Ok(Some(EntryHead {
                            index_position: entry.index_position,
                            data_position: entry.data_position,
                            promoted: entry.promoted,
                        }));
                    }
                    Scanned::End => return Ok(None),
                    // A window from the entry's start on was too short for it.
                    Scanned::Incomplete if *start == self.scan.offset() => length = MAX_ENTRY_HEAD,
                    Scanned::Incomplete => {}
                }
            }
            let start = self.scan.offset();
            self.window = Some((start, self.file.read(start, length).await?));
        }
        Ok(None)
    }
}
