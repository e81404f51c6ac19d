//! Which SSTables of a table an operator wants to have compacted (`nodetool compact`, `upgradesstables`, `recompress_sstables`,
//! `scrub`).

use std::path::PathBuf;

use halcyon_sstable::verify::ScrubOptions;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    Whole {
        /// Where the strategy has size tiers: outputs of half the size, a quarter, and so on.
        split_output: bool,
    },
    /// Both ends belong to it. It goes around the ring if it begins behind its end; one without tokens has none.
    Tokens { start: i64, end: i64 },
    /// The bytes of a partition key.
    Key(Vec<u8>),
    /// The bytes of partition keys; their tombstones go without gc grace.
    Forced(Vec<Vec<u8>>),
    /// Paths of components: in the table's folder, or the end of such a path (`ks/t-…/oa-1-big-Data.db`).
    Files(Vec<PathBuf>),
    /// Each SSTable becomes one of the version and the compression that are written now, in its level.
    Rewrite(Rewrite),
    /// All, each alone: what is sound of it is written again, in its level.
    Scrub(ScrubOptions),
}

/// Which SSTables are written again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rewrite {
    All,
    /// Those of another version than what is written now.
    OtherVersion,
    /// Those whose compression differs from the table's.
    OtherCompression,
}
