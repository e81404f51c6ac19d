//! The entries of an index in a memtable.
//!
//! An entry stays when its value is overwritten: to take it out, each write would have to look up what it replaces.

use std::collections::BTreeSet;
use std::ops::Bound;

use halcyon_sstable::attached::{Entry, Place, PlaceRange, Terms};
use halcyon_stream::Mutation;

use super::TableIndex;

pub(crate) struct MemtableIndex {
    pub(crate) of: TableIndex,
    entries: BTreeSet<Entry>,
}

impl MemtableIndex {
    pub(crate) fn new(of: TableIndex) -> MemtableIndex {
        MemtableIndex { of, entries: BTreeSet::new() }
    }

    /// Takes the entries of a mutation of the memtable's layout; returns the growth in bytes.
    pub(crate) fn add(&mut self, mutation: &Mutation) -> usize {
        let MemtableIndex { of, entries } = self;
        let mut grown = 0;
        of.target.of_mutation(mutation, |entry| {
            let size = entry.size();
            if entries.insert(entry) {
                grown += size;
            }
        });
        grown
    }

    /// In order.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    /// How many entries there are of these terms, up to `most`.
    pub(super) fn estimate(&self, terms: &Terms, from: &Place, most: usize) -> u64 {
        self.from(terms, from).take_while(|e| !terms.is_before(&e.term)).take(most).count() as u64
    }

    fn from(&self, terms: &Terms, from: &Place) -> impl Iterator<Item = &Entry> {
        let start = match (terms.single(), &terms.start) {
            (Some(term), _) => Some((term, from.clone())),
            (None, Bound::Included(term) | Bound::Excluded(term)) => {
                Some((&**term, Place::before_token(i64::MIN)))
            }
            (None, Bound::Unbounded) => None,
        };
        let start = start.map(|(term, place)| Entry { term: term.into(), place });
        let bounds = (start.map_or(Bound::Unbounded, Bound::Included), Bound::Unbounded);
        self.entries.range::<Entry, _>(bounds).filter(|entry| !terms.is_behind(&entry.term))
    }

    /// Gives `take` the places of these terms in a range, at most `steps` entries at a time: of a single term in order, until `take` says
    /// `false`. Where to go on, if it is not done.
    pub(super) fn places(
        &self,
        terms: &Terms,
        range: &PlaceRange,
        behind: Option<&Entry>,
        steps: usize,
        take: &mut impl FnMut(&Place) -> bool,
    ) -> Option<Entry> {
        let is_single = terms.single().is_some();
        let mut walk: Box<dyn Iterator<Item = &Entry>> = match behind {
            Some(last) => {
                let bounds = (Bound::Excluded(last), Bound::Unbounded);
                Box::new(self.entries.range::<Entry, _>(bounds))
            }
            None => Box::new(self.from(terms, &range.start)),
        };
        for step in 0..steps {
            let entry = walk.next().filter(|entry| !terms.is_before(&entry.term))?;
            if range.contains(&entry.place) {
                if !take(&entry.place) {
                    return None;
                }
            } else if is_single && range.start <= entry.place {
                return None;
            }
            if step + 1 == steps {
                return Some(entry.clone());
            }
        }
        None
    }
}
