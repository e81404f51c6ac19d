use halcyon_io::Random;
use halcyon_model::clustering::{ClusteringValue, Position, PositionBuf};
use halcyon_model::{BoundKind, Clusterings, CqlType, DeletionTime};
use halcyon_stream::RangeTombstone;

use super::ranges::Ranges;

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
fn covering(ranges: &[RangeTombstone], c: i32) -> DeletionTime {
    let serialized = serialized(c);
    let row = Position { kind: BoundKind::Clustering, count: 1, serialized: &serialized };
    let clusterings = clusterings();
    let covers = |range: &&RangeTombstone| {
        clusterings.compare(range.start.position(), row).is_lt()
            && clusterings.compare(row, range.end.position()).is_lt()
    };
    let times = ranges.iter().filter(covers).map(|range| range.time);
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
                let found = covering(ranges.as_slice(), c);
                assert_eq!(found, covering(&all, c), "seed {seed}: row {c} of {all:?}");
            }
            let compare = |a: &PositionBuf, b: &PositionBuf| {
                clusterings().compare(a.position(), b.position())
            };
            for pair in ranges.as_slice().windows(2) {
                assert!(compare(&pair[0].end, &pair[1].start).is_le(), "seed {seed}");
            }
            for range in ranges.as_slice() {
                assert!(compare(&range.start, &range.end).is_lt(), "seed {seed}");
                assert!(range.start.kind.opens() && range.end.kind.closes(), "seed {seed}");
            }
        }
    }
}
