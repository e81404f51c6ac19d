//! `halcyon_views`: what Cassandra has no table for: shards, how long requests wait, how and how fast files are read and written.

pub(super) mod commands;
pub(super) mod compaction_backlog;
pub(super) mod compaction_pace;
pub(super) mod findings;
pub(super) mod histograms;
pub(super) mod io_latency;
pub(super) mod io_modes;
pub(super) mod io_operations;
pub(super) mod load_profile_jobs;
pub(super) mod load_profiles;
pub(super) mod logging_levels;
pub(super) mod major_compactions;
pub(super) mod node;
pub(super) mod panels;
pub(super) mod partition_denylist;
mod partition_key;
pub(super) mod request_latency;
pub(super) mod request_logs;
pub(super) mod request_wait;
pub(super) mod sampled_tokens;
pub(super) mod set_apart;
pub(super) mod shards;
pub(super) mod slow_requests;
pub(super) mod sstables_of_partition;
pub(super) mod sstables_per_read;
pub(super) mod table_statistics;
