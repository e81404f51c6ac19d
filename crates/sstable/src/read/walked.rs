//! Makes the positions of an SSTable's partitions (`positions.rs`) before anybody looks for them, by one walk of Index.db.

use std::cell::RefCell;
use std::sync::Arc;

use halcyon_io::{AccessMode, Disk, Purpose, yield_now};
use halcyon_model::DecodeError;

use super::budget::Budget;
use super::caches::ReadCaches;
use super::index_files::{IndexFiles, IndexSources};
use super::positions::TYPICAL;
use super::reader::SSTableReader;
use super::summary_search::WALK_WINDOW;
use crate::row_index::IndexSource;
use crate::{Error, Result};

/// Intervals between two yields: some 100 µs.
const AT_ONCE: usize = 8;

impl SSTableReader {
    /// Makes all positions that are missing, as long as the budget has room: from then on a look-up reads nothing but the data. What is
    /// wrong with the index ends it; lookups report it.
    pub async fn make_positions(
        &self,
        disk: &Disk,
        mode: AccessMode,
        budget: &Arc<Budget>,
    ) -> Result<()> {
        let Some(summary) = self.summary() else { return Ok(()) };
        let sstable = self.sstable();
        let files = IndexFiles::open(disk, sstable, self.id(), (mode, Purpose::Scan)).await?;
        let caches = ReadCaches::of_one_pass();
        let IndexSources::Big { index } = files.through(&caches) else { return Ok(()) };
        let index = Walked { source: &index, window: RefCell::new(None) };
        let search = self.search(&index);
        for interval in 0..summary.len() {
            if !budget.has(TYPICAL) {
                return Ok(());
            }
            if !self.positions().has(interval)
                && let Some(sample) = search.sample(summary, interval)
                && let Some(made) = search.interval(&index, &sample).await?
            {
                self.positions().keep(interval, made, budget);
            }
            if interval % AT_ONCE == 0 {
                yield_now().await;
            }
        }
        Ok(())
    }
}

/// An index whose bytes come from reads of many at once.
struct Walked<'i, S: IndexSource> {
    source: &'i S,
    window: RefCell<Option<(u64, S::Bytes)>>,
}

impl<S: IndexSource<Error = Error>> Walked<'_, S> {
    fn held(&self, offset: u64, length: usize) -> Option<Vec<u8>> {
        let window = self.window.borrow();
        let (start, bytes) = window.as_ref()?;
        let from = usize::try_from(offset.checked_sub(*start)?).ok()?;
        Some(bytes.as_ref().get(from..from.checked_add(length)?)?.to_vec())
    }
}

impl<S: IndexSource<Error = Error>> IndexSource for Walked<'_, S> {
    type Bytes = Vec<u8>;
    type Error = Error;

    fn len(&self) -> u64 {
        self.source.len()
    }

    async fn read(&self, offset: u64, length: usize) -> Result<Vec<u8>> {
        let left = self.len().saturating_sub(offset);
        let length = length.min(usize::try_from(left).unwrap_or(usize::MAX));
        if let Some(held) = self.held(offset, length) {
            return Ok(held);
        }
        let bytes = self.source.read(offset, length.max(WALK_WINDOW)).await?;
        *self.window.borrow_mut() = Some((offset, bytes));
        Ok(self.held(offset, length).unwrap_or_default())
    }

    fn corrupt(&self, error: DecodeError) -> Error {
        self.source.corrupt(error)
    }
}
