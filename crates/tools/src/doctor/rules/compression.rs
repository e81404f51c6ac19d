//! Compression without effect: reads pay for decompression, and the device transfers as many bytes.

use crate::doctor::facts::{Facts, Table};
use crate::doctor::finding::{Finding, Severity};

/// The ratio of stored to raw bytes from which compression does not pay.
const POOR: f64 = 0.9;

pub(super) fn examine(facts: &Facts, table: &Table) -> Option<Finding> {
    let (length, stored) = table.chunk()?;
    let ratio = table.ratio();
    // In a small table, the overhead of the format dominates.
    if ratio < POOR || table.is_small() {
        return None;
    }
    let row = table.row_bytes().unwrap_or(0.0);
    let in_vain = (stored - row).max(0.0) * table.sstables_of_a_read();
    Some(Finding {
        severity: Severity::Note,
        kind: "compression",
        of: table.cql_name(),
        what: format!("compressed to {:.0} % of its size", 100.0 * ratio),
        evidence: vec![format!(
            "{} bytes of Data.db for {} bytes of rows, in chunks of {length}",
            table.file_bytes, table.data_bytes
        )],
        bytes_per_query: Some(in_vain as u64),
        cost: "CPU for each chunk, and the rest of the chunk: uncompressed data is read by the row"
            .to_owned(),
        cure: vec![
            format!("ALTER TABLE {} WITH compression = {{'enabled': 'false'}};", table.cql_name()),
            facts.rewrite(table),
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::rules::sound_table;

    /// Proves that only incompressible data is a finding.
    #[test]
    fn poor_ratios() {
        let of = |file_bytes| examine(&Facts::default(), &Table { file_bytes, ..sound_table() });
        assert!(of(1 << 29).is_none());
        let found = of((1 << 30) - 1000).expect("a finding");
        assert_eq!(found.what, "compressed to 100 % of its size");
    }
}
