//! Bloom filters: a false positive costs a look-up in the index: a page of it, and no data.
//!
//! With the optimal number of hashes, the chance of a false positive is `0.6185^(bits per key)`.

use crate::doctor::facts::{BLOCK, Facts, Table};
use crate::doctor::finding::{Finding, Severity};
use halcyon_model::options::defaults;
use halcyon_model::units;

/// The factor per bit and key in the chance of a false positive: `exp(-ln²2)`.
const PER_BIT: f64 = 0.618_503_137_801_576_6;
/// False positives per query from which there is a finding.
const MANY: f64 = 0.2;

pub(super) fn examine(facts: &Facts, table: &Table) -> Option<Finding> {
    if table.sstables < 2 || table.key_entries == 0 {
        return None;
    }
    let filtered = table.key_entries.saturating_sub(table.keys_without_filter);
    let bits = table.filter_bits as f64 / filtered.max(1) as f64;
    let with_filter = filtered as f64 / table.key_entries as f64;
    let chance = with_filter * PER_BIT.powf(bits) + (1.0 - with_filter);
    let others = (table.sstables as f64 - table.sstables_of_a_read()).max(0.0);
    let in_vain = chance * others;
    if in_vain < MANY {
        return None;
    }
    let asked = table.options.bloom_filter_fp_chance.or(table.fp_chance_asked);
    let wanted = asked
        .filter(|asked| *asked < defaults::BLOOM_FILTER_FP_CHANCE)
        .unwrap_or(defaults::BLOOM_FILTER_FP_CHANCE);
    let more =
        (wanted.ln() / PER_BIT.ln() * table.key_entries as f64 - table.filter_bits as f64) / 8.0;
    Some(Finding {
        severity: Severity::Warning,
        kind: "bloom_filter",
        of: table.cql_name(),
        what: format!(
            "{:.0} % of the look-ups of keys that are not there pass the Bloom filters",
            100.0 * chance
        ),
        evidence: vec![
            format!(
                "{bits:.1} bits a key in {} keys; {} keys have no filter (Filter.db)",
                units::count(filtered),
                units::count(table.keys_without_filter)
            ),
            format!(
                "bloom_filter_fp_chance is {}",
                asked.map_or("not known".to_owned(), |asked| asked.to_string())
            ),
            format!(
                "{} SSTables, of which a key is in {:.1}",
                table.sstables,
                table.sstables_of_a_read()
            ),
        ],
        bytes_per_query: Some((in_vain * BLOCK as f64) as u64),
        cost: format!("{in_vain:.1} useless lookups a query, a page of index each"),
        cure: vec![
            format!(
                "ALTER TABLE {} WITH bloom_filter_fp_chance = {wanted};   # {} more memory",
                table.cql_name(),
                units::bytes(more.max(0.0) as u64)
            ),
            facts.rewrite(table),
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::rules::sound_table;

    /// Proves that ten bits per key give a chance of about 1 %, and that a missing filter lets every key pass.
    #[test]
    fn chances() {
        let sound = Table { sstables: 20, ..sound_table() };
        assert!(examine(&Facts::default(), &sound).is_none(), "19 others by 0.8 % each");
        let none =
            Table { filter_bits: 0, keys_without_filter: sound.key_entries, ..sound.clone() };
        let found = examine(&Facts::default(), &none).expect("a finding");
        assert!(found.what.starts_with("100 %"), "{}", found.what);
        assert_eq!(found.bytes_per_query, Some(19 * 4096));
        let thin = Table { filter_bits: 5 * sound.key_entries, ..sound.clone() };
        let found = examine(&Facts::default(), &thin).expect("a finding");
        assert!(found.what.starts_with("9 %"), "{}", found.what);
        let alone = Table { sstables: 1, ..none };
        assert!(examine(&Facts::default(), &alone).is_none(), "there is no other to examine in");
    }
}
