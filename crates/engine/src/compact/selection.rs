//! Which SSTables of a table an operator wants to have compacted (`nodetool compact`).

use std::path::PathBuf;

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
    /// Paths of components: in the table's folder, or the end of such a path (`ks/t-…/oa-1-big-Data.db`).
    Files(Vec<PathBuf>),
}
