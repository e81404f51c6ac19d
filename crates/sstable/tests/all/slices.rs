//! Reads by key, slice and range through a shard's caches, of every SSTable that Cassandra wrote: each must give what
//! a scan from end to end gives of the same rows, forwards and backwards.

use std::sync::Arc;

use halcyon_io::{AccessMode, Disk, DiskOptions, Random, block_on, random};
use halcyon_model::clustering::{ClusteringValue, PositionBuf};
use halcyon_model::{BoundKind, Clusterings};
use halcyon_sstable::read::{Budget, CacheSizes, RangeStart, ReadCaches, SSTableReader};
use halcyon_sstable::{Descriptor, OpenOptions, SSTable, ScanOptions};
use halcyon_stream::{
    Fragment, FragmentStream, GrammarError, PartitionKey, Slice, SliceFilter, Slices, Validator,
};

use crate::corpus::{corpus, sstables_below};

/// A fragment with its own bytes, comparable.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Seen {
    Start(Vec<u8>),
    Static(String),
    Row(String),
    Marker(PositionBuf, String, String),
    End,
}

fn seen(fragment: Fragment<'_>) -> Seen {
    let row = |row: halcyon_stream::Row<'_>| {
        let cells: Vec<_> = row
            .cells
            .iter()
            .map(|c| (c.column, c.timestamp, c.ttl, c.path.of(row.bytes), c.value.of(row.bytes)))
            .collect();
        let head = (row.clustering, row.liveness, row.deletion, row.complex_deletions);
        format!("{head:?} {cells:?}")
    };
    match fragment {
        Fragment::Start(start) => Seen::Start(start.key.bytes.clone()),
        Fragment::Static(of) => Seen::Static(row(of)),
        Fragment::Row(of) => Seen::Row(row(of)),
        Fragment::Marker(m) => {
            let bound = PositionBuf {
                kind: m.position.kind,
                count: m.position.count,
                serialized: m.position.serialized.to_vec(),
            };
            Seen::Marker(bound, format!("{:?}", m.close), format!("{:?}", m.open))
        }
        Fragment::End => Seen::End,
    }
}

/// One partition of a stream, up to its end.
async fn partition<S: FragmentStream>(stream: &mut S, validator: &mut Validator) -> Vec<Seen>
where
    S::Error: std::fmt::Debug,
{
    let mut fragments = Vec::new();
    while stream.advance().await.expect("sound") {
        let checked: Result<(), GrammarError> = validator.check(stream.fragment());
        checked.unwrap_or_else(|e| panic!("{e} after {fragments:?}"));
        fragments.push(seen(stream.fragment()));
        if fragments.last() == Some(&Seen::End) {
            break;
        }
    }
    fragments
}

/// What a reversed stream must give, from what the forward one gave.
fn backwards(forwards: &[Seen]) -> Vec<Seen> {
    let is_head = |fragment: &&Seen| matches!(fragment, Seen::Start(_) | Seen::Static(_));
    let head = forwards.iter().take_while(is_head).count();
    let mut all = forwards[..head].to_vec();
    let rest = forwards[head..forwards.len() - 1].iter().rev();
    all.extend(rest.map(|fragment| match fragment {
        Seen::Marker(bound, close, open) => {
            let bound = PositionBuf { kind: bound.kind.reversed(), ..bound.clone() };
            Seen::Marker(bound, open.clone(), close.clone())
        }
        other => other.clone(),
    }));
    all.push(Seen::End);
    all
}

/// Clusterings of the rows of each partition, by key.
type Partitions = Vec<(PartitionKey, Vec<Vec<u8>>)>;

async fn partitions(disk: &Disk, sstable: &SSTable) -> Partitions {
    let mut scan = sstable.scan(disk, ScanOptions::default()).await.expect("scans");
    let mut found: Partitions = Vec::new();
    while scan.advance().await.expect("sound") {
        match scan.fragment() {
            Fragment::Start(start) => found.push((start.key.clone(), Vec::new())),
            Fragment::Row(row) => {
                found.last_mut().expect("started").1.push(row.clustering.to_vec());
            }
            _ => {}
        }
    }
    found
}

/// A prefix of a row's clustering as a bound.
fn bound(
    clusterings: &Clusterings,
    row: &[u8],
    kind: BoundKind,
    random: &mut Random,
) -> PositionBuf {
    let values: Vec<ClusteringValue<'_>> = clusterings.values(row, clusterings.len()).collect();
    let count = 1 + random.below(values.len() as u64) as usize;
    let mut serialized = Vec::new();
    clusterings.write(&values[..count], &mut serialized);
    PositionBuf { kind, count, serialized }
}

/// Slices whose bounds lie at rows of the partition.
fn slices(clusterings: &Clusterings, rows: &[Vec<u8>], random: &mut Random) -> Slices {
    let mut all = Slices { slices: vec![Slice::default()].into(), reversed: false, statics: true };
    all.statics = random.chance(2, 3);
    if clusterings.is_empty() || rows.is_empty() {
        return all;
    }
    let mut chosen = Vec::new();
    let mut at = 0;
    for _ in 0..1 + random.below(3) {
        if at >= rows.len() {
            break;
        }
        let from = at + random.below((rows.len() - at) as u64) as usize;
        let to = from + random.below((rows.len() - from).min(20) as u64) as usize;
        let mut pick = |row: usize, kinds: [BoundKind; 2]| {
            let kind = kinds[random.below(2) as usize];
            Some(bound(clusterings, &rows[row], kind, random))
        };
        let start = pick(from, [BoundKind::InclStart, BoundKind::ExclStart]);
        let end = pick(to, [BoundKind::InclEnd, BoundKind::ExclEnd]);
        chosen.push(Slice { start, end });
        at = to + 1;
    }
    if random.chance(1, 8) {
        chosen.first_mut().expect("one").start = None;
    }
    if random.chance(1, 8) {
        chosen.last_mut().expect("one").end = None;
    }
    all.slices = chosen.into();
    let ordered = |a: Option<&PositionBuf>, b: Option<&PositionBuf>| match (a, b) {
        (Some(a), Some(b)) => clusterings.compare(a.position(), b.position()).is_lt(),
        _ => true,
    };
    let sound = all.slices.iter().all(|s| ordered(s.start.as_ref(), s.end.as_ref()))
        && all
            .slices
            .windows(2)
            .all(|w| w[0].end.is_some() && ordered(w[0].end.as_ref(), w[1].start.as_ref()));
    if sound { all } else { Slices::all() }
}

async fn check(disk: &Disk, descriptor: &Descriptor, random: &mut Random) -> u64 {
    let sstable = SSTable::open(disk, descriptor, OpenOptions::default()).await.expect("opens");
    let sstable = Arc::new(sstable);
    let reader = SSTableReader::open(disk, sstable.clone(), disk.next_id(), AccessMode::Auto)
        .await
        .expect("opens");
    let reader = Arc::new(reader);
    // Small, so that chunks come and go.
    let caches = ReadCaches::new(CacheSizes { chunks: 256 << 10, keys: 4096 }, Budget::of(1 << 20));
    let layout = sstable.layout().clone();
    let reversed_layout = Arc::new(layout.reversed());
    let partitions = partitions(disk, &sstable).await;
    let mut checked = 0;
    for (at, (key, rows)) in partitions.iter().enumerate() {
        let found = reader.find(&caches, key).await.expect("sound").expect("there");
        for _ in 0..if rows.len() > 50 { 12 } else { 2 } {
            let slices = slices(&layout.clusterings, rows, random);
            let scan = ScanOptions::default();
            let scan = sstable.partition_at(disk, found.data_position, scan).await.expect("opens");
            let mut naive = SliceFilter::new(scan, layout.clone(), slices.clone());
            let expected = partition(&mut naive, &mut Validator::new(layout.clone())).await;
            assert_eq!(expected.last(), Some(&Seen::End), "{descriptor}");

            let mut rows = reader
                .rows(&caches, key, found.clone(), slices.clone(), layout.clone())
                .await
                .expect("opens");
            let forwards = partition(&mut rows, &mut Validator::new(layout.clone())).await;
            assert_eq!(forwards, expected, "{descriptor} {slices:?}");
            assert!(!rows.advance().await.expect("sound"), "{descriptor}: one partition");

            let mut rows = reader
                .reversed_rows(&caches, key, found.clone(), slices.clone(), layout.clone())
                .await
                .expect("opens");
            let mut validator = Validator::new(reversed_layout.clone());
            let reversed = partition(&mut rows, &mut validator).await;
            assert_eq!(reversed, backwards(&expected), "{descriptor} {slices:?}");
            assert!(!rows.advance().await.expect("sound"), "{descriptor}: one partition");
            checked += 1;
        }
        let starts = [
            (RangeStart::AtKey(key.clone()), at),
            (RangeStart::AfterKey(key.clone()), at + 1),
            (RangeStart::AtToken(key.token), at),
        ];
        for (start, expected) in starts.iter().take(if at % 7 == 0 { 3 } else { 0 }) {
            let mut range =
                reader.range(&caches, start, Slices::all(), layout.clone()).await.expect("opens");
            let first = partition(&mut range, &mut Validator::new(layout.clone())).await;
            let expected = partitions.get(*expected).map(|(key, _)| Seen::Start(key.bytes.clone()));
            assert_eq!(first.first().cloned(), expected, "{descriptor} {start:?}");
        }
    }
    checked
}

#[test]
fn slices_are_those_of_a_scan() {
    let seed = std::env::var("HALCYON_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| random().next_u64());
    eprintln!("HALCYON_SEED={seed}");
    let mut random = Random::seeded(seed);
    let mut descriptors = Vec::new();
    sstables_below(&corpus(), &mut descriptors);
    assert!(descriptors.len() > 20, "golden files are missing");
    let disk = Disk::real(DiskOptions::default());
    let mut checked = 0;
    block_on(async {
        for descriptor in &descriptors {
            checked += check(&disk, descriptor, &mut random).await;
        }
    });
    assert!(checked > 4000, "{checked} slices");
}
