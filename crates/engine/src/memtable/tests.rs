use std::sync::Arc;

use halcyon_io::Random;
use halcyon_model::clustering::{ClusteringValue, Position, PositionBuf};
use halcyon_model::{BoundKind, Clusterings, CqlType, DeletionTime, Partitioner, counter};
use halcyon_stream::{Column, Layout, Mutation, PartitionKey, RangeTombstone, RowBuf, RowMerger};

use super::Partition;
use super::leaves::{At, Leaves};
use super::ranges::Ranges;
use crate::tests::push_cell;

const PLACES: i32 = 12;

fn clusterings() -> Clusterings {
    Clusterings::new(&[CqlType::Int])
}

fn serialized(c: i32) -> Vec<u8> {
    let mut out = Vec::new();
    clusterings().write(&[ClusteringValue::Bytes(&c.to_be_bytes())], &mut out);
    out
}

fn bound(kind: BoundKind, c: i32) -> PositionBuf {
    PositionBuf { kind, count: 1, serialized: serialized(c) }
}

fn random_range(random: &mut Random) -> RangeTombstone {
    let mut below = |n: u64| (random.next_u64() % n) as i32;
    let (a, b) = (below(PLACES as u64), below(PLACES as u64));
    let start = if below(2) == 0 { BoundKind::InclStart } else { BoundKind::ExclStart };
    let end = if below(2) == 0 { BoundKind::InclEnd } else { BoundKind::ExclEnd };
    let timestamp = i64::from(below(6));
    let time = DeletionTime { marked_for_delete_at: timestamp, local_deletion_time: 7 };
    RangeTombstone { start: bound(start, a.min(b)), end: bound(end, a.max(b)), time }
}

/// The deletion that covers a row.
fn covering<'r>(ranges: impl Iterator<Item = &'r RangeTombstone>, c: i32) -> DeletionTime {
    let serialized = serialized(c);
    let row = Position { kind: BoundKind::Clustering, count: 1, serialized: &serialized };
    let clusterings = clusterings();
    let covers = |range: &&RangeTombstone| {
        clusterings.compare(range.start.position(), row).is_lt()
            && clusterings.compare(row, range.end.position()).is_lt()
    };
    let times = ranges.filter(covers).map(|range| range.time);
    times.fold(DeletionTime::LIVE, DeletionTime::max)
}

/// Proves against the plain list of what was put in that each row is covered by the superseding range, and that the ranges stay in
/// order without overlap.
#[test]
fn ranges_cover_what_they_should() {
    for seed in 0..300 {
        let mut random = Random::seeded(seed);
        let (mut ranges, mut all) = (Ranges::default(), Vec::new());
        for _ in 0..12 {
            let range = random_range(&mut random);
            all.push(range.clone());
            ranges.insert(&clusterings(), range);
            for c in 0..PLACES {
                let expected = covering(all.iter(), c);
                assert_eq!(covering(ranges.iter(), c), expected, "seed {seed}: row {c} of {all:?}");
                let serialized = serialized(c);
                let row =
                    Position { kind: BoundKind::Clustering, count: 1, serialized: &serialized };
                let found = ranges.covering(&clusterings(), row).map(|range| range.time);
                assert_eq!(found.unwrap_or(DeletionTime::LIVE), expected, "seed {seed}: row {c}");
            }
            let compare = |a: &PositionBuf, b: &PositionBuf| {
                clusterings().compare(a.position(), b.position())
            };
            let listed: Vec<&RangeTombstone> = ranges.iter().collect();
            for pair in listed.windows(2) {
                assert!(compare(&pair[0].end, &pair[1].start).is_le(), "seed {seed}");
            }
            for range in listed {
                assert!(compare(&range.start, &range.end).is_lt(), "seed {seed}");
                assert!(range.start.kind.opens() && range.end.kind.closes(), "seed {seed}");
            }
        }
    }
}

/// Proves against a plain vector that a list of leaves is the same after any splices, and that a clone keeps what it had.
#[test]
fn lists_of_leaves_are_lists() {
    for seed in 0..40 {
        let mut random = Random::seeded(seed);
        let (mut leaves, mut plain) = (Leaves::default(), Vec::new());
        let at = |leaves: &Leaves<u64>, index: usize| {
            let mut at = At::default();
            (0..index).for_each(|_| at = leaves.after(at));
            at
        };
        for step in 0..60 {
            let (kept, was) = (leaves.clone(), plain.clone());
            let from = random.below(plain.len() as u64 + 1) as usize;
            let gone = random.below(1 + (plain.len() - from) as u64) as usize;
            let gone = if random.chance(1, 4) { gone } else { gone.min(2) };
            let added = if random.chance(1, 4) { random.below(300) } else { random.below(4) };
            let added: Vec<u64> = (0..added).map(|n| 1_000 * step + n).collect();
            let (start, end) = (at(&leaves, from), at(&leaves, from + gone));
            leaves.splice(start, end, added.iter().copied());
            plain.splice(from..from + gone, added);
            let shown: Vec<u64> = leaves.iter_from(At::default()).copied().collect();
            assert_eq!(shown, plain, "seed {seed}, step {step}");
            assert_eq!(leaves.last(), plain.last());
            let mut back = leaves.end();
            for expected in plain.iter().rev() {
                back = leaves.before(back);
                assert_eq!(leaves.get(back), Some(expected), "seed {seed}, step {step}");
            }
            assert_eq!(back, At::default());
            assert!(kept.iter_from(At::default()).eq(&was), "seed {seed}, step {step}");
        }
    }
}

fn counted(layout: &Arc<Layout>, clock: i64, count: i64, timestamp: i64) -> Mutation {
    let row = |clustering: &[u8]| {
        let mut row = RowBuf::new();
        row.parts.clustering = row.store(clustering);
        push_cell(&mut row, &counter::global([7; 16], clock, count), timestamp);
        row
    };
    let mut mutation = Mutation::new([1; 16], layout.clone(), PartitionKey::empty());
    mutation.static_row = Some(row(&[]));
    mutation.rows.push(row(&serialized(1)));
    mutation
}

/// Proves that a shard does not survive a deletion of its partition or range by being merged with a later one, even if its clock is
/// higher: Halcyon's clocks began at one once, and are in logs and files.
#[test]
fn deleted_shards_are_not_merged() {
    let column = |name: &str| vec![Column::new(name.into(), CqlType::Counter)];
    let layout = Arc::new(Layout {
        partitioner: Partitioner::Murmur3,
        key_type: CqlType::Int,
        clusterings: clusterings(),
        clustering_types: vec![CqlType::Int],
        statics: column("s"),
        regulars: column("n"),
    });
    let time = DeletionTime { marked_for_delete_at: 2, local_deletion_time: 7 };
    let mut of_partition = Mutation::new([1; 16], layout.clone(), PartitionKey::empty());
    of_partition.deletion = time;
    let mut of_range = Mutation::new([1; 16], layout.clone(), PartitionKey::empty());
    let (start, end) = (bound(BoundKind::InclStart, 0), bound(BoundKind::InclEnd, 2));
    of_range.range_tombstones.push(RangeTombstone { start, end, time });
    for (deletion, [of_static, of_row]) in [(of_partition, [1, 1]), (of_range, [5, 1])] {
        let mut partition = Partition::default();
        let mut merger = RowMerger::new(layout.clone());
        for mutation in [counted(&layout, 9, 5, 1), deletion, counted(&layout, 1, 1, 3)] {
            partition.apply(mutation, &layout.clusterings, &mut merger).expect("merges");
        }
        let total = |row: &RowBuf| {
            let totals = row.parts.cells.iter();
            totals.map(|cell| counter::total(cell.value.of(&row.bytes)).expect("whole")).sum()
        };
        let rows: Vec<i64> =
            partition.static_row().into_iter().chain(partition.rows()).map(total).collect();
        assert_eq!(rows, [of_static, of_row]);
    }
}
