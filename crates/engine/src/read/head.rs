//! A cached head of a partition, and then what follows it: memtables and SSTables of the moment when the read began.

use std::cell::Cell;
use std::rc::Rc;

use halcyon_model::DeletionTime;
use halcyon_model::clustering::Position;
use halcyon_stream::{Fragment, FragmentStream, PartitionKey, Slices};

use super::plan::{Plan, Snapshot};
use super::source::Sources;
use crate::Result;
use crate::current::Current;
use crate::memtable::MemtableStream;
use crate::shard::{Shard, ShardTable};

/// The tail after a head, and the means to read it.
pub(super) struct Tail {
    pub(super) shard: Rc<Shard>,
    pub(super) table: Rc<ShardTable>,
    pub(super) current: Rc<Current>,
    pub(super) slices: Slices,
    pub(super) key: PartitionKey,
    pub(super) memtables: Vec<Snapshot>,
}

impl Tail {
    /// The rest at its first fragment behind the partition's start; `None` if there is nothing.
    async fn open(&mut self) -> Result<Option<Sources>> {
        let plan = Plan {
            shard: &self.shard,
            table: &self.table,
            current: self.current.clone(),
            slices: Rc::new(self.slices.clone()),
            row_index: Cell::new(0),
        };
        let mut rest = plan.sources(&self.key, std::mem::take(&mut self.memtables)).await?;
        // The partition has begun already.
        Ok((rest.advance().await? && rest.advance().await?).then_some(rest))
    }

    fn begins_at(&self, position: Position<'_>) -> bool {
        let start = self.slices.slices.first().and_then(|slice| slice.start.as_ref());
        let clusterings = &self.current.layout().clusterings;
        start.is_some_and(|start| clusterings.compare(start.position(), position).is_eq())
    }
}

enum Phase {
    Head,
    /// The head's last marker closes a range tombstone where the rest, which is at its first fragment, begins.
    Closed(Option<Sources>),
    /// As before, and the rest opens one there: both are one boundary, which opens this deletion.
    Boundary(Sources, DeletionTime),
    Tail(Sources),
    /// The partition's end, if the rest has none of its own.
    End,
}

pub(super) struct HeadThenTail {
    head: MemtableStream,
    tail: Tail,
    phase: Phase,
}

impl HeadThenTail {
    pub(super) fn new(head: MemtableStream, tail: Tail) -> HeadThenTail {
        HeadThenTail { head, tail, phase: Phase::Head }
    }

    pub(super) async fn advance(&mut self) -> Result<bool> {
        match std::mem::replace(&mut self.phase, Phase::Head) {
            Phase::Head => {
                if !self.head.advance().await? {
                    return Ok(false);
                }
                match self.head.fragment() {
                    Fragment::End => self.phase = Phase::after(self.tail.open().await?),
                    Fragment::Marker(marker)
                        if marker.open.is_none() && self.tail.begins_at(marker.position) =>
                    {
                        self.phase = Phase::closed(self.tail.open().await?);
                    }
                    _ => {}
                }
                Ok(true)
            }
            Phase::Closed(rest) => {
                self.phase = Phase::after(rest);
                Ok(true)
            }
            Phase::Boundary(mut rest, _) | Phase::Tail(mut rest) => {
                let more = rest.advance().await?;
                self.phase = Phase::Tail(rest);
                Ok(more)
            }
            Phase::End => {
                self.phase = Phase::End;
                Ok(false)
            }
        }
    }

    pub(super) fn fragment(&self) -> Fragment<'_> {
        match &self.phase {
            Phase::Head | Phase::Closed(_) => self.head.fragment(),
            Phase::Boundary(_, open) => match self.head.fragment() {
                Fragment::Marker(mut marker) => {
                    marker.position.kind = marker.position.kind.as_boundary();
                    marker.open = Some(*open);
                    Fragment::Marker(marker)
                }
                fragment => fragment,
            },
            Phase::Tail(tail) => tail.fragment(),
            Phase::End => Fragment::End,
        }
    }
}

impl Phase {
    /// Behind the head, or behind the marker that closes it.
    fn after(rest: Option<Sources>) -> Phase {
        rest.map_or(Phase::End, Phase::Tail)
    }

    fn closed(rest: Option<Sources>) -> Phase {
        let opened = rest.as_ref().and_then(|rest| match rest.fragment() {
            Fragment::Marker(marker) if marker.close.is_none() => marker.open,
            _ => None,
        });
        match (rest, opened) {
            (Some(rest), Some(open)) => Phase::Boundary(rest, open),
            (rest, _) => Phase::Closed(rest),
        }
    }
}
