//! Segments with valid CRCs and hostile contents.

use halcyon_io::Random;

use super::*;
use crate::format::{
    FilePosition, GROUP_HEADER, GroupHeader, RECORD_HEADER, SegmentHeader, Version, record_header,
};
use crate::scan::scan;

/// A small number, a number near a limit, or any number.
fn odd(random: &mut Random, near: u32) -> u32 {
    match random.below(4) {
        0 => random.below(64) as u32,
        1 => near.wrapping_add(random.below(40) as u32).wrapping_sub(20),
        2 => u32::MAX - random.below(64) as u32,
        _ => random.next_u64() as u32,
    }
}

/// Proves that hostile contents with valid CRCs neither panic nor allocate without bound, and that the scan ends.
#[test]
fn signed_nonsense() {
    for seed in 0..20_000 {
        eprintln!("seed {seed}");
        let mut random = Random::seeded(seed);
        let compression = COMPRESSIONS[random.below(5) as usize];
        let block = 512 << random.below(4);
        let (version, size) = (Version::Two, SEGMENT);
        let header =
            SegmentHeader { version, id: 1, salt: seed, shard: 0, block, size, compression };
        let mut bytes = vec![0; block as usize * (2 + random.below(12) as usize)];
        random.fill(&mut bytes);
        let len = bytes.len() as u32;
        let mut offset = block;
        while offset + 512 <= len {
            offset += 8 * random.below(60) as u32;
            if offset + 100 > len || random.chance(1, 3) {
                continue;
            }
            let stored = odd(&mut random, len - offset - GROUP_HEADER as u32);
            let raw = if random.chance(1, 2) { stored } else { odd(&mut random, len) };
            let (records, raw_offset) = (odd(&mut random, 1), odd(&mut random, offset + 32));
            let mut position =
                || FilePosition { segment: random.below(3), offset: odd(&mut random, len) };
            let (previous, durable) = (position(), position());
            let after = if random.chance(1, 2) { offset } else { odd(&mut random, offset) };
            let group = GroupHeader { stored, raw, records, raw_offset, previous, durable, after };
            let at = offset as usize;
            let encoded = group.encode(header.seed(), offset);
            bytes[at..at + GROUP_HEADER].copy_from_slice(&encoded);
            let body = at + GROUP_HEADER + RECORD_HEADER;
            let end = (body + random.below(300) as usize).min(bytes.len());
            let record = record_header(header.seed(), raw_offset, &bytes[body..end]);
            bytes[at + GROUP_HEADER..body].copy_from_slice(&record);
            offset += 100;
        }
        let durable = FilePosition { segment: random.below(3), offset: odd(&mut random, len) };
        for on_corruption in [OnCorruption::Stop, OnCorruption::Ignore] {
            let mut visited = 0;
            let visit = |_, record: &[u8]| {
                visited += record.len();
                Ok::<(), ()>(())
            };
            let scanned =
                scan(&bytes, &header, durable, on_corruption, visit).expect("the visitor agrees");
            assert_eq!(scanned.bytes as usize, visited);
        }
    }
}
