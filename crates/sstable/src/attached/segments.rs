//! The segments of indexes on vectors that are in memory, for the whole node.

use std::sync::{Arc, Weak};

use super::{AttachedIndex, Neighbours, Segment};
use crate::Result;
use crate::read::caches::FileId;
use halcyon_io::Mutex;

/// Up to a budget; those that were not used for the longest time go. A larger segment is read for each search.
pub struct Segments {
    budget: usize,
    /// The last one was used last.
    held: Mutex<Vec<Held>>,
    /// Searches that lack the same segment read it once.
    reading: futures_util::lock::Mutex<()>,
}

struct Held {
    of: (FileId, usize),
    index: Weak<AttachedIndex>,
    segment: Arc<Segment>,
}

impl Segments {
    /// An eighth of the memory that there is.
    pub fn of_this_machine() -> Segments {
        let budget =
            usize::try_from(halcyon_io::resources::available_memory() / 8).unwrap_or(usize::MAX);
        Segments { budget, held: Mutex::default(), reading: futures_util::lock::Mutex::default() }
    }

    fn find(&self, of: (FileId, usize)) -> Option<Arc<Segment>> {
        let mut held = self.held.lock();
        let at = held.iter().position(|held| held.of == of)?;
        let found = held.remove(at);
        let segment = found.segment.clone();
        held.push(found);
        Some(segment)
    }

    /// Keeps a segment, except of dropped indexes.
    fn keep(&self, of: (FileId, usize), index: &Arc<AttachedIndex>, segment: &Arc<Segment>) {
        let mut held = self.held.lock();
        held.retain(|held| held.index.strong_count() > 0);
        held.push(Held { of, index: Arc::downgrade(index), segment: segment.clone() });
        let mut size: usize = held.iter().map(|held| held.segment.size()).sum();
        while size > self.budget && !held.is_empty() {
            size -= held.remove(0).segment.size();
        }
    }

    async fn get(&self, index: &Arc<AttachedIndex>, number: usize) -> Result<Option<Arc<Segment>>> {
        let of = (index.id, number);
        if let Some(segment) = self.find(of) {
            return Ok(Some(segment));
        }
        let _reading = self.reading.lock().await;
        if let Some(segment) = self.find(of) {
            return Ok(Some(segment));
        }
        let Some(segment) = index.segment(number).await? else { return Ok(None) };
        let segment = Arc::new(segment);
        self.keep(of, index, &segment);
        Ok(Some(segment))
    }

    /// The places of an index whose vectors are near one, which is as the index keeps vectors: at least `count` of each segment. The
    /// nearest of `of` vectors are looked for, in this index and others.
    pub async fn nearest(
        &self,
        index: &Arc<AttachedIndex>,
        vector: &[f32],
        count: usize,
        of: u64,
    ) -> Result<Neighbours> {
        let mut found = Neighbours::default();
        for number in 0..index.segment_count() {
            let Some(segment) = self.get(index, number).await? else { continue };
            let near = segment.nearest(vector, count, of).await;
            found.add(near.map_err(|error| index.corrupt_at(error))?);
        }
        Ok(found)
    }
}
