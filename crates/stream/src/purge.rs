//! Drops deletions that nothing needs any more (`CompactionIterator.Purger`).
//!
//! A deletion goes when it is older than gc_grace *and* no data outside this compaction could be covered by it.  Cells
//! that have expired but may not go yet become tombstones (their value is dropped, their deletion time is
//! expiration − TTL).  Partitions that become empty disappear.
//!
//! A row that no purge can touch passes through by reference.

use halcyon_model::{DeletionTime, Liveness, NO_TTL};

use crate::fragment::{
    Fragment, FragmentStream, Marker, PartitionKey, PartitionStart, Row, RowDeletion, RowParts,
    Span,
};

/// What may be purged, decided by whoever runs the compaction.
pub trait PurgeRule {
    /// Seconds: deletions made before this are past gc_grace.
    fn gc_before(&self) -> u32;
    /// The compaction's "now" in seconds: what expires at or before it is expired.
    fn now(&self) -> u32;
    /// Materialized views: a row without liveness and without deletion does not exist.
    fn strict_liveness(&self) -> bool;
    /// Called at the start of each partition: the smallest timestamp that data of this partition outside of the
    /// compaction could have; `i64::MAX` if there is none.
    fn min_timestamp_elsewhere(&mut self, key: &PartitionKey) -> i64;
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PurgeStats {
    pub tombstones_purged: u64,
    pub cells_expired: u64,
    pub partitions_dropped: u64,
}

#[derive(Debug, Clone, Copy)]
enum Reached {
    Inner,
    /// The held-back partition start.
    Start,
    /// The inner row or static row, rewritten in `parts`.
    Rewritten,
    Marker {
        close: Option<DeletionTime>,
        open: Option<DeletionTime>,
    },
}

pub struct Purge<S, R> {
    inner: S,
    rule: R,
    /// Start of a partition of which nothing else has come yet.
    start: Option<DeletionTime>,
    key: PartitionKey,
    deletion: DeletionTime,
    /// The inner stream stands at a fragment that comes out after the held start.
    held: bool,
    reached: Reached,
    parts: RowParts,
    elsewhere: Option<i64>,
    stats: PurgeStats,
}

impl<S: FragmentStream, R: PurgeRule> Purge<S, R> {
    pub fn new(inner: S, rule: R) -> Self {
        Purge {
            inner,
            rule,
            start: None,
            key: PartitionKey::empty(),
            deletion: DeletionTime::LIVE,
            held: false,
            reached: Reached::Inner,
            parts: RowParts::empty(),
            elsewhere: None,
            stats: PurgeStats::default(),
        }
    }

    pub fn inner(&self) -> &S {
        &self.inner
    }

    pub fn stats(&self) -> PurgeStats {
        self.stats
    }
}

/// Decides on single deletions of one partition; asks for `min_timestamp_elsewhere` only when it matters.
struct Judge<'a, R> {
    rule: &'a mut R,
    key: &'a PartitionKey,
    elsewhere: &'a mut Option<i64>,
    stats: &'a mut PurgeStats,
}

impl<R: PurgeRule> Judge<'_, R> {
    fn purges(&mut self, timestamp: i64, local_deletion_time: u32) -> bool {
        if local_deletion_time >= self.rule.gc_before() {
            return false;
        }
        let (rule, key) = (&mut *self.rule, self.key);
        let bound = *self.elsewhere.get_or_insert_with(|| rule.min_timestamp_elsewhere(key));
        let purged = timestamp < bound;
        self.stats.tombstones_purged += u64::from(purged);
        purged
    }

    fn deletion(&mut self, time: DeletionTime) -> bool {
        !time.is_live() && self.purges(time.marked_for_delete_at, time.local_deletion_time)
    }

    /// `Row.purge`; false if nothing is left.
    fn row(&mut self, row: Row<'_>, out: &mut RowParts) -> bool {
        let now = self.rule.now();
        out.clear();
        out.clustering = row.clustering_span();
        let expired = row.liveness.is_expiring() && now >= row.liveness.local_expiration_time;
        if !(expired && self.purges(row.liveness.timestamp, row.liveness.local_expiration_time)) {
            out.liveness = row.liveness;
        }
        if !self.deletion(row.deletion.time) {
            out.deletion = row.deletion;
        }
        if self.rule.strict_liveness()
            && out.deletion == RowDeletion::LIVE
            && out.liveness == Liveness::EMPTY
        {
            return false;
        }
        for deletion in row.complex_deletions {
            if !self.deletion(deletion.time) {
                out.complex_deletions.push(*deletion);
            }
        }
        for &cell in row.cells {
            if cell.is_live(now) {
                out.cells.push(cell);
                continue;
            }
            if self.purges(cell.timestamp, cell.local_deletion_time) {
                continue;
            }
            let mut cell = cell;
            if cell.is_expiring() {
                self.stats.cells_expired += 1;
                cell.local_deletion_time =
                    cell.local_deletion_time.saturating_sub(cell.ttl.unsigned_abs());
                cell.ttl = NO_TTL;
                cell.value = Span::default();
                if self.purges(cell.timestamp, cell.local_deletion_time) {
                    continue;
                }
            }
            out.cells.push(cell);
        }
        !(out.liveness.is_empty()
            && out.deletion.time.is_live()
            && out.cells.is_empty()
            && out.complex_deletions.is_empty())
    }

    /// What is left of a marker.
    fn marker(&mut self, marker: Marker<'_>) -> Option<Reached> {
        let keep = |judge: &mut Self, side: Option<DeletionTime>| {
            side.filter(|&deletion| !judge.deletion(deletion))
        };
        let close = keep(self, marker.close);
        let open = keep(self, marker.open);
        if close.is_none() && open.is_none() {
            return None;
        }
        Some(Reached::Marker { close, open })
    }
}

impl<S: FragmentStream, R: PurgeRule> Purge<S, R> {
    /// Looks at the inner fragment; false if it is purged.
    #[inline]
    fn judge(&mut self) -> bool {
        let Purge { inner, rule, key, parts, elsewhere, stats, .. } = self;
        let now = rule.now();
        let mut judge = Judge { rule, key, elsewhere, stats };
        let reached = match inner.fragment() {
            Fragment::Row(row) | Fragment::Static(row) => {
                let touched = row.min_local_deletion_time() <= now
                    || (judge.rule.strict_liveness() && row.liveness.is_empty());
                if !touched {
                    Some(Reached::Inner)
                } else {
                    judge.row(row, parts).then_some(Reached::Rewritten)
                }
            }
            Fragment::Marker(marker) => judge.marker(marker),
            Fragment::Start(_) | Fragment::End => Some(Reached::Inner),
        };
        if let Some(reached) = reached {
            self.reached = reached;
        }
        reached.is_some()
    }

    fn begin_partition(&mut self) {
        let Purge { inner, key, rule, elsewhere, stats, .. } = self;
        if let Fragment::Start(start) = inner.fragment() {
            key.copy_from(start.key);
            *elsewhere = None;
            let mut judge = Judge { rule, key, elsewhere, stats };
            let purged = judge.deletion(start.deletion);
            self.deletion = if purged { DeletionTime::LIVE } else { start.deletion };
            self.start = Some(self.deletion);
        }
    }
}

impl<S: FragmentStream, R: PurgeRule> FragmentStream for Purge<S, R> {
    type Error = S::Error;

    async fn advance(&mut self) -> Result<bool, S::Error> {
        if self.held {
            self.held = false;
            self.judge();
            return Ok(true);
        }
        loop {
            if !self.inner.advance().await? {
                self.reached = Reached::Inner;
                return Ok(false);
            }
            match self.inner.fragment() {
                Fragment::Start(_) => {
                    self.begin_partition();
                    continue;
                }
                Fragment::End if self.start.take_if(|deletion| deletion.is_live()).is_some() => {
                    self.stats.partitions_dropped += 1;
                    continue;
                }
                _ => {}
            }
            if self.start.is_some() {
                let before = self.stats;
                if !self.judge() {
                    continue;
                }
                // Judged again when it comes out, so its statistics must not count twice.
                self.stats = before;
                self.start = None;
                self.held = true;
                self.reached = Reached::Start;
                return Ok(true);
            }
            if self.judge() {
                return Ok(true);
            }
        }
    }

    #[inline]
    fn fragment(&self) -> Fragment<'_> {
        match self.reached {
            Reached::Inner => self.inner.fragment(),
            Reached::Start => {
                Fragment::Start(PartitionStart { key: &self.key, deletion: self.deletion })
            }
            Reached::Rewritten => match self.inner.fragment() {
                Fragment::Static(row) => Fragment::Static(self.parts.over(row.bytes)),
                Fragment::Row(row) => Fragment::Row(self.parts.over(row.bytes)),
                other => other,
            },
            Reached::Marker { close, open } => match self.inner.fragment() {
                Fragment::Marker(marker) => Fragment::Marker(remaining(marker, close, open)),
                other => other,
            },
        }
    }
}

/// The marker with the sides that are left: a boundary that lost one becomes a bound.
fn remaining<'a>(
    marker: Marker<'a>,
    close: Option<DeletionTime>,
    open: Option<DeletionTime>,
) -> Marker<'a> {
    let mut position = marker.position;
    position.kind = match (close, open) {
        (Some(_), None) => position.kind.as_close(),
        (None, Some(_)) => position.kind.as_open(),
        _ => position.kind,
    };
    Marker { position, close, open }
}
