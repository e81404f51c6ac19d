//! Partitions.db and Rows.db with any byte changed or the end missing: an error or an answer, in bounded time.

use halcyon_model::byte_comparable::{encode_decorated_key, encode_position};
use halcyon_model::token::murmur3_hash;
use halcyon_model::{DecodeResult, Partitioner};

use super::rows;
use crate::bti::{PartitionIndex, RowIndexEntry, TrieCursor, describe_partitions, describe_rows};
use crate::row_index::testing::{Memory, now};

/// Walks both ways, as far as the claimed number of entries.
fn walk<P: crate::bti::Payload>(
    mut cursor: TrieCursor<'_, Memory<'_>, P>,
    claimed: u64,
) -> DecodeResult<()> {
    // The tests' files have few entries: more are believed only up to here.
    let limit = claimed.min(1_000);
    let mut entry = now(cursor.first())?;
    for _ in 0..limit {
        if entry.is_none() {
            break;
        }
        entry = now(cursor.next())?;
    }
    let mut entry = now(cursor.last())?;
    for _ in 0..limit {
        if entry.is_none() {
            break;
        }
        entry = now(cursor.previous())?;
    }
    Ok(())
}

fn read_partitions(bytes: &[u8], keys: &[&[u8]]) -> DecodeResult<()> {
    let source = Memory(bytes);
    let _ = describe_partitions(bytes);
    let index = now(PartitionIndex::open(&source))?;
    let _ = walk(index.cursor(&source), index.partitions);
    for key in keys {
        let mut comparable = Vec::new();
        encode_decorated_key(Partitioner::Murmur3.token(key), key, &mut comparable);
        let _ = now(index.candidate(&source, &comparable, murmur3_hash(key).1 as u8));
        let _ = now(index.cursor(&source).seek_floor(&comparable));
        let _ = now(index.cursor(&source).seek_candidate(&comparable));
    }
    Ok(())
}

fn each_damage(sound: &[u8], mut attempt: impl FnMut(&[u8])) {
    for i in 0..sound.len() {
        attempt(&sound[..i]);
        let mut bytes = sound.to_vec();
        let undamaged = sound[i];
        for change in (0..8).map(|bit| 1 << bit).chain([0xff, undamaged]) {
            bytes[i] = undamaged ^ change;
            attempt(&bytes);
        }
    }
}

#[test]
fn damaged_partitions_are_survived() {
    let texts: Vec<String> = (0..40).map(|i| format!("key{i}")).collect();
    let mut keys: Vec<_> =
        texts.iter().map(|text| Partitioner::Murmur3.decorate(text.as_bytes())).collect();
    keys.sort();
    let sound = super::partitions::write(&keys, |i| 77 * i as u64);
    let raw: Vec<&[u8]> = keys.iter().map(|key| &key.key[..]).collect();
    assert_eq!(read_partitions(&sound, &raw), Ok(()));
    each_damage(&sound, |bytes| {
        if let Err(error) = read_partitions(bytes, &raw) {
            assert!(error.offset <= bytes.len() as u64, "{error}");
        }
    });
}

#[test]
fn damaged_rows_are_survived() {
    let partition = rows::Partition::sample(30);
    let written = partition.write();
    let probes: Vec<Vec<u8>> = partition
        .blocks
        .iter()
        .map(|block| {
            let mut out = Vec::new();
            encode_position(&partition.clusterings, block.first(), &mut out);
            out
        })
        .collect();
    each_damage(&written.rows, |bytes| {
        let source = Memory(bytes);
        let _ = describe_rows(bytes, &[written.entry]);
        let Ok(entry) = now(RowIndexEntry::read(&source, written.entry)) else { return };
        let _ = walk(entry.cursor(&source), entry.blocks + 1);
        let mut cursor = entry.cursor(&source);
        for probe in &probes {
            let _ = now(cursor.seek_floor(probe));
        }
    });
}

/// A chain of nodes whose two children are one and the same node: 2^60 paths, and yet each step is short.
#[test]
fn a_trie_that_shares_nodes_does_not_hang() {
    let mut bytes = vec![0x01, 0x07];
    for _ in 0..60 {
        // SPARSE_8 with children 'a' and 'b', both the node before.
        let distance = if bytes.len() == 2 { 2 } else { 6 };
        bytes.extend([0x50, 2, b'a', b'b', distance, distance]);
    }
    let root = bytes.len() as u64 - 6;
    let source = Memory(&bytes);
    let cursor: TrieCursor<'_, _, crate::bti::RowPayload> = TrieCursor::new(&source, root);
    assert_eq!(walk(cursor, 500), Ok(()));
    let mut file = bytes.clone();
    file.extend([0, 0, 0, 0]);
    for field in [bytes.len() as u64, 40, root] {
        file.extend(field.to_be_bytes());
    }
    describe_partitions(&file).expect("each node once");
}
