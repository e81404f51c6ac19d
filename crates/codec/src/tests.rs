//! Every method in both directions, and what damaged blocks and false lengths may do.

use crate::{
    Algorithm, Compressor, Decompressor, DeflateLevel, Effort, Error, Method, ZstdLevel,
    append_once, crc32, crc32c, snappy_len,
};

fn methods() -> Vec<Method> {
    let deflate = [DeflateLevel::FASTEST, DeflateLevel::DEFAULT];
    let zstd = [ZstdLevel::MIN, -5, 1, 3, ZstdLevel::MAX].map(|level| {
        let level = ZstdLevel::new(level).expect("in range");
        [true, false].map(|checksum| Method::Zstd { level, checksum })
    });
    let deflate = deflate.map(|level| Method::Deflate { level });
    let stored = [DeflateLevel::DEFAULT].map(|level| Method::Deflate { level }.without_search());
    let lz4 = [Effort::Literals, Effort::Fast, Effort::Default];
    let lz4 = lz4.map(|effort| Method::Lz4 { effort });
    lz4.into_iter()
        .chain([Method::Snappy])
        .chain(deflate)
        .chain(stored)
        .chain(zstd.into_iter().flatten())
        .collect()
}

/// Blocks that repeat, that do not repeat, and of the lengths where tables change.
fn blocks() -> Vec<Vec<u8>> {
    let noise = |len: usize| {
        let mut state = 0x9E37_79B9_u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        (0..len).map(|_| next()).collect::<Vec<u8>>()
    };
    let lengths = [0, 1, 13, 4096, 65_534, 65_535, 65_536, 200_000];
    lengths.into_iter().flat_map(|len| [vec![7; len], noise(len)]).collect()
}

/// Proves that each method gives back what it was given, that `bound` is one, and that a compressor can be used again.
#[test]
fn each_method_gives_back_its_block() {
    for method in methods() {
        let mut compressor = Compressor::new(method).expect("method");
        let mut decompressor = Decompressor::new(method.algorithm()).expect("algorithm");
        for block in blocks() {
            let mut compressed = b"kept".to_vec();
            compressor.append(&block, &mut compressed).expect("compressed");
            let stored = compressed.strip_prefix(b"kept").expect("what was there stays");
            assert!(stored.len() <= compressor.bound(block.len()), "{method:?} {}", block.len());
            let mut plain = b"kept".to_vec();
            decompressor.append(stored, block.len(), block.len(), &mut plain).expect("sound");
            assert_eq!(plain.strip_prefix(b"kept"), Some(&*block), "{method:?}");
        }
    }
}

/// Proves that a length that is too long or too short is an error, and that the output then stays as it was.
#[test]
fn a_false_length_is_an_error() {
    let block = vec![7; 5000];
    for method in methods() {
        let mut compressed = Vec::new();
        Compressor::new(method).expect("method").append(&block, &mut compressed).expect("sound");
        let mut decompressor = Decompressor::new(method.algorithm()).expect("algorithm");
        for len in [4999, 5001] {
            let mut plain = vec![1];
            let result = decompressor.append(&compressed, len, 1 << 20, &mut plain);
            assert!(result.is_err(), "{method:?} {len}");
            assert_eq!(plain, [1], "{method:?} {len}");
        }
    }
}

/// Proves that a length above the limit, or above what the block can hold, takes no memory.
#[test]
fn a_length_out_of_proportion_is_refused_before_it_takes_memory() {
    for method in methods() {
        let mut decompressor = Decompressor::new(method.algorithm()).expect("algorithm");
        let mut plain = Vec::new();
        for (len, limit) in [(1 << 45, usize::MAX), (101, 100)] {
            let result = decompressor.append(&[0; 20], len, limit, &mut plain);
            assert_eq!(
                result,
                Err(Error::Implausible { len, compressed: 20, limit }),
                "{method:?}"
            );
        }
        assert_eq!(plain.capacity(), 0, "{method:?}");
    }
}

/// Proves that each damaged byte gives an error or a block of the expected length, never a panic.
#[test]
fn damage_is_an_error_or_other_bytes() {
    let block: Vec<u8> = (0..2000_u32).map(|i| (i / 7 % 251) as u8).collect();
    for method in methods() {
        let mut compressed = Vec::new();
        Compressor::new(method).expect("method").append(&block, &mut compressed).expect("sound");
        let mut decompressor = Decompressor::new(method.algorithm()).expect("algorithm");
        let mut plain = vec![0; block.len()];
        for at in 0..compressed.len() {
            let mut damaged = compressed.clone();
            damaged[at] ^= 0x41;
            let result = decompressor.decompress(&damaged, &mut plain);
            if let Method::Deflate { .. } | Method::Zstd { checksum: true, .. } = method {
                assert!(result.is_err() || plain == block, "{method:?}: byte {at}");
            }
            _ = decompressor.decompress(&compressed[..at], &mut plain);
        }
        decompressor.decompress(&compressed, &mut plain).expect("damage leaves no trace");
        assert_eq!(plain, block);
    }
}

/// Proves that LZ4 without a kept table writes what the other reads, and that a Snappy block states its length.
#[test]
fn what_keeps_no_state_agrees_with_what_does() {
    for block in blocks() {
        let mut compressed = Vec::new();
        append_once(Method::LZ4, &block, &mut compressed).expect("compressed");
        let mut plain = Vec::new();
        let mut lz4 = Decompressor::new(Algorithm::Lz4).expect("LZ4");
        lz4.append(&compressed, block.len(), usize::MAX, &mut plain).expect("sound");
        assert_eq!(plain, block);
        let mut snappy = Vec::new();
        Compressor::new(Method::Snappy).expect("Snappy").append(&block, &mut snappy).expect("ok");
        assert_eq!(snappy_len(&snappy), Ok(block.len()));
    }
}

/// Proves that a block without a search is one of the same algorithm, about as long as its input.
#[test]
fn a_block_without_a_search_is_as_long_as_its_input() {
    let block: Vec<u8> = (0..16_384_u32).map(|i| (i / 7 % 251) as u8).collect();
    for method in methods().into_iter().filter(|method| *method != Method::Snappy) {
        let stored = method.without_search();
        assert_eq!(stored.algorithm(), method.algorithm());
        let mut compressed = Vec::new();
        Compressor::new(stored).expect("method").append(&block, &mut compressed).expect("sound");
        assert!((16_384..16_384 + 100).contains(&compressed.len()), "{stored:?}");
    }
}

/// The check values of both polynomials.
#[test]
fn checksums_are_the_published_ones() {
    assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
    assert_eq!(crc32c(b"123456789"), 0xE306_9283);
    assert_eq!(ZstdLevel::new(23), None);
    assert_eq!(ZstdLevel::new(-131_073), None);
}
