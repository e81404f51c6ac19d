//! `system_views`: what Cassandra 5.0.9 shows of a node.

pub(super) mod batch_metrics;
mod by_table;
pub(super) mod caches;
pub(super) mod clients;
pub(super) mod coordinator_read_latency;
pub(super) mod coordinator_scan_latency;
pub(super) mod coordinator_write_latency;
pub(super) mod cql_metrics;
pub(super) mod disk_usage;
pub(super) mod empty;
pub(super) mod local_read_latency;
pub(super) mod local_scan_latency;
pub(super) mod local_write_latency;
pub(super) mod max_partition_size;
pub(super) mod max_sstable_duration;
pub(super) mod max_sstable_size;
pub(super) mod queries;
pub(super) mod rows_per_read;
pub(super) mod settings;
pub(super) mod slow_queries;
pub(super) mod snapshots;
pub(super) mod sstable_tasks;
pub(super) mod system_properties;
pub(super) mod thread_pools;
pub(super) mod tombstones_per_read;
