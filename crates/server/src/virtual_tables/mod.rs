//! Virtual tables: rows are computed when they are read.
//!
//! Each table is a file of its own, `<keyspace>/<table>.rs`: its CREATE TABLE as Cassandra 5.0.9 describes it, beside the function that
//! computes its rows. [`REGISTERED`] lists them all; tables of what Halcyon does not do are in `system_views/empty.rs`.
//!
//! 1. At the start the registry (`registry.rs`) parses the definitions; the engine puts the keyspaces into its catalog.
//! 2. A read finds the table by its id and runs its function: `rows.rs`.
//! 3. A few tables take writes as commands: `write.rs`.

pub(crate) mod facts;
mod halcyon_views;
pub(crate) mod registry;
mod rows;
pub(crate) mod servers;
mod system_metrics;
mod system_views;
mod system_virtual_schema;
pub(crate) mod table;
pub(crate) mod tables;
#[cfg(test)]
mod tests;
mod write;

use registry::Registry;
use table::VirtualTable;

/// Every virtual table that has rows, but for `system_metrics`. A new one is a file, its `mod` line, and a line here.
const REGISTERED: [VirtualTable; 58] = [
    system_views::batch_metrics::TABLE,
    system_views::cache_keys::CREDENTIALS,
    system_views::cache_keys::NETWORK_PERMISSIONS,
    system_views::cache_keys::PERMISSIONS,
    system_views::cache_keys::ROLES,
    system_views::caches::TABLE,
    system_views::cidr_filtering::COUNTS,
    system_views::cidr_filtering::LATENCIES,
    system_views::clients::TABLE,
    system_views::by_table::COORDINATOR_READ_LATENCY,
    system_views::by_table::COORDINATOR_SCAN_LATENCY,
    system_views::by_table::COORDINATOR_WRITE_LATENCY,
    system_views::cql_metrics::TABLE,
    system_views::by_table::DISK_USAGE,
    system_views::by_table::LOCAL_READ_LATENCY,
    system_views::by_table::LOCAL_SCAN_LATENCY,
    system_views::by_table::LOCAL_WRITE_LATENCY,
    system_views::by_table::MAX_PARTITION_SIZE,
    system_views::max_sstable_duration::TABLE,
    system_views::by_table::MAX_SSTABLE_SIZE,
    system_views::queries::TABLE,
    system_views::by_table::ROWS_PER_READ,
    system_views::settings::TABLE,
    system_views::slow_queries::TABLE,
    system_views::snapshots::TABLE,
    system_views::sstable_tasks::TABLE,
    system_views::system_logs::TABLE,
    system_views::system_properties::TABLE,
    system_views::thread_pools::TABLE,
    system_views::by_table::TOMBSTONES_PER_READ,
    halcyon_views::commands::TABLE,
    halcyon_views::compaction_backlog::TABLE,
    halcyon_views::compaction_pace::TABLE,
    halcyon_views::findings::TABLE,
    halcyon_views::histograms::TABLE,
    halcyon_views::io_latency::TABLE,
    halcyon_views::io_modes::TABLE,
    halcyon_views::io_operations::TABLE,
    halcyon_views::load_profile_jobs::TABLE,
    halcyon_views::load_profiles::TABLE,
    halcyon_views::logging_levels::TABLE,
    halcyon_views::major_compactions::TABLE,
    halcyon_views::node::TABLE,
    halcyon_views::panels::TABLE,
    halcyon_views::partition_denylist::TABLE,
    halcyon_views::request_logs::TABLE,
    halcyon_views::request_latency::TABLE,
    halcyon_views::request_wait::TABLE,
    halcyon_views::sampled_tokens::TABLE,
    halcyon_views::set_apart::TABLE,
    halcyon_views::shards::TABLE,
    halcyon_views::slow_requests::TABLE,
    halcyon_views::sstables_of_partition::TABLE,
    halcyon_views::sstables_per_read::TABLE,
    halcyon_views::table_statistics::TABLE,
    system_virtual_schema::columns::TABLE,
    system_virtual_schema::keyspaces::TABLE,
    system_virtual_schema::tables::TABLE,
];

/// All of them, as the start reads them.
pub(crate) fn registry() -> Result<Registry, halcyon_schema::Error> {
    Registry::read(all())
}

/// The tables of `system_metrics` are made by a macro, and those of what Halcyon does not do have no rows.
fn all() -> impl Iterator<Item = &'static VirtualTable> {
    let metrics = system_metrics::groups::TABLES.iter().chain(system_metrics::types::TABLES);
    REGISTERED.iter().chain(metrics).chain(&system_views::empty::TABLES)
}
