//! Checks that fragments follow the grammar: the order of partitions and of clustering positions, the balance of range tombstones.
//! Every writer of fragments runs it, in release builds too: an SSTable out of order would hide rows from look-ups for good.

use std::cmp::Ordering;
use std::sync::Arc;

use halcyon_model::clustering::Position;
use halcyon_model::{BoundKind, DeletionTime};

use crate::fragment::{Fragment, Marker, PartitionKey};
use crate::layout::Layout;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub enum GrammarError {
    /// Versions of one row follow each other; [`Distinct`](crate::Distinct) merges them.
    DuplicateRow {
        what: String,
    },
    Disorder {
        what: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Between,
    AfterStart,
    InRows,
}

pub struct Validator {
    layout: Arc<Layout>,
    phase: Phase,
    key: PartitionKey,
    any_partition: bool,
    kind: BoundKind,
    count: usize,
    serialized: Vec<u8>,
    any_position: bool,
    open: Option<DeletionTime>,
}

fn fail(what: impl Into<String>) -> Result<(), GrammarError> {
    Err(GrammarError::Disorder { what: what.into() })
}

impl Validator {
    pub fn new(layout: Arc<Layout>) -> Validator {
        Validator {
            layout,
            phase: Phase::Between,
            key: PartitionKey::empty(),
            any_partition: false,
            kind: BoundKind::Clustering,
            count: 0,
            serialized: Vec::new(),
            any_position: false,
            open: None,
        }
    }

    /// Checks the next fragment.
    #[inline]
    pub fn check(&mut self, fragment: Fragment<'_>) -> Result<(), GrammarError> {
        match fragment {
            Fragment::Start(start) => self.start(start.key),
            Fragment::Static(_) => {
                if self.phase != Phase::AfterStart {
                    return fail("static row not directly after the partition's start");
                }
                self.phase = Phase::InRows;
                Ok(())
            }
            Fragment::Row(row) => self.position(row.position(self.layout.clusterings.len())),
            Fragment::Marker(marker) => {
                self.position(marker.position)?;
                self.marker(marker)
            }
            Fragment::End => {
                if self.phase == Phase::Between {
                    return fail("partition end without a start");
                }
                if self.open.is_some() {
                    return fail("partition ends with an open range tombstone");
                }
                self.phase = Phase::Between;
                Ok(())
            }
        }
    }

    /// Of the current partition.
    #[inline]
    pub fn key(&self) -> &PartitionKey {
        &self.key
    }

    /// The last row or marker of the current partition.
    pub fn last_position(&self) -> Option<Position<'_>> {
        let serialized = &self.serialized;
        self.any_position.then_some(Position { kind: self.kind, count: self.count, serialized })
    }

    fn start(&mut self, key: &PartitionKey) -> Result<(), GrammarError> {
        if self.phase != Phase::Between {
            return fail("partition starts before the previous one ended");
        }
        if self.any_partition && self.layout.compare_keys(&self.key, key) != Ordering::Less {
            return fail(format!(
                "partition {} (token {}) comes after {} (token {}), not in order",
                hex(&key.bytes),
                key.token,
                hex(&self.key.bytes),
                self.key.token
            ));
        }
        self.key.copy_from(key);
        self.any_partition = true;
        self.any_position = false;
        self.phase = Phase::AfterStart;
        Ok(())
    }

    #[inline]
    fn position(&mut self, position: Position<'_>) -> Result<(), GrammarError> {
        if self.phase == Phase::Between {
            return fail("row outside of a partition");
        }
        self.phase = Phase::InRows;
        if let Some(last) = self.last_position() {
            let order = self.layout.clusterings.compare(last, position);
            if order != Ordering::Less {
                let is_row = |kind| kind == BoundKind::Clustering;
                return self.misplaced(position, order.is_eq() && is_row(last.kind));
            }
        }
        self.any_position = true;
        self.kind = position.kind;
        self.count = position.count;
        self.serialized.clear();
        self.serialized.extend_from_slice(position.serialized);
        Ok(())
    }

    #[cold]
    fn misplaced(&self, position: Position<'_>, is_duplicate: bool) -> Result<(), GrammarError> {
        let (key, clustering) = (hex(&self.key.bytes), hex(position.serialized));
        if is_duplicate {
            let what = format!("a row twice in partition {key}: clustering {clustering}");
            return Err(GrammarError::DuplicateRow { what });
        }
        fail(format!(
            "rows out of order in partition {key}: clustering {clustering} after {}",
            hex(&self.serialized)
        ))
    }

    fn marker(&mut self, marker: Marker<'_>) -> Result<(), GrammarError> {
        let kind = marker.position.kind;
        if kind.closes() != marker.close.is_some() || kind.opens() != marker.open.is_some() {
            return fail(format!("range tombstone marker {kind:?} with deletions of another kind"));
        }
        if self.open.is_some() != marker.close.is_some() {
            return fail(match self.open {
                Some(_) => "range tombstone opens inside another",
                None => "range tombstone closes that was not open",
            });
        }
        if self.open != marker.close {
            return fail("range tombstone closes with another deletion than it opened with");
        }
        self.open = marker.open;
        Ok(())
    }
}

fn hex(bytes: &[u8]) -> String {
    const SHOWN: usize = 64;
    let mut text = halcyon_model::hex::encode(bytes.get(..SHOWN).unwrap_or(bytes));
    if bytes.len() > SHOWN {
        text.push('…');
    }
    text
}
