//! `system_views` and `system_virtual_schema`: rows made when asked, with the columns that Cassandra 5.0 has. Tables of what
//! Halcyon does not do (repair, streaming, indexes, permissions) are empty. What Cassandra has not is in `halcyon_views`.

mod caches;
mod changes;
mod compactions;
mod halcyon;
mod rows;
mod tables;

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use halcyon_engine::{Engine, Measure, Shard};
use halcyon_model::request::BatchKind;
use halcyon_model::schema::ColumnKind;
use halcyon_query::VirtualTables;
use halcyon_schema::catalog::{Catalog, Keyspace, Table};
use halcyon_stream::Mutation;

use crate::shard::Shared;
use crate::supported::CQL_VERSION;
use rows::Rows;

pub(crate) use caches::{CacheRates, watch_rates};

/// As 5.0.9 lists them.
const POOLS: [&str; 20] = [
    "CacheCleanupExecutor",
    "CompactionExecutor",
    "GossipStage",
    "HintsDispatcher",
    "MemtableFlushWriter",
    "MemtablePostFlush",
    "MemtableReclaimMemory",
    "MigrationStage",
    "MutationStage",
    "Native-Transport-Auth-Requests",
    "Native-Transport-Requests",
    "PendingRangeCalculator",
    "PerDiskMemtableFlushWriter_0",
    "ReadStage",
    "Sampler",
    "SecondaryIndexExecutor",
    "SecondaryIndexManagement",
    "StatusPropagationExecutor",
    "ValidationExecutor",
    "ViewBuildExecutor",
];

pub(crate) struct Views {
    pub(crate) shard: Rc<Shard>,
    pub(crate) engine: Arc<Engine>,
    pub(crate) shared: Arc<Shared>,
}

impl VirtualTables for Views {
    fn partitions<'a>(
        &'a self,
        table: &'a Table,
    ) -> Pin<Box<dyn Future<Output = Vec<Mutation>> + 'a>> {
        Box::pin(async {
            let mut rows = Rows::of(table);
            match table.schema.keyspace.as_str() {
                "system_views" => self.fill(&table.schema.name, &mut rows).await,
                "halcyon_views" => self.fill_own(&table.schema.name, &mut rows),
                "system_virtual_schema" => {
                    virtual_schema(&self.engine.catalog(), &table.schema.name, &mut rows);
                }
                _ => {}
            }
            rows.finish()
        })
    }

    fn apply<'a>(
        &'a self,
        table: &'a Table,
        mutation: Mutation,
    ) -> Pin<Box<dyn Future<Output = halcyon_query::Result<()>> + 'a>> {
        Box::pin(async move { self.change(table, &mutation) })
    }
}

impl Views {
    async fn fill(&self, table: &str, rows: &mut Rows<'_>) {
        match table {
            "settings" => self.settings(rows),
            "clients" => self.clients(rows),
            "caches" => self.caches(rows).await,
            "cql_metrics" => self.cql_metrics(rows),
            "batch_metrics" => self.batch_metrics(rows),
            "thread_pools" => self.thread_pools(rows),
            "system_properties" => self.system_properties(rows),
            "sstable_tasks" => self.sstable_tasks(rows),
            _ => self.table_figures(table, rows),
        }
    }

    fn settings(&self, rows: &mut Rows<'_>) {
        for (name, value) in self.shared.settings.all() {
            rows.row().set("name", name.as_str()).set("value", value.as_deref()).done();
        }
    }

    fn clients(&self, rows: &mut Rows<'_>) {
        for (address, requests, told) in self.shared.clients.all() {
            let option = |name: &str| {
                told.options.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
            };
            let stage = if told.protocol_version.is_some() { "ready" } else { "established" };
            rows.row()
                .set("address", address.ip())
                .set("port", i32::from(address.port()))
                .set("client_options", told.options.as_slice())
                .set("connection_stage", stage)
                .set("driver_name", option("DRIVER_NAME"))
                .set("driver_version", option("DRIVER_VERSION"))
                .set("hostname", address.ip().to_string())
                .set("keyspace_name", told.keyspace.as_deref())
                .set("protocol_version", told.protocol_version.map(i32::from))
                .set("request_count", requests)
                .set("ssl_enabled", false)
                .set("username", "anonymous")
                .done();
        }
    }

    fn cql_metrics(&self, rows: &mut Rows<'_>) {
        let sum = |of: fn(&crate::figures::Figures) -> u64| -> u64 {
            self.shared.figures.iter().map(of).sum()
        };
        let executed = sum(|shard| shard.prepared_executed.get());
        let regular = sum(|shard| shard.regular_executed.get());
        let prepared = self.shared.prepared.figures();
        let all = executed + regular;
        let ratio = if all == 0 { 0.0 } else { executed as f64 / all as f64 };
        for (name, value) in [
            ("prepared_statements_count", prepared.count as f64),
            ("prepared_statements_evicted", prepared.evictions as f64),
            ("prepared_statements_executed", executed as f64),
            ("prepared_statements_ratio", ratio),
            ("regular_statements_executed", regular as f64),
        ] {
            rows.row().set("name", name).set("value", value).done();
        }
    }

    fn batch_metrics(&self, rows: &mut Rows<'_>) {
        for (name, kind) in [
            ("partitions_per_counter_batch", BatchKind::Counter),
            ("partitions_per_logged_batch", BatchKind::Logged),
            ("partitions_per_unlogged_batch", BatchKind::Unlogged),
        ] {
            let sizes = self.engine.batch_sizes(kind);
            rows.row()
                .set("name", name)
                .set("max", sizes.max())
                .set("p50th", sizes.quantile(0.5) as f64)
                .set("p99th", sizes.quantile(0.99) as f64)
                .set("p999th", sizes.quantile(0.999) as f64)
                .done();
        }
    }

    /// Cassandra's pools; a shard does what most of them do. What has no counterpart here is at rest.
    fn thread_pools(&self, rows: &mut Rows<'_>) {
        let sum = |of: fn(&crate::figures::Figures) -> u64| -> u64 {
            self.shared.figures.iter().map(of).sum()
        };
        let count = |measure| -> u64 {
            self.engine.summaries(measure).iter().map(|(_, _, summary)| summary.count).sum()
        };
        let stats = self.engine.table_stats();
        let (requests, in_flight) = (sum(|f| f.requests.get()), sum(|f| f.in_flight.get()));
        let flushes = stats.iter().map(|table| table.flushes).sum();
        let flushing = stats.iter().map(|table| table.pending_flushes).sum();
        let reads = count(Measure::LocalRead) + count(Measure::LocalScan);
        let options = self.engine.options();
        let compacting = self.engine.compactions().len() as u64;
        for name in POOLS {
            let (active, limit, completed, pending) = match name {
                "CompactionExecutor" => (compacting, options.concurrent_compactors, 0, 0),
                "MemtableFlushWriter" => {
                    let active = u64::min(flushing, options.flush_writers as u64);
                    (active, options.flush_writers, flushes, flushing - active)
                }
                "MutationStage" => (0, options.shards, count(Measure::LocalWrite), 0),
                "Native-Transport-Requests" => {
                    (in_flight, usize::MAX, requests.saturating_sub(in_flight), 0)
                }
                "ReadStage" => (0, options.shards, reads, 0),
                _ => (0, 1, 0, 0),
            };
            let int = |n: u64| i32::try_from(n).unwrap_or(i32::MAX);
            rows.row()
                .set("name", name)
                .set("active_tasks", int(active))
                .set("active_tasks_limit", int(limit as u64))
                .set("blocked_tasks", 0u64)
                .set("blocked_tasks_all_time", 0u64)
                .set("completed_tasks", completed)
                .set("pending_tasks", int(pending))
                .done();
        }
    }

    fn system_properties(&self, rows: &mut Rows<'_>) {
        let properties = [
            ("halcyon.version", env!("CARGO_PKG_VERSION").to_owned()),
            ("halcyon.data_dir", self.shared.data_dir.display().to_string()),
            ("halcyon.io_engine", self.shared.disk.backend().backend.to_string()),
            ("cql.version", CQL_VERSION.to_owned()),
            ("os.name", std::env::consts::OS.to_owned()),
            ("os.arch", std::env::consts::ARCH.to_owned()),
        ];
        for (name, value) in properties {
            rows.row().set("name", name).set("value", value).done();
        }
    }
}

/// What virtual tables there are, as clients read it.
fn virtual_schema(catalog: &Catalog, table: &str, rows: &mut Rows<'_>) {
    for keyspace in catalog.keyspaces.values().filter(|keyspace| keyspace.is_virtual) {
        match table {
            "keyspaces" => rows.row().set("keyspace_name", keyspace.name.as_str()).done(),
            "tables" => virtual_table_rows(keyspace, rows),
            "columns" => keyspace.tables.values().for_each(|table| column_rows(table, rows)),
            _ => {}
        }
    }
}

fn virtual_table_rows(keyspace: &Keyspace, rows: &mut Rows<'_>) {
    for table in keyspace.tables.values() {
        rows.row()
            .set("keyspace_name", keyspace.name.as_str())
            .set("table_name", table.schema.name.as_str())
            .set("comment", comment(table))
            .done();
    }
}

fn comment(table: &Table) -> String {
    table.schema.options.comment.clone()
}

fn column_rows(table: &Table, rows: &mut Rows<'_>) {
    let kinds = [
        (ColumnKind::PartitionKey, "partition_key"),
        (ColumnKind::Clustering, "clustering"),
        (ColumnKind::Static, "static"),
        (ColumnKind::Regular, "regular"),
    ];
    for (kind, name) in kinds {
        for (index, column) in table.columns(kind).iter().enumerate() {
            let positioned = kind.is_key();
            let position = if positioned { i32::try_from(index).unwrap_or(i32::MAX) } else { -1 };
            rows.row()
                .set("keyspace_name", table.schema.keyspace.as_str())
                .set("table_name", table.schema.name.as_str())
                .set("column_name", column.name.as_str())
                .set(
                    "clustering_order",
                    if kind == ColumnKind::Clustering { "asc" } else { "none" },
                )
                .set("column_name_bytes", column.name.clone().into_bytes())
                .set("kind", name)
                .set("position", position)
                .set("type", column.cql_type.cql_name())
                .done();
        }
    }
}
