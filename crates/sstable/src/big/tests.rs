//! Index.db as Cassandra writes it, read back in windows; promoted indexes searched, truncated and damaged.

use std::ops::Range;

use halcyon_model::clustering::{ClusteringValue, Position};
use halcyon_model::{BoundKind, Clusterings, CqlType, Cursor, DecodeResult, DeletionTime};
use halcyon_stream::PartitionKey;

use super::index::MAX_ENTRY_HEAD;
use super::{Entry, EntryScan, IndexWriter, PromotedIndex, Scanned};
use crate::row_index::Block;
use crate::row_index::testing::{Memory, Numbers, hex, now, seed};

fn int_key(key: i32) -> PartitionKey {
    PartitionKey::of(&key.to_be_bytes())
}

type Entries = Vec<(Vec<u8>, u64, Range<u64>)>;

/// Reads all entries through windows of `window` bytes, growing one only when it has to.
fn scan(bytes: &[u8], window: usize) -> DecodeResult<Entries> {
    let mut entries = Vec::new();
    let mut scan = EntryScan::new(0, bytes.len() as u64);
    let mut length = window;
    loop {
        let start = scan.offset() as usize;
        let bytes = &bytes[start.min(bytes.len())..];
        let bytes = &bytes[..length.min(bytes.len())];
        loop {
            match scan.next(bytes, start as u64)? {
                Scanned::Entry(Entry { index_position, key, data_position, promoted }) => {
                    assert!(index_position < scan.offset());
                    entries.push((key.to_vec(), data_position, promoted));
                    length = window;
                }
                Scanned::Incomplete if scan.offset() as usize == start => {
                    assert!(length < MAX_ENTRY_HEAD, "a whole head is enough");
                    length += 1;
                    break;
                }
                Scanned::Incomplete => break,
                Scanned::End => return Ok(entries),
            }
        }
    }
}

/// The file that Cassandra 5.0 wrote for int keys 0 to 4 with 81 bytes each.
#[test]
fn five_partitions_have_cassandras_bytes() {
    let mut writer = IndexWriter::new(true);
    let mut positions = Vec::new();
    for (i, key) in [1, 0, 2, 4, 3].into_iter().enumerate() {
        writer.start_partition(&int_key(key), 81 * i as u64);
        writer.header(7, DeletionTime::LIVE);
        positions.push(writer.end_partition(80).expect("small").index_position);
    }
    assert_eq!(positions, [0, 8, 16, 25, 34]);
    let finished = writer.finish().expect("sound");
    let expected = hex("0004 00000001 00 00  0004 00000000 51 00  0004 00000002 80a2 00
         0004 00000004 80f3 00  0004 00000003 8144 00");
    assert_eq!(finished.index, expected);
    assert_eq!(finished.summary.first_key, [0, 0, 0, 1]);
    assert_eq!(finished.summary.last_key, [0, 0, 0, 3]);
    for window in 1..60 {
        let entries = scan(&expected, window).expect("sound");
        let data: Vec<u64> = entries.iter().map(|entry| entry.1).collect();
        assert_eq!(data, [0, 81, 162, 243, 324]);
    }
}

fn clusterings() -> Clusterings {
    Clusterings::new(&[CqlType::Int, CqlType::Reversed(Box::new(CqlType::Text))])
}

fn serialized(clusterings: &Clusterings, values: &[&[u8]]) -> Vec<u8> {
    let values: Vec<ClusteringValue<'_>> =
        values.iter().map(|bytes| ClusteringValue::Bytes(bytes)).collect();
    let mut out = Vec::new();
    clusterings.write(&values, &mut out);
    out
}

fn row(i: i32) -> Vec<u8> {
    serialized(&clusterings(), &[&i.to_be_bytes(), b"text"])
}

fn at(serialized: &[u8]) -> Position<'_> {
    Position { kind: BoundKind::Clustering, count: 2, serialized }
}

fn deletion(i: u64) -> Option<DeletionTime> {
    (i % 3 == 1)
        .then_some(DeletionTime { marked_for_delete_at: i as i64, local_deletion_time: i as u32 })
}

/// A partition whose block `i` holds the rows 10i to 10i+8, and ends at a bound every fifth time.
fn wide(oa: bool, blocks: u64) -> Vec<u8> {
    let clusterings = clusterings();
    let mut writer = IndexWriter::new(oa);
    writer.start_partition(&int_key(7), 1000);
    writer.header(19, DeletionTime { marked_for_delete_at: 5, local_deletion_time: 6 });
    for i in 0..blocks {
        let (first, last) = (row(10 * i as i32), row(10 * i as i32 + 8));
        let bound = serialized(&clusterings, &[&(10 * i as i32 + 8).to_be_bytes()]);
        let bound = Position { kind: BoundKind::ExclStart, count: 1, serialized: &bound };
        let block = Block {
            first: at(&first),
            last: if i % 5 == 4 { bound } else { at(&last) },
            offset: 19 + 70_000 * i,
            width: 70_000 - i,
            open_at_start: None,
            open_at_end: deletion(i),
        };
        writer.add_block(&clusterings, block).expect("small");
    }
    let entry = writer.end_partition(9).expect("small");
    assert_eq!(entry.blocks, if blocks < 2 { 0 } else { blocks });
    writer.finish().expect("sound").index
}

fn promoted_of(bytes: &[u8]) -> Range<u64> {
    scan(bytes, bytes.len()).expect("sound").remove(0).2
}

#[test]
fn blocks_are_found() {
    let clusterings = clusterings();
    for oa in [false, true] {
        for blocks in [2, 3, 64, 1000] {
            let bytes = wide(oa, blocks);
            let promoted = promoted_of(&bytes);
            assert_eq!(promoted.end, bytes.len() as u64);
            let source = Memory(&bytes);
            let index = now(PromotedIndex::open(oa, &clusterings, &source, &promoted));
            let index = index.expect("sound");
            assert_eq!((index.len() as u64, index.layout.header_length), (blocks, 19));
            assert_eq!(index.layout.deletion.marked_for_delete_at, 5);
            for i in 0..blocks {
                let block = i as usize;
                let seen =
                    now(index.block(block, |info| (info.offset, info.width, info.open_at_end)));
                assert_eq!(seen, Ok((19 + 70_000 * i, 70_000 - i, deletion(i))));
                let inside = row(10 * i as i32 + 3);
                assert_eq!(now(index.find(at(&inside))), Ok(block));
                let after = row(10 * i as i32 + 9);
                assert_eq!(now(index.find(at(&after))), Ok(block + 1));
                let open = i.checked_sub(1).and_then(deletion);
                assert_eq!(now(index.open_at_start(block)), Ok(open));
            }
            assert!(now(index.block(blocks as usize, |_| ())).is_err());
        }
    }
    assert!(promoted_of(&wide(true, 1)).is_empty(), "one block needs no index");
}

/// With any value of any one byte, a read ends, with an error or a result.
#[test]
fn damage_is_survived() {
    let clusterings = clusterings();
    let mut numbers = Numbers(seed());
    for oa in [false, true] {
        let sound = wide(oa, 6);
        let mut try_all = |bytes: &[u8]| {
            let source = Memory(bytes);
            let Ok(entries) = scan(bytes, 50) else { return };
            for (_, _, promoted) in entries.into_iter().filter(|entry| !entry.2.is_empty()) {
                let read = PromotedIndex::open(oa, &clusterings, &source, &promoted);
                let Ok(index) = now(read) else { continue };
                for i in 0..=index.len() {
                    let _ = now(index.block(i, |_| ()));
                }
                let _ = now(index.find(at(&row(numbers.below(60) as i32))));
            }
        };
        for i in 0..sound.len() {
            for change in [1, 0x80, 0xff, sound[i]] {
                let mut bytes = sound.clone();
                bytes[i] ^= change;
                try_all(&bytes);
            }
            try_all(&sound[..i]);
            assert!(scan(&sound[..i], 50).is_err() || i == 0, "a cut entry is an error");
        }
    }
}

/// `describe --bytes` names every byte of an entry.
#[test]
fn every_byte_has_a_meaning() {
    let clusterings = clusterings();
    let bytes = wide(true, 4);
    let mut cursor = Cursor::describing(&bytes, 0);
    super::describe_entry(true, &clusterings, &mut cursor).expect("sound");
    assert_eq!(cursor.remaining(), 0);
    let mut end = 0;
    for note in cursor.into_notes() {
        assert_eq!(note.start, end);
        end = note.end;
    }
    assert_eq!(end, bytes.len() as u64);
}
