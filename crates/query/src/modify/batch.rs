//! Batches: size limits, warnings, and one apply for each shard.

use std::collections::BTreeSet;

use halcyon_cql::plan::modify::BoundModification;
use halcyon_model::clustering::ClusteringValue;
use halcyon_model::request::BatchKind;
use halcyon_scan::pace::Pace;
use halcyon_schema::catalog::TableKind;
use halcyon_stream::{Mutation, RowBuf};

use super::conditional::{self, Statement};
use super::stopwatch::Stopwatch;
use super::write;
use crate::consistency;
use crate::coordinator::Coordinator;
use crate::shards::apply_whole;
use crate::{Error, Outcome, QueryOptions, RequestLimits, Result, views};

/// The time limit of a batch of this kind.
pub(super) fn watch(
    coordinator: &Coordinator,
    kind: BatchKind,
    options: &QueryOptions<'_>,
) -> Stopwatch {
    let limits = coordinator.limits();
    let (allowed, write_type) = match kind {
        BatchKind::Logged => (limits.write_request_timeout, "BATCH"),
        BatchKind::Unlogged => (limits.write_request_timeout, "UNLOGGED_BATCH"),
        BatchKind::Counter => (limits.counter_write_request_timeout, "COUNTER"),
    };
    Stopwatch::start(allowed, options.consistency, write_type)
}

pub(super) async fn execute(
    coordinator: &Coordinator,
    kind: BatchKind,
    statements: Vec<Statement>,
    options: &QueryOptions<'_>,
    watch: Stopwatch,
) -> Result<Outcome> {
    let consistency = options.consistency;
    if statements.iter().any(|(plan, _)| plan.has_conditions()) {
        return conditional::execute(coordinator, statements, true, options).await;
    }
    let mut warnings = Vec::new();
    if kind == BatchKind::Logged {
        warnings.extend(short_grace_warning(&statements));
    }
    let catalog = coordinator.shard().tables().catalog();
    for (plan, _) in &statements {
        consistency::check_replicas(consistency, &catalog, &plan.table.schema.keyspace)?;
    }
    let has_views = views::are_on(statements.iter().map(|(plan, _)| &plan.table));
    let mut parts = Parts::default();
    let mut pace = Pace::default();
    for (plan, modification) in statements {
        if modification.is_nothing() {
            continue;
        }
        if plan.table.kind == TableKind::Virtual {
            write::apply_to_virtual(coordinator, modification, &watch).await?;
            continue;
        }
        parts.tables.insert(plan.table.full_name());
        let keys = modification.keys.iter().map(|key| key.bytes.clone());
        parts.keys.extend(keys);
        if modification.requires_read() {
            parts.reading.push(modification);
        } else {
            write::mutations(modification, &mut parts.mutations, &mut pace, &watch).await?;
        }
    }
    coordinator.shard().observe_batch(kind, parts.keys.len());
    parts.check_size(kind, coordinator.limits(), &mut warnings)?;
    let Parts { mutations, reading, .. } = parts;
    write::execute(coordinator, reading, &watch).await.map_err(|error| watch.failed(error))?;
    let applied = match kind {
        _ if has_views => write::apply_with_views(coordinator, mutations, &watch).await,
        BatchKind::Logged => apply_whole(coordinator.shard(), mutations).await,
        BatchKind::Unlogged | BatchKind::Counter => write::apply(coordinator, mutations).await,
    };
    applied.map_err(|error| watch.failed(error))?;
    watch.check()?;
    Ok(if warnings.is_empty() { Outcome::Void } else { Outcome::Warned(warnings) })
}

fn short_grace_warning(statements: &[Statement]) -> Option<String> {
    let tables: BTreeSet<String> = statements
        .iter()
        .filter(|(plan, _)| plan.table.schema.options.gc_grace_seconds() == 0)
        .map(|(plan, _)| plan.table.full_name())
        .collect();
    if tables.is_empty() {
        return None;
    }
    Some(format!(
        "Executing a LOGGED BATCH on table{} [{}], configured with a gc_grace_seconds of 0. The gc_grace_seconds is used to TTL batchlog entries, so setting gc_grace_seconds too low on tables involved in an atomic batch might cause batchlog entries to expire before being replayed.",
        if tables.len() == 1 { "" } else { "s" },
        tables.into_iter().collect::<Vec<_>>().join(", ")
    ))
}

/// A batch, sorted by how it is applied.
#[derive(Default)]
struct Parts {
    mutations: Vec<Mutation>,
    /// What needs stored rows.
    reading: Vec<BoundModification>,
    tables: BTreeSet<String>,
    keys: BTreeSet<Vec<u8>>,
}

impl Parts {
    /// Limits hold for batches of several partitions only.
    fn check_size(
        &self,
        kind: BatchKind,
        limits: &RequestLimits,
        warnings: &mut Vec<String>,
    ) -> Result<()> {
        let partitions = self.keys.len();
        if partitions <= 1 {
            return Ok(());
        }
        let tables: Vec<&str> = self.tables.iter().map(String::as_str).collect();
        let tables_text = format!("[{}]", tables.join(", "));
        let size = self.data_size();
        let warn_size = limits.batch_size_warn_threshold;
        if size > limits.batch_size_fail_threshold {
            return Err(Error::Invalid("Batch too large".to_owned()));
        }
        if size > warn_size {
            warnings.push(format!(
                "Batch for {tables_text} is of size {size}, exceeding specified threshold of {warn_size} by {}.",
                size - warn_size
            ));
        }
        if kind != BatchKind::Logged
            && partitions > limits.unlogged_batch_across_partitions_warn_threshold
        {
            warnings.push(format!(
                "Unlogged batch covering {partitions} partitions detected against table{} {tables_text}. You should use a logged batch for atomicity, or asynchronous writes for performance.",
                if tables.len() == 1 { "" } else { "s" }
            ));
        }
        Ok(())
    }

    /// Bytes in Cassandra's estimation; updates of one partition count as one.
    fn data_size(&self) -> usize {
        let partitions: BTreeSet<_> =
            self.mutations.iter().map(|m| (m.table, &m.key.bytes)).collect();
        let rows: usize = self.mutations.iter().map(data_size).sum();
        partitions.len() * EMPTY_PARTITION + rows
    }
}

const EMPTY_ROW: usize = 8 + 13;
/// Its deletion and its static row.
const EMPTY_PARTITION: usize = 8 + EMPTY_ROW;

/// `PartitionUpdate.dataSize`, without what every partition has.
fn data_size(mutation: &Mutation) -> usize {
    let clusterings = &mutation.layout.clusterings;
    let clustering = |row: &RowBuf| -> usize {
        let bytes = row.parts.clustering.of(&row.bytes);
        let length = |value| match value {
            ClusteringValue::Bytes(bytes) => bytes.len(),
            ClusteringValue::Null => 0,
        };
        clusterings
            .values(bytes, if bytes.is_empty() { 0 } else { clusterings.len() })
            .map(length)
            .sum()
    };
    let row = |row: &RowBuf| {
        let cells: usize =
            row.parts.cells.iter().map(|cell| 20 + (cell.path.len + cell.value.len) as usize).sum();
        let expiring = if row.parts.liveness.is_expiring() { 12 } else { 0 };
        EMPTY_ROW + expiring + clustering(row) + 12 * row.parts.complex_deletions.len() + cells
    };
    let rows: usize = mutation.rows.iter().map(row).sum();
    let static_row = mutation.static_row.as_ref().map_or(0, |of| row(of) - EMPTY_ROW);
    let ranges = mutation
        .range_tombstones
        .iter()
        .map(|range| range.start.serialized.len() + range.end.serialized.len() + 12);
    static_row + rows + ranges.sum::<usize>()
}
