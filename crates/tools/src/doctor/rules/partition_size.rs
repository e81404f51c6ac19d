//! Large partitions: Cassandra warns from 100 MiB. Their row index alone is larger than the chunk of a small row.

use crate::doctor::facts::{Facts, Table};
use crate::doctor::finding::{Finding, Severity};
use halcyon_model::units;

const LARGE: f64 = (100u64 << 20) as f64;
const HUGE: f64 = (1u64 << 30) as f64;
/// Cassandra's `column_index_size`, and the approximate size of an entry in the row index.
const INDEX_BLOCK: f64 = 65_536.0;
const INDEX_ENTRY: f64 = 48.0;

pub(super) fn examine(_: &Facts, table: &Table) -> Option<Finding> {
    let sizes = table.partition_bytes;
    if sizes.max < LARGE {
        return None;
    }
    let index = sizes.max / INDEX_BLOCK * INDEX_ENTRY;
    Some(Finding {
        severity: if sizes.max >= HUGE { Severity::Warning } else { Severity::Note },
        kind: "partition_size",
        of: table.cql_name(),
        what: format!("a partition has {}", units::bytes(sizes.max as u64)),
        evidence: vec![format!(
            "largest {}, p99 {}, median {} (Statistics.db or system_views.max_partition_size)",
            units::bytes(sizes.max as u64),
            units::bytes(sizes.p99 as u64),
            units::bytes(sizes.p50 as u64)
        )],
        bytes_per_query: Some(index as u64),
        cost: format!(
            "{} of row index for each read of it that its cache misses; memory and pauses while Cassandra compacts it; one shard for all of it",
            units::bytes(index as u64)
        ),
        cure: vec![format!(
            "# a key cannot be altered: make a table whose partition key has one column more than that of {} (a day, a bucket number), and copy",
            table.cql_name()
        )],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::facts::Quantiles;
    use crate::doctor::rules::sound_table;

    /// Proves the two thresholds.
    #[test]
    fn large_and_huge() {
        let severity = |max| {
            let partition_bytes = Quantiles { count: 1, p50: 1e3, p99: 1e4, max };
            let table = Table { partition_bytes, ..sound_table() };
            examine(&Facts::default(), &table).map(|found| found.severity)
        };
        assert_eq!(severity(99e6), None);
        assert_eq!(severity(200e6), Some(Severity::Note));
        assert_eq!(severity(2e9), Some(Severity::Warning));
    }
}
