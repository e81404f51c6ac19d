//! Blocks are parsed by the rules of the format and decompressed by `lz4_flex`, at the lengths where something changes.

use super::{bound, compress, decompress};
use crate::{Effort, Error};

const EFFORTS: [Effort; 3] = [Effort::Literals, Effort::Fast, Effort::Default];

/// xorshift64*.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    fn noise(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }

    /// Noise, runs, and copies of what was there, at distances up to 70,000.
    fn mixed(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        while bytes.len() < len {
            let (part, distance) = (1 + self.below(80), 1 + self.below(bytes.len().min(70_000)));
            match self.below(4) {
                0 => bytes.extend(self.noise(part)),
                1 => bytes.extend(vec![self.next() as u8; part]),
                _ => {
                    for _ in 0..part {
                        bytes.push(bytes.len().checked_sub(distance).map_or(7, |at| bytes[at]));
                    }
                }
            }
        }
        bytes.truncate(len);
        bytes
    }
}

/// Rows as a table has them: a counter, a word, a number, some noise.
fn rows(len: usize) -> Vec<u8> {
    let mut random = Random(5);
    let mut bytes = Vec::new();
    let words = ["nominal", "degraded", "offline", "maintenance"];
    for row in 0_u64.. {
        bytes.extend((1_700_000_000_000 + row * 1000).to_be_bytes());
        let (word, number) = (words[random.below(4)], random.below(800));
        bytes.extend(format!("{{\"state\":\"{word}\",\"pressure\":{number}}}").bytes());
        bytes.extend(random.noise(24));
        if bytes.len() >= len {
            break;
        }
    }
    bytes.truncate(len);
    bytes
}

/// A byte after the other, so that no reader goes past the end.
struct Parser<'a>(&'a [u8]);

impl Parser<'_> {
    fn byte(&mut self) -> usize {
        let (byte, rest) = self.0.split_first().expect("one more byte");
        self.0 = rest;
        usize::from(*byte)
    }

    fn length(&mut self, of_token: usize) -> usize {
        let mut length = of_token;
        let mut more = of_token == 15;
        while more {
            let byte = self.byte();
            length += byte;
            more = byte == 255;
        }
        length
    }
}

/// Counts the matches of a block and checks its rules: no offset reaches before the block, the last match begins twelve bytes before the
/// end or earlier, and five literals follow it.
fn checked_matches(block: &[u8], len: usize) -> usize {
    let (mut parser, mut at, mut matches) = (Parser(block), 0, 0);
    loop {
        let token = parser.byte();
        let literals = parser.length(token >> 4);
        at += literals;
        parser.0 = parser.0.get(literals..).expect("all literals");
        if parser.0.is_empty() {
            assert_eq!(token & 15, 0);
            assert!(matches == 0 || literals >= 5, "{literals} last literals");
            assert_eq!(at, len);
            return matches;
        }
        let offset = parser.byte() | parser.byte() << 8;
        assert!((1..=at).contains(&offset), "offset {offset} at {at}");
        assert!(at + 12 <= len, "a match begins at {at} of {len}");
        at += 4 + parser.length(token & 15);
        matches += 1;
    }
}

/// Compresses, checks, decompresses; the length of the block and its matches.
fn checked(effort: Effort, input: &[u8]) -> (usize, usize) {
    let mut block = vec![0xAA; bound(input.len())];
    let len = compress(effort, input, &mut block).expect("room");
    let block = block.get(..len).expect("at most the bound");
    let matches = checked_matches(block, input.len());
    let mut plain = vec![0; input.len()];
    assert_eq!(decompress(block, &mut plain), Ok(input.len()));
    assert!(plain == input, "{effort:?}: {} bytes", input.len());
    (len, matches)
}

/// Proves all short lengths, where the rules for a block's end leave little or nothing to match.
#[test]
fn every_short_length_decompresses() {
    let mut random = Random(1);
    for len in 0..=300 {
        let two = (0..len).map(|_| random.below(2) as u8).collect();
        let inputs = [
            vec![7; len],
            (0..len).map(|i| (i % 6) as u8).collect(),
            two,
            random.noise(len),
            rows(len),
        ];
        for (effort, input) in EFFORTS.into_iter().flat_map(|e| inputs.iter().map(move |i| (e, i)))
        {
            checked(effort, input);
        }
    }
    // The first length with a match: one literal, a match up to five bytes before the end, which begins twelve before it.
    assert_eq!([12, 13].map(|len| checked(Effort::Default, &vec![7; len]).1), [0, 0]);
    assert_eq!(checked(Effort::Default, &[7; 14]).1, 1);
}

/// Proves the lengths where table, patience and the meaning of a slot change.
#[test]
fn lengths_around_each_limit_decompress() {
    let mut random = Random(2);
    for limit in [1 << 10, 4 << 10, 8 << 10, 1 << 16, 65_535 + 13, 128 << 10] {
        for len in limit - 2..=limit + 2 {
            for effort in EFFORTS {
                for input in [vec![0; len], random.mixed(len), rows(len), random.noise(len)] {
                    checked(effort, &input);
                }
            }
        }
    }
}

/// Proves whatever mixtures a seed makes, up to 200 KiB.
#[test]
fn random_mixtures_decompress() {
    let mut random = Random(3);
    for _ in 0..60 {
        let largest = 1 << (4 + random.below(14));
        let len = random.below(largest);
        let input = random.mixed(len);
        EFFORTS.into_iter().for_each(|effort| {
            checked(effort, &input);
        });
    }
    for effort in EFFORTS {
        checked(effort, &random.mixed(4 << 20));
    }
}

/// Proves that a repetition is found up to the largest offset and not beyond, and that lengths of 4 MiB fit into bytes of 255.
#[test]
fn offsets_end_at_65535() {
    let mut random = Random(4);
    for (distance, found) in [(60_000, true), (65_535, true), (65_536, false), (65_537, false)] {
        let words = random.noise(64);
        let input = [&*words, &*vec![0; distance - 64], &*words, &*random.noise(12)].concat();
        // The zeros are one match.
        let (_, matches) = checked(Effort::Default, &input);
        assert_eq!(matches, 1 + usize::from(found), "{distance}");
    }
    let (len, matches) = checked(Effort::Default, &vec![9; 4 << 20]);
    assert_eq!((len <= (4 << 20) / 255 + 16, matches), (true, 1));
}

/// Proves that what repeats gets smaller with each effort, in their order, and that noise grows by its token and lengths alone.
#[test]
fn more_effort_finds_more() {
    for len in [4 << 10, 16 << 10, 64 << 10, 256 << 10] {
        let input = rows(len);
        let [literals, fast, default] = EFFORTS.map(|effort| checked(effort, &input).0);
        assert!(default <= fast && fast < literals * 3 / 4, "{len}: {default} {fast} {literals}");
        assert_eq!(literals, len + (len - 15) / 255 + 2);
        let noise = Random(6).noise(len);
        assert_eq!(checked(Effort::Default, &noise).0, literals);
    }
}

/// Proves that a buffer below the block's length is an error, and that nothing is written past it.
#[test]
fn a_small_output_is_an_error() {
    for input in [rows(3000), Random(7).noise(3000)] {
        let (needed, _) = checked(Effort::Default, &input);
        for room in [0, 1, 17, needed - 1] {
            let mut output = vec![0xAA; room];
            let refused = compress(Effort::Default, &input, &mut output);
            assert!(matches!(refused, Err(Error::Refused { .. })), "{room} of {needed}");
        }
        let mut output = vec![0; needed];
        assert_eq!(compress(Effort::Default, &input, &mut output), Ok(needed));
    }
}
