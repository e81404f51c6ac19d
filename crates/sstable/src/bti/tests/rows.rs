//! Rows.db: blocks with clusterings of several types and directions, found by every row.

use std::cmp::Ordering;

use halcyon_model::byte_comparable::encode_position;
use halcyon_model::clustering::{ClusteringValue, Position, PositionBuf};
use halcyon_model::{BoundKind, Clusterings, CqlType, DeletionTime};
use halcyon_stream::PartitionKey;

use crate::bti::{IndexWriter, RowIndexEntry, describe_rows};
use crate::row_index::Block;
use crate::row_index::testing::{Memory, Numbers, hex, now, seed};

pub(super) struct Stretch {
    positions: Vec<PositionBuf>,
    offset: u64,
    open: Option<DeletionTime>,
}

impl Stretch {
    pub(super) fn first(&self) -> Position<'_> {
        self.positions.first().expect("a row").position()
    }

    fn last(&self) -> Position<'_> {
        self.positions.last().expect("a row").position()
    }
}

pub(super) struct Partition {
    pub(super) clusterings: Clusterings,
    pub(super) blocks: Vec<Stretch>,
    deletion: DeletionTime,
    end: u64,
}

pub(super) struct Written {
    pub(super) rows: Vec<u8>,
    pub(super) entry: u64,
}

impl Partition {
    pub(super) fn sample(blocks: usize) -> Partition {
        Self::random(&mut Numbers(1), &[CqlType::Int, CqlType::Text], blocks)
    }

    fn random(numbers: &mut Numbers, types: &[CqlType], blocks: usize) -> Partition {
        let clusterings = Clusterings::new(types);
        let mut positions: Vec<PositionBuf> =
            (0..blocks * 6).map(|_| position(numbers, &clusterings, types)).collect();
        positions.sort_by(|a, b| clusterings.compare(a.position(), b.position()));
        positions
            .dedup_by(|a, b| clusterings.compare(a.position(), b.position()) == Ordering::Equal);
        let blocks = positions.len().div_ceil(3).min(blocks).max(2);
        let each = positions.len().div_ceil(blocks);
        let mut offset = 11;
        let mut stretches = Vec::new();
        while !positions.is_empty() {
            let rest = positions.split_off(each.min(positions.len()));
            let open = (numbers.below(3) == 0).then(|| DeletionTime {
                marked_for_delete_at: (numbers.any() >> 1) as i64,
                local_deletion_time: numbers.any() as u32,
            });
            stretches.push(Stretch { positions, offset, open });
            let magnitude = numbers.below(30);
            offset += 1 + numbers.below(1 << magnitude);
            positions = rest;
        }
        let deletion =
            DeletionTime { marked_for_delete_at: 17, local_deletion_time: numbers.any() as u32 };
        Partition { clusterings, blocks: stretches, deletion, end: offset }
    }

    pub(super) fn write(&self) -> Written {
        let mut writer = IndexWriter::new();
        writer.start_partition(&PartitionKey::of(b"wide"), 12_345);
        writer.header(11, self.deletion);
        for block in &self.blocks {
            let block = Block {
                first: block.first(),
                last: block.last(),
                offset: block.offset,
                width: 1,
                open_at_start: block.open,
                open_at_end: None,
            };
            writer.add_block(&self.clusterings, block).expect("ordered");
        }
        let entry = writer.end_partition(self.end).expect("ordered");
        assert_eq!(entry.blocks, self.blocks.len() as u64);
        let rows = writer.finish().expect("one partition").rows;
        Written { rows, entry: entry.index_position }
    }

    fn check(&self) {
        let written = self.write();
        let source = Memory(&written.rows);
        let entry = now(RowIndexEntry::read(&source, written.entry)).expect("sound");
        assert_eq!((&entry.key[..], entry.data_position), (&b"wide"[..], 12_345));
        assert_eq!((entry.blocks, entry.deletion), (self.blocks.len() as u64, self.deletion));
        let mut cursor = entry.cursor(&source);
        let mut next = now(cursor.first()).expect("sound");
        for block in &self.blocks {
            assert_eq!(next.map(|payload| payload.offset), Some(block.offset));
            assert_eq!(next.and_then(|payload| payload.open), block.open);
            next = now(cursor.next()).expect("sound");
        }
        assert_eq!(next.map(|payload| payload.offset), Some(self.end));
        for block in &self.blocks {
            for position in &block.positions {
                let mut comparable = Vec::new();
                encode_position(&self.clusterings, position.position(), &mut comparable);
                let floor = now(cursor.seek_floor(&comparable)).expect("sound");
                assert_eq!(floor.map(|payload| payload.offset), Some(block.offset));
            }
        }
        for note in describe_rows(&written.rows, &[written.entry]).expect("sound") {
            assert_ne!(note.meaning, "unknown");
        }
    }
}

fn position(numbers: &mut Numbers, clusterings: &Clusterings, types: &[CqlType]) -> PositionBuf {
    let kind = match numbers.below(8) {
        0 => BoundKind::InclStart,
        1 => BoundKind::ExclStart,
        _ => BoundKind::Clustering,
    };
    let count = match kind {
        BoundKind::Clustering => types.len(),
        _ => numbers.below(types.len() as u64 + 1) as usize,
    };
    let values: Vec<Vec<u8>> = types.iter().take(count).map(|t| value(numbers, t)).collect();
    let values: Vec<ClusteringValue<'_>> =
        values.iter().map(|value| ClusteringValue::Bytes(value)).collect();
    let mut serialized = Vec::new();
    clusterings.write(&values, &mut serialized);
    PositionBuf { kind, count, serialized }
}

fn value(numbers: &mut Numbers, cql_type: &CqlType) -> Vec<u8> {
    match cql_type.base() {
        CqlType::Int => (numbers.below(40) as i32 - 20).to_be_bytes().to_vec(),
        CqlType::BigInt => (numbers.any() as i64 >> numbers.below(63)).to_be_bytes().to_vec(),
        CqlType::Uuid => [numbers.any(), numbers.any()].map(u64::to_be_bytes).concat(),
        _ => {
            let len = numbers.below(6);
            (0..len).map(|_| [0, 1, b'a', b'b', 0xff][numbers.below(5) as usize]).collect()
        }
    }
}

#[test]
fn rows_of_many_types_are_found() {
    let mut numbers = Numbers(seed());
    let all = [CqlType::Int, CqlType::Text, CqlType::BigInt, CqlType::Blob, CqlType::Uuid];
    for round in 0..300 {
        let types: Vec<CqlType> = (0..1 + numbers.below(4))
            .map(|_| {
                let base = all[numbers.below(5) as usize].clone();
                if numbers.below(2) == 0 { CqlType::Reversed(Box::new(base)) } else { base }
            })
            .collect();
        let blocks = if round % 50 == 0 { 2_000 } else { 2 + numbers.below(40) as usize };
        Partition::random(&mut numbers, &types, blocks).check();
    }
}

/// Written out by hand: int clusterings 5…9 and 12…, the second block under an open range tombstone.
#[test]
fn two_blocks_byte_by_byte() {
    let clusterings = Clusterings::new(&[CqlType::Int]);
    let row = |i: i32| PositionBuf {
        kind: BoundKind::Clustering,
        count: 1,
        serialized: [&[0][..], &i.to_be_bytes()].concat(),
    };
    let open = DeletionTime { marked_for_delete_at: 0x0102, local_deletion_time: 0x0304 };
    let stretch = |first, last, offset, open| Stretch {
        positions: vec![row(first), row(last)],
        offset,
        open,
    };
    let partition = Partition {
        clusterings,
        blocks: vec![stretch(5, 9, 11, None), stretch(12, 0x104, 300, Some(open))],
        deletion: DeletionTime::LIVE,
        end: 700,
    };
    let written = partition.write();
    // Keys: none; the separator 40 8000000a; the sentinel 40 800002, above the last row 40 80000104.
    let expected = hex("0a 012c 0000000000000102 00000304    1f 0a    02 02bc
         50 02 00 02 05 03    16 00    12 80    21 40 02 0b
         0004 77696465 b039 13 02 80");
    assert_eq!(written.rows, expected);
    partition.check();
}
