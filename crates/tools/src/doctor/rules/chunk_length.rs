//! The chunk length compared with the data that reads need: a read of one row reads, verifies and decompresses its whole chunk.
//!
//! A query needs one row, or the median number of rows per read that the server has measured: if these are more than a partition has, it
//! scans partitions, which lie one after the other. The fitting chunk is the smallest power of two, from 4 KiB, that holds this.

use halcyon_model::options::{Compressed, SubOptions};

use crate::doctor::facts::{BLOCK, Facts, Table};
use crate::doctor::finding::{Finding, Severity};
use halcyon_model::units;

const LEAST: u32 = 4 << 10;
/// Memory per chunk for its offset.
const OFFSET: u64 = 8;
/// A chunk that is this many times too long is a warning.
const TOO_LONG: u32 = 4;

pub(super) fn examine(facts: &Facts, table: &Table) -> Option<Finding> {
    let (length, stored) = table.chunk()?;
    let row = table.row_bytes()?;
    let asked = asked_for(table);
    let rows = table.rows_per_read.filter(|read| read.count > 0);
    let wanted = rows.map_or(1.0, |read| read.p50.max(1.0)) * row;
    let fitting = fitting(wanted).min(length);
    if asked.is_some_and(|asked| asked < length) {
        return Some(not_yet_rewritten(facts, table, length, asked.unwrap_or(length)));
    }
    if length / fitting < 2 {
        return None;
    }
    let sstables = table.sstables_of_a_read();
    let share = f64::from(fitting) / f64::from(length);
    let bytes = |stored: f64| sstables * (stored + BLOCK as f64);
    let in_vain = bytes(stored) - bytes(stored * share);
    let mut evidence = vec![
        format!(
            "{} of {} SSTables have chunks of {}, stored as {} on average (CompressionInfo.db)",
            table.chunks.get(&length).map_or(0, |chunks| chunks.sstables),
            table.sstables,
            units::bytes(u64::from(length)),
            units::bytes(stored as u64)
        ),
        format!(
            "rows have {} on average, half of the partitions at most {} (Statistics.db)",
            units::bytes(row as u64),
            units::bytes(table.partition_bytes.p50 as u64)
        ),
    ];
    evidence.extend(rows.map(|read| {
        format!(
            "{} reads returned {:.0} rows (median), {:.0} (p99) (system_views.rows_per_read)",
            units::count(read.count),
            read.p50,
            read.p99
        )
    }));
    let offsets = OFFSET * table.data_bytes / u64::from(fitting);
    let is_far = length / fitting >= TOO_LONG;
    Some(Finding {
        severity: if is_far { Severity::Warning } else { Severity::Note },
        kind: "chunk_length",
        of: table.cql_name(),
        what: format!(
            "chunks of {} for reads of {}",
            units::bytes(u64::from(length)),
            units::bytes(wanted as u64)
        ),
        evidence,
        bytes_per_query: Some(in_vain as u64),
        cost: format!(
            "{} a query instead of {} ({sstables:.1} SSTables a read); shorter chunks compress a little less, and their offsets take {} of memory",
            units::bytes(bytes(stored) as u64),
            units::bytes(bytes(stored * share) as u64),
            units::bytes(offsets)
        ),
        cure: vec![alter(table, fitting), facts.rewrite(table)],
    })
}

/// The schema has shorter chunks than most of the data: it was altered, and the data was not rewritten.
fn not_yet_rewritten(facts: &Facts, table: &Table, length: u32, asked: u32) -> Finding {
    let (_, stored) = table.chunk().unwrap_or_default();
    let in_vain = stored * (1.0 - f64::from(asked) / f64::from(length));
    Finding {
        severity: Severity::Warning,
        kind: "chunk_length",
        of: table.cql_name(),
        what: format!(
            "the schema says chunks of {}, most of the data has {}",
            units::bytes(u64::from(asked)),
            units::bytes(u64::from(length))
        ),
        evidence: table
            .chunks
            .iter()
            .map(|(length, chunks)| {
                let length = units::bytes(u64::from(*length));
                format!(
                    "{} SSTables, {}: chunks of {length}",
                    chunks.sstables,
                    units::bytes(chunks.stored)
                )
            })
            .collect(),
        bytes_per_query: Some((in_vain * table.sstables_of_a_read()) as u64),
        cost: "the change saves nothing until the SSTables are rewritten".to_owned(),
        cure: vec![facts.rewrite(table)],
    }
}

fn fitting(wanted: f64) -> u32 {
    let whole = wanted.ceil().clamp(1.0, f64::from(1 << 20)) as u32;
    whole.next_power_of_two().max(LEAST)
}

/// The chunk length of the schema.
fn asked_for(table: &Table) -> Option<u32> {
    let option = table.options.compression.as_ref()?;
    option.value().0.as_ref().map(|compression| compression.chunk_length)
}

/// The table's compression with another chunk length.
fn alter(table: &Table, length: u32) -> String {
    let mut map = match &table.options.compression {
        Some(option) => option.entries().clone(),
        None => Compressed::defaults(),
    };
    map.insert("chunk_length_in_kb".to_owned(), (length >> 10).to_string());
    if let Some(class) = map.get_mut("class") {
        *class = class.rsplit('.').next().unwrap_or_default().to_owned();
    }
    let options: Vec<String> =
        map.iter().map(|(name, value)| format!("'{name}': '{value}'")).collect();
    format!("ALTER TABLE {} WITH compression = {{{}}};", table.cql_name(), options.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use halcyon_model::options::MapOption;

    use crate::doctor::facts::{Chunks, Quantiles};
    use crate::doctor::rules::sound_table;

    fn with_chunks(kib: u32) -> Table {
        let chunks = Chunks { sstables: 4, count: (1 << 20) / u64::from(kib), stored: 1 << 29 };
        Table { chunks: [(kib << 10, chunks)].into(), ..sound_table() }
    }

    /// Proves the arithmetic: 32 KiB and a block, compared with 2 KiB and a block.
    #[test]
    fn long_chunks_for_short_rows() {
        let found = examine(&Facts::default(), &with_chunks(64)).expect("a finding");
        assert_eq!(found.severity, Severity::Warning);
        assert_eq!(found.bytes_per_query, Some((32 << 10) - (2 << 10)));
        let alter = "ALTER TABLE ks.t WITH compression = {'chunk_length_in_kb': '4', 'class': 'LZ4Compressor'};";
        assert_eq!(found.cure[0], alter);
        assert!(found.cure[1].starts_with("nodetool upgradesstables -a ks t"), "{}", found.cure[1]);
        assert!(examine(&Facts::default(), &with_chunks(4)).is_none());
        assert_eq!(
            examine(&Facts::default(), &with_chunks(8)).map(|f| f.severity),
            Some(Severity::Note)
        );
    }

    /// Proves that long chunks are not a finding if reads need all of them.
    #[test]
    fn queries_of_many_rows_want_long_chunks() {
        let partition_bytes = Quantiles { count: 9, p50: 1e6, p99: 2e6, max: 3e6 };
        let rows_per_read = Some(Quantiles { count: 900, p50: 60.0, p99: 99.0, max: 99.0 });
        let table = Table { partition_bytes, rows_per_read, ..with_chunks(64) };
        assert!(examine(&Facts::default(), &table).is_none());
        // Of partitions of one row each.
        let table = Table { rows_per_read, ..with_chunks(64) };
        assert!(examine(&Facts::default(), &table).is_none());
    }

    /// Proves that a schema altered after the data was written is a finding, and that other options are kept.
    #[test]
    fn data_older_than_the_schema() {
        let mut table = with_chunks(64);
        let compression = [
            ("class", "org.apache.cassandra.io.compress.ZstdCompressor"),
            ("compression_level", "3"),
            ("chunk_length_in_kb", "4"),
        ];
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        table.options.compression = Some(MapOption::lenient(compression.map(owned).into()));
        let found = examine(&Facts::default(), &table).expect("a finding");
        assert!(found.what.contains("the schema says chunks of 4.0 KiB"), "{}", found.what);
        assert_eq!(found.cure.len(), 1);
        assert!(
            alter(&table, 8192)
                .contains("'8', 'class': 'ZstdCompressor', 'compression_level': '3'")
        );
    }
}
