//! Prints a description as JSON.

use halcyon_model::hex;
use halcyon_model::{CqlType, NO_DELETION_TIME};
use halcyon_sstable::format::statistics::header::HeaderColumn;
use halcyon_sstable::format::statistics::histogram::EstimatedHistogram;
use halcyon_tools::describe::{Description, key_text};
use serde_json::{Value, json};

use super::text::type_name;

pub(super) fn of(d: &Description<'_>) -> Value {
    let files: serde_json::Map<String, Value> =
        d.files.iter().map(|(name, size)| (name.clone(), json!(size))).collect();
    json!({
        "sstable": d.listed.descriptor.to_string(),
        "table": d.table.to_string(),
        "format": d.listed.descriptor.version.format.name(),
        "version": d.listed.descriptor.version.to_string(),
        "files": files,
        "toc": d.toc,
        "data": data(d),
        "filter": filter(d),
        "statistics": statistics(d),
        "header": header(d),
    })
}

fn data(d: &Description<'_>) -> Value {
    let compression = d.sstable.compression().map(|info| {
        let options: serde_json::Map<String, Value> =
            info.options.iter().map(|(k, v)| (k.clone(), json!(v))).collect();
        json!({
            "class": info.compressor,
            "options": options,
            "chunk_length": info.chunk_length,
            "max_compressed_length": info.max_compressed_length,
            "chunks": info.chunk_count(),
            "dictionary_id": info.dictionary.as_ref().map(|dictionary| dictionary.id),
        })
    });
    json!({
        "uncompressed_bytes": d.sstable.data_length(),
        "stored_bytes": d.sstable.file_length(),
        "compression": compression,
    })
}

fn filter(d: &Description<'_>) -> Value {
    let chance = d.sstable.statistics().validation.as_ref().map(|v| v.bloom_filter_fp_chance);
    json!({
        "bits": d.filter_bits(),
        "hashes": d.filter.as_ref().map(|filter| filter.hash_count()),
        "fp_chance": chance,
    })
}

fn statistics(d: &Description<'_>) -> Value {
    let statistics = d.sstable.statistics();
    let stats = &statistics.stats;
    let layout = d.sstable.layout();
    let key = |key: &Option<Vec<u8>>| {
        key.as_ref().map(|key| {
            json!({
                "key": key_text(&layout.key_type, key),
                "hex": hex::encode(key),
                "token": layout.partitioner.token(key).0,
            })
        })
    };
    let time = |t: u32| (t != NO_DELETION_TIME).then_some(t);
    let uuid = |id: &Option<[u8; 16]>| {
        id.as_ref().map(|id| halcyon_model::value::to_string(&CqlType::Uuid, id))
    };
    let bins: Vec<Value> =
        stats.tombstone_drop_times.bins.iter().map(|b| json!([b.point, b.count])).collect();
    let log: Vec<Value> = stats
        .commit_log_intervals
        .iter()
        .map(|(a, b)| json!([[a.segment, a.position], [b.segment, b.position]]))
        .collect();
    json!({
        "partitioner": statistics.validation.as_ref().map(|v| &v.partitioner),
        "estimated_keys": d.sstable.estimated_keys(),
        "first_key": key(&stats.first_key),
        "last_key": key(&stats.last_key),
        "rows": stats.total_rows,
        "columns_set": stats.total_columns_set,
        "min_timestamp": stats.min_timestamp,
        "max_timestamp": stats.max_timestamp,
        "min_local_deletion_time": time(stats.min_local_deletion_time),
        "max_local_deletion_time": time(stats.max_local_deletion_time),
        "min_ttl": stats.min_ttl,
        "max_ttl": stats.max_ttl,
        "compression_ratio": stats.compression_ratio,
        "droppable_tombstone_ratio": d.droppable_ratio(),
        "level": stats.level,
        "repaired_at": stats.repaired_at,
        "pending_repair": uuid(&stats.pending_repair),
        "transient": stats.is_transient,
        "originating_host_id": uuid(&stats.originating_host_id),
        "commit_log_intervals": log,
        "legacy_counter_shards": stats.has_legacy_counter_shards,
        "partition_level_deletions": stats.has_partition_level_deletions,
        "partition_sizes": histogram(&stats.partition_sizes),
        "cells_per_partition": histogram(&stats.cells_per_partition),
        "tombstone_drop_times": bins,
    })
}

fn histogram(histogram: &EstimatedHistogram) -> Value {
    let filled = histogram.buckets().filter(|(_, count)| *count > 0);
    let buckets: Vec<Value> = filled.map(|(bound, count)| json!([bound, count])).collect();
    json!({
        "count": histogram.count(),
        "mean": histogram.mean(),
        "p50": histogram.percentile(0.5),
        "p95": histogram.percentile(0.95),
        "p99": histogram.percentile(0.99),
        "max": histogram.percentile(1.0),
        "buckets": buckets,
    })
}

fn header(d: &Description<'_>) -> Value {
    let header = &d.sstable.statistics().header;
    let columns = |columns: &[HeaderColumn]| -> Vec<Value> {
        columns
            .iter()
            .map(|c| {
                json!({
                    "name": String::from_utf8_lossy(&c.name),
                    "type": type_name(c.column_type.cql()),
                    "class": c.column_type.text(),
                })
            })
            .collect()
    };
    let clustering: Vec<String> =
        header.clustering_types.iter().map(|t| type_name(t.cql())).collect();
    json!({
        "min_timestamp": header.min_timestamp,
        "min_local_deletion_time": header.min_local_deletion_time,
        "min_ttl": header.min_ttl,
        "partition_key": type_name(header.key_type.cql()),
        "clustering": clustering,
        "statics": columns(&header.static_columns),
        "regulars": columns(&header.regular_columns),
    })
}
