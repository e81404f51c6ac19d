//! Virtual tables: rows are computed when they are read.
//!
//! Each table is a file of its own, `<keyspace>/<table>.rs`: its CREATE TABLE as Cassandra 5.0.9 describes it, beside the function that
//! computes its rows. [`REGISTERED`] lists them all; tables of what Halcyon does not do are in `system_views/empty.rs`.
//!
//! 1. At the start [`Registry::read`] parses the definitions; the engine puts the keyspaces into its catalog.
//! 2. A read finds the table by its id and runs its function: `rows.rs`.
//! 3. A few tables take writes as commands: `write.rs`.

mod halcyon_views;
mod rows;
mod system_views;
mod system_virtual_schema;
#[cfg(test)]
mod tests;
mod write;

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use halcyon_engine::{Engine, Shard};
use halcyon_query::{Error, Result, VirtualTables, modification_is_not_supported};
use halcyon_schema::catalog::{Keyspace, Table};
use halcyon_schema::virtual_keyspace;
use halcyon_stream::{Mutation, TableId};

use crate::figures::Figures;
use crate::shard::Shared;
use rows::Rows;
use write::Write;

/// Every virtual table that has rows. A new one is a file, its `mod` line, and a line here.
const REGISTERED: [VirtualTable; 32] = [
    system_views::batch_metrics::TABLE,
    system_views::caches::TABLE,
    system_views::clients::TABLE,
    system_views::coordinator_read_latency::TABLE,
    system_views::coordinator_scan_latency::TABLE,
    system_views::coordinator_write_latency::TABLE,
    system_views::cql_metrics::TABLE,
    system_views::disk_usage::TABLE,
    system_views::local_read_latency::TABLE,
    system_views::local_scan_latency::TABLE,
    system_views::local_write_latency::TABLE,
    system_views::max_partition_size::TABLE,
    system_views::max_sstable_duration::TABLE,
    system_views::max_sstable_size::TABLE,
    system_views::rows_per_read::TABLE,
    system_views::settings::TABLE,
    system_views::sstable_tasks::TABLE,
    system_views::system_properties::TABLE,
    system_views::thread_pools::TABLE,
    system_views::tombstones_per_read::TABLE,
    halcyon_views::compaction_backlog::TABLE,
    halcyon_views::compaction_pace::TABLE,
    halcyon_views::io_latency::TABLE,
    halcyon_views::io_modes::TABLE,
    halcyon_views::io_operations::TABLE,
    halcyon_views::major_compactions::TABLE,
    halcyon_views::request_wait::TABLE,
    halcyon_views::set_apart::TABLE,
    halcyon_views::shards::TABLE,
    system_virtual_schema::columns::TABLE,
    system_virtual_schema::keyspaces::TABLE,
    system_virtual_schema::tables::TABLE,
];

/// A virtual table: its definition, how its rows are computed, what a write to it does.
#[derive(Clone, Copy)]
pub(in crate::virtual_tables) struct VirtualTable {
    cql: &'static str,
    source: Source,
    apply: Option<fn(&Node, &Write<'_>) -> Result<()>>,
}

#[derive(Clone, Copy)]
enum Source {
    Empty,
    /// What any shard knows.
    Computed(fn(&Node, &mut Rows<'_>)),
    /// What shards must be asked for.
    Gathered(for<'a> fn(&'a Node, &'a mut Rows<'_>) -> Filled<'a>),
}

type Filled<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

impl VirtualTable {
    const fn empty(cql: &'static str) -> VirtualTable {
        VirtualTable { cql, source: Source::Empty, apply: None }
    }

    const fn computed(cql: &'static str, fill: fn(&Node, &mut Rows<'_>)) -> VirtualTable {
        VirtualTable { cql, source: Source::Computed(fill), apply: None }
    }

    const fn gathered(
        cql: &'static str,
        fill: for<'a> fn(&'a Node, &'a mut Rows<'_>) -> Filled<'a>,
    ) -> VirtualTable {
        VirtualTable { cql, source: Source::Gathered(fill), apply: None }
    }

    const fn writable(
        cql: &'static str,
        fill: fn(&Node, &mut Rows<'_>),
        apply: fn(&Node, &Write<'_>) -> Result<()>,
    ) -> VirtualTable {
        VirtualTable { cql, source: Source::Computed(fill), apply: Some(apply) }
    }
}

/// All virtual tables, by id, and their keyspaces.
pub(crate) struct Registry {
    pub(crate) keyspaces: Vec<Arc<Keyspace>>,
    tables: HashMap<TableId, VirtualTable>,
}

impl Registry {
    pub(crate) fn read() -> Result<Registry, halcyon_schema::Error> {
        let mut keyspaces: BTreeMap<String, Keyspace> = BTreeMap::new();
        let mut tables = HashMap::new();
        for registered in REGISTERED.iter().chain(&system_views::empty::TABLES) {
            let read = virtual_keyspace(registered.cql)?;
            tables.extend(read.tables.values().map(|table| (table.id, *registered)));
            match keyspaces.get_mut(&read.name) {
                Some(known) => known.tables.extend(read.tables),
                None => drop(keyspaces.insert(read.name.clone(), read)),
            }
        }
        Ok(Registry { keyspaces: keyspaces.into_values().map(Arc::new).collect(), tables })
    }

    fn get(&self, table: &Table) -> Result<&VirtualTable> {
        let unknown = || Error::Server(format!("{} is not registered", table.full_name()));
        self.tables.get(&table.id).ok_or_else(unknown)
    }
}

/// What rows are computed from.
pub(crate) struct Node {
    pub(crate) shard: Rc<Shard>,
    pub(crate) engine: Arc<Engine>,
    pub(crate) shared: Arc<Shared>,
}

impl Node {
    /// A metric, over all shards.
    fn sum(&self, of: fn(&Figures) -> u64) -> u64 {
        self.shared.figures.iter().map(of).sum()
    }
}

impl VirtualTables for Node {
    fn partitions<'a>(
        &'a self,
        table: &'a Table,
    ) -> Pin<Box<dyn Future<Output = Result<Vec<Mutation>>> + 'a>> {
        Box::pin(async {
            let mut rows = Rows::of(table);
            match self.shared.virtual_tables.get(table)?.source {
                Source::Empty => {}
                Source::Computed(fill) => fill(self, &mut rows),
                Source::Gathered(fill) => fill(self, &mut rows).await,
            }
            rows.finish()
        })
    }

    fn apply<'a>(
        &'a self,
        table: &'a Table,
        mutation: Mutation,
    ) -> Pin<Box<dyn Future<Output = Result<()>> + 'a>> {
        Box::pin(async move {
            match self.shared.virtual_tables.get(table)?.apply {
                Some(apply) => apply(self, &Write { table, mutation: &mutation }),
                None => Err(modification_is_not_supported(table)),
            }
        })
    }
}
