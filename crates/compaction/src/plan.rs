//! Groups SSTables that can be compacted together.
//!
//! Like Cassandra (`CompactionStrategyManager`), we never mix repaired with unrepaired data, nor data of different pending repairs or
//! transient replicas: each kind is compacted separately. The other kinds still count for the purge bound.

use std::sync::Arc;

use halcyon_sstable::SSTable;

/// SSTables of one kind.
#[derive(Debug, Clone)]
pub struct Group {
    pub inputs: Vec<Arc<SSTable>>,
    /// Of the same table, but not in this compaction.
    pub elsewhere: Vec<Arc<SSTable>>,
}

/// SSTables of different kinds are never merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind {
    repaired: bool,
    pending_repair: Option<[u8; 16]>,
    is_transient: bool,
}

pub fn kind(sstable: &SSTable) -> Kind {
    let stats = &sstable.statistics().stats;
    Kind {
        repaired: stats.repaired_at != 0,
        pending_repair: stats.pending_repair,
        is_transient: stats.is_transient,
    }
}

/// Splits the inputs of a major compaction by kind. `elsewhere` are live SSTables of the table that were not chosen.
pub fn group_inputs(inputs: &[Arc<SSTable>], elsewhere: &[Arc<SSTable>]) -> Vec<Group> {
    let mut kinds: Vec<Kind> = inputs.iter().map(|sstable| kind(sstable)).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let group = |wanted: Kind| {
        let (inputs, others): (Vec<_>, Vec<_>) =
            inputs.iter().cloned().partition(|sstable| kind(sstable) == wanted);
        Group { inputs, elsewhere: others.into_iter().chain(elsewhere.iter().cloned()).collect() }
    };
    kinds.into_iter().map(group).collect()
}
