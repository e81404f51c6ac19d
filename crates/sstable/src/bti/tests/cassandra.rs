//! Tries compared with those that Cassandra's own trie writer makes of the same keys, byte by byte.
//!
//! Cassandra 5.0.9's `IncrementalTrieWriter`, with the serializer of row indexes, was given the cases below: random
//! keys and payloads, in a file that also grows by other means, by whole pages, between two keys, so that the widest
//! pointers are needed.  `CASSANDRA` holds the CRC-32 of root position (8 bytes, big-endian) and trie bytes.

use std::collections::BTreeSet;
use std::ops::Range;

use halcyon_model::{DecodeError, DeletionTime};

use crate::bti::output::Output;
use crate::bti::trie_writer::TrieWriter;
use crate::bti::{Node, NodeKind, PAGE, RowPayload, TrieCursor};
use crate::row_index::IndexSource;
use crate::row_index::testing::{Numbers, now};

struct Case {
    base: u64,
    /// Key, payload, and bytes by which the file grows after it.
    entries: Vec<(Vec<u8>, RowPayload, u64)>,
}

fn case(seed: u64) -> Case {
    let mut numbers = Numbers(seed);
    let keys = if seed.is_multiple_of(4) { long_keys(&mut numbers) } else { keys(&mut numbers) };
    let open = numbers.below(3) == 0;
    let farthest = 1 + numbers.below(42);
    let jump_every = 2 + numbers.below(keys.len() as u64);
    let base = numbers.below(1 << 20);
    let mut entry = |key| {
        let offset = numbers.any() >> (9 + numbers.below(55));
        let open = (open && numbers.below(2) == 0).then(|| DeletionTime {
            marked_for_delete_at: (numbers.any() >> 1) as i64,
            local_deletion_time: numbers.any() as u32,
        });
        let jumps = numbers.below(jump_every) == 0;
        let reach = numbers.below(farthest);
        let jump = if jumps { numbers.below(1 << reach) } else { 0 };
        (key, RowPayload { offset, open }, jump * PAGE as u64)
    };
    Case { base, entries: keys.into_iter().map(&mut entry).collect() }
}

/// Random keys, some of whose bytes have one value, a few, or many.
fn keys(numbers: &mut Numbers) -> BTreeSet<Vec<u8>> {
    let count = [50, 400, 3_000, 10_000][numbers.below(4) as usize];
    let longest = 1 + numbers.below(30);
    let values: Vec<u64> =
        (0..longest).map(|_| [1, 3, 40, 256][numbers.below(4) as usize]).collect();
    let mut key = || {
        let len = 1 + numbers.below(longest) as usize;
        values[..len].iter().map(|&values| numbers.below(values) as u8).collect()
    };
    (0..count).map(|_| key()).collect()
}

/// Keys longer than a page, each a change of the one before.
fn long_keys(numbers: &mut Numbers) -> BTreeSet<Vec<u8>> {
    let mut key: Vec<u8> = Vec::new();
    let mut change = || {
        key.truncate(numbers.below(key.len() as u64 + 1) as usize);
        let values = [1, 2, 256][numbers.below(3) as usize];
        let longest = [3, 300, 6_000][numbers.below(3) as usize];
        let more = 1 + numbers.below(longest);
        key.extend((0..more).map(|_| numbers.below(values) as u8));
        key.clone()
    };
    (0..100).map(|_| change()).collect()
}

/// A trie in a file that has other bytes before it.
struct Written {
    root: u64,
    bytes: Vec<u8>,
    pieces: Vec<(u64, Range<usize>)>,
}

fn write(case: &Case) -> Written {
    let (mut bytes, mut position) = (Vec::new(), case.base);
    let mut writer = TrieWriter::new();
    let (mut pieces, mut start, mut done) = (Vec::new(), position, 0);
    for (key, payload, jump) in &case.entries {
        let mut out = Output { bytes: &mut bytes, position: &mut position };
        writer.add(key, *payload, &mut out).expect("ascending keys");
        if *jump > 0 {
            pieces.push((start, done..bytes.len()));
            done = bytes.len();
            position += jump;
            start = position;
        }
    }
    let root = writer.complete(&mut Output { bytes: &mut bytes, position: &mut position });
    pieces.push((start, done..bytes.len()));
    Written { root: root.expect("at least one key"), bytes, pieces }
}

impl IndexSource for Written {
    type Bytes = Vec<u8>;
    type Error = DecodeError;

    fn len(&self) -> u64 {
        u64::MAX
    }

    async fn read(&self, offset: u64, length: usize) -> Result<Vec<u8>, DecodeError> {
        let mut out = vec![0; length];
        let end = offset + length as u64;
        let first =
            self.pieces.partition_point(|(start, range)| start + range.len() as u64 <= offset);
        for (start, range) in self.pieces[first..].iter().take_while(|(start, _)| *start < end) {
            let skipped = offset.saturating_sub(*start) as usize;
            let piece = &self.bytes[range.start + skipped..range.end];
            let at = start.saturating_sub(offset) as usize;
            let piece = &piece[..piece.len().min(length - at)];
            out[at..at + piece.len()].copy_from_slice(piece);
        }
        Ok(out)
    }

    fn corrupt(&self, error: DecodeError) -> DecodeError {
        error
    }
}

fn kinds(written: &Written, seen: &mut BTreeSet<NodeKind>) {
    let mut waiting = vec![written.root];
    while let Some(position) = waiting.pop() {
        let page = now(written.read(position / PAGE as u64 * PAGE as u64, PAGE)).expect("memory");
        let node = Node::read(&page, position).expect("sound");
        seen.insert(node.kind());
        let mut after = None;
        while let Some((transition, child)) = node.first_child(after).expect("sound") {
            after = Some(transition);
            waiting.push(child);
        }
    }
}

#[test]
fn tries_have_cassandras_bytes() {
    for (seed, expected) in CASSANDRA.iter().enumerate() {
        let written = write(&case(seed as u64));
        let mut crc = halcyon_codec::Crc32::new();
        crc.update(&written.root.to_be_bytes());
        crc.update(&written.bytes);
        assert_eq!(crc.finalize(), *expected, "case {seed}");
    }
}

/// The cases use all sixteen kinds, and the written tries are read back.
#[test]
fn every_kind_of_node_is_written_and_read() {
    let mut seen = BTreeSet::new();
    for seed in 0..CASSANDRA.len() as u64 {
        let case = case(seed);
        let written = write(&case);
        kinds(&written, &mut seen);
        let mut cursor: TrieCursor<'_, _, RowPayload> = TrieCursor::new(&written, written.root);
        let mut entry = now(cursor.first()).expect("sound");
        for (key, payload, _) in &case.entries {
            let mut found = Vec::new();
            cursor.key(&mut found);
            assert_eq!((&found, entry), (key, Some(*payload)), "case {seed}");
            entry = now(cursor.next()).expect("sound");
        }
        assert_eq!(entry, None);
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), NodeKind::ALL);
}

const CASSANDRA: [u32; 80] = [
    0xbd22dcf8, 0x5652ec4c, 0x0550f7f7, 0xd02ee279, 0xb7423a7f, 0x18dae2da, 0xefe76665, 0x074da25b,
    0x76c91d2a, 0x2ba0422d, 0x6fcb93b9, 0xbf4bace0, 0x63c2fb3c, 0x5ef5f774, 0xfd949885, 0x3ec355dc,
    0x02e8cdaa, 0x3291a7f4, 0xf8598060, 0xb4f31a88, 0xfadc20db, 0x8e3c919e, 0x6c2f4910, 0x0c082182,
    0xafca40ba, 0x3ba45812, 0x50c41e09, 0xe34dde16, 0x55a51008, 0xd179ddd1, 0xcde71dd9, 0xc2d7b229,
    0xd001b468, 0x90d52bbf, 0x248867a3, 0x1e5f0cbb, 0xe6509816, 0xda55bdf6, 0xc0a72dfe, 0x45d8e0d8,
    0x00494dee, 0x72d37f17, 0x05dd560f, 0x0f4630ae, 0xc5683966, 0xee9d09df, 0x94023f53, 0x00aac38c,
    0xd07f3970, 0x8d6a8b40, 0xc19d438e, 0x7f40c784, 0x35e54aa9, 0x723b5b8d, 0x1753bf5a, 0xe9514180,
    0x8627bf30, 0xf80c7aa5, 0xd2b8889f, 0xdc1ed633, 0xc92165ae, 0x346e930e, 0x71574270, 0xd564a8ed,
    0x2f6fc7c7, 0x2399d44a, 0x3a99d147, 0x68342c6d, 0xc6e43dc0, 0xa06e8920, 0x9fb39921, 0x066b9a66,
    0x5f41b399, 0x8fbe9a98, 0xd7917c2e, 0xc03828f5, 0xbfdc1ed2, 0xddd930ca, 0x2dab8c08, 0x524b5e5b,
];
