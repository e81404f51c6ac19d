//! What can be asked of a compressor: the algorithm, and the level where it has one.

use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    Lz4,
    Snappy,
    Deflate,
    Zstd,
}

impl Algorithm {
    /// Most bytes that one compressed byte can stand for. A length above this is damage; it must not take memory.
    pub(crate) fn largest_ratio(self) -> usize {
        match self {
            // A match length grows by 255 with each byte.
            Algorithm::Lz4 => 255,
            // A copy of 64 bytes takes three.
            Algorithm::Snappy => 32,
            // A match of 258 bytes takes two bits.
            Algorithm::Deflate => 1032,
            // A run of 128 KiB takes four bytes.
            Algorithm::Zstd => 32 << 10,
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Algorithm::Lz4 => "LZ4",
            Algorithm::Snappy => "Snappy",
            Algorithm::Deflate => "Deflate",
            Algorithm::Zstd => "zstd",
        })
    }
}

/// An algorithm with everything that changes the bytes it writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// One block.
    Lz4 {
        effort: Effort,
    },
    Snappy,
    /// One zlib stream.
    Deflate {
        level: DeflateLevel,
    },
    /// One frame.
    Zstd {
        level: ZstdLevel,
        /// Whether the frame ends with a checksum of its content.
        checksum: bool,
    },
}

impl Method {
    pub const LZ4: Method = Method::Lz4 { effort: Effort::Default };

    pub fn algorithm(self) -> Algorithm {
        match self {
            Method::Lz4 { .. } => Algorithm::Lz4,
            Method::Snappy => Algorithm::Snappy,
            Method::Deflate { .. } => Algorithm::Deflate,
            Method::Zstd { .. } => Algorithm::Zstd,
        }
    }

    /// The same without a search for what repeats, for bytes in which nothing does. Snappy has no such form, and gives up soon.
    pub fn without_search(self) -> Method {
        match self {
            Method::Lz4 { .. } => Method::Lz4 { effort: Effort::Literals },
            Method::Snappy => Method::Snappy,
            Method::Deflate { .. } => Method::Deflate { level: DeflateLevel::STORED },
            Method::Zstd { checksum, .. } => {
                Method::Zstd { level: ZstdLevel(ZstdLevel::MIN), checksum }
            }
        }
    }
}

/// How much LZ4 searches for matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Effort {
    /// Not at all: the block is one run of literals.
    Literals,
    /// Matches of six bytes and more; bytes without matches are soon skipped.
    Fast,
    #[default]
    Default,
}

/// 0 (stored) to 9 (smallest).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeflateLevel(u32);

impl DeflateLevel {
    const STORED: DeflateLevel = DeflateLevel(0);
    pub const FASTEST: DeflateLevel = DeflateLevel(1);
    pub const DEFAULT: DeflateLevel = DeflateLevel(6);

    pub(crate) fn get(self) -> u32 {
        self.0
    }
}

/// -131072 (fastest) to 22 (smallest), the range of the reference library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ZstdLevel(i32);

impl ZstdLevel {
    pub const MIN: i32 = -131_072;
    pub const MAX: i32 = 22;
    pub const FASTEST: ZstdLevel = ZstdLevel(1);
    pub const DEFAULT: ZstdLevel = ZstdLevel(3);

    /// `None`: outside the range.
    pub fn new(level: i32) -> Option<ZstdLevel> {
        (Self::MIN..=Self::MAX).contains(&level).then_some(ZstdLevel(level))
    }

    pub fn get(self) -> i32 {
        self.0
    }
}
