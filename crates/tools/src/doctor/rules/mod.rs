//! The rules: each file is one kind of finding, a pure function of the facts.
//!
//! | file | subject |
//! |---|---|
//! | `direct_io` | kernel and file system: whether direct I/O works and is safe |
//! | `read_ahead`, `scheduler` | the device's settings |
//! | `chunk_length` | chunks compared with the rows that are read from them |
//! | `compression` | whether compression pays |
//! | `bloom_filter` | false positives |
//! | `sstables_per_read` | SSTables that share partitions |
//! | `tombstones` | tombstones that reads skip, or that could be purged |
//! | `partition_size` | large partitions |
//! | `caches` | sizes and hit rates, of a running server |
//! | `unreadable` | files that could not be read |

mod bloom_filter;
mod caches;
mod chunk_length;
mod compression;
mod direct_io;
mod partition_size;
mod read_ahead;
mod scheduler;
mod sstables_per_read;
mod tombstones;
mod unreadable;

use super::facts::{Facts, Table};
use super::finding::{Finding, Severity, sort};

/// All findings, the worst first.
pub(super) fn examine(facts: &Facts) -> Vec<Finding> {
    let of_facts = [
        unreadable::examine,
        direct_io::examine,
        read_ahead::examine,
        scheduler::examine,
        caches::examine,
    ];
    let of_table: [fn(&Facts, &Table) -> Option<Finding>; 6] = [
        chunk_length::examine,
        compression::examine,
        bloom_filter::examine,
        sstables_per_read::examine,
        tombstones::examine,
        partition_size::examine,
    ];
    let mut findings: Vec<Finding> = of_facts.iter().flat_map(|examine| examine(facts)).collect();
    for table in &facts.tables {
        findings.extend(of_table.iter().filter_map(|examine| examine(facts, table)).map(
            |finding| {
                // It fits into any cache, so a fault costs almost nothing.
                let severity = if table.is_small() { Severity::Note } else { finding.severity };
                Finding { severity, ..finding }
            },
        ));
    }
    sort(&mut findings);
    findings
}

/// A table of 1 GiB without a fault, for tests to change.
#[cfg(test)]
pub(super) fn sound_table() -> Table {
    use super::facts::{Chunks, Quantiles};
    let gib = 1 << 30;
    Table {
        keyspace: "ks".into(),
        name: "t".into(),
        sstables: 4,
        file_bytes: gib / 2,
        data_bytes: gib,
        rows: gib / 1024,
        chunks: [(4096, Chunks { sstables: 4, count: gib / 4096, stored: gib / 2 })].into(),
        key_entries: gib / 1024,
        keys: gib / 1024,
        filter_bits: 10 * gib / 1024,
        fp_chance_asked: Some(0.01),
        partition_bytes: Quantiles { count: gib / 1024, p50: 1024.0, p99: 1200.0, max: 1500.0 },
        cells: 1e6,
        ..Table::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::facts::Chunks;
    use super::*;

    /// Proves that a table without a fault has no findings.
    #[test]
    fn a_sound_table_has_no_findings() {
        let facts = Facts { tables: vec![sound_table()], ..Facts::default() };
        assert_eq!(examine(&facts), []);
    }

    /// Proves that the same fault is a note in a table that fits any cache.
    #[test]
    fn small_tables_have_only_notes() {
        let large = Table {
            chunks: [(65_536, Chunks { sstables: 4, count: 16_384, stored: 1 << 29 })].into(),
            ..sound_table()
        };
        let small = Table { data_bytes: 1 << 20, rows: 1024, ..large.clone() };
        let severities = |table: Table| -> Vec<Severity> {
            let facts = Facts { tables: vec![table], ..Facts::default() };
            examine(&facts).iter().map(|finding| finding.severity).collect()
        };
        assert_eq!(severities(large), [Severity::Warning]);
        assert_eq!(severities(small), [Severity::Note]);
    }
}
