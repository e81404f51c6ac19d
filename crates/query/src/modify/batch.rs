//! Batches: size limits, warnings, and one apply for each shard.

use std::collections::BTreeSet;
use std::sync::Arc;

use halcyon_cql::plan::modify::{BoundModification, CounterShard, CurrentPartition};
use halcyon_model::request::{BatchKind, Consistency};
use halcyon_scan::pace::Pace;
use halcyon_schema::catalog::{Catalog, Table, TableKind};
use halcyon_stream::{EMPTY_PARTITION, Mutation};

use super::changes::Changes;
use super::conditional::{self, Statement};
use super::stopwatch::Stopwatch;
use super::{make, write};
use crate::consistency;
use crate::coordinator::Coordinator;
use crate::denylist::LocalDenylist;
use crate::guard;
use crate::{Error, Outcome, QueryOptions, RequestLimits, Result, views};

/// The time limit of a batch of this kind.
pub(super) fn watch(
    coordinator: &Coordinator,
    kind: BatchKind,
    options: &QueryOptions<'_>,
) -> Stopwatch {
    let limits = coordinator.limits();
    let (allowed, write_type) = match kind {
        BatchKind::Logged => (limits.write_request_timeout.get(), "BATCH"),
        BatchKind::Unlogged => (limits.write_request_timeout.get(), "UNLOGGED_BATCH"),
        BatchKind::Counter => (limits.counter_write_request_timeout.get(), "COUNTER"),
    };
    Stopwatch::start(allowed, options.consistency, write_type)
}

pub(super) async fn execute(
    coordinator: &Coordinator,
    kind: BatchKind,
    mut statements: Vec<Statement>,
    options: &QueryOptions<'_>,
    watch: Stopwatch,
) -> Result<Outcome> {
    let consistency = options.consistency;
    if statements.iter().any(|(plan, _)| plan.has_conditions()) {
        return conditional::execute(coordinator, statements, true, options).await;
    }
    guard::hear_terms(statements.iter_mut().map(|(_, bound)| bound), options)?;
    let mut warnings = Vec::new();
    if kind == BatchKind::Logged {
        warnings.extend(short_grace_warning(&statements));
    }
    let has_views = views::are_on(statements.iter().map(|(plan, _)| &plan.table));
    let denied = match coordinator.denylist() {
        Some(denylist) => {
            let all = statements.iter().map(|(plan, modification)| (&plan.table, modification));
            Box::pin(denied(denylist, all)).await?
        }
        None => None,
    };
    let parts = Parts::of(coordinator, statements, consistency, &watch).await?;
    let Parts { tables, keys, ready, reading, counts } = parts;
    let is_reading = !reading.is_empty();
    if is_reading {
        check_replicas(coordinator, &tables, consistency)?;
    }
    let changes = match is_reading {
        true => Box::pin(Changes::make(coordinator, ready, reading, &watch)).await,
        false => Ok(Changes::ready(ready)),
    };
    let changes = changes.map_err(|error| watch.failed(error))?;
    coordinator.shard().observe_batch(kind, keys.len());
    if keys.len() > 1 {
        let counted = without_stored_rows(&counts)?;
        let size = data_size(changes.made.iter().chain(&counted));
        check_size(kind, (&tables, keys.len(), size), coordinator.limits(), &mut warnings)?;
    }
    check_replicas(coordinator, &tables, consistency)?;
    denied.map_or(Ok(()), Err)?;
    for modification in counts {
        let counted = Box::pin(write::read_and_write(coordinator, modification, &watch)).await;
        counted.map_err(|error| watch.failed(error))?;
    }
    let applied = match has_views && !is_reading {
        true => write::apply_with_views(coordinator, changes.made, &watch).await,
        false => changes.apply(coordinator, has_views || kind == BatchKind::Logged).await,
    };
    applied.map_err(|error| watch.failed(error))?;
    watch.check()?;
    Ok(if warnings.is_empty() { Outcome::Void } else { Outcome::Warned(warnings) })
}

/// The refusal of a write to a denied partition, which follows the limits of size. Where stored rows are needed, the refusal of the read
/// comes first: it is the outer error.
pub(super) async fn denied<'a>(
    denylist: &LocalDenylist,
    modifications: impl Iterator<Item = (&'a Arc<Table>, &'a BoundModification)> + Clone,
) -> Result<Option<Error>> {
    for (table, modification) in modifications.clone() {
        if !modification.reads.is_empty() {
            denylist.permit_reads(table, modification.keys.iter()).await?;
        }
    }
    for (table, modification) in modifications {
        let permitted = denylist.permit_write(table, modification.keys.iter()).await;
        if let Err(refusal) = permitted {
            return Ok(Some(refusal));
        }
    }
    Ok(None)
}

fn check_replicas(
    coordinator: &Coordinator,
    tables: &[Arc<Table>],
    consistency: Consistency,
) -> Result<()> {
    let check = |catalog: &Catalog| {
        let mut keyspaces = tables.iter().map(|table| &table.schema.keyspace);
        keyspaces.try_for_each(|name| consistency::check_replicas(consistency, catalog, name))
    };
    coordinator.shard().tables().with_catalog(check)
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
    /// Of each statement that changes something.
    tables: Vec<Arc<Table>>,
    keys: BTreeSet<Vec<u8>>,
    /// What needs no stored rows.
    ready: Vec<Mutation>,
    /// What needs stored rows.
    reading: Vec<BoundModification>,
    counts: Vec<BoundModification>,
}

impl Parts {
    /// Writes to virtual tables are done here.
    async fn of(
        coordinator: &Coordinator,
        statements: Vec<Statement>,
        consistency: Consistency,
        watch: &Stopwatch,
    ) -> Result<Parts> {
        let (mut parts, mut pace) = (Parts::default(), Pace::default());
        for (plan, modification) in statements {
            if modification.is_nothing() {
                continue;
            }
            if plan.table.kind == TableKind::Virtual {
                write::apply_to_virtual(coordinator, modification, watch).await?;
                continue;
            }
            parts.keys.extend(modification.keys.iter().map(|key| key.bytes.clone()));
            parts.tables.push(plan.table.clone());
            if modification.table.is_counter() {
                parts.counts.push(modification);
            } else if modification.requires_read() {
                consistency::check_read_before_write(consistency)?;
                parts.reading.push(modification);
            } else {
                make::mutations(modification, &mut parts.ready, &mut pace, watch).await?;
            }
        }
        Ok(parts)
    }
}

/// The limits of a batch of several partitions; `size` in bytes.
fn check_size(
    kind: BatchKind,
    (tables, partitions, size): (&[Arc<Table>], usize, usize),
    limits: &RequestLimits,
    warnings: &mut Vec<String>,
) -> Result<()> {
    let warn_size = limits.batch_size_warn_threshold;
    if size > limits.batch_size_fail_threshold {
        return Err(Error::Invalid("Batch too large".to_owned()));
    }
    let tables = || {
        let names: BTreeSet<String> = tables.iter().map(|table| table.full_name()).collect();
        let plural = if names.len() == 1 { "" } else { "s" };
        (plural, names.into_iter().collect::<Vec<_>>().join(", "))
    };
    if size > warn_size {
        warnings.push(format!(
            "Batch for [{}] is of size {size}, exceeding specified threshold of {warn_size} by {}.",
            tables().1,
            size - warn_size
        ));
    }
    if kind != BatchKind::Logged
        && partitions > limits.unlogged_batch_across_partitions_warn_threshold
    {
        let (plural, tables) = tables();
        warnings.push(format!(
            "Unlogged batch covering {partitions} partitions detected against table{plural} [{tables}]. You should use a logged batch for atomicity, or asynchronous writes for performance.",
        ));
    }
    Ok(())
}

/// Increments as the client sent them: Cassandra measures them before it reads the counters.
fn without_stored_rows(counts: &[BoundModification]) -> Result<Vec<Mutation>> {
    let keys = counts.iter().flat_map(|counts| counts.keys.iter().map(move |key| (counts, key)));
    let made = keys.map(|(counts, key)| {
        counts.mutation(key, &CurrentPartition::default(), CounterShard::NONE)
    });
    Ok(made.collect::<std::result::Result<_, _>>()?)
}

/// Bytes in Cassandra's estimation; updates of one partition count as one.
fn data_size<'m>(mutations: impl Iterator<Item = &'m Mutation> + Clone) -> usize {
    let partitions: BTreeSet<_> = mutations.clone().map(|m| (m.table, &m.key.bytes)).collect();
    let rows: usize = mutations.map(Mutation::data_size).sum();
    partitions.len() * EMPTY_PARTITION + rows
}
