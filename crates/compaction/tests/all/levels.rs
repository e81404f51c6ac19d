//! Outputs that fill levels, or are halves.

use std::sync::Arc;

use halcyon_compaction::strategy::shard_boundaries;
use halcyon_io::block_on;
use halcyon_sstable::SSTable;

use crate::sim_table::{self, A, SimTable};

/// Proves that the output after a full level is of the next one, that a filter is only for the keys of its own output, and that everything
/// is still there. With SSTables of no size, each has one partition and fills its level.
#[test]
fn one_after_the_other() {
    let mut table = SimTable::load("oa/uncompressed", 3, &[A]);
    table.settings.split_size = Some(0);
    (table.settings.level, table.settings.level_fanout) = (Some(1), Some(10));
    let outputs = table.compact().expect("compacts").outputs;
    assert!(table.check(&[A], "levels"));
    let live = block_on(sim_table::live(&table.disk, &[A])).expect("outputs open");
    let level = |output| {
        let found = live.iter().find(|s| s.descriptor() == output).expect("live");
        found.statistics().stats.level
    };
    let levels: Vec<i32> = outputs.iter().map(level).collect();
    assert!(levels.len() > 2 && levels.iter().copied().eq((1..).take(levels.len())), "{levels:?}");
    let filters = live.iter().map(|s| block_on(s.filter(&table.disk)).expect("is read").memory());
    assert!(filters.max() <= Some(16), "bytes for one key");
}

/// Proves that outputs are a half, a quarter and so on of the inputs, that the last has what is left, and that everything is still there.
#[test]
fn halves() {
    let mut table = SimTable::load("oa/uncompressed", 3, &[A]);
    let live = block_on(sim_table::live(&table.disk, &[A])).expect("inputs open");
    let total: u64 = live.iter().map(|input| input.file_length()).sum();
    table.settings.smallest_half = Some(total / 6);
    let outputs = table.compact().expect("compacts").outputs;
    assert!(table.check(&[A], "halves"));
    let live = block_on(sim_table::live(&table.disk, &[A])).expect("outputs open");
    let length = |output| {
        live.iter().find(|s| s.descriptor() == output).map_or(0, |found| found.file_length())
    };
    let lengths: Vec<u64> = outputs.iter().map(length).collect();
    // A half and a quarter; an eighth would be too small.
    assert!(
        lengths.len() <= 3 && lengths.iter().all(|length| *length > 0),
        "{lengths:?} of {total}"
    );
    assert!(lengths.first().is_some_and(|first| *first > total / 2), "{lengths:?} of {total}");
}

/// Proves that outputs which end at boundaries have filters for the keys in between, in versions that have first and last key in
/// Statistics.db and in one that has them in Summary.db.
#[test]
fn boundaries() {
    for from in ["oa/uncompressed", "nb/uncompressed"] {
        let filters = |split_tokens: Vec<i64>| {
            let mut table = SimTable::load(from, 3, &[A]);
            table.settings.split_tokens = split_tokens;
            table.compact().expect("compacts");
            assert!(table.check(&[A], "boundaries"));
            let live = block_on(sim_table::live(&table.disk, &[A])).expect("outputs open");
            let read = |s: &Arc<SSTable>| block_on(s.filter(&table.disk)).expect("is read");
            live.iter().map(|s| read(s).memory()).collect::<Vec<_>>()
        };
        let (one, split) = (filters(Vec::new()), filters(shard_boundaries(4)));
        assert_eq!((one.len(), split.len()), (1, 4), "{from}");
        // Each may have some words more.
        assert!(split.iter().sum::<usize>() < one[0] + 4 * 16, "{from}: {split:?} of {one:?}");
    }
}
