//! How many keys and values changes and queries choose from: few, so that they meet.

pub(crate) const KEYS: u64 = 8;
pub(crate) const A_VALUES: u64 = 4;
pub(crate) const B_VALUES: u64 = 8;
