//! Files of indexes against sorted lists; damage.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use halcyon_io::{AccessMode, Disk, Purpose, Random, SimRuntime};
use halcyon_model::clustering::ClusteringValue;
use halcyon_model::{Clusterings, CqlType, Partitioner};
use halcyon_stream::{Layout, PartitionKey, PrimaryKey, PrimaryKeyRange};

use super::*;
use crate::read::ReadCaches;

fn clusterings() -> Clusterings {
    Clusterings::new(&[CqlType::Reversed(Box::new(CqlType::Int)), CqlType::Text])
}

fn destination(path: &str) -> Destination {
    Destination {
        path: PathBuf::from(path),
        fingerprint: b"of a test".to_vec(),
        clusterings: clusterings(),
        mode: AccessMode::Auto,
        purpose: Purpose::Flush,
    }
}

fn target() -> Target {
    let layout = Layout {
        partitioner: Partitioner::Murmur3,
        key_type: CqlType::SmallInt,
        clusterings: clusterings(),
        clustering_types: Vec::new(),
        statics: Vec::new(),
        regulars: Vec::new(),
    };
    let (source, part) = (Source::Regular(0), Part::Whole);
    Target {
        source,
        part,
        term_type: CqlType::Int,
        analysis: None,
        sasi: None,
        similarity: None,
        layout: Arc::new(layout),
    }
}

fn entry(random: &mut Random) -> Entry {
    let key = PartitionKey::of(&(random.below(20) as u16).to_be_bytes());
    let place = if random.below(10) == 0 {
        PrimaryKey::partition(&key)
    } else {
        let (number, text) = ((random.below(40) as i32 - 20).to_be_bytes(), [b'x'; 7]);
        let text = text.get(..random.below(7) as usize).unwrap_or_default();
        let mut row = Vec::new();
        let values = [ClusteringValue::Bytes(&number), ClusteringValue::Bytes(text)];
        clusterings().write(&values, &mut row);
        PrimaryKey::row(key.token, key.bytes.as_slice().into(), &row, &clusterings())
    };
    let value = (random.below(12) as i32 - 6).to_be_bytes();
    Entry { term: target().term(&value), place }
}

async fn places(
    index: &AttachedIndex,
    terms: &Terms,
    range: &PrimaryKeyRange,
    wanted: Option<&[PrimaryKey]>,
) -> crate::Result<Vec<PrimaryKey>> {
    let mut found = Vec::new();
    let caches = ReadCaches::of_one_pass();
    let mut take = |place| {
        found.push(place);
        true
    };
    index.places(&caches, terms, range, wanted.map(Wanted), &mut take).await?;
    Ok(found)
}

async fn open(disk: &Disk, path: &str) -> crate::Result<AttachedIndex> {
    AttachedIndex::open(disk, Path::new(path), &clusterings(), AccessMode::Auto).await
}

fn range_of(a: PrimaryKey, b: PrimaryKey) -> PrimaryKeyRange {
    PrimaryKeyRange { start: a.clone().min(b.clone()), end: Some(a.max(b)) }
}

/// Proves that a file has exactly the entries that were written, found by term, range of terms and place, and that a sort in runs gives
/// the same bytes as one in memory.
#[test]
fn what_is_written_is_found() {
    for seed in 0..20 {
        SimRuntime::seeded(seed).block_on(async {
            let (disk, simulated) = Disk::simulated(seed);
            let mut random = Random::seeded(seed);
            let count = random.below(4000);
            let all: Vec<Entry> = (0..count).map(|_| entry(&mut random)).collect();
            let sorted: BTreeSet<Entry> = all.iter().cloned().collect();
            disk.create_dir_all(Path::new("/d")).await.expect("made");
            write_sorted(&disk, &destination("/d/a.db"), sorted.iter().cloned())
                .await
                .expect("written");
            let to = destination("/d/b.db");
            let mut builder = IndexBuilder::Terms(build::TermBuilder::new(&disk, to, 20_000));
            for entry in all {
                builder.add(entry.place, Held::One(entry.term));
                if builder.is_full() {
                    builder.spill().await.expect("spilled");
                }
            }
            builder.finish().await.expect("built");
            let read = async |path: &str| disk.read(Path::new(path), 1 << 30).await.expect("read");
            assert_eq!(read("/d/a.db").await, read("/d/b.db").await);
            assert_eq!(simulated.files().len(), 2, "the runs are removed");
            let index = open(&disk, "/d/a.db").await.expect("opens");
            assert_eq!(
                (index.entries(), index.fingerprint()),
                (sorted.len() as u64, &b"of a test"[..])
            );
            for _ in 0..40 {
                let value = |random: &mut Random| (random.below(14) as i32 - 7).to_be_bytes();
                let (a, b) = (value(&mut random), value(&mut random));
                let terms = match random.below(4) {
                    0 => target().range(Bound::Excluded(&a), Bound::Included(&b)),
                    1 => target().range(Bound::Included(&a), Bound::Unbounded),
                    2 => target().range(Bound::Unbounded, Bound::Excluded(&b)),
                    _ => target().equal(&a),
                };
                let range = range_of(entry(&mut random).place, entry(&mut random).place);
                let wanted = sorted.iter().filter(|e| terms.contains(&e.term));
                let wanted = wanted.filter(|e| range.contains(&e.place)).map(|e| e.place.clone());
                let wanted: Vec<PrimaryKey> = wanted.collect();
                assert_eq!(places(&index, &terms, &range, None).await.expect("read"), wanted);
                let mut some: Vec<PrimaryKey> =
                    (0..random.below(30)).map(|_| entry(&mut random).place).collect();
                some.sort();
                let found = places(&index, &terms, &range, Some(&some)).await.expect("read");
                let tokens: BTreeSet<i64> = some.iter().map(|place| place.token).collect();
                let of_these = wanted.into_iter().filter(|place| tokens.contains(&place.token));
                assert_eq!(found, of_these.collect::<Vec<_>>());
            }
        });
    }
}

/// Proves that no flipped bit goes unnoticed: an index is refused, or a search fails, or nothing was changed that was asked for.
#[test]
fn damage_is_noticed() {
    SimRuntime::seeded(1).block_on(async {
        let (disk, simulated) = Disk::simulated(1);
        let mut random = Random::seeded(1);
        let sorted: BTreeSet<Entry> = (0..300).map(|_| entry(&mut random)).collect();
        disk.create_dir_all(Path::new("/d")).await.expect("made");
        write_sorted(&disk, &destination("/d/a.db"), sorted.iter().cloned())
            .await
            .expect("written");
        let length = disk.stat(Path::new("/d/a.db")).await.expect("there").len;
        let everything = PrimaryKeyRange { start: PrimaryKey::before_token(i64::MIN), end: None };
        let terms = Terms { start: Bound::Unbounded, end: Bound::Unbounded };
        let undamaged = open(&disk, "/d/a.db").await.expect("opens");
        let wanted = places(&undamaged, &terms, &everything, None).await.expect("read");
        assert_eq!(wanted.len(), sorted.len());
        for offset in 0..length {
            let bit = random.below(8) as u8;
            assert!(simulated.flip(Path::new("/d/a.db"), offset, bit));
            if let Ok(index) = open(&disk, "/d/a.db").await {
                assert!(places(&index, &terms, &everything, None).await.is_err(), "byte {offset}");
            }
            assert!(simulated.flip(Path::new("/d/a.db"), offset, bit));
        }
    });
}
