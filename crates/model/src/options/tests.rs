//! Generated options: what is accepted, nothing refuses later.

use std::time::{SystemTime, UNIX_EPOCH};

use super::*;

struct Random(halcyon_io::Random);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0.below(bound as u64) as usize
    }

    fn one_of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }
}

/// Valid, on the border, nonsense.
const VALUES: [&str; 48] = [
    "0",
    "1",
    "2",
    "4",
    "32",
    "-1",
    "+3",
    "1000",
    "100000",
    "131072",
    "262144",
    "2147483647",
    "2147483648",
    "9223372036854775807",
    "0.5",
    "1.5",
    "-0.5",
    "1e3",
    "1e300",
    "NaN",
    "Infinity",
    "33%",
    "101%",
    "",
    " 4",
    "x",
    "true",
    "FALSE",
    "NONE",
    "ALL",
    "all",
    "high",
    "fast",
    "ROW",
    "TRANSITIVE",
    "single",
    "DAYS",
    "HOURS",
    "MINUTES",
    "MICROSECONDS",
    "SECONDS",
    "T4",
    "L10,N,-3",
    ",",
    "100MiB",
    "1 GiB",
    "1KiB",
    "9000PB",
];

const COMPACTION: [&str; 26] = [
    "enabled",
    "log_all",
    "only_purge_repaired_tombstones",
    "provide_overlapping_tombstones",
    "tombstone_compaction_interval",
    "tombstone_threshold",
    "unchecked_tombstone_compaction",
    "min_threshold",
    "max_threshold",
    "min_sstable_size",
    "bucket_low",
    "bucket_high",
    "sstable_size_in_mb",
    "fanout_size",
    "single_sstable_uplevel",
    "compaction_window_unit",
    "compaction_window_size",
    "timestamp_resolution",
    "expired_sstable_check_frequency_seconds",
    "unsafe_aggressive_sstable_expiration",
    "scaling_parameters",
    "target_sstable_size",
    "base_shard_count",
    "sstable_growth",
    "flush_size_override",
    "nonsense",
];

const COMPRESSION: [&str; 7] = [
    "chunk_length_in_kb",
    "min_compress_ratio",
    "lz4_compressor_type",
    "lz4_high_compressor_level",
    "compression_level",
    "enabled",
    "nonsense",
];

const CLASSES: [&str; 12] = [
    "SizeTieredCompactionStrategy",
    "LeveledCompactionStrategy",
    "TimeWindowCompactionStrategy",
    "UnifiedCompactionStrategy",
    "org.apache.cassandra.db.compaction.LeveledCompactionStrategy",
    "LZ4Compressor",
    "ZstdCompressor",
    "SnappyCompressor",
    "DeflateCompressor",
    "NoopCompressor",
    "org.apache.cassandra.io.compress.LZ4Compressor",
    "Nonsense",
];

fn entries(random: &mut Random, classes: &[&str], names: &[&str]) -> Entries {
    let mut entries = Entries::new();
    if random.below(20) > 0 {
        entries.insert("class".to_owned(), random.one_of(classes).to_owned());
    }
    for _ in 0..random.below(4) {
        entries.insert(random.one_of(names).to_owned(), random.one_of(&VALUES).to_owned());
    }
    entries
}

fn options(random: &mut Random) -> Result<TableOptions, OptionError> {
    let mut options = TableOptions::default();
    for name in NAMES {
        if random.below(8) > 0 {
            continue;
        }
        let value = match name {
            "compaction" => Given::Map(entries(random, &CLASSES[..5], &COMPACTION)),
            "compression" => Given::Map(entries(random, &CLASSES[5..], &COMPRESSION)),
            "caching" => Given::Map(entries(random, &VALUES, &["keys", "rows_per_partition"])),
            _ => Given::Text(random.one_of(&VALUES)),
        };
        if let Given::Map(mut map) = value {
            if name == "caching" {
                map.remove("class");
            }
            options.set(name, Given::Map(map))?;
        } else {
            options.set(name, value)?;
        }
    }
    options.complete();
    options.validate().map(|()| options)
}

/// Reads DESCRIBE's lines again: `name = 'text'`, `name = 5`, `name = {'a': 'b'}`.
fn described(lines: &[String]) -> TableOptions {
    let unquoted = |text: &str| text.trim_matches('\'').replace("''", "'");
    let mut options = TableOptions::default();
    for line in lines {
        let (name, value) = line.split_once(" = ").expect("name = value");
        match value.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
            Some("") => {}
            Some(inside) => {
                let pair = |pair: &str| {
                    let (name, value) = pair.split_once("': '").expect("a pair");
                    (unquoted(name), unquoted(value))
                };
                let map = inside.split("', '").map(pair).collect();
                options.set(name, Given::Map(map)).unwrap_or_else(|e| panic!("{line}: {e}"));
            }
            None => {
                let text = unquoted(value);
                options.set(name, Given::Text(&text)).unwrap_or_else(|e| panic!("{line}: {e}"));
            }
        }
    }
    options
}

/// Proves that options which a statement may set are read again from DESCRIBE and from `system_schema` with the same meaning,
/// and that what writers and strategies take of them is within what they can do.
#[test]
fn accepted_options_are_never_refused_later() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    let seed = now.as_nanos() as u64;
    println!("seed {seed}");
    let mut random = Random(halcyon_io::Random::seeded(seed));
    let mut accepted = 0;
    for _ in 0..40_000 {
        let Ok(options) = options(&mut random) else { continue };
        accepted += 1;
        let mut again = described(&options.print());
        again.complete();
        again.validate().unwrap_or_else(|e| panic!("{e}: {options:?}"));
        assert_eq!(again.print(), options.print());
        assert_eq!(again.compression(), options.compression());
        assert_eq!(format!("{:?}", again.compaction()), format!("{:?}", options.compaction()));
        let stored = options.compaction.as_ref().expect("complete").entries().clone();
        let stored = MapOption::<Compaction>::lenient(stored);
        assert_eq!(stored.validate(), Ok(()), "{options:?}");
        assert_eq!(options.problems(), Vec::<String>::new());
        if let Some(compression) = options.compression() {
            let length = compression.chunk_length;
            assert!(length.is_power_of_two() && length <= compression::MAX_CHUNK_LENGTH);
        }
        assert!((1..=i32::MAX.unsigned_abs()).contains(&options.min_index_interval()));
        let chance = options.bloom_filter_fp_chance();
        assert!(chance > 0.0 && chance <= 1.0, "{options:?}");
    }
    assert!(accepted > 2000, "{accepted}");
}

fn set(name: &str, value: &str) -> Result<TableOptions, OptionError> {
    let mut options = TableOptions::default();
    options.set(name, Given::Text(value))?;
    Ok(options)
}

/// Proves speculative policies against what Apache Cassandra 5.0.9 stored.
#[test]
fn policies_are_stored_as_cassandra_stores_them() {
    for (given, stored) in [
        ("99PERCENTILE", "99p"),
        ("99.50p", "99.5p"),
        ("99.999999p", "100p"),
        ("5.5ms", "5ms"),
        (".5ms", "0ms"),
        ("none", "NEVER"),
        ("MIN(50ms,99p)", "MIN(99p,50ms)"),
        ("min(99p, 50ms)", "MIN(99p,50ms)"),
    ] {
        let options = set("speculative_retry", given).expect("accepted");
        assert_eq!(options.speculative_retry.as_deref(), Some(stored), "{given}");
    }
    for refused in
        ["0p", "-1p", "NaNp", "1e3ms", " 99p", "min( 99p ,50ms )", "min (99p,50ms)", "max(1p,2p)"]
    {
        assert!(set("speculative_retry", refused).is_err(), "{refused}");
    }
}

/// Proves that a Bloom filter's chance that nothing states, or −1, is that of the strategy.
#[test]
fn the_default_chance_is_the_strategys() {
    let mut options = set("bloom_filter_fp_chance", "-1").expect("accepted");
    let class = ("class".to_owned(), "LeveledCompactionStrategy".to_owned());
    options.set("compaction", Given::Map([class].into())).expect("accepted");
    options.complete();
    assert_eq!(options.bloom_filter_fp_chance, Some(0.1));
}
