//! A sorted list whose parts are shared between its clones.
//!
//! ```text
//!   Arc ─► [ leaf, leaf, … ]    leaf: Arc ─► up to 64 items
//! ```
//! A clone shares everything, so a reader gets a consistent copy of a list of any length in one step. A writer copies only the shared parts
//! that it changes (the list of leaves, one leaf), and changes the others in place.

use std::sync::Arc;

const LEAF: usize = 64;

/// No leaf is empty.
#[derive(Debug, Clone)]
pub(crate) struct Leaves<T>(Arc<Vec<Arc<Vec<T>>>>);

/// The index of an item, or of the end; valid until the list changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct At {
    leaf: usize,
    item: usize,
}

impl At {
    /// The end of a list of one item.
    pub(super) const BEHIND_ONE: At = At { leaf: 1, item: 0 };
}

impl<T> Default for Leaves<T> {
    fn default() -> Leaves<T> {
        Leaves(Arc::default())
    }
}

impl<T> Leaves<T> {
    pub(super) fn end(&self) -> At {
        At { leaf: self.0.len(), item: 0 }
    }

    pub(super) fn get(&self, at: At) -> Option<&T> {
        self.0.get(at.leaf)?.get(at.item)
    }

    pub(super) fn last(&self) -> Option<&T> {
        self.0.last()?.last()
    }

    pub(super) fn after(&self, at: At) -> At {
        let items = self.0.get(at.leaf).map_or(1, |leaf| leaf.len());
        match at.item + 1 < items {
            true => At { item: at.item + 1, ..at },
            false => At { leaf: at.leaf + 1, item: 0 },
        }
    }

    /// The previous item; there must be one.
    pub(super) fn before(&self, at: At) -> At {
        if at.item > 0 {
            return At { item: at.item - 1, ..at };
        }
        let leaf = at.leaf.saturating_sub(1);
        At { leaf, item: self.0.get(leaf).map_or(0, |leaf| leaf.len() - 1) }
    }

    /// The first item that does not lie before what is looked for.
    pub(super) fn seek(&self, lies_before: impl Fn(&T) -> bool) -> At {
        let leaf = self.0.partition_point(|leaf| leaf.last().is_some_and(&lies_before));
        let item = self.0.get(leaf).map_or(0, |leaf| leaf.partition_point(&lies_before));
        At { leaf, item }
    }

    /// The items from one index on.
    pub(super) fn iter_from(&self, mut at: At) -> impl Iterator<Item = &T> {
        std::iter::from_fn(move || {
            let item = self.get(at)?;
            at = self.after(at);
            Some(item)
        })
    }
}

impl<T: Clone> Leaves<T> {
    pub(super) fn get_mut(&mut self, at: At) -> Option<&mut T> {
        let leaf = Arc::make_mut(&mut self.0).get_mut(at.leaf)?;
        Arc::make_mut(leaf).get_mut(at.item)
    }

    /// Replaces the items from one index up to another.
    pub(super) fn splice(&mut self, from: At, to: At, items: impl IntoIterator<Item = T>) {
        let leaves = Arc::make_mut(&mut self.0);
        if leaves.is_empty() {
            leaves.push(Arc::default());
        }
        let (from, to) = (within(leaves, from), within(leaves, to));
        if from.leaf < to.leaf {
            if let Some(leaf) = leaves.get_mut(to.leaf) {
                Arc::make_mut(leaf).drain(..to.item);
            }
            let is_empty = leaves.get(to.leaf).is_some_and(|leaf| leaf.is_empty());
            leaves.drain(from.leaf + 1..to.leaf + usize::from(is_empty));
        }
        let is_last = from.leaf + 1 == leaves.len();
        let Some(leaf) = leaves.get_mut(from.leaf) else { return };
        let leaf = Arc::make_mut(leaf);
        let until = if from.leaf < to.leaf { leaf.len() } else { to.item };
        // Appending leaves full leaves; other changes leave half-full ones.
        let keep = if is_last && from.item == leaf.len() { LEAF } else { LEAF / 2 };
        leaf.splice(from.item..until, items);
        if leaf.is_empty() {
            leaves.remove(from.leaf);
        } else if leaf.len() > LEAF {
            let mut rest = leaf.split_off(keep).into_iter();
            let chunks = std::iter::from_fn(|| {
                let chunk: Vec<T> = rest.by_ref().take(LEAF).collect();
                (!chunk.is_empty()).then(|| Arc::new(chunk))
            });
            let behind = from.leaf + 1;
            leaves.splice(behind..behind, chunks.collect::<Vec<_>>());
        }
    }
}

/// The same place, in a leaf also if it is the end. There is a leaf.
fn within<T>(leaves: &[Arc<Vec<T>>], at: At) -> At {
    match leaves.last() {
        Some(last) if at.leaf >= leaves.len() => At { leaf: leaves.len() - 1, item: last.len() },
        _ => at,
    }
}
