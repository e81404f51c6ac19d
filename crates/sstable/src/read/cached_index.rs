//! An index component read page by page through a shard's chunk cache.

use std::ops::Range;
use std::rc::Rc;

use halcyon_io::ReadFile;
use halcyon_model::DecodeError;

use super::caches::{Chunk, FileId, ReadCaches};
use crate::row_index::IndexSource;
use crate::{Component, Error, Result};

pub(crate) const PAGE: u64 = 4096;
/// No key, entry or block that an index describes comes near this: 35 clustering values of 64 KiB, twice.
const MAX_READ: usize = 8 << 20;

/// A longer read is that of a walk from end to end: it goes to the file, and leaves nothing in the cache.
const MAX_CACHED: usize = 128 * 1024;

pub struct CachedIndex<'a> {
    file: &'a ReadFile,
    id: FileId,
    component: Component,
    caches: &'a ReadCaches,
    /// Whether what is read is kept.
    keeps: bool,
}

/// Part of one page, or bytes gathered from several.
pub enum IndexBytes {
    Page(Chunk, Range<usize>),
    Gathered(Vec<u8>),
}

impl AsRef<[u8]> for IndexBytes {
    fn as_ref(&self) -> &[u8] {
        match self {
            IndexBytes::Page(page, range) => page.get(range.clone()).unwrap_or_default(),
            IndexBytes::Gathered(bytes) => bytes,
        }
    }
}

impl<'a> CachedIndex<'a> {
    pub(super) fn new(
        file: &'a ReadFile,
        id: FileId,
        component: Component,
        caches: &'a ReadCaches,
    ) -> CachedIndex<'a> {
        CachedIndex { file, id, component, caches, keeps: true }
    }

    /// The same for what is read once.
    pub(super) fn passing(&self) -> CachedIndex<'a> {
        CachedIndex { keeps: false, ..*self }
    }

    /// What of it is in the cache.
    pub(super) fn in_memory(&self) -> InMemory<'_> {
        InMemory(self)
    }

    pub(crate) fn corrupt_at(&self, offset: u64, what: impl Into<String>) -> Error {
        self.corrupt(DecodeError { offset, what: what.into() })
    }

    /// Shows the pages `first..past`; neighbours that are not cached are read in one I/O.
    async fn pages(&self, first: u64, past: u64, mut see: impl FnMut(u64, Chunk)) -> Result<()> {
        let mut page = first;
        while page < past {
            if let Some(cached) = self.caches.chunk(self.id, page) {
                see(page, cached);
                page += 1;
                continue;
            }
            let start = page;
            while page < past && (page == start || self.caches.chunk(self.id, page).is_none()) {
                page += 1;
            }
            let end = (page * PAGE).min(self.file.len());
            let bytes = self.file.read_at(start * PAGE, (end - start * PAGE) as usize).await?;
            self.caches.count_read(bytes.len());
            for (number, bytes) in (start..).zip(bytes.chunks(PAGE as usize)) {
                let chunk: Chunk = Rc::new(bytes.into());
                self.caches.keep_chunk(self.id, number, chunk.clone());
                see(number, chunk);
            }
        }
        Ok(())
    }
}

impl IndexSource for CachedIndex<'_> {
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
        if offset == end {
            return Ok(IndexBytes::Gathered(Vec::new()));
        }
        if length > MAX_CACHED || !self.keeps {
            let bytes = self.file.read_at(offset, (end - offset) as usize).await?;
            self.caches.count_read(bytes.len());
            return Ok(IndexBytes::Gathered(bytes.to_vec()));
        }
        let (first, past) = (offset / PAGE, end.div_ceil(PAGE));
        let skip = (offset - first * PAGE) as usize;
        let length = (end - offset) as usize;
        let mut single = None;
        let mut gathered = Vec::with_capacity(if past - first == 1 { 0 } else { length });
        self.pages(first, past, |number, page| {
            if past - first == 1 {
                single = Some(page);
                return;
            }
            let skip = if number == first { skip } else { 0 };
            let wanted = page.get(skip..).unwrap_or_default();
            gathered.extend_from_slice(wanted.get(..length - gathered.len()).unwrap_or(wanted));
        })
        .await?;
        match single {
            Some(page) => Ok(IndexBytes::Page(page, skip..skip + length)),
            None => Ok(IndexBytes::Gathered(gathered)),
        }
    }

    fn corrupt(&self, error: DecodeError) -> Error {
        Error::corrupt(self.file.path(), self.component, error)
    }
}

/// An index as far as it is in the cache, for what is not worth a read.
pub(super) struct InMemory<'a>(&'a CachedIndex<'a>);

/// A page is not in the cache, or it is damaged, which a lookup reports.
pub(super) struct NotThere;

impl IndexSource for InMemory<'_> {
    type Bytes = IndexBytes;
    type Error = NotThere;

    fn len(&self) -> u64 {
        self.0.len()
    }

    /// Within one page.
    async fn read(&self, offset: u64, length: usize) -> std::result::Result<IndexBytes, NotThere> {
        let page = self.0.caches.peek_chunk(self.0.id, offset / PAGE).ok_or(NotThere)?;
        let skip = (offset % PAGE) as usize;
        let end = skip.saturating_add(length).min(page.len());
        Ok(IndexBytes::Page(page, skip..end))
    }

    fn corrupt(&self, _: DecodeError) -> NotThere {
        NotThere
    }
}
