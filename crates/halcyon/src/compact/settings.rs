//! The settings of a compaction: from the command line, else from the schema, else from the inputs.

use std::str::FromStr;
use std::sync::Arc;

use clap::ValueEnum;
use halcyon_compaction::{Settings, UsableSpace, version_holding};
use halcyon_io::RateLimiter;
use halcyon_io::{Disk, StreamOptions};
use halcyon_model::options::{Compressed, Compression, Entries, MapOption, defaults};
use halcyon_model::schema::TableSchema;
use halcyon_sstable::{ExpirationOverflow, Format, SSTable, Version};

use super::FileArgs;
use crate::failure::{Failure, Result};
use halcyon_model::units;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum FormatArg {
    Big,
    Bti,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum VersionArg {
    Nb,
    Oa,
    Pa,
    Da,
    Ea,
}

impl VersionArg {
    fn version(self) -> Version {
        match self {
            VersionArg::Nb => Version::NB,
            VersionArg::Oa => Version::OA,
            VersionArg::Pa => Version::PA,
            VersionArg::Da => Version::DA,
            VersionArg::Ea => Version::EA,
        }
    }
}

/// `LZ4Compressor,chunk_length_in_kb=4`, or `none`, as a table's `compression` map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CompressionArg(Option<Compression>);

impl FromStr for CompressionArg {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<CompressionArg, String> {
        let mut parts = text.split(',');
        let class = parts.next().unwrap_or_default().trim();
        if class.is_empty() {
            return Err("a compressor expected, such as LZ4Compressor, or none".to_owned());
        }
        if class.eq_ignore_ascii_case("none") {
            return Ok(CompressionArg(None));
        }
        let mut entries = Entries::from([("class".to_owned(), class.to_owned())]);
        for part in parts {
            let pair = part.split_once('=').filter(|(name, _)| !name.trim().is_empty());
            let (name, value) =
                pair.ok_or_else(|| format!("option=value expected, found {part:?}"))?;
            let (name, value) = match (name.trim(), value.trim()) {
                ("chunk_length", size) => ("chunk_length_in_kb", in_kib(size)?),
                (name, value) => (name, value.to_owned()),
            };
            entries.insert(name.to_owned(), value);
        }
        let option = MapOption::<Compressed>::checked(entries).map_err(|e| e.to_string())?;
        Ok(CompressionArg(option.value().0.clone()))
    }
}

fn in_kib(size: &str) -> std::result::Result<String, String> {
    let bytes = units::arguments::size(size)?;
    let kib = bytes.checked_div(1024).filter(|_| bytes.is_multiple_of(1024));
    Ok(kib.map_or_else(|| units::bytes(bytes), |kib| kib.to_string()))
}

/// The version to write, and the reason.
fn version(args: &FileArgs, inputs: &[Arc<SSTable>]) -> Result<(Version, String)> {
    let wanted = args.format.map(|f| match f {
        FormatArg::Big => Format::Big,
        FormatArg::Bti => Format::Bti,
    });
    if let Some(given) = args.version {
        let version = given.version();
        if wanted.is_some_and(|format| format != version.format) {
            let what = format!(
                "version {version} is not of the format that --format asks for; leave one of them out"
            );
            return Err(Failure::usage(what));
        }
        return Ok((version, format!("version {version}: as --version says")));
    }
    let newest = inputs.iter().map(|i| i.descriptor().version).max();
    let newest = newest.filter(|v| v.writable().is_ok()).unwrap_or(Version::NB);
    let version = match (wanted, newest) {
        (Some(Format::Bti), Version::PA) => Version::EA,
        (Some(Format::Bti), v) if v.format == Format::Big => Version::DA,
        (Some(Format::Big), Version::EA) => Version::PA,
        (Some(Format::Big), v) if v.format == Format::Bti => Version::OA,
        (_, v) => v,
    };
    let holding = version_holding(version, inputs, false);
    if holding != version {
        let why = "what stores the timestamps below zero that inputs have";
        return Ok((holding, format!("version {holding}: {why}")));
    }
    Ok((version, format!("version {version}: what the Cassandra that wrote the inputs reads")))
}

fn compression(
    args: &FileArgs,
    inputs: &[Arc<SSTable>],
    schema: Option<&TableSchema>,
) -> Result<(Option<Compression>, String)> {
    let of_schema = schema.and_then(|s| s.options.compression.as_ref());
    let (chosen, why) = match (&args.compression, of_schema) {
        (Some(given), _) => (given.0.clone(), "as --compression says"),
        (None, Some(of_schema)) => (of_schema.value().0.clone(), "as the schema says"),
        (None, None) => (of_inputs(inputs)?, "as the largest input is"),
    };
    let compression = match (chosen, args.chunk_length) {
        (Some(chosen), Some(length)) => {
            Some(chosen.with_chunk_length(length).map_err(|e| Failure::usage(e.to_string()))?)
        }
        (chosen, _) => chosen,
    };
    let shown = match &compression {
        Some(c) => {
            format!("{} with {} chunks", c.kind.class(), units::bytes(u64::from(c.chunk_length)))
        }
        None => "no compression".to_owned(),
    };
    Ok((compression, format!("{shown}: {why}")))
}

fn of_inputs(inputs: &[Arc<SSTable>]) -> Result<Option<Compression>> {
    let largest = inputs.iter().max_by_key(|i| i.data_length());
    let Some(info) = largest.and_then(|i| i.compression()) else { return Ok(None) };
    let (length, max) = (info.chunk_length, info.max_compressed_length);
    Compression::of_file(&info.compressor, &info.options, length, max)
        .map(Some)
        .map_err(Failure::Usage)
}

/// The time in seconds before which tombstones can be purged, and the reason.
fn gc_before(args: &FileArgs, now: u32, schema: Option<&TableSchema>) -> (u32, String) {
    let moment =
        |before: u32| format!("tombstones made before {}", units::seconds_as_instant(before));
    if let Some(before) = args.gc_before {
        return (before, format!("{} may be purged: as --gc-before says", moment(before)));
    }
    let options = schema.map(|s| &s.options).filter(|o| o.gc_grace_seconds.is_some());
    let of_schema = options.map(|options| options.gc_grace_seconds());
    let (grace, why) = match (args.gc_grace, of_schema) {
        (Some(given), _) => (given.as_secs(), "as --gc-grace says"),
        (None, Some(grace)) => (u64::from(grace), "gc_grace_seconds of the schema"),
        (None, None) => {
            let what =
                "nothing is purged: no schema says gc_grace_seconds; give --schema or --gc-grace";
            return (0, what.to_owned());
        }
    };
    let before = now.saturating_sub(u32::try_from(grace).unwrap_or(u32::MAX));
    (before, format!("{} may be purged: {why}", moment(before)))
}

/// The settings, with reasons for those that were not given.
pub(super) fn choose(
    args: &FileArgs,
    disk: &Disk,
    inputs: &[Arc<SSTable>],
    schema: Option<&TableSchema>,
) -> Result<(Settings, Vec<String>)> {
    let now = u32::try_from(disk.clock().unix_seconds()).unwrap_or(u32::MAX);
    let now = args.now.unwrap_or(now);
    let (version, version_why) = version(args, inputs)?;
    let (compression, compression_why) = compression(args, inputs, schema)?;
    let (gc_before, gc_why) = gc_before(args, now, schema);
    let options = schema.map(|s| &s.options);
    let of_inputs = inputs.iter().filter_map(|i| i.statistics().validation.as_ref());
    let fp_chance = options
        .and_then(|o| o.bloom_filter_fp_chance)
        .or_else(|| of_inputs.map(|v| v.bloom_filter_fp_chance).next())
        .unwrap_or(defaults::BLOOM_FILTER_FP_CHANCE);
    let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    let settings = Settings {
        output: None,
        ids: None,
        keep_inputs: args.keep_inputs || args.output.is_some(),
        usable_space: UsableSpace::ALL,
        version,
        expiration_overflow: ExpirationOverflow::Reject,
        compression,
        bloom_filter_fp_chance: fp_chance,
        min_index_interval: schema
            .map(|s| s.options.min_index_interval())
            .unwrap_or(defaults::MIN_INDEX_INTERVAL.unsigned_abs()),
        column_index_size: None,
        gc_before,
        now,
        strict_liveness: schema.is_some_and(|s| s.strict_liveness),
        split_tokens: Vec::new(),
        level: None,
        level_fanout: None,
        provenance: None,
        purge_bound: None,
        split_size: args.split_size.filter(|size| *size > 0),
        smallest_half: None,
        read_mode: args.read_access.unwrap_or(args.access),
        write_mode: args.write_access.unwrap_or(args.access),
        read_ahead: StreamOptions {
            buffer_size: size(args.buffer_size),
            depth: args.read_ahead.max(1),
        },
        // Optional buffers get three eighths of the budget (`io::buffer`). The writer takes its buffers last: without them it would
        // wait for every write.
        read_ahead_budget: size(args.buffer_budget / 4),
        write_buffer: size(args.write_buffer_size),
        carry: None,
        limiter: RateLimiter::bytes_per_second(
            disk.clock().clone(),
            args.throughput.filter(|rate| *rate > 0),
        ),
        own_thread: true,
        read_back: false,
    };
    Ok((settings, vec![version_why, compression_why, gc_why]))
}

#[cfg(test)]
mod tests {
    use halcyon_model::options::CompressorKind;

    use super::*;

    fn compression(text: &str) -> std::result::Result<Option<Compression>, String> {
        text.parse::<CompressionArg>().map(|found| found.0)
    }

    #[test]
    fn compression_is_spelled_as_in_tables() {
        let lz4 = compression("LZ4Compressor").expect("known").expect("compressed");
        assert_eq!((lz4.kind, lz4.chunk_length), (CompressorKind::Lz4, 16384));
        let zstd = compression("ZstdCompressor,compression_level=6, chunk_length_in_kb=4");
        let zstd = zstd.expect("known").expect("compressed");
        assert_eq!((zstd.kind, zstd.chunk_length), (CompressorKind::Zstd { level: 6 }, 4096));
        assert_eq!(compression("none"), Ok(None));
        for bad in [
            "",
            "Nonsense",
            "LZ4Compressor,x",
            "LZ4Compressor,chunk_length_in_kb=3",
            "LZ4Compressor,chunk_length=1GiB",
        ] {
            assert!(compression(bad).is_err(), "{bad}");
        }
    }
}
