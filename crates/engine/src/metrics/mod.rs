//! What shards and background threads count, on the lowest floor: every file may count, and `report/` reads what is counted.

pub(crate) mod declared;
pub(crate) mod samplers;
pub(crate) mod shards;
pub(crate) mod stats;
pub(crate) mod table;
