//! SSTables that share partitions: a read costs a chunk in each.
//!
//! The average number follows from the cardinality sketches (HyperLogLog, in Statistics.db): the sum of the SSTables' keys divided by
//! the keys of their union. No server reports it in CQL.

use crate::doctor::facts::{Facts, Table};
use crate::doctor::finding::{Finding, Severity};
use halcyon_model::units;

const MANY: f64 = 2.0;
const TOO_MANY: f64 = 4.0;

pub(super) fn examine(facts: &Facts, table: &Table) -> Option<Finding> {
    let sstables = table.sstables_of_a_read();
    if sstables < MANY {
        return None;
    }
    let chunk = table.device_bytes_of_a_chunk();
    let mut evidence = vec![format!(
        "{} SSTables have {} keys, {} different ones (Statistics.db)",
        table.sstables,
        units::count(table.key_entries),
        units::count(table.keys)
    )];
    evidence.push(format!("compacted by {}", table.compaction_class()));
    Some(Finding {
        severity: if sstables >= TOO_MANY { Severity::Warning } else { Severity::Note },
        kind: "sstables_per_read",
        of: table.cql_name(),
        what: format!("a partition is spread over {sstables:.1} SSTables"),
        evidence,
        bytes_per_query: Some(((sstables - 1.0) * chunk) as u64),
        cost: format!(
            "{} from each SSTable after the first, and its index and filter",
            units::bytes(chunk as u64)
        ),
        cure: cure(facts, table),
    })
}

fn cure(facts: &Facts, table: &Table) -> Vec<String> {
    let (keyspace, name) = (&table.keyspace, &table.name);
    let once = match facts.live.as_ref().is_some_and(|live| live.is_halcyon) {
        true => facts.rewrite(table),
        false => {
            format!("nodetool compact {keyspace} {name}   # once; it comes back with the writes")
        }
    };
    if table.has_windows() {
        let model = "# partitions should not outlive a window: put the time into the partition key";
        return vec![model.to_owned()];
    }
    let strategy = match table.compaction_class() {
        "LeveledCompactionStrategy" => {
            "# compaction does not keep up: raise compaction_throughput or concurrent_compactors"
                .to_owned()
        }
        _ => format!(
            "ALTER TABLE {} WITH compaction = {{'class': 'UnifiedCompactionStrategy', 'scaling_parameters': 'L10'}};   # for good; it writes more",
            table.cql_name()
        ),
    };
    vec![once, strategy]
}

#[cfg(test)]
mod tests {
    use halcyon_model::options::MapOption;

    use super::*;
    use crate::doctor::facts::Server;
    use crate::doctor::rules::sound_table;

    /// Proves the arithmetic: if five SSTables have each key, four chunks of 2 KiB and four blocks are read without need.
    #[test]
    fn spread_over_five() {
        let spread = Table { key_entries: 5 * sound_table().keys, ..sound_table() };
        let found = examine(&Facts::default(), &spread).expect("a finding");
        assert_eq!(found.severity, Severity::Warning);
        assert_eq!(found.bytes_per_query, Some(4 * (2048 + 4096)));
        assert!(found.cure[1].contains("UnifiedCompactionStrategy"), "{:?}", found.cure);
    }

    /// Proves that the doctor does not advise to compact the windows of a table into one.
    #[test]
    fn windows_stay() {
        let class = "org.apache.cassandra.db.compaction.TimeWindowCompactionStrategy";
        let compaction = [("class".to_owned(), class.to_owned())];
        let mut table = Table { key_entries: 5 * sound_table().keys, ..sound_table() };
        table.options.compaction = Some(MapOption::lenient(compaction.into()));
        for is_halcyon in [false, true] {
            let live = Some(Server { is_halcyon, ..Server::default() });
            let facts = Facts { live, ..Facts::default() };
            let cure = examine(&facts, &table).expect("a finding").cure;
            assert!(cure.iter().all(|line| line.starts_with("# ")), "{cure:?}");
            let rewritten = facts.rewrite(&table);
            assert!(rewritten.contains("for file in DATA_DIR/ks/t-*/*-Data.db;"), "{rewritten}");
            assert_eq!(rewritten.contains("stopped"), !is_halcyon, "{rewritten}");
        }
    }
}
