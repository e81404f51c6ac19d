//! Tombstones: those past gc_grace that were not purged, and those that reads must skip.

use crate::doctor::facts::{Facts, Table};
use crate::doctor::finding::{Finding, Severity};
use halcyon_model::units;

/// Cassandra's `tombstone_threshold`, from which it compacts a single SSTable to purge tombstones.
const DROPPABLE: f64 = 0.2;
/// A tenth of Cassandra's `tombstone_warn_threshold`.
const PER_READ: f64 = 100.0;

pub(super) fn examine(facts: &Facts, table: &Table) -> Option<Finding> {
    let ratio = if table.cells > 0.0 { table.droppable / table.cells } else { 0.0 };
    let read = table.tombstones_per_read.filter(|read| read.count > 0);
    let is_read = read.is_some_and(|read| read.p99 >= PER_READ);
    if ratio < DROPPABLE && !is_read {
        return None;
    }
    let partition = table.partition_bytes.p50 * table.ratio();
    let mut evidence = vec![format!(
        "{:.0} of {:.0} cells could be dropped, past gc_grace_seconds = {} (Statistics.db)",
        table.droppable,
        table.cells,
        table.options.gc_grace_seconds()
    )];
    evidence.extend(read.map(|read| {
        format!(
            "{} reads passed {:.0} tombstones (median), {:.0} (p99) (system_views.tombstones_per_read)",
            units::count(read.count),
            read.p50,
            read.p99
        )
    }));
    let what = match is_read {
        true => format!("reads pass {:.0} tombstones (p99)", read.map_or(0.0, |read| read.p99)),
        false => {
            format!("{:.0} % of its cells are tombstones that compaction could drop", 100.0 * ratio)
        }
    };
    Some(Finding {
        severity: Severity::Warning,
        kind: "tombstones",
        of: table.cql_name(),
        what,
        evidence,
        bytes_per_query: Some((ratio.min(1.0) * partition) as u64),
        cost: format!(
            "that share of a partition of {} (median, as stored), and CPU for each",
            units::bytes(partition as u64)
        ),
        cure: cure(facts, table, is_read && ratio < DROPPABLE),
    })
}

fn cure(facts: &Facts, table: &Table, too_young: bool) -> Vec<String> {
    let (name, keyspace) = (table.cql_name(), &table.keyspace);
    let mut cure = Vec::new();
    if too_young {
        cure.push(format!("ALTER TABLE {name} WITH gc_grace_seconds = 3600;   # on a single node, or if repairs are as frequent"));
    }
    let merge = "so that deletions meet what they delete";
    cure.push(match facts.live.as_ref().is_some_and(|live| live.is_halcyon) {
        true => facts.rewrite(table),
        false => format!("nodetool garbagecollect {keyspace} {}   # {merge}", table.name),
    });
    let class = table.compaction_class();
    if class == "SizeTieredCompactionStrategy" {
        cure.push(format!(
            "ALTER TABLE {name} WITH compaction = {{'class': '{class}', 'unchecked_tombstone_compaction': 'true', 'tombstone_threshold': '0.1'}};   # or TimeWindowCompactionStrategy, if all rows have the same TTL"
        ));
    }
    cure
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::facts::Quantiles;
    use crate::doctor::rules::sound_table;

    /// Proves that both kinds are findings, and that gc_grace is a cure only for young tombstones.
    #[test]
    fn droppable_and_read() {
        let old =
            examine(&Facts::default(), &Table { droppable: 5e5, ..sound_table() }).expect("found");
        assert_eq!(old.what, "50 % of its cells are tombstones that compaction could drop");
        assert_eq!(old.bytes_per_query, Some(256), "half of a partition of 512 stored bytes");
        assert!(!old.cure.iter().any(|cure| cure.contains("gc_grace")), "{:?}", old.cure);
        let seen = Quantiles { count: 10, p50: 90.0, p99: 1500.0, max: 1500.0 };
        let read = Table { tombstones_per_read: Some(seen), ..sound_table() };
        let young = examine(&Facts::default(), &read).expect("found");
        assert_eq!(young.what, "reads pass 1500 tombstones (p99)");
        assert!(young.cure[0].contains("gc_grace_seconds = 3600"), "{:?}", young.cure);
    }
}
