//! Partitions.db as Cassandra writes it, and lookups in it.

use halcyon_model::byte_comparable::encode_decorated_key;
use halcyon_model::token::murmur3_hash;
use halcyon_model::{DecoratedKey, DeletionTime, Partitioner};
use halcyon_stream::PartitionKey;

use crate::bti::{IndexWriter, PartitionIndex, PartitionPosition, describe_partitions};
use crate::row_index::testing::{Memory, Numbers, hex, now, seed};

pub(super) fn write(keys: &[DecoratedKey], position: impl Fn(usize) -> u64) -> Vec<u8> {
    let mut writer = IndexWriter::new();
    let mut partitions = Vec::new();
    for (i, key) in keys.iter().enumerate() {
        writer.start_partition(&PartitionKey::of(&key.key), position(i));
        writer.header(7, DeletionTime::LIVE);
        let entry = writer.end_partition(80).expect("sorted keys");
        assert_eq!((entry.index_position, entry.blocks), (position(i), 0));
        // The caller may drain at any time, or in part.
        if i % 3 == 0 {
            partitions.append(&mut writer.partitions);
        }
    }
    let finished = writer.finish().expect("at least one key");
    assert!(finished.rows.is_empty());
    assert_eq!(finished.summary.partitions, keys.len() as u64);
    assert_eq!(finished.summary.first_key, keys[0].key);
    assert_eq!(finished.summary.last_key, keys[keys.len() - 1].key);
    partitions.extend(finished.partitions);
    partitions
}

fn comparable(key: &DecoratedKey) -> Vec<u8> {
    let mut out = Vec::new();
    encode_decorated_key(key.token, &key.key, &mut out);
    out
}

fn five_keys() -> Vec<DecoratedKey> {
    [1i32, 0, 2, 4, 3].map(|key| Partitioner::Murmur3.decorate(&key.to_be_bytes())).to_vec()
}

/// The file that Cassandra 5.0 wrote for int keys 0 to 4 with 81 bytes each.
#[test]
fn five_partitions_have_cassandras_bytes() {
    let bytes = write(&five_keys(), |i| 81 * i as u64);
    let expected = hex("08e6ff 08f1ae 09e1ff5d 0902ff0c 0933febb 5005474f525afd120f0c0804 1c40
         000400000001 000400000003 0000000000000020 0000000000000005 000000000000001e");
    assert_eq!(bytes, expected);
    let (notes, rows) = describe_partitions(&bytes).expect("sound");
    assert!(rows.is_empty());
    assert_eq!(notes.iter().filter(|note| note.meaning == "unknown").count(), 0);
    assert_eq!(notes.iter().map(|note| note.end - note.start).sum::<u64>(), bytes.len() as u64);
}

#[test]
fn one_partition_is_a_single_leaf() {
    let key = Partitioner::Murmur3.decorate(b"only");
    let bytes = write(std::slice::from_ref(&key), |_| 0);
    assert_eq!(bytes.len(), 3 + 12 + 24);
    let source = Memory(&bytes);
    let index = now(PartitionIndex::open(&source)).expect("sound");
    let hash = murmur3_hash(&key.key).1 as u8;
    let found = now(index.candidate(&source, &comparable(&key), hash)).expect("sound");
    assert_eq!(found.map(|payload| payload.position), Some(PartitionPosition::Data(0)));
    let other = now(index.candidate(&source, &comparable(&key), !hash)).expect("sound");
    assert_eq!(other, None);
}

/// Every key is found, in order, backwards, by candidate search and from the gaps between keys.
#[test]
fn many_partitions_are_found() {
    let mut numbers = Numbers(seed());
    for count in [2, 17, 300, 5_000, 200_000] {
        let mut keys: Vec<DecoratedKey> = (0..count)
            .map(|_| Partitioner::Murmur3.decorate(&numbers.below(1 << 40).to_be_bytes()))
            .collect();
        keys.sort();
        keys.dedup();
        let bytes = write(&keys, |i| 1000 * i as u64);
        let source = Memory(&bytes);
        let index = now(PartitionIndex::open(&source)).expect("sound");
        assert_eq!(index.partitions, keys.len() as u64);
        let at = |i: usize| Some(PartitionPosition::Data(1000 * i as u64));

        let mut cursor = index.cursor(&source);
        let mut next = now(cursor.first()).expect("sound");
        for (i, key) in keys.iter().enumerate() {
            assert_eq!(next.map(|payload| payload.position), at(i));
            let mut prefix = Vec::new();
            cursor.key(&mut prefix);
            assert!(comparable(key).starts_with(&prefix));
            next = now(cursor.next()).expect("sound");
        }
        assert_eq!(next, None);
        let mut previous = now(cursor.last()).expect("sound");
        for i in (0..keys.len()).rev() {
            assert_eq!(previous.map(|payload| payload.position), at(i));
            previous = now(cursor.previous()).expect("sound");
        }
        assert_eq!(previous, None);

        for i in (0..keys.len()).step_by(keys.len().div_ceil(3000)) {
            let hash = murmur3_hash(&keys[i].key).1 as u8;
            let found = now(index.candidate(&source, &comparable(&keys[i]), hash)).expect("sound");
            assert_eq!(found.map(|payload| payload.position), at(i));
        }
        for _ in 0..300 {
            let mut bound = keys[numbers.below(keys.len() as u64) as usize].clone();
            bound.token.0 = bound.token.0.wrapping_add(numbers.below(1 << 50) as i64 - (1 << 49));
            check_gap(&keys, &bound, &index, &source);
        }
    }
}

/// A candidate is the wanted ceiling or the entry just before it; a floor is the wanted one or just after it.
fn check_gap(
    keys: &[DecoratedKey],
    bound: &DecoratedKey,
    index: &PartitionIndex,
    source: &Memory<'_>,
) {
    let ceiling = keys.partition_point(|key| key < bound) as u64;
    let mut cursor = index.cursor(source);
    let candidate = now(cursor.seek_candidate(&comparable(bound))).expect("sound");
    match candidate.map(|payload| payload.position) {
        Some(PartitionPosition::Data(position)) => {
            assert!(position == 1000 * ceiling || position + 1000 == 1000 * ceiling);
        }
        Some(other) => unreachable!("{other:?}"),
        None => assert_eq!(ceiling, keys.len() as u64),
    }
    let floor = now(cursor.seek_floor(&comparable(bound))).expect("sound");
    match floor.map(|payload| payload.position) {
        Some(PartitionPosition::Data(position)) => {
            assert!(position == 1000 * ceiling || position + 1000 == 1000 * ceiling);
        }
        Some(other) => unreachable!("{other:?}"),
        None => assert_eq!(ceiling, 0),
    }
}

#[test]
fn disorder_is_refused() {
    let mut keys = five_keys();
    keys.swap(1, 2);
    let mut writer = IndexWriter::new();
    let mut refused = 0;
    for key in &keys {
        writer.start_partition(&PartitionKey::of(&key.key), 0);
        refused += usize::from(writer.end_partition(10).is_err());
    }
    assert_eq!(refused, 1);
    assert!(IndexWriter::new().finish().is_err(), "an SSTable has at least one partition");
}
