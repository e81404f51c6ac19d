//! An index component on disk as an `IndexSource`: random reads, in aligned windows, the last few of them kept.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::Range;
use std::path::PathBuf;
use std::rc::Rc;

use halcyon_io::{AccessMode, Disk, Purpose, ReadFile};
use halcyon_model::DecodeError;

use crate::row_index::IndexSource;
use crate::{Component, Descriptor, Error, Result};

/// Windows begin and end on multiples of this, which is also the page of a trie.
const PAGE: u64 = 4096;
/// A larger window is read for its reader and not kept.
const KEPT: u64 = 16 * 1024;
const WINDOWS: usize = 16;
/// No key, entry or block that an index describes comes near this: 35 clustering values of 64 KiB, twice.
const MAX_READ: usize = 8 << 20;

pub(crate) struct IndexFile {
    file: ReadFile,
    path: PathBuf,
    component: Component,
    /// Most recently used last.
    windows: RefCell<VecDeque<(u64, Rc<[u8]>)>>,
}

/// Part of a window.
pub(crate) struct IndexBytes {
    window: Rc<[u8]>,
    range: Range<usize>,
}

impl AsRef<[u8]> for IndexBytes {
    fn as_ref(&self) -> &[u8] {
        self.window.get(self.range.clone()).unwrap_or_default()
    }
}

impl IndexFile {
    pub(crate) async fn open(
        disk: &Disk,
        descriptor: &Descriptor,
        component: Component,
        mode: AccessMode,
        purpose: Purpose,
    ) -> Result<IndexFile> {
        let path = descriptor.component_path(component);
        let opened = disk.open(&path, mode, purpose).await;
        let file = opened.map_err(|error| match error {
            error if error.is_not_found() => {
                let why = "partitions cannot be found without it; have Cassandra scrub the SSTable";
                Error::Missing { path: path.clone(), component, why: why.into() }
            }
            error => Error::Io(error),
        })?;
        Ok(IndexFile { file, path, component, windows: RefCell::default() })
    }

    pub(crate) fn corrupt_at(&self, offset: u64, what: impl Into<String>) -> Error {
        self.corrupt(DecodeError { offset, what: what.into() })
    }

    /// A kept window that reaches from `offset` to `end`.
    fn kept(&self, offset: u64, end: u64) -> Option<IndexBytes> {
        let mut windows = self.windows.borrow_mut();
        let at = windows.iter().position(|(start, bytes)| {
            *start <= offset && end <= start.saturating_add(bytes.len() as u64)
        })?;
        let (start, window) = windows.remove(at)?;
        windows.push_back((start, window.clone()));
        Some(part(window, start, offset, end))
    }

    fn keep(&self, start: u64, window: &Rc<[u8]>) {
        if window.len() as u64 <= KEPT {
            let mut windows = self.windows.borrow_mut();
            if windows.len() == WINDOWS {
                windows.pop_front();
            }
            windows.push_back((start, window.clone()));
        }
    }
}

fn part(window: Rc<[u8]>, start: u64, offset: u64, end: u64) -> IndexBytes {
    // Both lie in the window, so the differences are small.
    IndexBytes { window, range: (offset - start) as usize..(end - start) as usize }
}

impl IndexSource for IndexFile {
    type Bytes = IndexBytes;
    type Error = Error;

    fn len(&self) -> u64 {
        self.file.len()
    }

    async fn read(&self, offset: u64, length: usize) -> Result<IndexBytes> {
        if length > MAX_READ {
            return Err(self.corrupt_at(offset, format!("{length} bytes in one piece expected")));
        }
        let offset = offset.min(self.len());
        let end = offset.saturating_add(length as u64).min(self.len());
        if let Some(bytes) = self.kept(offset, end) {
            return Ok(bytes);
        }
        let start = offset - offset % PAGE;
        let past = end.next_multiple_of(PAGE).min(self.len());
        let bytes = self.file.read_at(start, (past - start) as usize).await?;
        let window: Rc<[u8]> = Rc::from(&*bytes);
        self.keep(start, &window);
        Ok(part(window, start, offset, end))
    }

    fn corrupt(&self, error: DecodeError) -> Error {
        Error::corrupt(&self.path, self.component, error)
    }
}
