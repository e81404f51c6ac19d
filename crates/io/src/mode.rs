//! The words of I/O: access modes as Cassandra spells them, purposes, alignment.

use std::{fmt, str::FromStr};

/// How a file's bytes pass the page cache. Spelled as Cassandra's `disk_access_mode` family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum AccessMode {
    /// The best that the directory can do: direct, else uncached, else standard with
    /// `fadvise(DONTNEED)` as it goes.
    #[default]
    Auto,
    /// `O_DIRECT`: never through the page cache.
    Direct,
    /// `RWF_DONTCACHE`: through the page cache, dropped from it when done (Linux 6.14 and later).
    Uncached,
    /// Plain buffered I/O.
    Standard,
}

impl fmt::Display for AccessMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AccessMode::Auto => "auto",
            AccessMode::Direct => "direct",
            AccessMode::Uncached => "uncached",
            AccessMode::Standard => "standard",
        })
    }
}

/// A word that is not an access mode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a disk access mode; use auto, direct, uncached or standard")]
pub struct UnknownAccessMode(pub String);

impl FromStr for AccessMode {
    type Err = UnknownAccessMode;

    fn from_str(word: &str) -> Result<AccessMode, UnknownAccessMode> {
        match word {
            "auto" => Ok(AccessMode::Auto),
            "direct" => Ok(AccessMode::Direct),
            "uncached" => Ok(AccessMode::Uncached),
            "standard" => Ok(AccessMode::Standard),
            other => Err(UnknownAccessMode(other.to_owned())),
        }
    }
}

/// Why an I/O is done. Every I/O carries one; each has its own histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Purpose {
    UserRead,
    Scan,
    CommitLog,
    Flush,
    CompactionRead,
    CompactionWrite,
    Stream,
}

impl Purpose {
    pub const ALL: [Purpose; 7] = [
        Purpose::UserRead,
        Purpose::Scan,
        Purpose::CommitLog,
        Purpose::Flush,
        Purpose::CompactionRead,
        Purpose::CompactionWrite,
        Purpose::Stream,
    ];
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Purpose::UserRead => "user_read",
            Purpose::Scan => "scan",
            Purpose::CommitLog => "commitlog",
            Purpose::Flush => "flush",
            Purpose::CompactionRead => "compaction_read",
            Purpose::CompactionWrite => "compaction_write",
            Purpose::Stream => "stream",
        })
    }
}

/// What direct I/O asks of memory addresses, and of file offsets and lengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alignment {
    pub memory: u32,
    pub offset: u32,
}

impl Alignment {
    /// Nothing is asked.
    pub const NONE: Alignment = Alignment { memory: 1, offset: 1 };
}

/// The mode that a directory will be used in, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModeChoice {
    /// Never `Auto`.
    pub mode: AccessMode,
    /// Standard was the last resort of `auto`: pages are dropped as the file goes by.
    pub drop_behind: bool,
    pub why: String,
    pub alignment: Alignment,
}

impl ModeChoice {
    /// Standard, dropping pages behind.
    pub(crate) fn last_resort(why: &str) -> ModeChoice {
        ModeChoice {
            mode: AccessMode::Standard,
            drop_behind: true,
            why: why.to_owned(),
            alignment: Alignment::NONE,
        }
    }
}
