//! The guardrail against reads of many tombstones: a warning above one threshold, a failure above another.

use halcyon_cql::plan::restrictions::BoundKeys;
use halcyon_cql::plan::select::{BoundSelect, NO_LIMIT};
use halcyon_model::token::split_key;
use halcyon_model::value::to_cql_literal;
use halcyon_stream::PartitionKey;

use crate::live_rows::ReadCounts;

#[derive(Debug)]
pub(crate) struct TombstoneGuard {
    warn_threshold: u64,
    failure_threshold: u64,
    /// The counts at the start of the current read: of one partition key, or of the whole range.
    before: ReadCounts,
    warnings: Vec<String>,
}

impl TombstoneGuard {
    pub(crate) fn new(warn_threshold: u64, failure_threshold: u64) -> TombstoneGuard {
        let (before, warnings) = (ReadCounts::default(), Vec::new());
        TombstoneGuard { warn_threshold, failure_threshold, before, warnings }
    }

    pub(crate) fn fails(&self, counts: ReadCounts) -> bool {
        (counts - self.before).tombstones > self.failure_threshold
    }

    /// Ends the read of `key`: its tombstones may be worth a warning.
    pub(crate) fn end_read(&mut self, counts: ReadCounts, select: &BoundSelect, key: &[u8]) {
        let ReadCounts { rows, tombstones } = counts - self.before;
        self.before = counts;
        if tombstones > self.warn_threshold {
            self.warnings.push(format!(
                "Read {rows} live rows and {tombstones} tombstone cells for query {} (see tombstone_warn_threshold)",
                command(select, key)
            ));
        }
    }

    pub(crate) fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }
}

/// The read as Cassandra's warnings spell it.
fn command(select: &BoundSelect, key: &[u8]) -> String {
    let schema = &select.plan.table.schema;
    let mut text = format!("SELECT * FROM {}.{}", schema.keyspace, schema.name);
    let one_key = matches!(select.keys, Some(BoundKeys::Partitions(_)));
    if one_key && let Some(parts) = split_key(key, schema.partition_key.len()) {
        let equal = schema.partition_key.iter().zip(parts).map(|(column, part)| {
            format!("{} = {}", column.name, to_cql_literal(&column.cql_type, part))
        });
        text.push_str(&format!(" WHERE {}", equal.collect::<Vec<_>>().join(" AND ")));
    }
    if select.plan.reversed
        && let Some(column) = schema.clustering.first()
    {
        text.push_str(&format!(" ORDER BY {} DESC", column.name));
    }
    if select.plan.is_aggregate() {
        text.push(' ');
    } else if select.limits.rows != NO_LIMIT {
        text.push_str(&format!(" LIMIT {}", select.limits.rows));
    }
    text.push_str(" ALLOW FILTERING");
    if one_key {
        text.push_str(&format!("; token {}", PartitionKey::of(key).token));
    }
    text
}
