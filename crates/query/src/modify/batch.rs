//! Batches: size limits, warnings, and one apply for each shard.

use std::collections::BTreeSet;

use halcyon_cql::ast::BatchKind;
use halcyon_cql::catalog::TableKind;
use halcyon_stream::{Mutation, RowBuf};

use super::batchlog;
use super::conditional::{self, Statement};
use super::consistency::Consistency;
use super::write;
use crate::coordinator::Coordinator;
use crate::{Error, Outcome, QueryOptions, Result};

/// `batch_size_warn_threshold` and `batch_size_fail_threshold`.
const WARN_SIZE: usize = 5 * 1024;
const FAIL_SIZE: usize = 50 * 1024;
/// `unlogged_batch_across_partitions_warn_threshold`.
const WARN_PARTITIONS: usize = 10;

pub(super) async fn execute(
    coordinator: &Coordinator,
    kind: BatchKind,
    statements: Vec<Statement>,
    options: &QueryOptions,
) -> Result<Outcome> {
    let consistency = Consistency::new(options.consistency)?;
    if statements.iter().any(|(plan, _)| plan.has_conditions()) {
        return conditional::execute(coordinator, statements, true, options).await;
    }
    let mut warnings = Vec::new();
    if kind == BatchKind::Logged {
        warnings.extend(short_grace_warning(&statements));
    }
    let catalog = coordinator.shard().engine().catalog();
    for (plan, _) in &statements {
        consistency.check_replicas(&catalog, &plan.table.schema.keyspace)?;
    }
    let mut mutations = Vec::new();
    let mut names = BTreeSet::new();
    for (plan, modification) in statements {
        if modification.is_nothing() {
            continue;
        }
        if plan.table.kind == TableKind::Virtual {
            write::apply_to_virtual(coordinator, &modification).await?;
            continue;
        }
        names.insert(plan.table.full_name());
        if modification.requires_read() {
            write::execute(coordinator, vec![modification]).await?;
        } else {
            mutations.extend(write::mutations(&modification)?);
        }
    }
    check_size(&mutations, kind, &names, &mut warnings)?;
    match kind {
        BatchKind::Logged => batchlog::apply(coordinator, mutations).await?,
        BatchKind::Unlogged | BatchKind::Counter => write::apply(coordinator, mutations).await?,
    }
    Ok(if warnings.is_empty() { Outcome::Void } else { Outcome::Warned(warnings) })
}

fn short_grace_warning(statements: &[Statement]) -> Option<String> {
    let tables: BTreeSet<String> = statements
        .iter()
        .filter(|(plan, _)| plan.table.schema.options.gc_grace_seconds == Some(0))
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

/// Limits hold for batches of several partitions only.
fn check_size(
    mutations: &[Mutation],
    kind: BatchKind,
    tables: &BTreeSet<String>,
    warnings: &mut Vec<String>,
) -> Result<()> {
    let keys: BTreeSet<&[u8]> =
        mutations.iter().map(|mutation| mutation.key.bytes.as_slice()).collect();
    if keys.len() <= 1 {
        return Ok(());
    }
    let tables: Vec<&str> = tables.iter().map(String::as_str).collect();
    let tables_text = format!("[{}]", tables.join(", "));
    let size: usize = mutations.iter().map(data_size).sum();
    if size > FAIL_SIZE {
        return Err(Error::Invalid("Batch too large".to_owned()));
    }
    if size > WARN_SIZE {
        warnings.push(format!(
            "Batch for {tables_text} is of size {size}, exceeding specified threshold of {WARN_SIZE} by {}.",
            size - WARN_SIZE
        ));
    }
    if kind != BatchKind::Logged && keys.len() > WARN_PARTITIONS {
        warnings.push(format!(
            "Unlogged batch covering {} partitions detected against table{} {tables_text}. You should use a logged batch for atomicity, or asynchronous writes for performance.",
            keys.len(),
            if tables.len() == 1 { "" } else { "s" }
        ));
    }
    Ok(())
}

/// `PartitionUpdate.dataSize`.
fn data_size(mutation: &Mutation) -> usize {
    const DELETION: usize = 8;
    const EMPTY_ROW: usize = 8 + 13;
    let row = |row: &RowBuf| {
        let cells: usize =
            row.parts.cells.iter().map(|cell| 20 + (cell.path.len + cell.value.len) as usize).sum();
        let expiring = if row.parts.liveness.is_expiring() { 12 } else { 0 };
        EMPTY_ROW
            + expiring
            + row.parts.clustering.len as usize
            + 12 * row.parts.complex_deletions.len()
            + cells
    };
    let rows: usize = mutation.rows.iter().map(row).sum();
    let static_row = mutation.static_row.as_ref().map_or(EMPTY_ROW, row);
    let ranges = mutation
        .range_tombstones
        .iter()
        .map(|range| range.start.serialized.len() + range.end.serialized.len() + 12);
    DELETION + static_row + rows + ranges.sum::<usize>()
}
