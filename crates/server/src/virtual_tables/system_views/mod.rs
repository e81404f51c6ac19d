//! `system_views`: what Cassandra 5.0.9 shows of a node.

pub(super) mod batch_metrics;
pub(super) mod by_table;
pub(super) mod cache_keys;
pub(super) mod caches;
pub(super) mod cidr_filtering;
pub(super) mod clients;
pub(super) mod cql_metrics;
pub(super) mod empty;
pub(super) mod max_sstable_duration;
pub(super) mod queries;
pub(super) mod settings;
pub(super) mod slow_queries;
pub(super) mod snapshots;
pub(super) mod sstable_tasks;
pub(super) mod system_logs;
pub(super) mod system_properties;
pub(super) mod thread_pools;
