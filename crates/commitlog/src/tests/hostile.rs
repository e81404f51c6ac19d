//! Segments with valid CRCs and hostile contents.

use halcyon_io::Random;

use super::*;
use crate::format::{GROUP_HEADER, GroupHeader, PreviousSegment, SegmentHeader, record_header};
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
        let header =
            SegmentHeader { id: 1, salt: seed, shard: 0, block, size: SEGMENT, compression };
        let mut bytes = vec![0; block as usize * (2 + random.below(12) as usize)];
        random.fill(&mut bytes);
        let len = bytes.len() as u32;
        for offset in (block..len).step_by(block as usize) {
            if random.chance(1, 3) {
                continue;
            }
            let stored = odd(&mut random, len - offset - GROUP_HEADER as u32);
            let raw = if random.chance(1, 2) { stored } else { odd(&mut random, len) };
            let (records, raw_offset) = (odd(&mut random, 1), odd(&mut random, offset + 32));
            let previous = PreviousSegment { segment: random.below(3), end: odd(&mut random, len) };
            let group = GroupHeader { stored, raw, records, raw_offset, previous };
            let at = offset as usize;
            let encoded = group.encode(header.seed(), offset);
            bytes[at..at + GROUP_HEADER].copy_from_slice(&encoded);
            let body = &bytes[at + 44..(at + 44 + random.below(300) as usize).min(bytes.len())];
            let record = record_header(header.seed(), raw_offset, body);
            bytes[at + 32..at + 44].copy_from_slice(&record);
        }
        for on_corruption in [OnCorruption::Stop, OnCorruption::Ignore] {
            let mut visited = 0;
            let visit = |_, record: &[u8]| {
                visited += record.len();
                Ok::<(), ()>(())
            };
            let scanned = scan(&bytes, &header, on_corruption, visit).expect("the visitor agrees");
            assert_eq!(scanned.bytes as usize, visited);
        }
    }
}
