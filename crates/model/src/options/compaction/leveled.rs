//! LeveledCompactionStrategy.

use num_bigint::BigUint;

use super::reader::{Checked, Reader};
use super::{Thresholds, Tiers};

/// The highest level that an SSTable can have.
pub const LEVEL_MAX: u32 = 8;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Leveled {
    pub thresholds: Thresholds,
    /// For level 0 where it has grown too long.
    pub tiers: Tiers,
    /// Bytes (`sstable_size_in_mb`).
    pub sstable_size: u64,
    /// `fanout_size`
    pub fanout: u64,
    /// An SSTable that overlaps nothing in the next level is moved there as it is.
    pub single_sstable_uplevel: bool,
}

impl Leveled {
    pub(super) fn read(reader: &mut Reader<'_>, class: &str) -> Checked<Leveled> {
        let size = positive(reader, "sstable_size_in_mb")?;
        let fanout = positive(reader, "fanout_size")?.unwrap_or(10);
        // Where no size is given, Cassandra checks with one of 1 MiB.
        let largest = BigUint::from(fanout).pow(LEVEL_MAX) * (size.unwrap_or(1) << 20);
        if largest > BigUint::from(i64::MAX.unsigned_abs()) {
            return Err(format!(
                "At most {} bytes may be in a compaction level; your maxSSTableSize must be absurdly high to compute {largest}",
                i64::MAX
            ));
        }
        let uplevel = reader.get("single_sstable_uplevel");
        let single_sstable_uplevel = uplevel.is_some_and(|word| word.eq_ignore_ascii_case("true"));
        let tiers = Tiers::read(reader)?;
        Ok(Leveled {
            thresholds: Thresholds::read(reader, class)?,
            tiers,
            sstable_size: size.unwrap_or(160) << 20,
            fanout,
            single_sstable_uplevel,
        })
    }
}

fn positive(reader: &mut Reader<'_>, name: &'static str) -> Checked<Option<u64>> {
    match reader.int(name)? {
        Some(value) if value < 1 => Err(format!("{name} must be larger than 0, but was {value}")),
        value => Ok(value.map(|value| u64::from(value.unsigned_abs()))),
    }
}
