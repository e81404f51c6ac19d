//! Edits: from one version to the next.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arc_swap::ArcSwap;

use super::{LiveSSTable, Version};

/// What changes in a version, all of it in one step.
#[derive(Default)]
pub(crate) struct Edit {
    /// Serial numbers; one that the version does not have is passed over.
    pub(crate) gone: HashSet<u64>,
    pub(crate) added: Vec<Arc<LiveSSTable>>,
    /// By serial number; each replaces the SSTable with its number, if the version still has it.
    pub(crate) reopened: HashMap<u64, Arc<LiveSSTable>>,
}

impl Edit {
    pub(crate) fn add(added: Vec<Arc<LiveSSTable>>) -> Edit {
        Edit { added, ..Edit::default() }
    }

    /// Replaces `gone` by `added`.
    pub(crate) fn replace<'a>(
        gone: impl IntoIterator<Item = &'a Arc<LiveSSTable>>,
        added: Vec<Arc<LiveSSTable>>,
    ) -> Edit {
        let gone = gone.into_iter().map(|live| live.serial()).collect();
        Edit { gone, added, ..Edit::default() }
    }

    pub(crate) fn reopen(reopened: impl IntoIterator<Item = Arc<LiveSSTable>>) -> Edit {
        let reopened = reopened.into_iter().map(|live| (live.serial(), live)).collect();
        Edit { reopened, ..Edit::default() }
    }

    /// Makes the current version the next one, whatever other edits come at the same time (`Tables::edit`).
    pub(crate) fn apply(&self, version: &ArcSwap<Version>) {
        version.rcu(|current| {
            let next = current.edited(self);
            if crate::CHECKS {
                next.check();
            }
            Arc::new(next)
        });
    }
}

/// By newest timestamp; of equals by name, so that every start has the same order.
fn by_age(a: &Arc<LiveSSTable>, b: &Arc<LiveSSTable>) -> Ordering {
    let by_time = a.max_timestamp().cmp(&b.max_timestamp());
    by_time.then_with(|| a.descriptor().cmp(b.descriptor()))
}

impl Version {
    /// Linear in the SSTables, with a small constant, and n·log n in what is added.
    pub(crate) fn edited(&self, edit: &Edit) -> Version {
        let mut added: Vec<&Arc<LiveSSTable>> = edit.added.iter().collect();
        added.sort_by(|a, b| by_age(a, b));
        let mut added = added.into_iter().peekable();
        let mut sstables = Vec::with_capacity(self.sstables.len() + edit.added.len());
        let mut positions: Vec<Option<u32>> = Vec::with_capacity(self.sstables.len());
        let mut intervals = Vec::with_capacity(edit.added.len());
        let mut insert = |sstables: &mut Vec<Arc<LiveSSTable>>, live: &Arc<LiveSSTable>| {
            intervals.push((position(sstables), live.tokens()));
            sstables.push(live.clone());
        };
        for live in &self.sstables {
            if !edit.gone.is_empty() && edit.gone.contains(&live.serial()) {
                positions.push(None);
                continue;
            }
            while let Some(new) = added.next_if(|new| by_age(new, live).is_lt()) {
                insert(&mut sstables, new);
            }
            positions.push(Some(position(&sstables)));
            sstables.push(edit.reopened.get(&live.serial()).unwrap_or(live).clone());
        }
        added.for_each(|new| insert(&mut sstables, new));
        let renumber = |at: u32| positions.get(at as usize).copied().flatten();
        let index = self.index.edited(renumber, intervals);
        Version { sstables, index, ..Version::default() }
    }

    /// The invariants; a violation is a fault of the edit.
    pub(crate) fn check(&self) {
        assert!(self.sstables.is_sorted_by(|a, b| by_age(a, b).is_le()), "not ordered by age");
        let serials: HashSet<u64> = self.sstables.iter().map(|live| live.serial()).collect();
        assert_eq!(serials.len(), self.sstables.len(), "an SSTable is in the version twice");
        assert_eq!(self.index.len(), self.sstables.len(), "an SSTable is not in the index");
        let mut found = HashSet::new();
        self.index.overlapping(i64::MIN, i64::MAX, |at| {
            found.insert(at);
        });
        assert_eq!(found.len(), self.sstables.len(), "an SSTable is in the index twice");
        for (at, live) in (0..).zip(&self.sstables) {
            let (first, last) = live.tokens();
            assert!(first <= last && found.contains(&at), "an SSTable is not found by its tokens");
        }
    }
}

fn position(sstables: &[Arc<LiveSSTable>]) -> u32 {
    u32::try_from(sstables.len()).unwrap_or(u32::MAX)
}
