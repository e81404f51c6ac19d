//! What Cassandra 5.0 takes where a table does not say.

/// Ten days.
pub const GC_GRACE_SECONDS: i32 = 864_000;
pub const BLOOM_FILTER_FP_CHANCE: f64 = 0.01;
/// LeveledCompactionStrategy keeps the SSTables that a read asks few by other means.
pub const LEVELED_BLOOM_FILTER_FP_CHANCE: f64 = 0.1;
/// `BloomCalculations.minSupportedBloomFilterFpChance`
pub const MIN_BLOOM_FILTER_FP_CHANCE: f64 = 6.71e-5;
pub const CRC_CHECK_CHANCE: f64 = 1.0;
pub const MIN_INDEX_INTERVAL: i32 = 128;
pub const MAX_INDEX_INTERVAL: i32 = 2048;
/// `Attributes.MAX_TTL`: twenty years.
pub const MAX_TTL: i32 = 630_720_000;
/// Bytes.
pub const CHUNK_LENGTH: u32 = 16 << 10;
/// `speculative_retry`, `additional_write_policy`
pub const SPECULATIVE_RETRY: &str = "99p";
