//! The terms of one value.
//!
//! A long text has thousands of them: one behind the other, they take a few bytes each, where an entry takes a hundred.

use halcyon_stream::PrimaryKey;

use super::{Entry, Terms};

/// What a value has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Held {
    One(Box<[u8]>),
    Several(TermSet),
}

/// Terms in order, each once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TermSet {
    bytes: Box<[u8]>,
    /// Where each of them ends; empty where all are as long as the first.
    ends: Box<[u32]>,
    length: usize,
}

impl Held {
    /// How many terms there are.
    pub fn count(&self) -> usize {
        match self {
            Held::One(_) => 1,
            Held::Several(terms) => terms.len(),
        }
    }

    pub fn entries(self, place: PrimaryKey) -> impl Iterator<Item = Entry> {
        let (one, several) = match self {
            Held::One(term) => (Some(term), TermSet::default()),
            Held::Several(terms) => (None, terms),
        };
        let several = (0..several.len()).map(move |at| several.get(at).into());
        one.into_iter().chain(several).map(move |term| Entry { term, place: place.clone() })
    }
}

impl TermSet {
    /// Of terms that take less than 4 GiB.
    pub fn of(mut terms: Vec<Box<[u8]>>) -> TermSet {
        terms.sort_unstable();
        terms.dedup();
        let length = terms.first().map_or(0, |term| term.len());
        let bytes = terms.concat();
        let mut end = 0;
        let ends = terms.iter().map(|term| {
            end += term.len();
            u32::try_from(end).unwrap_or(u32::MAX)
        });
        let is_even = terms.iter().all(|term| term.len() == length) && length > 0;
        let ends = if is_even { Box::default() } else { ends.collect() };
        TermSet { bytes: bytes.into(), ends, length }
    }

    pub fn len(&self) -> usize {
        match self.ends.is_empty() {
            true => self.bytes.len().checked_div(self.length).unwrap_or(0),
            false => self.ends.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory beside its own.
    pub fn size(&self) -> usize {
        self.bytes.len() + size_of_val(&*self.ends)
    }

    fn get(&self, at: usize) -> &[u8] {
        let end = |at: usize| self.ends.get(at).map_or(0, |end| *end as usize);
        let range = match self.ends.is_empty() {
            true => at * self.length..(at + 1) * self.length,
            false => at.checked_sub(1).map_or(0, end)..end(at),
        };
        self.bytes.get(range).unwrap_or_default()
    }

    /// Whether one of its terms is asked for.
    pub fn has(&self, asked: &Terms) -> bool {
        let (mut from, mut to) = (0, self.len());
        while from < to {
            let middle = from.midpoint(to);
            match asked.is_behind(self.get(middle)) {
                true => from = middle + 1,
                false => to = middle,
            }
        }
        from < self.len() && asked.contains(self.get(from))
    }

    /// The terms of both.
    #[must_use]
    pub fn with(&self, other: &TermSet) -> TermSet {
        let all = |set: &TermSet| (0..set.len()).map(|at| set.get(at).into()).collect::<Vec<_>>();
        TermSet::of([all(self), all(other)].concat())
    }
}
