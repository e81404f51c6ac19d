//! Ring positions in a memtable: keys ordered by token, then bytes, and bounds between them. Look-ups compare without copying a key.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::ops::Bound;

use halcyon_stream::PartitionKey;

/// A partition's key, or a bound between keys.
pub(super) trait RingPosition {
    fn token(&self) -> i64;
    /// Before or after all keys with the token, or at `bytes`.
    fn side(&self) -> Ordering;
    fn bytes(&self) -> &[u8];
}

#[derive(Debug)]
pub(super) struct Key(pub(super) PartitionKey);

/// A bound between two partitions; less than every partition after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RingBound {
    BeforeToken(i64),
    AfterToken(i64),
    BeforeKey(PartitionKey),
    AfterKey(PartitionKey),
}

impl RingPosition for PartitionKey {
    fn token(&self) -> i64 {
        self.token
    }

    fn side(&self) -> Ordering {
        Ordering::Equal
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl RingPosition for RingBound {
    fn token(&self) -> i64 {
        match self {
            RingBound::BeforeToken(token) | RingBound::AfterToken(token) => *token,
            RingBound::BeforeKey(key) | RingBound::AfterKey(key) => key.token,
        }
    }

    fn side(&self) -> Ordering {
        match self {
            RingBound::BeforeToken(_) => Ordering::Less,
            RingBound::AfterToken(_) => Ordering::Greater,
            RingBound::BeforeKey(_) | RingBound::AfterKey(_) => Ordering::Equal,
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            RingBound::BeforeKey(key) | RingBound::AfterKey(key) => &key.bytes,
            _ => &[],
        }
    }
}

impl RingBound {
    /// Whether a partition is after the bound.
    pub(crate) fn is_before(&self, key: &PartitionKey) -> bool {
        matches!(
            (compare(self, key), self),
            (Ordering::Less, _) | (Ordering::Equal, RingBound::BeforeKey(_))
        )
    }

    pub(crate) fn token(&self) -> i64 {
        RingPosition::token(self)
    }

    /// The bound for a range of the map.
    pub(super) fn bound(&self) -> Bound<&dyn RingPosition> {
        match self {
            RingBound::BeforeKey(key) => Bound::Included(key),
            other => Bound::Excluded(other),
        }
    }
}

fn compare(a: &dyn RingPosition, b: &dyn RingPosition) -> Ordering {
    a.token()
        .cmp(&b.token())
        .then_with(|| a.side().cmp(&b.side()))
        .then_with(|| a.bytes().cmp(b.bytes()))
}

impl<'a> Borrow<dyn RingPosition + 'a> for Key {
    fn borrow(&self) -> &(dyn RingPosition + 'a) {
        &self.0
    }
}

impl Ord for dyn RingPosition + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        compare(self, other)
    }
}

impl PartialOrd for dyn RingPosition + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for dyn RingPosition + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for dyn RingPosition + '_ {}

impl Ord for Key {
    fn cmp(&self, other: &Key) -> Ordering {
        compare(&self.0, &other.0)
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Key) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Key {}
