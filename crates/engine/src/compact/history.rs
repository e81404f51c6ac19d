//! Records finished compactions: a row of `system.compaction_history` and a line in the log.

use halcyon_compaction::Outcome;
use halcyon_model::bytes::Put;
use halcyon_model::{DeletionTime, Liveness};
use halcyon_schema::system_tables;
use halcyon_sstable::Effort;
use halcyon_stream::{Cell, ComplexDeletion, Mutation, PartitionKey, RowBuf, Span};

use super::Compactor;
use super::task::Running;
use crate::Event;
use crate::reporter::Compacted;

/// `{name: value}` as a frozen map of texts.
fn frozen_map(pairs: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    let length = |n: usize| i32::try_from(n).unwrap_or(i32::MAX);
    out.put_i32(length(pairs.len()));
    for text in pairs.iter().flat_map(|(name, value)| [name, value]) {
        out.put_i32(length(text.len()));
        out.extend_from_slice(text.as_bytes());
    }
    out
}

/// The row that Cassandra writes (`SystemKeyspace.updateCompactionHistory`).
fn row(running: &Running, outcome: &Outcome, micros: i64) -> Option<Mutation> {
    let system = system_tables();
    let table = system.table("system", "compaction_history")?;
    let ttl = table.schema.options.default_time_to_live;
    let seconds = u32::try_from(micros / 1_000_000).ok()?;
    let dies = seconds.saturating_add(ttl.unsigned_abs());
    let mut mutation = Mutation::new(table.id, table.layout.clone(), PartitionKey::of(&running.id));
    let mut row = RowBuf::new();
    row.parts.liveness = Liveness { timestamp: micros, ttl, local_expiration_time: dies };
    let long = |n: u64| i64::try_from(n).unwrap_or(i64::MAX).to_be_bytes().to_vec();
    for (index, column) in table.layout.regulars.iter().enumerate() {
        let index = u16::try_from(index).ok()?;
        let cell = |path: Span, value: Span| Cell {
            column: index,
            ttl,
            timestamp: micros,
            local_deletion_time: dies,
            path,
            value,
        };
        let value = match column.name.as_slice() {
            b"bytes_in" => long(outcome.file_read),
            b"bytes_out" => long(outcome.file_written),
            b"columnfamily_name" => running.table.clone().into_bytes(),
            b"compacted_at" => (micros / 1000).to_be_bytes().to_vec(),
            b"compaction_properties" => {
                let kind = ("compaction_type", running.kind.name());
                match running.effort {
                    Effort::Default => frozen_map(&[kind]),
                    // Halcyon's own: the table's compressor was used with less search.
                    Effort::Fast | Effort::Literals => frozen_map(&[kind, ("compression", "fast")]),
                }
            }
            b"keyspace_name" => running.keyspace.clone().into_bytes(),
            b"rows_merged" => {
                // Like an assignment in CQL, which deletes the old collection one microsecond before.
                let time =
                    DeletionTime { marked_for_delete_at: micros - 1, local_deletion_time: seconds };
                row.parts.complex_deletions.push(ComplexDeletion { column: index, time });
                for (inputs, count) in merged(outcome) {
                    let inputs = i32::try_from(inputs).unwrap_or(i32::MAX);
                    let path = row.store(&inputs.to_be_bytes());
                    let value = row.store(&long(count));
                    row.parts.cells.push(cell(path, value));
                }
                continue;
            }
            _ => continue,
        };
        let value = row.store(&value);
        row.parts.cells.push(cell(Span::default(), value));
    }
    mutation.rows.push(row);
    Some(mutation)
}

/// The numbers of partitions by the number of inputs that had them.
fn merged(outcome: &Outcome) -> impl Iterator<Item = (usize, u64)> + '_ {
    outcome.merged_partitions.iter().copied().enumerate().filter(|(_, count)| *count > 0)
}

/// Records a successful compaction.
pub(super) async fn record(compactor: &Compactor, running: &Running, outcome: &Outcome) {
    let (clock, reporter) = (compactor.disk().clock(), &compactor.reporter);
    let took = clock.now().saturating_since(running.began);
    let table = format!("{}.{}", running.keyspace, running.table);
    reporter.report(Event::Compacted(Box::new(Compacted {
        id: running.id,
        table: table.clone(),
        inputs: outcome.inputs,
        outputs: outcome.outputs.iter().map(ToString::to_string).collect(),
        level: running.level,
        read: outcome.file_read,
        written: outcome.file_written,
        took,
        partitions_written: outcome.partitions_written,
        merged: merged(outcome).collect(),
    })));
    if outcome.duplicate_rows > 0 {
        let rows = outcome.duplicate_rows;
        reporter.report(Event::DuplicateRowsMerged { table, rows });
    }
    let table = running.store.table();
    let name = (table.schema.keyspace.as_str(), table.schema.name.as_str());
    // Else its own compactions would cause the next ones.
    if name == ("system", "compaction_history") {
        return;
    }
    if let Some(row) = row(running, outcome, clock.unix_micros()) {
        // A draining node refuses writes; the row is lost.
        let _ = compactor.tables.persist(vec![row]).await;
    }
}
