//! Properties that outputs inherit from their inputs: kind of identifier, bases of deltas, repair state, commit log positions.

use std::path::Path;
use std::sync::Arc;

use halcyon_io::Disk;
use halcyon_model::{NO_DELETION_TIME, NO_TIMESTAMP, uuid};
use halcyon_sstable::format::listing;
use halcyon_sstable::format::statistics::collector::Provenance;
use halcyon_sstable::format::statistics::stats::CommitLogPosition;
use halcyon_sstable::{Bases, SSTable, SSTableId, Version};

use crate::Result;

/// The inputs, ordered by their newest timestamp, which decides ties between equal cells.
pub(crate) fn oldest_first(inputs: &[Arc<SSTable>]) -> impl Iterator<Item = &Arc<SSTable>> {
    let mut sorted: Vec<&Arc<SSTable>> = inputs.iter().collect();
    sorted.sort_by_key(|i| (i.statistics().stats.max_timestamp, i.descriptor().clone()));
    sorted.into_iter()
}

fn fresh_uuid_id(disk: &Disk) -> SSTableId {
    let nanos = u64::try_from(disk.clock().unix_micros()).unwrap_or(0).saturating_mul(1000);
    SSTableId::fresh(nanos, disk.runtime().random().next_u64())
}

/// A timeuuid as text.
pub fn transaction_id(disk: &Disk) -> String {
    uuid::text(&fresh_uuid_id(disk).to_uuid().unwrap_or_default())
}

/// An identifier of the inputs' kind that is unused in the folders of the output and the inputs.
pub(crate) async fn fresh_id(
    disk: &Disk,
    inputs: &[Arc<SSTable>],
    output: &Path,
) -> Result<SSTableId> {
    if inputs.iter().any(|i| matches!(i.descriptor().id, SSTableId::Uuid(_))) {
        return Ok(fresh_uuid_id(disk));
    }
    // SSTables that are not compacted stay in the inputs' folders and could be moved to the output's later.
    let mut folders: Vec<&Path> =
        inputs.iter().map(|i| i.descriptor().directory.as_path()).collect();
    folders.push(output);
    folders.sort_unstable();
    folders.dedup();
    let mut ids = Vec::new();
    for folder in folders {
        let entries = disk.list(folder).await?;
        let listed = listing::group(folder, entries.iter().map(|entry| &entry.name));
        ids.extend(listed.sstables.into_iter().map(|s| s.descriptor.id));
    }
    let highest = ids.into_iter().filter_map(|id| match id {
        SSTableId::Sequence(n) => Some(n),
        SSTableId::Uuid(_) => None,
    });
    Ok(SSTableId::Sequence(highest.max().map_or(1, |n| n.saturating_add(1))))
}

/// The minima of the inputs (`SerializationHeader.make`); Cassandra's epochs for missing values.
pub(crate) fn bases(inputs: &[Arc<SSTable>]) -> Bases {
    let stats = || inputs.iter().map(|i| &i.statistics().stats);
    let timestamps = stats().map(|s| s.min_timestamp).filter(|t| *t != NO_TIMESTAMP);
    let times = stats().map(|s| s.min_local_deletion_time).filter(|t| *t != NO_DELETION_TIME);
    Bases {
        timestamp: timestamps.min().unwrap_or(Bases::NONE.timestamp),
        local_deletion_time: times.min().map_or(Bases::NONE.local_deletion_time, i64::from),
        ttl: stats().map(|s| s.min_ttl).min().unwrap_or(Bases::NONE.ttl),
    }
}

/// The version to write instead of `wanted` if that cannot hold what the inputs may have. Statistics do not tell deletions from other
/// negative timestamps: deletions are assumed.
pub fn version_holding(
    wanted: Version,
    inputs: &[Arc<SSTable>],
    late_expirations: bool,
) -> Version {
    wanted.holding(bases(inputs).timestamp < 0, late_expirations)
}

/// Sets repair state and commit log positions. All inputs have the same pending repair and transience.
pub(crate) fn inherit(provenance: &mut Provenance, inputs: &[Arc<SSTable>]) {
    let stats = || inputs.iter().map(|i| &i.statistics().stats);
    provenance.repaired_at = stats().map(|s| s.repaired_at).min().unwrap_or(0);
    provenance.level = stats().map(|s| s.level).min().unwrap_or(0);
    if let Some(first) = stats().next() {
        provenance.pending_repair = first.pending_repair;
        provenance.is_transient = first.is_transient;
        let same_host = stats().all(|s| s.originating_host_id == first.originating_host_id);
        if same_host {
            provenance.originating_host_id = first.originating_host_id;
            provenance.commit_log_intervals =
                union(stats().flat_map(|s| s.commit_log_intervals.iter().copied()).collect());
        }
    }
}

type Interval = (CommitLogPosition, CommitLogPosition);

/// Sorts intervals and merges those that touch.
fn union(mut intervals: Vec<Interval>) -> Vec<Interval> {
    intervals.sort_unstable();
    let mut joined: Vec<Interval> = Vec::with_capacity(intervals.len());
    for (start, end) in intervals {
        match joined.last_mut() {
            Some((_, last)) if start <= *last => *last = end.max(*last),
            _ => joined.push((start, end)),
        }
    }
    joined
}
