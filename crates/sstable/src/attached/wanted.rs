//! What an index has of a row, and the rows that a search is left with.

use halcyon_stream::PrimaryKey;

/// Some places, in order: those that a search for more than one value is left with.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a>(pub &'a [PrimaryKey]);

impl Wanted<'_> {
    pub fn has(self, place: &PrimaryKey) -> bool {
        self.0.binary_search(place).is_ok()
    }

    /// Whether one of them has this token.
    pub(super) fn has_token(self, token: i64) -> bool {
        let at = self.0.partition_point(|place| place.token < token);
        self.0.get(at).is_some_and(|place| place.token == token)
    }

    /// Whether one of them can be from one place to another one.
    pub(super) fn is_between(self, first: &PrimaryKey, past: Option<&PrimaryKey>) -> bool {
        let at = self.0.partition_point(|place| place.token < first.token);
        self.0.get(at).is_some_and(|place| past.is_none_or(|past| place.token <= past.token))
    }
}

/// What an index has: the row at `place` has, or had, the value `term`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// Byte-comparable.
    pub term: Box<[u8]>,
    pub place: PrimaryKey,
}

impl Entry {
    /// Bytes of memory.
    pub fn size(&self) -> usize {
        size_of::<Box<[u8]>>() + self.term.len() + self.place.size()
    }
}
