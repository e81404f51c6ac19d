//! Indexes that Cassandra wrote: every entry is read, every key and every row is found, and an index written again
//! from Data.db has the same bytes.

use halcyon_model::DeletionTime;
use halcyon_model::byte_comparable::{encode_key, encode_position};
use halcyon_model::token::murmur3_hash;
use halcyon_stream::PartitionKey;

use super::data_walk::{Partition, SSTable, sstables};
use super::testing::{Memory, now};
use crate::big::{EntryScan, PromotedIndex, Scanned, describe_entry};
use crate::bti::{
    PartitionIndex, PartitionPosition, RowIndexEntry, describe_partitions, describe_rows,
};
use crate::{Component, Format, big, bti};

fn open(deletion: Option<DeletionTime>) -> Option<DeletionTime> {
    deletion.filter(|deletion| !deletion.is_live())
}

fn key_of(sstable: &SSTable, partition: &Partition) -> PartitionKey {
    let token = sstable.partitioner.token(&partition.key).0;
    PartitionKey { token, ..PartitionKey::of(&partition.key) }
}

#[test]
fn index_files_are_read_and_written_anew() {
    let (mut files, mut blocks) = (0, 0);
    for sstable in sstables().iter().filter(|s| s.version.format == Format::Big) {
        println!("{:?}", sstable.descriptor);
        let bytes = sstable.component(Component::Index);
        let mut scan = EntryScan::new(0, bytes.len() as u64);
        for partition in &sstable.partitions {
            let Ok(Scanned::Entry(entry)) = scan.next(&bytes, 0) else { unreachable!("entry") };
            assert_eq!((entry.key, entry.data_position), (&partition.key[..], partition.position));
            if !entry.promoted.is_empty() {
                blocks += check_promoted(sstable, partition, &entry, &bytes);
            }
        }
        assert_eq!(scan.next(&bytes, 0), Ok(Scanned::End));
        check_big_description(sstable, &bytes);

        let mut writer = big::IndexWriter::new(sstable.version.has_uint_deletion_time());
        for partition in &sstable.partitions {
            writer.start_partition(&key_of(sstable, partition), partition.position);
            writer.header(partition.header_length, partition.deletion);
            for block in partition.blocks(big::IndexWriter::default_granularity()) {
                writer.add_block(&sstable.clusterings, block).expect("sound");
            }
            writer.end_partition(partition.end_offset).expect("sound");
        }
        assert_eq!(writer.finish().expect("sound").index, bytes, "{:?}", sstable.descriptor);
        files += 1;
    }
    assert!(files > 50 && blocks > 20, "{files} files, {blocks} blocks");
}

fn check_big_description(sstable: &SSTable, bytes: &[u8]) {
    let mut cursor = halcyon_model::Cursor::describing(bytes, 0);
    let oa = sstable.version.has_uint_deletion_time();
    while cursor.remaining() > 0 {
        describe_entry(oa, &sstable.clusterings, &mut cursor).expect("sound");
    }
    let mut end = 0;
    for note in cursor.into_notes() {
        assert_eq!(note.start, end);
        end = note.end;
    }
    assert_eq!(end, bytes.len() as u64);
}

fn check_promoted(
    sstable: &SSTable,
    partition: &Partition,
    entry: &big::Entry<'_>,
    bytes: &[u8],
) -> usize {
    let oa = sstable.version.has_uint_deletion_time();
    let source = Memory(bytes);
    let index = PromotedIndex::open(oa, &sstable.clusterings, &source, &entry.promoted);
    let index = now(index).expect("sound");
    assert_eq!(index.layout.header_length, partition.header_length);
    assert_eq!(index.layout.deletion, partition.deletion);
    for unfiltered in &partition.unfiltereds {
        let block = now(index.find(unfiltered.position())).expect("sound");
        let range = now(index.block(block, |info| info.offset..info.offset + info.width));
        assert!(range.expect("sound").contains(&unfiltered.offset));
    }
    index.len()
}

#[test]
fn tries_are_read_and_written_anew() {
    let (mut files, mut blocks) = (0, 0);
    for sstable in sstables().iter().filter(|s| s.version.format == Format::Bti) {
        println!("{:?}", sstable.descriptor);
        let partitions = sstable.component(Component::Partitions);
        let rows = sstable.component(Component::Rows);
        blocks += check_tries(sstable, &partitions, &rows);
        check_bti_description(&partitions, &rows);

        let mut writer = bti::IndexWriter::new().with_partitioner(sstable.partitioner.clone());
        for partition in &sstable.partitions {
            writer.start_partition(&key_of(sstable, partition), partition.position);
            writer.header(partition.header_length, partition.deletion);
            for block in partition.blocks(bti::IndexWriter::default_granularity()) {
                writer.add_block(&sstable.clusterings, block).expect("sound");
            }
            writer.end_partition(partition.end_offset).expect("sound");
        }
        let written = writer.finish().expect("sound");
        assert_eq!(written.rows, rows, "Rows.db of {:?}", sstable.descriptor);
        assert_eq!(written.partitions, partitions, "Partitions.db of {:?}", sstable.descriptor);
        files += 1;
    }
    assert!(files > 50 && blocks > 20, "{files} files, {blocks} blocks");
}

fn check_bti_description(partitions: &[u8], rows: &[u8]) {
    let (notes, entries) = describe_partitions(partitions).expect("sound");
    let more = describe_rows(rows, &entries).expect("sound");
    for (notes, file) in [(notes, partitions), (more, rows)] {
        let mut end = 0;
        for note in notes {
            assert_eq!(note.start, end);
            assert_ne!(note.meaning, "unknown", "{note:?}");
            end = note.end;
        }
        assert_eq!(end, file.len() as u64);
    }
}

fn check_tries(sstable: &SSTable, partitions: &[u8], rows: &[u8]) -> usize {
    let source = Memory(partitions);
    let index = now(PartitionIndex::open(&source)).expect("sound");
    assert_eq!(index.partitions, sstable.partitions.len() as u64);
    assert_eq!(Some(&index.first_key), sstable.partitions.first().map(|p| &p.key));
    assert_eq!(Some(&index.last_key), sstable.partitions.last().map(|p| &p.key));
    let mut cursor = index.cursor(&source);
    let mut next = now(cursor.first()).expect("sound");
    let mut blocks = 0;
    for partition in &sstable.partitions {
        let mut comparable = Vec::new();
        encode_key(&sstable.partitioner, &partition.key, &mut comparable);
        let hash = murmur3_hash(&partition.key).1 as u8;
        let found = now(index.candidate(&source, &comparable, hash)).expect("sound");
        assert_eq!(found, next);
        let mut prefix = Vec::new();
        cursor.key(&mut prefix);
        assert!(comparable.starts_with(&prefix));
        match found.expect("every key is there").position {
            PartitionPosition::Data(position) => assert_eq!(position, partition.position),
            PartitionPosition::Rows(position) => {
                let entry = now(RowIndexEntry::read(&Memory(rows), position)).expect("sound");
                check_rows(sstable, partition, &entry, rows);
                blocks += entry.blocks as usize;
            }
        }
        next = now(cursor.next()).expect("sound");
    }
    assert_eq!(next, None);
    blocks
}

fn check_rows(sstable: &SSTable, partition: &Partition, entry: &RowIndexEntry, rows: &[u8]) {
    assert_eq!((&entry.key, entry.data_position), (&partition.key, partition.position));
    assert_eq!(entry.deletion, partition.deletion);
    let source = Memory(rows);
    let mut cursor = entry.cursor(&source);
    let blocks = partition.blocks(bti::IndexWriter::default_granularity());
    assert_eq!(entry.blocks, blocks.len() as u64);
    let mut next = now(cursor.first()).expect("sound");
    for block in &blocks {
        let payload = next.expect("as many as blocks");
        assert_eq!((payload.offset, payload.open), (block.offset, open(block.open_at_start)));
        next = now(cursor.next()).expect("sound");
    }
    assert_eq!(next.map(|sentinel| sentinel.offset), Some(partition.end_offset));
    assert_eq!(now(cursor.next()), Ok(None));
    for unfiltered in &partition.unfiltereds {
        let mut comparable = Vec::new();
        encode_position(&sstable.clusterings, unfiltered.position(), &mut comparable);
        let floor = now(cursor.seek_floor(&comparable)).expect("sound").expect("a block");
        let end = now(cursor.next()).expect("sound").map_or(partition.end_offset, |b| b.offset);
        assert!((floor.offset..end).contains(&unfiltered.offset));
    }
}
