//! A task: everything that a compaction needs to know of its table and node.

use std::path::Path;

use halcyon_model::CqlType;
use halcyon_model::bytes::{Cursor, DecodeResult};
use halcyon_model::options::{Compressed, Compression, Entries, MapOption, TableOptions};
use halcyon_model::schema::{ColumnDef, ColumnKind, DroppedColumn, TableSchema};
use halcyon_sstable::format::statistics::stats::CommitLogPosition;
use halcyon_sstable::{Descriptor, Format, Version};

use crate::messages::{count, text};

const MOST_COLUMNS: usize = 1 << 16;
const MOST_INPUTS: usize = 1 << 16;
const MOST_TOKENS: usize = 1 << 17;
const MOST_INTERVALS: usize = 1 << 17;

#[derive(Debug, Clone, PartialEq)]
pub struct TaskRequest {
    pub schema: TableSchema,
    pub inputs: Vec<Descriptor>,
    pub version: Version,
    pub compression: Option<Compression>,
    pub bloom_filter_fp_chance: f64,
    pub min_index_interval: u32,
    /// Bytes; `None` for the default.
    pub column_index_size: Option<u64>,
    /// Seconds; 0: nothing is purged.
    pub gc_before: u32,
    pub now: u32,
    pub split: Split,
    pub level: i32,
    pub repaired_at: i64,
    pub pending_repair: Option<[u8; 16]>,
    pub is_transient: bool,
    pub host: Option<[u8; 16]>,
    pub commit_log_intervals: Vec<(CommitLogPosition, CommitLogPosition)>,
    /// Of all inputs together, for the memory.
    pub estimated_keys: u64,
    /// Decode every row of the outputs, not only their checksums.
    pub verify_rows: bool,
}

/// When the next output begins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Split {
    /// Bytes of Data.db.
    pub size: Option<u64>,
    /// Outputs fill levels, each larger than the last by this factor.
    pub level_fanout: Option<u32>,
    /// First tokens, ascending: of disks and of shards.
    pub tokens: Vec<i64>,
}

impl TaskRequest {
    pub(crate) fn decode(cursor: &mut Cursor<'_>) -> DecodeResult<TaskRequest> {
        let schema = schema(cursor)?;
        let inputs = (0..count(cursor, MOST_INPUTS)?).map(|_| descriptor(cursor));
        let inputs = inputs.collect::<DecodeResult<_>>()?;
        let version = version(cursor)?;
        let compression = compression(cursor)?;
        let bloom_filter_fp_chance = cursor.f64()?;
        if !(bloom_filter_fp_chance > 0.0 && bloom_filter_fp_chance <= 1.0) {
            return Err(cursor.error("a chance above 0 and at most 1 expected"));
        }
        Ok(TaskRequest {
            schema,
            inputs,
            version,
            compression,
            bloom_filter_fp_chance,
            min_index_interval: cursor.u32()?.max(1),
            column_index_size: Some(cursor.u64()?).filter(|size| *size > 0),
            gc_before: cursor.u32()?,
            now: cursor.u32()?,
            split: split(cursor)?,
            level: cursor.i32()?,
            repaired_at: cursor.i64()?,
            pending_repair: optional_uuid(cursor)?,
            is_transient: cursor.bool()?,
            host: optional_uuid(cursor)?,
            commit_log_intervals: intervals(cursor)?,
            estimated_keys: cursor.u64()?,
            verify_rows: cursor.bool()?,
        })
    }
}

fn schema(cursor: &mut Cursor<'_>) -> DecodeResult<TableSchema> {
    let mut schema = TableSchema {
        keyspace: text(cursor)?,
        name: text(cursor)?,
        id: None,
        partition_key: Vec::new(),
        clustering: Vec::new(),
        statics: Vec::new(),
        regulars: Vec::new(),
        dropped: Vec::new(),
        options: TableOptions::default(),
        strict_liveness: cursor.bool()?,
    };
    for _ in 0..count(cursor, MOST_COLUMNS)? {
        let kind = column_kind(cursor)?;
        let column = ColumnDef { name: text(cursor)?, cql_type: cql_type(cursor)? };
        let columns = match kind {
            ColumnKind::PartitionKey => &mut schema.partition_key,
            ColumnKind::Clustering => &mut schema.clustering,
            ColumnKind::Static => &mut schema.statics,
            ColumnKind::Regular => &mut schema.regulars,
        };
        columns.push(column);
    }
    for _ in 0..count(cursor, MOST_COLUMNS)? {
        let kind = column_kind(cursor)?;
        let (name, cql_type) = (text(cursor)?, cql_type(cursor)?);
        schema.dropped.push(DroppedColumn { name, cql_type, kind, dropped_time: cursor.i64()? });
    }
    Ok(schema)
}

fn column_kind(cursor: &mut Cursor<'_>) -> DecodeResult<ColumnKind> {
    match cursor.u8()? {
        0 => Ok(ColumnKind::PartitionKey),
        1 => Ok(ColumnKind::Clustering),
        2 => Ok(ColumnKind::Static),
        3 => Ok(ColumnKind::Regular),
        other => Err(cursor.error(format!("unknown kind of column {other}"))),
    }
}

fn cql_type(cursor: &mut Cursor<'_>) -> DecodeResult<CqlType> {
    let class = text(cursor)?;
    CqlType::parse(&class).map_err(|e| cursor.error(e.to_string()))
}

fn descriptor(cursor: &mut Cursor<'_>) -> DecodeResult<Descriptor> {
    let path = text(cursor)?;
    match Descriptor::of_path(Path::new(&path)) {
        Ok((descriptor, _)) => Ok(descriptor),
        Err(what) => Err(cursor.error(what)),
    }
}

fn version(cursor: &mut Cursor<'_>) -> DecodeResult<Version> {
    let (format, letters) = (text(cursor)?, text(cursor)?);
    let format = format.parse::<Format>();
    let version = format.and_then(|format| Version::parse(format, &letters));
    version.map_err(|what| cursor.error(what))
}

fn compression(cursor: &mut Cursor<'_>) -> DecodeResult<Option<Compression>> {
    let mut entries = Entries::new();
    for _ in 0..count(cursor, 64)? {
        let name = text(cursor)?;
        entries.insert(name, text(cursor)?);
    }
    if entries.is_empty() {
        return Ok(None);
    }
    let option = MapOption::<Compressed>::checked(entries);
    let option = option.map_err(|e| cursor.error(e.to_string()))?;
    Ok(option.value().0.clone())
}

fn split(cursor: &mut Cursor<'_>) -> DecodeResult<Split> {
    let size = Some(cursor.u64()?).filter(|size| *size > 0);
    let level_fanout = Some(cursor.u32()?).filter(|fanout| *fanout > 0);
    let tokens = (0..count(cursor, MOST_TOKENS)?).map(|_| cursor.i64());
    let tokens: Vec<i64> = tokens.collect::<DecodeResult<_>>()?;
    if !tokens.is_sorted() {
        return Err(cursor.error("the tokens of outputs are not ascending"));
    }
    Ok(Split { size, level_fanout, tokens })
}

fn optional_uuid(cursor: &mut Cursor<'_>) -> DecodeResult<Option<[u8; 16]>> {
    Ok(if cursor.bool()? { Some(cursor.array()?) } else { None })
}

fn position(cursor: &mut Cursor<'_>) -> DecodeResult<CommitLogPosition> {
    Ok(CommitLogPosition { segment: cursor.i64()?, position: cursor.i32()? })
}

fn intervals(cursor: &mut Cursor<'_>) -> DecodeResult<Vec<(CommitLogPosition, CommitLogPosition)>> {
    let count = count(cursor, MOST_INTERVALS)?;
    (0..count).map(|_| Ok((position(cursor)?, position(cursor)?))).collect()
}
