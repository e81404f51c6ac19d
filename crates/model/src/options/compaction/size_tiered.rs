//! SizeTieredCompactionStrategy, whose buckets the other strategies use too.

use super::Thresholds;
use super::reader::{Checked, Reader};
use crate::value::{double_to_string, parse_double};

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SizeTiered {
    pub thresholds: Thresholds,
    pub tiers: Tiers,
}

/// How sizes make buckets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tiers {
    pub min_sstable_size: u64,
    pub bucket_low: f64,
    pub bucket_high: f64,
}

impl Default for Tiers {
    fn default() -> Tiers {
        Tiers { min_sstable_size: 50 << 20, bucket_low: 0.5, bucket_high: 1.5 }
    }
}

impl SizeTiered {
    pub(super) fn read(reader: &mut Reader<'_>, class: &str) -> Checked<SizeTiered> {
        let tiers = Tiers::read(reader)?;
        Ok(SizeTiered { thresholds: Thresholds::read(reader, class)?, tiers })
    }
}

impl Tiers {
    pub(super) fn read(reader: &mut Reader<'_>) -> Checked<Tiers> {
        let default = Tiers::default();
        let name = "min_sstable_size";
        let min_sstable_size = match reader.long(name, "int")? {
            None => default.min_sstable_size,
            Some(size) => {
                u64::try_from(size).map_err(|_| format!("{name} must be non negative: {size}"))?
            }
        };
        let mut bucket = |name, default| match reader.get(name) {
            None => Ok(default),
            Some(text) => parse_double(text)
                .ok_or_else(|| format!("{text} is not a parsable float for {name}")),
        };
        let bucket_low = bucket("bucket_low", default.bucket_low)?;
        let bucket_high = bucket("bucket_high", default.bucket_high)?;
        if bucket_high <= bucket_low {
            return Err(format!(
                "bucket_high value ({}) is less than or equal to the bucket_low value ({})",
                double_to_string(bucket_high),
                double_to_string(bucket_low)
            ));
        }
        Ok(Tiers { min_sstable_size, bucket_low, bucket_high })
    }
}
