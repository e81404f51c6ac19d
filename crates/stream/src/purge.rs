//! Purges tombstones (`CompactionIterator.Purger`).
//!
//! A tombstone is purged when it is past gc grace *and* older than all data outside this compaction that it could delete. An
//! expired cell that must stay becomes a tombstone: it loses its value, and its deletion time is its expiration − TTL, so that gc
//! grace counts from the write, as in Cassandra. Empty partitions are dropped.
//!
//! Most rows have no deletion and no TTL. One comparison finds that out, and they pass through by reference.

use halcyon_model::{DeletionTime, Liveness, NO_TTL};

use crate::fragment::{
    Fragment, FragmentStream, Marker, PartitionKey, PartitionStart, Row, RowDeletion, RowParts,
    Span,
};

/// The rule by which one compaction purges.
pub trait PurgeRule {
    /// In seconds: tombstones from before it are past gc grace.
    fn gc_before(&self, key: &PartitionKey) -> u32;
    /// The compaction's time in seconds; an expiration time at or before it has passed. Fixed for the whole compaction, so that
    /// one row is judged the same in each of its cells.
    fn now(&self) -> u32;
    /// For materialized views: a row without liveness and deletion does not exist.
    fn strict_liveness(&self) -> bool;
    /// The smallest timestamp of the partition's data outside this compaction, or a lower bound of it; `i64::MAX` if there is
    /// no such data. Tombstones with a smaller timestamp can be purged. Called once per partition, and only if it has a tombstone
    /// past gc grace: the answer costs a Bloom filter look-up in each overlapping SSTable.
    fn purge_bound(&mut self, key: &PartitionKey) -> i64;
    /// What no partition's bound is below; costs nothing. It may rise and fall as data comes and goes.
    fn purge_floor(&self) -> i64 {
        i64::MIN
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PurgeStats {
    pub tombstones_purged: u64,
    pub cells_expired: u64,
    pub partitions_dropped: u64,
}

#[derive(Debug, Clone, Copy)]
enum Shown {
    Inner,
    /// The partition's start, which was held back.
    Start,
    /// The inner row or static row, with what remains of it in `parts`.
    Rewritten,
    Marker {
        close: Option<DeletionTime>,
        open: Option<DeletionTime>,
    },
}

pub struct Purge<S, R> {
    inner: S,
    rule: R,
    /// The start of a partition is held back until something of the partition remains: an empty partition must not be written.
    start: Option<DeletionTime>,
    key: PartitionKey,
    deletion: DeletionTime,
    /// The inner stream's fragment follows the start that is shown now.
    held: bool,
    shown: Shown,
    parts: RowParts,
    bound: Option<i64>,
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
            shown: Shown::Inner,
            parts: RowParts::empty(),
            bound: None,
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

/// Decides on the tombstones of one partition; calls `purge_bound` at most once.
struct Judge<'a, R> {
    rule: &'a mut R,
    key: &'a PartitionKey,
    bound: &'a mut Option<i64>,
    stats: &'a mut PurgeStats,
}

impl<R: PurgeRule> Judge<'_, R> {
    fn purges(&mut self, timestamp: i64, local_deletion_time: u32) -> bool {
        if local_deletion_time >= self.rule.gc_before(self.key) {
            return false;
        }
        let (rule, key) = (&mut *self.rule, self.key);
        let purged = timestamp < rule.purge_floor()
            || timestamp < *self.bound.get_or_insert_with(|| rule.purge_bound(key));
        self.stats.tombstones_purged += u64::from(purged);
        purged
    }

    fn deletion(&mut self, time: DeletionTime) -> bool {
        !time.is_live() && self.purges(time.marked_for_delete_at, time.local_deletion_time)
    }

    /// `Row.purge`; false if nothing remains.
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

    /// The sides of a marker that remain.
    fn marker(&mut self, marker: Marker<'_>) -> Option<Shown> {
        let keep = |judge: &mut Self, side: Option<DeletionTime>| {
            side.filter(|&deletion| !judge.deletion(deletion))
        };
        let close = keep(self, marker.close);
        let open = keep(self, marker.open);
        if close.is_none() && open.is_none() {
            return None;
        }
        Some(Shown::Marker { close, open })
    }
}

impl<S: FragmentStream, R: PurgeRule> Purge<S, R> {
    /// Judges the inner fragment; false if it is purged.
    #[inline]
    fn judge(&mut self) -> bool {
        let Purge { inner, rule, key, parts, bound, stats, .. } = self;
        let now = rule.now();
        let mut judge = Judge { rule, key, bound, stats };
        let shown = match inner.fragment() {
            Fragment::Row(row) | Fragment::Static(row) => {
                let touched = row.min_local_deletion_time() <= now
                    || (judge.rule.strict_liveness() && row.liveness.is_empty());
                if !touched {
                    Some(Shown::Inner)
                } else {
                    judge.row(row, parts).then_some(Shown::Rewritten)
                }
            }
            Fragment::Marker(marker) => judge.marker(marker),
            Fragment::Start(_) | Fragment::End => Some(Shown::Inner),
        };
        if let Some(shown) = shown {
            self.shown = shown;
        }
        shown.is_some()
    }

    fn begin_partition(&mut self) {
        let Purge { inner, key, rule, bound, stats, .. } = self;
        if let Fragment::Start(start) = inner.fragment() {
            key.copy_from(start.key);
            *bound = None;
            let mut judge = Judge { rule, key, bound, stats };
            let purged = judge.deletion(start.deletion);
            self.deletion = if purged { DeletionTime::LIVE } else { start.deletion };
            self.start = Some(self.deletion);
        }
    }
}

impl<S: FragmentStream, R: PurgeRule> FragmentStream for Purge<S, R> {
    type Error = S::Error;

    async fn advance(&mut self) -> Result<bool, S::Error> {
        loop {
            if let Some(advanced) = self.advance_within(u32::MAX).await? {
                return Ok(advanced);
            }
        }
    }

    async fn advance_within(&mut self, patience: u32) -> Result<Option<bool>, S::Error> {
        if self.held {
            self.held = false;
            self.judge();
            return Ok(Some(true));
        }
        for _ in 0..patience {
            match self.inner.advance_within(patience).await? {
                Some(true) => {}
                Some(false) => {
                    self.shown = Shown::Inner;
                    return Ok(Some(false));
                }
                None => return Ok(None),
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
                // The fragment is judged again when it is shown; its statistics must not count twice.
                self.stats = before;
                self.start = None;
                self.held = true;
                self.shown = Shown::Start;
                return Ok(Some(true));
            }
            if self.judge() {
                return Ok(Some(true));
            }
        }
        Ok(None)
    }

    #[inline]
    fn fragment(&self) -> Fragment<'_> {
        match self.shown {
            Shown::Inner => self.inner.fragment(),
            Shown::Start => {
                Fragment::Start(PartitionStart { key: &self.key, deletion: self.deletion })
            }
            Shown::Rewritten => match self.inner.fragment() {
                Fragment::Static(row) => Fragment::Static(self.parts.over(row.bytes)),
                Fragment::Row(row) => Fragment::Row(self.parts.over(row.bytes)),
                other => other,
            },
            Shown::Marker { close, open } => match self.inner.fragment() {
                Fragment::Marker(marker) => Fragment::Marker(remaining(marker, close, open)),
                other => other,
            },
        }
    }
}

/// The marker with the sides that remain: a boundary that loses one side becomes a bound.
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
