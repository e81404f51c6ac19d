//! What reads of a shard's part of a table have in common.

use std::rc::Rc;
use std::sync::Arc;

use halcyon_cql::plan::restrictions::TokenBounds;
use halcyon_engine::{Measure, RangeBound, ReadSamples, Shard, TokenRange};
use halcyon_io::clock::{Instant, now};
use halcyon_model::BoundKind;
use halcyon_model::clustering::PositionBuf;
use halcyon_scan::{ReadCounts, Scan, Watch};
use halcyon_stream::{Layout, PartitionKey, Slice, Slices, TableId};

use crate::{Error, Failure};

/// Partitions that are open at the same time.
pub(super) const AT_ONCE: usize = 16;

/// A shard's part of a scan, for the metrics of its table.
pub(super) struct Measured {
    began: Instant,
    before: ReadCounts,
    /// And the partition; `None`: the table is not sampled.
    samples: Option<(ReadSamples, Option<PartitionKey>)>,
}

impl Measured {
    /// `key`: of a read of one partition.
    pub(super) fn new(shard: &Rc<Shard>, scan: &mut Scan, key: Option<&PartitionKey>) -> Measured {
        let began = if scan.clock_read.0 == shard.index() { scan.clock_read.1 } else { now() };
        let samples = match shard.is_profiled() {
            true => shard.read_samples(scan.select.plan.table.id),
            false => None,
        };
        if let Some(samples) = &samples {
            scan.begin_watch(Box::new(Partitions(samples.clone())));
        }
        let samples = samples.map(|samples| (samples, key.cloned()));
        Measured { began, before: scan.counts(), samples }
    }

    pub(super) fn end(self, shard: &Rc<Shard>, scan: &mut Scan, table: TableId, measure: Measure) {
        let ended = now();
        let counts = scan.counts() - self.before;
        shard.observe_read(table, measure, (self.began, ended), (counts.rows, counts.tombstones));
        scan.clock_read = (shard.index(), ended);
        if let Some((samples, key)) = self.samples {
            scan.end_watch();
            let key = key.as_ref().map(|key| key.bytes.as_slice());
            samples.command(ended - self.began, || scan.command(key));
        }
    }
}

#[derive(Debug)]
struct Partitions(ReadSamples);

impl Watch for Partitions {
    fn partition(&self, key: &[u8], found: ReadCounts) {
        self.0.partition(key, found.rows, found.tombstones);
    }
}

pub(super) fn token_range(bounds: &TokenBounds) -> TokenRange {
    let start = match bounds.start {
        None | Some((i64::MIN, _)) => RangeBound::Open,
        Some((token, true)) => RangeBound::BeforeToken(token),
        Some((token, false)) => RangeBound::AfterToken(token),
    };
    let end = match bounds.end {
        None | Some((i64::MIN, _)) => RangeBound::Open,
        Some((token, true)) => RangeBound::AfterToken(token),
        Some((token, false)) => RangeBound::BeforeToken(token),
    };
    TokenRange { start, end }
}

/// The slices that lie behind a row, in the direction of the read.
pub(super) fn behind_row(layout: &Layout, slices: &Slices, clustering: &[u8]) -> Slices {
    let bound = |kind: BoundKind| PositionBuf {
        kind,
        count: layout.clusterings.len(),
        serialized: clustering.to_vec(),
    };
    let behind = if slices.reversed {
        Slice { start: None, end: Some(bound(BoundKind::ExclEnd)) }
    } else {
        Slice { start: Some(bound(BoundKind::ExclStart)), end: None }
    };
    let left = slices.slices.iter().filter_map(|slice| slice.intersect(&behind, layout));
    Slices { slices: Arc::new(left.collect()), ..*slices }
}

/// The error of a paging state that is damaged, or of another statement.
pub(super) fn invalid_state() -> Error {
    Error::Protocol("Invalid value for the paging state".into())
}

/// The error of an index that cannot be searched now.
pub(super) fn index_not_available(scan: &Scan) -> Error {
    let failure = Failure::IndexNotAvailable;
    Error::ReadFailure { failure, consistency: scan.consistency() }
}
