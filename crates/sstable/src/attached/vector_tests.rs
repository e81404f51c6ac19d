//! Files of indexes on vectors against a look at all of them; damage.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use halcyon_io::{AccessMode, Disk, Purpose, Random, SimRuntime};
use halcyon_model::similarity::Similarity;
use halcyon_model::{Clusterings, CqlType, Partitioner};
use halcyon_stream::{Layout, PartitionKey, PrimaryKey};

use super::*;

const FILE: &str = "/d/a.db";

fn target(dimension: usize, similarity: Similarity) -> Target {
    let layout = Layout {
        partitioner: Partitioner::Murmur3,
        key_type: CqlType::Int,
        clusterings: Clusterings::new(&[]),
        clustering_types: Vec::new(),
        statics: Vec::new(),
        regulars: Vec::new(),
    };
    Target {
        source: Source::Regular(0),
        part: Part::Whole,
        term_type: CqlType::Vector(Box::new(CqlType::Float), dimension as u32),
        analysis: None,
        sasi: None,
        similarity: Some(similarity),
        layout: Arc::new(layout),
    }
}

fn vector(random: &mut Random, dimension: usize) -> Vec<f32> {
    (0..dimension).map(|_| random.below(20_000) as f32 / 100.0 - 99.995).collect()
}

fn place(number: usize) -> PrimaryKey {
    PrimaryKey::partition(&PartitionKey::of(&(number as u32).to_be_bytes()))
}

/// Writes the vectors, each the row of its number.
async fn written(
    disk: &Disk,
    target: &Target,
    vectors: &[Vec<f32>],
    sharing: usize,
) -> Arc<AttachedIndex> {
    let clusterings = target.layout.clusterings.clone();
    let to = Destination {
        path: PathBuf::from(FILE),
        fingerprint: b"of a test".to_vec(),
        clusterings: clusterings.clone(),
        mode: AccessMode::Auto,
        purpose: Purpose::Flush,
    };
    disk.create_dir_all(Path::new("/d")).await.expect("made");
    let mut builder = IndexBuilder::new(disk, to, target, sharing);
    for (number, vector) in vectors.iter().enumerate() {
        let kept = target.similarity.expect("of vectors").kept(vector.clone());
        let term = kept.into_iter().flat_map(f32::to_be_bytes).collect();
        builder.add(place(number), Held::One(term));
        if builder.is_full() {
            builder.spill().await.expect("spilled");
        }
    }
    builder.finish().await.expect("built");
    let opened = AttachedIndex::open(disk, Path::new(FILE), &clusterings, AccessMode::Auto).await;
    Arc::new(opened.expect("opens"))
}

/// The numbers of the nearest vectors, by looking at all.
fn nearest(
    similarity: Similarity,
    vectors: &[Vec<f32>],
    query: &[f32],
    count: usize,
) -> Vec<usize> {
    let score = |number: &usize| similarity.score(&vectors[*number], query);
    let mut numbers: Vec<usize> = (0..vectors.len()).collect();
    numbers.sort_by(|a, b| score(b).total_cmp(&score(a)));
    numbers.truncate(count);
    numbers
}

/// Proves that a graph finds 95 of 100 of the nearest vectors, in one segment and in several, and all of them where they are compared with
/// all; that scores are those of the function; and that it tells whether there are others.
#[test]
fn the_nearest_are_found() {
    let functions = [Similarity::Cosine, Similarity::Euclidean, Similarity::DotProduct];
    for (seed, similarity) in functions.into_iter().enumerate() {
        SimRuntime::seeded(seed as u64).block_on(async {
            for (count, sharing, segments) in [(300, 1, 1), (3000, 1, 1), (6000, 100, 2)] {
                let disk = Disk::simulated(1).0;
                let mut random = Random::seeded(seed as u64);
                let vectors: Vec<_> = (0..count).map(|_| vector(&mut random, 12)).collect();
                let index = written(&disk, &target(12, similarity), &vectors, sharing).await;
                assert!(index.segment_count() >= segments);
                assert_eq!(index.entries(), count as u64);
                let cache = Segments::of_this_machine();
                let (mut hits, mut wanted) = (0, 0);
                for _ in 0..40 {
                    let query = vector(&mut random, 12);
                    let kept = similarity.kept(query.clone());
                    let found = cache.nearest(&index, &kept, 10, count as u64).await.expect("read");
                    assert_eq!(found.near.len(), 10 * index.segment_count());
                    assert!(found.others.is_some());
                    let all = nearest(similarity, &vectors, &query, 10);
                    let is_found = |number: &usize| {
                        let near = found.near.iter().find(|near| near.place == place(*number));
                        near.is_some_and(|near| {
                            let score = similarity.score(&vectors[*number], &query);
                            assert!((near.score - score).abs() <= 1e-4 * score.abs().max(1.0));
                            true
                        })
                    };
                    hits += all.iter().filter(|number| is_found(number)).count();
                    wanted += all.len();
                }
                assert!(hits * 100 >= wanted * 95, "{similarity:?} {count}: {hits} of {wanted}");
                let all =
                    cache.nearest(&index, &vectors[0], count, count as u64).await.expect("read");
                let places: BTreeSet<PrimaryKey> =
                    all.near.into_iter().map(|near| near.place).collect();
                assert_eq!((places.len(), all.others), (count, None));
            }
        });
    }
}

/// Proves that graphs which each have a part of the vectors find 95 of 100 of the nearest ones together, though each keeps fewer.
#[test]
fn parts_find_the_nearest_together() {
    SimRuntime::seeded(1).block_on(async {
        for (parts, each) in [(2, 3000), (6, 1200)] {
            let mut random = Random::seeded(parts as u64);
            let vectors: Vec<_> = (0..parts * each).map(|_| vector(&mut random, 16)).collect();
            let target = target(16, Similarity::Euclidean);
            let mut indexes = Vec::new();
            for part in vectors.chunks(each) {
                // Identities are those of a disk.
                let cache = Segments::of_this_machine();
                indexes.push((written(&Disk::simulated(1).0, &target, part, 1).await, cache));
            }
            let (mut hits, mut wanted) = (0, 0);
            for _ in 0..40 {
                let query = vector(&mut random, 16);
                let mut found = BTreeSet::new();
                for (part, (index, cache)) in indexes.iter().enumerate() {
                    let of = vectors.len() as u64;
                    let near = cache.nearest(index, &query, 10, of).await.expect("read").near;
                    found.extend(near.into_iter().map(|near| (part, near.place)));
                }
                let all = nearest(Similarity::Euclidean, &vectors, &query, 10);
                let is_found = |n: &&usize| found.contains(&(**n / each, place(**n % each)));
                hits += all.iter().filter(is_found).count();
                wanted += all.len();
            }
            assert!(hits * 100 >= wanted * 95, "{parts} parts: {hits} of {wanted}");
        }
    });
}

/// Proves that a vector of many rows is one node with all of them, and that searches come past them.
#[test]
fn equal_vectors_are_one() {
    SimRuntime::seeded(1).block_on(async {
        let disk = Disk::simulated(1).0;
        let mut random = Random::seeded(1);
        let mut vectors: Vec<_> = (0..2000).map(|_| vector(&mut random, 4)).collect();
        vectors.extend(vec![vec![1.0, 2.0, 3.0, 4.0]; 500]);
        let index = written(&disk, &target(4, Similarity::Euclidean), &vectors, 1).await;
        let cache = Segments::of_this_machine();
        let found = cache.nearest(&index, &[1.0, 2.0, 3.0, 4.0], 20, 2500).await.expect("read");
        assert_eq!(found.near.len(), 500);
        assert!(found.near.iter().all(|near| near.score == 1.0) && found.others == Some(1.0));
        let more = cache.nearest(&index, &[1.0, 2.0, 3.0, 4.0], 520, 2500).await.expect("read");
        assert!(more.near.len() >= 520 && more.others.is_some_and(|others| others < 1.0));
    });
}

/// Proves that no flipped bit goes unnoticed, of vectors, places, graph, directory and footer.
#[test]
fn damage_is_noticed() {
    SimRuntime::seeded(1).block_on(async {
        for (count, step) in [(20u64, 1), (1100, 211)] {
            let (disk, simulated) = Disk::simulated(1);
            let mut random = Random::seeded(1);
            let vectors: Vec<_> = (0..count).map(|_| vector(&mut random, 3)).collect();
            let target = target(3, Similarity::Cosine);
            drop(written(&disk, &target, &vectors, 1).await);
            let length = disk.stat(Path::new(FILE)).await.expect("there").len;
            for offset in (0..length).step_by(step) {
                let bit = random.below(8) as u8;
                assert!(simulated.flip(Path::new(FILE), offset, bit));
                let clusterings = &target.layout.clusterings;
                let path = Path::new(FILE);
                if let Ok(index) =
                    AttachedIndex::open(&disk, path, clusterings, AccessMode::Auto).await
                {
                    let cache = Segments::of_this_machine();
                    let found = cache.nearest(&Arc::new(index), &[1.0, 0.0, 0.0], 5, count).await;
                    assert!(found.is_err(), "byte {offset}");
                }
                assert!(simulated.flip(Path::new(FILE), offset, bit));
            }
        }
    });
}
