//! Tables by one of their statistics: the largest first, then by name.

use std::cmp::Ordering;

use super::statistics::Statistics;

/// What `-s` accepts, in the order of its message.
pub(super) const SORT_KEYS: [&str; 47] = [
    "average_live_cells_per_slice_last_five_minutes",
    "average_tombstones_per_slice_last_five_minutes",
    "bloom_filter_false_positives",
    "bloom_filter_false_ratio",
    "bloom_filter_off_heap_memory_used",
    "bloom_filter_space_used",
    "compacted_partition_maximum_bytes",
    "compacted_partition_mean_bytes",
    "compacted_partition_minimum_bytes",
    "compression_metadata_off_heap_memory_used",
    "dropped_mutations",
    "full_name",
    "index_summary_off_heap_memory_used",
    "local_read_count",
    "local_read_latency_ms",
    "local_write_latency_ms",
    "maximum_live_cells_per_slice_last_five_minutes",
    "maximum_tombstones_per_slice_last_five_minutes",
    "memtable_cell_count",
    "memtable_data_size",
    "memtable_off_heap_memory_used",
    "memtable_switch_count",
    "number_of_partitions_estimate",
    "off_heap_memory_used_total",
    "pending_flushes",
    "percent_repaired",
    "read_latency",
    "reads",
    "space_used_by_snapshots_total",
    "space_used_live",
    "space_used_total",
    "sstable_compression_ratio",
    "sstable_count",
    "table_name",
    "write_latency",
    "writes",
    "max_sstable_size",
    "local_read_write_ratio",
    "twcs_max_duration",
    "sai_local_query_latency_ms",
    "sai_post_filtering_read_latency",
    "sai_disk_used_bytes",
    "sai_sstable_indexes_hit",
    "sai_index_segments_hit",
    "sai_rows_filtered",
    "sai_total_query_timeouts",
    "sai_total_queryable_index_ratio",
];

/// What is not counted is the same for all tables, which are then in the order of their names.
pub(super) fn sorted<'a, 'r>(
    mut tables: Vec<&'a Statistics<'r>>,
    key: &str,
) -> Vec<&'a Statistics<'r>> {
    tables.sort_by(|a, b| match key {
        "full_name" => b.full_name().cmp(&a.full_name()),
        "table_name" => b.name().cmp(&a.name()),
        _ => {
            let by_value = descending(value(a, key), value(b, key));
            by_value.then_with(|| a.full_name().cmp(&b.full_name()))
        }
    });
    tables
}

/// What was not measured is 0, as in Cassandra.
fn descending(a: f64, b: f64) -> Ordering {
    let known = |value: f64| if value.is_nan() { 0.0 } else { value };
    known(b).total_cmp(&known(a))
}

fn value(of: &Statistics<'_>, key: &str) -> f64 {
    let count = |column: &str| of.count(column) as f64;
    match key {
        "average_live_cells_per_slice_last_five_minutes" => of.mean("rows_per_read_mean"),
        "average_tombstones_per_slice_last_five_minutes" => of.mean("tombstones_per_read_mean"),
        "bloom_filter_false_positives" => count("filter_false_positives"),
        "bloom_filter_false_ratio" => of.mean("filter_false_ratio"),
        "bloom_filter_space_used" => count("filter_bytes"),
        "bloom_filter_off_heap_memory_used" => count("filter_memory"),
        "compacted_partition_maximum_bytes" => count("partition_max"),
        "compacted_partition_mean_bytes" => count("partition_mean"),
        "compacted_partition_minimum_bytes" => count("partition_min"),
        "compression_metadata_off_heap_memory_used" => count("compression_memory"),
        "index_summary_off_heap_memory_used" => count("summary_memory"),
        "local_read_count" | "reads" => count("read_count"),
        "local_read_latency_ms" | "read_latency" => of.milliseconds("read_mean_ns"),
        "local_write_latency_ms" | "write_latency" => of.milliseconds("write_mean_ns"),
        "maximum_live_cells_per_slice_last_five_minutes" => count("rows_per_read_max"),
        "maximum_tombstones_per_slice_last_five_minutes" => count("tombstones_per_read_max"),
        "memtable_data_size" => count("memtable_bytes"),
        "memtable_switch_count" => count("flushes"),
        "number_of_partitions_estimate" => count("partitions"),
        "off_heap_memory_used_total" => of.memory_beside() as f64,
        "pending_flushes" => count("pending_flushes"),
        "percent_repaired" => of.percent_repaired(),
        "space_used_by_snapshots_total" => of.snapshot_bytes as f64,
        "space_used_live" | "space_used_total" => count("disk_space"),
        "sstable_compression_ratio" => of.compression_ratio(),
        "sstable_count" => count("sstables"),
        "writes" => count("write_count"),
        "max_sstable_size" => count("max_sstable_size"),
        "local_read_write_ratio" => of.read_write_ratio(),
        "twcs_max_duration" => match of.window {
            Some(_) => count("max_sstable_duration"),
            None => -1.0,
        },
        _ => 0.0,
    }
}
