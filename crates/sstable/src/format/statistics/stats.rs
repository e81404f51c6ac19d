//! STATS: what Cassandra knows of an SSTable without reading its data.
//!
//! Fields in the order of the file; brackets name the first version that has them:
//!
//! ```text
//! partition sizes, cells per partition │ commit log upper bound │ min, max: timestamp, local deletion time, TTL
//! compression ratio │ tombstone drop times │ level │ repairedAt │ covered clustering │ legacy counter shards
//! columns set, rows │ commit log lower bound [mb], intervals [mc] │ pending repair, transient [na] │ host id [me, nb]
//! partition deletions │ first, last key │ token space coverage [oa] │ padding [oa]
//! ```
//!
//! The padding is Cassandra's: it declares 16 bytes for each tombstone bin and writes 12, and the rest of the
//! declared length stays zero.  Readers skip whatever follows the last field that they know.

use halcyon_model::bytes::Put;
use halcyon_model::time::NO_DELETION_TIME;
use halcyon_model::{Cursor, DecodeResult};

use super::covered::CoveredClustering;
use super::header::HeaderType;
use super::histogram::EstimatedHistogram;
use super::tombstones::TombstoneHistogram;
use crate::format::version::Version;

/// Of an uncompressed SSTable.
pub const NO_COMPRESSION_RATIO: f64 = -1.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CommitLogPosition {
    pub segment: i64,
    pub position: i32,
}

impl CommitLogPosition {
    pub const NONE: CommitLogPosition = CommitLogPosition { segment: -1, position: 0 };
}

#[derive(Debug, Clone, PartialEq)]
pub struct Stats {
    pub partition_sizes: EstimatedHistogram,
    pub cells_per_partition: EstimatedHistogram,
    /// Stretches of the originating host's commit log that this SSTable makes obsolete, ascending.
    pub commit_log_intervals: Vec<(CommitLogPosition, CommitLogPosition)>,
    /// µs; `i64::MIN` and `i64::MAX` if nothing has one.
    pub min_timestamp: i64,
    pub max_timestamp: i64,
    /// Seconds; `NO_DELETION_TIME` if nothing, or something, never ends.
    pub min_local_deletion_time: u32,
    pub max_local_deletion_time: u32,
    /// Seconds; 0 for no TTL.
    pub min_ttl: i32,
    pub max_ttl: i32,
    pub compression_ratio: f64,
    pub tombstone_drop_times: TombstoneHistogram,
    pub level: i32,
    /// ms; 0: unrepaired.
    pub repaired_at: i64,
    pub covered: CoveredClustering,
    pub has_legacy_counter_shards: bool,
    pub total_columns_set: i64,
    pub total_rows: i64,
    /// A UUID.
    pub pending_repair: Option<[u8; 16]>,
    pub is_transient: bool,
    /// A UUID.
    pub originating_host_id: Option<[u8; 16]>,
    /// Assumed of older files that have any deletion.
    pub has_partition_level_deletions: bool,
    pub first_key: Option<Vec<u8>>,
    pub last_key: Option<Vec<u8>>,
    /// NaN: unknown.
    pub token_space_coverage: f64,
}

/// Offsets of the mutable fields from the start of the component.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MutableFields {
    /// i32 level, i64 repairedAt.
    pub(super) level_at: usize,
    /// Pending repair and "transient"; empty before `na`.
    pub(super) repair_at: usize,
    pub(super) repair_end: usize,
}

/// The bytes before the level.
struct Measures {
    partition_sizes: EstimatedHistogram,
    cells_per_partition: EstimatedHistogram,
    commit_log_upper: CommitLogPosition,
    timestamps: (i64, i64),
    local_deletion_times: (u32, u32),
    ttls: (i32, i32),
    compression_ratio: f64,
    tombstone_drop_times: TombstoneHistogram,
}

impl Stats {
    /// `clustering_types` are the header's. Leaves what follows the last field.
    pub fn decode(
        cursor: &mut Cursor<'_>,
        version: Version,
        clustering_types: &[HeaderType],
    ) -> DecodeResult<Stats> {
        Stats::decode_with_fields(cursor, version, clustering_types).map(|(stats, _)| stats)
    }

    pub(super) fn decode_with_fields(
        cursor: &mut Cursor<'_>,
        version: Version,
        clustering_types: &[HeaderType],
    ) -> DecodeResult<(Stats, MutableFields)> {
        let start = cursor.index();
        let measures = Measures::decode(cursor, version)?;
        let mut fields = MutableFields { level_at: cursor.index() - start, ..Default::default() };
        let level = cursor.i32()?;
        cursor.note(|| format!("level {level}"));
        let repaired_at = cursor.i64()?;
        cursor.note(|| format!("repairedAt {repaired_at}"));
        let covered = CoveredClustering::decode(cursor, version, clustering_types)?;
        let has_legacy_counter_shards = cursor.bool()?;
        cursor.note(|| format!("legacy counter shards: {has_legacy_counter_shards}"));
        let total_columns_set = cursor.i64()?;
        cursor.note(|| format!("{total_columns_set} columns set"));
        let total_rows = cursor.i64()?;
        cursor.note(|| format!("{total_rows} rows"));
        let commit_log_intervals = decode_intervals(cursor, version, measures.commit_log_upper)?;
        fields.repair_at = cursor.index() - start;
        let pending_repair = decode_uuid(cursor, version.has_pending_repair(), "pending repair")?;
        let is_transient = version.has_is_transient() && cursor.bool()?;
        fields.repair_end = cursor.index() - start;
        if version.has_is_transient() {
            cursor.note(|| format!("transient: {is_transient}"));
        }
        let originating_host_id = decode_uuid(cursor, version.has_host_id(), "host id")?;
        let mut stats = Stats {
            partition_sizes: measures.partition_sizes,
            cells_per_partition: measures.cells_per_partition,
            commit_log_intervals,
            min_timestamp: measures.timestamps.0,
            max_timestamp: measures.timestamps.1,
            min_local_deletion_time: measures.local_deletion_times.0,
            max_local_deletion_time: measures.local_deletion_times.1,
            min_ttl: measures.ttls.0,
            max_ttl: measures.ttls.1,
            compression_ratio: measures.compression_ratio,
            tombstone_drop_times: measures.tombstone_drop_times,
            level,
            repaired_at,
            covered,
            has_legacy_counter_shards,
            total_columns_set,
            total_rows,
            pending_repair,
            is_transient,
            originating_host_id,
            has_partition_level_deletions: measures.local_deletion_times.0 != NO_DELETION_TIME,
            first_key: None,
            last_key: None,
            token_space_coverage: f64::NAN,
        };
        stats.decode_range(cursor, version)?;
        Ok((stats, fields))
    }

    /// What `oa` added.
    fn decode_range(&mut self, cursor: &mut Cursor<'_>, version: Version) -> DecodeResult<()> {
        if version.has_partition_level_deletions_marker() {
            self.has_partition_level_deletions = cursor.bool()?;
            let has = self.has_partition_level_deletions;
            cursor.note(|| format!("partition deletions: {has}"));
        }
        if version.has_key_range() {
            let first = cursor.vbytes()?;
            cursor.note(|| format!("first key, {} bytes", first.len()));
            let last = cursor.vbytes()?;
            cursor.note(|| format!("last key, {} bytes", last.len()));
            self.first_key = Some(first.to_vec());
            self.last_key = Some(last.to_vec());
        }
        if version.has_token_space_coverage() {
            self.token_space_coverage = cursor.f64()?;
            let coverage = self.token_space_coverage;
            cursor.note(|| format!("token space coverage {coverage}"));
        }
        Ok(())
    }

    pub fn encode(&self, version: Version, out: &mut Vec<u8>) {
        self.partition_sizes.encode(out);
        self.cells_per_partition.encode(out);
        let upper = self.commit_log_intervals.last().map(|(_, end)| *end);
        upper.unwrap_or(CommitLogPosition::NONE).encode(out);
        out.put_i64(self.min_timestamp);
        out.put_i64(self.max_timestamp);
        for time in [self.min_local_deletion_time, self.max_local_deletion_time] {
            out.put_u32(if version.has_uint_deletion_time() { time } else { legacy_time(time) });
        }
        out.put_i32(self.min_ttl);
        out.put_i32(self.max_ttl);
        out.put_f64(self.compression_ratio);
        self.tombstone_drop_times.encode(version, out);
        out.put_i32(self.level);
        out.put_i64(self.repaired_at);
        self.covered.encode(version, out);
        out.put_bool(self.has_legacy_counter_shards);
        out.put_i64(self.total_columns_set);
        out.put_i64(self.total_rows);
        self.encode_intervals(version, out);
        encode_repair(self.pending_repair, self.is_transient, version, out);
        if version.has_host_id() {
            encode_uuid(self.originating_host_id, out);
        }
        if version.has_partition_level_deletions_marker() {
            out.put_bool(self.has_partition_level_deletions);
        }
        if version.has_key_range() {
            out.put_vbytes(self.first_key.as_deref().unwrap_or_default());
            out.put_vbytes(self.last_key.as_deref().unwrap_or_default());
        }
        if version.has_token_space_coverage() {
            out.put_f64(self.token_space_coverage);
        }
        if version.has_uint_deletion_time() {
            out.resize(out.len() + 4 * self.tombstone_drop_times.bins.len(), 0);
        }
    }

    fn encode_intervals(&self, version: Version, out: &mut Vec<u8>) {
        if version.has_commit_log_lower_bound() {
            let lower = self.commit_log_intervals.first().map(|(start, _)| *start);
            lower.unwrap_or(CommitLogPosition::NONE).encode(out);
        }
        if version.has_commit_log_intervals() {
            out.put_i32(self.commit_log_intervals.len() as i32);
            for (start, end) in &self.commit_log_intervals {
                start.encode(out);
                end.encode(out);
            }
        }
    }
}

impl Measures {
    fn decode(cursor: &mut Cursor<'_>, version: Version) -> DecodeResult<Measures> {
        let partition_sizes = EstimatedHistogram::decode(cursor, "partition sizes")?;
        let cells_per_partition = EstimatedHistogram::decode(cursor, "cells per partition")?;
        let commit_log_upper = CommitLogPosition::decode(cursor, "commit log upper bound")?;
        let timestamps = (cursor.i64()?, cursor.i64()?);
        cursor.note(|| format!("timestamps {} to {}", timestamps.0, timestamps.1));
        let time = |stored: u32| match (version.has_uint_deletion_time(), stored as i32) {
            (false, i32::MAX) => NO_DELETION_TIME,
            // Overflowed times of old files are negative there: far in the future keeps the data.
            _ => stored,
        };
        let mut local_deletion_times = (time(cursor.u32()?), time(cursor.u32()?));
        cursor.note(|| {
            let (min, max) = local_deletion_times;
            format!("local deletion times {min} to {max} ({NO_DELETION_TIME}: none)")
        });
        // An overflowed maximum is the smaller number. Taken as it is, it says that all has expired.
        if let (min, max) = local_deletion_times
            && min > max
        {
            cursor.remark(format!("local deletion times from {min} to {max}"));
            local_deletion_times = (max, min);
        }
        let ttls = (cursor.i32()?, cursor.i32()?);
        cursor.note(|| format!("TTLs {} to {}", ttls.0, ttls.1));
        let compression_ratio = cursor.f64()?;
        cursor.note(|| format!("compression ratio {compression_ratio}"));
        let tombstone_drop_times = TombstoneHistogram::decode(cursor, version)?;
        Ok(Measures {
            partition_sizes,
            cells_per_partition,
            commit_log_upper,
            timestamps,
            local_deletion_times,
            ttls,
            compression_ratio,
            tombstone_drop_times,
        })
    }
}

/// As versions before `oa` store it.
pub(crate) fn legacy_time(time: u32) -> u32 {
    const LEGACY_NONE: u32 = i32::MAX as u32;
    if time == NO_DELETION_TIME { LEGACY_NONE } else { time.min(LEGACY_NONE - 1) }
}

impl CommitLogPosition {
    fn read(cursor: &mut Cursor<'_>) -> DecodeResult<CommitLogPosition> {
        Ok(CommitLogPosition { segment: cursor.i64()?, position: cursor.i32()? })
    }

    fn decode(cursor: &mut Cursor<'_>, what: &str) -> DecodeResult<CommitLogPosition> {
        let read = CommitLogPosition::read(cursor)?;
        cursor.note(|| format!("{what}: segment {}, position {}", read.segment, read.position));
        Ok(read)
    }

    fn encode(self, out: &mut Vec<u8>) {
        out.put_i64(self.segment);
        out.put_i32(self.position);
    }
}

fn decode_intervals(
    cursor: &mut Cursor<'_>,
    version: Version,
    upper: CommitLogPosition,
) -> DecodeResult<Vec<(CommitLogPosition, CommitLogPosition)>> {
    let lower = if version.has_commit_log_lower_bound() {
        CommitLogPosition::decode(cursor, "commit log lower bound")?
    } else {
        CommitLogPosition::NONE
    };
    if !version.has_commit_log_intervals() {
        let some = upper != CommitLogPosition::NONE;
        return Ok(some.then_some((lower, upper)).into_iter().collect());
    }
    let n = cursor.i32()?;
    let sound = usize::try_from(n).ok().filter(|n| *n <= cursor.remaining() / 24);
    let n = sound.ok_or_else(|| cursor.error(format!("{n} commit log intervals")))?;
    cursor.note(|| format!("{n} commit log intervals"));
    let mut intervals = Vec::with_capacity(n);
    for i in 0..n {
        let interval = (CommitLogPosition::read(cursor)?, CommitLogPosition::read(cursor)?);
        cursor.note(|| format!("commit log interval {i}: {interval:?}"));
        intervals.push(interval);
    }
    Ok(intervals)
}

fn decode_uuid(
    cursor: &mut Cursor<'_>,
    is_stored: bool,
    what: &str,
) -> DecodeResult<Option<[u8; 16]>> {
    if !is_stored {
        return Ok(None);
    }
    let uuid = if cursor.bool()? { Some(cursor.array()?) } else { None };
    cursor.note(|| match uuid {
        Some(uuid) => format!("{what} {:032x}", u128::from_be_bytes(uuid)),
        None => format!("no {what}"),
    });
    Ok(uuid)
}

fn encode_uuid(uuid: Option<[u8; 16]>, out: &mut Vec<u8>) {
    out.put_bool(uuid.is_some());
    out.put(uuid.as_ref().map_or(&[], |uuid| &uuid[..]));
}

/// The fields that `MutableFields::repair_at` points at.
pub(super) fn encode_repair(
    pending_repair: Option<[u8; 16]>,
    is_transient: bool,
    version: Version,
    out: &mut Vec<u8>,
) {
    if version.has_pending_repair() {
        encode_uuid(pending_repair, out);
    }
    if version.has_is_transient() {
        out.put_bool(is_transient);
    }
}
