//! What of a new SSTable is in memory as soon as the SSTable is live.
//!
//! A compaction or a flush replaces what caches know: a row that was read from memory would be read from the device once more. The writer
//! has its bytes in its hands. It keeps the chunks of the data that a read of what is hot touches, and the pages of the index, and gives
//! them away with the places of the partitions when the SSTable is complete.

use std::ops::Range;
use std::sync::Arc;

use halcyon_stream::PartitionKey;

use super::spans::{CarriedChunk, Spans};
use crate::Descriptor;
use crate::read::cached_index::PAGE;
use crate::read::entry::{PartitionEntry, RowIndexRef};

/// What is read of a partition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Heat {
    Cold,
    /// Single rows, or the static row.
    Rows,
    Whole,
}

/// Says what is carried over, and takes it.
pub trait Carry: Send + Sync {
    fn heat(&self, key: &PartitionKey) -> Heat;

    /// Whether a row of a partition is hot.
    fn is_hot(&self, key: &PartitionKey, clustering: &[u8]) -> bool;

    /// Whether `bytes` more fit.
    fn reserve(&self, bytes: usize) -> bool;

    /// Of an SSTable that is complete.
    fn take(&self, of: &Descriptor, carried: Carried);
}

/// Places of partitions, chunks of the data and pages of the index (Index.db or Rows.db), in the order of tokens.
#[derive(Default)]
pub struct Carried {
    pub(crate) keys: Vec<(PartitionKey, PartitionEntry)>,
    pub(crate) data: Vec<CarriedChunk>,
    pub(crate) index: Vec<CarriedChunk>,
}

impl Carried {
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.data.is_empty() && self.index.is_empty()
    }

    /// The parts of the owners of the tokens.
    pub fn by_owner(self, owners: usize, owner: impl Fn(i64) -> usize) -> Vec<Carried> {
        let parts = std::iter::repeat_with(Carried::default).take(owners);
        let mut parts: Vec<Carried> = parts.collect();
        for key in self.keys {
            if let Some(part) = parts.get_mut(owner(key.0.token)) {
                part.keys.push(key);
            }
        }
        for chunk in self.data {
            if let Some(part) = parts.get_mut(owner(chunk.token)) {
                part.data.push(chunk);
            }
        }
        for page in self.index {
            if let Some(part) = parts.get_mut(owner(page.token)) {
                part.index.push(page);
            }
        }
        parts
    }
}

/// The index entry of a partition, and the bytes of its component that a look-up of rows in it reads.
pub(crate) struct Indexed {
    pub(crate) rows: RowIndexRef,
    pub(crate) bytes: Range<u64>,
}

/// Of a partition at most this many bytes from its start are carried over, and the rows that are hot themselves.
const WHOLE_MAX: u64 = 64 << 10;
/// A larger row index is searched in few of its pages.
const INDEX_MAX: u64 = 64 << 10;

pub(super) struct Carrying {
    to: Arc<dyn Carry>,
    data: Spans,
    index: Spans,
    keys: Vec<(PartitionKey, PartitionEntry)>,
    /// The partition that is being written, if something of it is hot.
    open: Option<Open>,
}

struct Open {
    key: PartitionKey,
    start: u64,
    heat: Heat,
    /// Where the index leads that is asked for the next row.
    block: u64,
    /// The last row is hot: a read of it sees that the next one is another.
    is_read_on: bool,
}

impl Open {
    fn is_whole_until(&self, end: u64) -> bool {
        self.heat == Heat::Whole && end - self.start <= WHOLE_MAX
    }
}

impl Carrying {
    pub(super) fn new(to: Arc<dyn Carry>, chunk_length: u64) -> Carrying {
        let (data, index) = (Spans::new(chunk_length), Spans::new(PAGE));
        Carrying { to, data, index, keys: Vec::new(), open: None }
    }

    pub(super) fn start(&mut self, key: &PartitionKey, start: u64) {
        let heat = self.to.heat(key);
        if heat != Heat::Cold && !self.data.is_full() {
            self.open =
                Some(Open { key: key.clone(), start, heat, block: start, is_read_on: false });
        }
    }

    /// The header with the static row is written until `end`. Each read of the partition begins with it.
    pub(super) fn header(&mut self, end: u64) {
        if let Some(open) = &self.open {
            self.data.want(open.start, end, open.key.token);
        }
    }

    /// A row is written until `end`.
    pub(super) fn row(&mut self, clustering: &[u8], end: u64) {
        let Some(open) = &mut self.open else { return };
        let is_hot = open.is_whole_until(end) || self.to.is_hot(&open.key, clustering);
        if is_hot || open.is_read_on {
            self.data.want(open.block, end, open.key.token);
        }
        open.is_read_on = is_hot;
    }

    /// A block of the row index begins.
    pub(super) fn block(&mut self, start: u64) {
        if let Some(open) = &mut self.open {
            open.block = start;
        }
    }

    pub(super) fn end(&mut self, end: u64, indexed: impl FnOnce() -> Indexed) {
        let Some(open) = self.open.take() else { return };
        if open.is_read_on {
            self.data.want(open.block, end, open.key.token);
        }
        let Open { key, start, .. } = open;
        if self.to.reserve(key.bytes.len() + size_of::<(PartitionKey, PartitionEntry)>()) {
            let Indexed { rows, bytes } = indexed();
            if rows != RowIndexRef::None && bytes.end - bytes.start <= INDEX_MAX {
                self.index.want(bytes.start, bytes.end, key.token);
            }
            let entry = PartitionEntry::new(start, rows).until(end, self.data.chunk_length());
            self.keys.push((key, entry));
        }
    }

    /// What is written next of the data.
    pub(super) fn see_data(&mut self, bytes: &[u8]) {
        let block = self.open.as_ref().map(|open| open.block);
        self.data.see(bytes, block, |bytes| self.to.reserve(bytes));
    }

    /// What is written next of the component that has the row indexes.
    pub(super) fn see_index(&mut self, bytes: &[u8]) {
        self.index.see(bytes, None, |bytes| self.to.reserve(bytes));
    }

    /// The SSTable is complete.
    pub(super) fn hand_over(self, of: &Descriptor) {
        let Carrying { to, data, index, keys, .. } = self;
        let room = |bytes| to.reserve(bytes);
        let carried = Carried { keys, data: data.finish(room), index: index.finish(room) };
        if !carried.is_empty() {
            to.take(of, carried);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use halcyon_io::Random;

    use super::*;
    use crate::{SSTableId, Version};

    const CHUNK: u64 = 1 << 12;

    #[derive(Default)]
    struct Taker {
        room: AtomicUsize,
        taken: Mutex<Option<Carried>>,
    }

    impl Carry for Taker {
        fn heat(&self, key: &PartitionKey) -> Heat {
            [Heat::Cold, Heat::Rows, Heat::Whole][key.hashes.0 as usize]
        }

        fn is_hot(&self, _: &PartitionKey, clustering: &[u8]) -> bool {
            clustering == b"hot"
        }

        fn reserve(&self, bytes: usize) -> bool {
            self.room.fetch_update(Relaxed, Relaxed, |room| room.checked_sub(bytes)).is_ok()
        }

        fn take(&self, _: &Descriptor, carried: Carried) {
            *self.taken.lock().unwrap() = Some(carried);
        }
    }

    /// A partition: where its header ends, where its blocks begin, and the ends of its rows with whether they are hot.
    struct Written {
        key: PartitionKey,
        start: u64,
        header: u64,
        rows: Vec<(u64, bool)>,
        blocks: Vec<u64>,
    }

    impl Written {
        fn end(&self) -> u64 {
            self.rows.last().unwrap().0
        }

        /// What reads of what is hot touch.
        fn hot(&self) -> Vec<Range<u64>> {
            let heat = self.key.hashes.0;
            if heat == 0 {
                return Vec::new();
            }
            let is_hot =
                |(end, hot): &(u64, bool)| *hot || heat == 2 && end - self.start <= WHOLE_MAX;
            // The row behind one that is hot is read too.
            let touched = self.rows.iter().enumerate().filter(|(at, row)| {
                is_hot(row) || at.checked_sub(1).is_some_and(|at| is_hot(&self.rows[at]))
            });
            let rows = touched.map(|(_, (end, _))| {
                let starts = self.blocks.iter().filter(|start| *start < end);
                *starts.max().unwrap_or(&self.start)..*end
            });
            std::iter::once(self.start..self.header).chain(rows).collect()
        }
    }

    /// Partitions of all lengths, of which some are hot, and some rows of others.
    fn partitions(random: &mut Random) -> Vec<Written> {
        let mut at = 0;
        let mut written = Vec::new();
        for token in 0..300 {
            let heat = [0, 0, 1, 2][random.below(4) as usize];
            let key =
                PartitionKey { token, hashes: (heat, 0), bytes: token.to_be_bytes().to_vec() };
            let (start, mut rows, mut blocks) = (at, Vec::new(), Vec::new());
            let most = [20, 300, CHUNK, 2 * CHUNK][random.below(4) as usize];
            at += 10;
            for _ in 0..1 + random.below(20) {
                if at - blocks.last().unwrap_or(&start) > 4 * CHUNK {
                    blocks.push(at);
                }
                at += 1 + random.below(most);
                rows.push((at, random.below(6) == 0));
            }
            written.push(Written { key, start, header: start + 10, rows, blocks });
        }
        written
    }

    /// What was carried over, if the data goes away in batches of whole chunks and the index, 10 bytes a partition, in any.
    fn carry(written: &[Written], data: &[u8], room: usize, random: &mut Random) -> Carried {
        let to = Arc::new(Taker { room: room.into(), ..Taker::default() });
        let mut carrying = Carrying::new(to.clone(), CHUNK);
        let (mut seen, mut indexed) = (0, 0);
        let mut show = |carrying: &mut Carrying, until: u64| {
            while seen < until {
                let past = (seen + CHUNK * (1 + random.below(20))).min(until);
                carrying.see_data(&data[seen as usize..past as usize]);
                seen = past;
            }
        };
        for partition in written {
            carrying.start(&partition.key, partition.start);
            carrying.header(partition.header);
            for (end, is_hot) in &partition.rows {
                if let Some(block) = partition.blocks.iter().filter(|start| *start < end).max() {
                    carrying.block(*block);
                }
                carrying.row(if *is_hot { b"hot" } else { b"" }, *end);
                if end % 3 == 0 {
                    show(&mut carrying, end / CHUNK * CHUNK);
                }
            }
            let at = partition.key.token.cast_unsigned() * 10;
            carrying.end(partition.end(), || Indexed {
                rows: RowIndexRef::Big(at + 5..at + 10),
                bytes: at..at + 10,
            });
            if partition.start % 2 == 0 {
                carrying.see_index(&vec![7; (at + 10 - indexed) as usize]);
                indexed = at + 10;
            }
        }
        show(&mut carrying, data.len() as u64);
        carrying.see_index(&vec![7; written.len() * 10 - indexed as usize]);
        carrying.hand_over(&Descriptor::new("", Version::DA, SSTableId::fresh(0, 1)));
        to.taken.lock().unwrap().take().unwrap_or_default()
    }

    fn numbers(chunks: &[CarriedChunk]) -> Vec<u64> {
        chunks.iter().map(|chunk| chunk.number).collect()
    }

    #[test]
    fn what_hot_reads_touch_is_carried_over_and_nothing_else() {
        for seed in 0..100 {
            let mut random = Random::seeded(seed);
            let written = partitions(&mut random);
            let length = written.last().unwrap().end();
            let content: Vec<u8> = (0..length).map(|_| random.below(256) as u8).collect();
            let carried = carry(&written, &content, usize::MAX, &mut random);
            let hot: Vec<&Written> = written.iter().filter(|p| !p.hot().is_empty()).collect();
            let keys: Vec<_> = carried.keys.iter().map(|(key, e)| (key, e.data_position)).collect();
            assert_eq!(keys, hot.iter().map(|p| (&p.key, p.start)).collect::<Vec<_>>(), "{seed}");
            let spans = hot.iter().flat_map(|p| p.hot());
            let chunks = spans.flat_map(|span| span.start / CHUNK..span.end.div_ceil(CHUNK));
            let wanted: std::collections::BTreeSet<u64> = chunks.collect();
            assert!(wanted.into_iter().eq(numbers(&carried.data)), "{seed}");
            for chunk in &carried.data {
                let (from, until) = (chunk.number * CHUNK, (chunk.number + 1) * CHUNK);
                let bytes = &content[from as usize..until.min(length) as usize];
                assert_eq!(*chunk.bytes, *bytes, "{seed}");
                let of = hot.iter().find(|p| p.key.token == chunk.token).expect("hot");
                assert!(of.start < until && from < of.end(), "{seed}");
            }
            assert_eq!(numbers(&carried.index), [0]);
            assert_eq!(carried.index[0].bytes.len(), written.len() * 10);
        }
    }

    #[test]
    fn there_is_an_end_to_it() {
        for room in [0, 10_000, 100_000] {
            let mut random = Random::seeded(1);
            let written = partitions(&mut random);
            let content = vec![0; written.last().unwrap().end() as usize];
            let Carried { keys, data, index } = carry(&written, &content, room, &mut random);
            let chunks: usize = data.iter().chain(&index).map(|chunk| chunk.bytes.len()).sum();
            let keys = keys.len() * (8 + size_of::<(PartitionKey, PartitionEntry)>());
            assert!(chunks + keys <= room && chunks + keys + 2 * CHUNK as usize >= room);
        }
    }
}
