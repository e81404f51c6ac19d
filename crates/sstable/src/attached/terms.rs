//! The terms that a search asks for.

use std::ops::Bound;

/// Byte-comparable bounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    pub start: Bound<Box<[u8]>>,
    pub end: Bound<Box<[u8]>>,
}

impl Terms {
    pub(super) fn one(term: Box<[u8]>) -> Terms {
        Terms { start: Bound::Included(term.clone()), end: Bound::Included(term) }
    }

    /// The places that are candidates of every search, whatever it asks for.
    pub fn any() -> Terms {
        Terms::one(Box::default())
    }

    /// The one term, if there is only one.
    pub fn single(&self) -> Option<&[u8]> {
        match (&self.start, &self.end) {
            (Bound::Included(start), Bound::Included(end)) if start == end => Some(start),
            _ => None,
        }
    }

    pub fn contains(&self, term: &[u8]) -> bool {
        !self.is_before(term) && !self.is_behind(term)
    }

    /// Whether the terms begin behind this one.
    pub fn is_behind(&self, term: &[u8]) -> bool {
        match &self.start {
            Bound::Included(start) => term < &**start,
            Bound::Excluded(start) => term <= &**start,
            Bound::Unbounded => false,
        }
    }

    /// Whether the terms end before this one.
    pub fn is_before(&self, term: &[u8]) -> bool {
        match &self.end {
            Bound::Included(end) => term > &**end,
            Bound::Excluded(end) => term >= &**end,
            Bound::Unbounded => false,
        }
    }
}
