//! What a compaction does where the command line does not say: as the schema says, else as the inputs are.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::Arc;

use clap::ValueEnum;
use halcyon_compaction::Settings;
use halcyon_io::pacing::RateLimiter;
use halcyon_io::{Disk, StreamOptions};
use halcyon_model::schema::TableSchema;
use halcyon_sstable::components::compression_info::{MAX_CHUNK_LENGTH, max_compressed_length};
use halcyon_sstable::{Compression, CompressorKind, Format, SSTable, Version};

use super::CompactArgs;
use crate::failure::{Failure, Result};
use crate::units;

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

/// `LZ4Compressor,chunk_length_in_kb=4`, or `none`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CompressionArg {
    class: Option<String>,
    options: BTreeMap<String, String>,
}

impl FromStr for CompressionArg {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<CompressionArg, String> {
        let mut parts = text.split(',');
        let class = parts.next().unwrap_or_default().trim();
        let mut options = BTreeMap::new();
        for part in parts {
            let pair = part.split_once('=').filter(|(name, _)| !name.trim().is_empty());
            let (name, value) =
                pair.ok_or_else(|| format!("option=value expected, found {part:?}"))?;
            options.insert(name.trim().to_owned(), value.trim().to_owned());
        }
        if class.is_empty() {
            return Err("a compressor expected, such as LZ4Compressor, or none".to_owned());
        }
        let class = (!class.eq_ignore_ascii_case("none")).then(|| class.to_owned());
        let parsed = CompressionArg { class, options };
        parsed.compression(None)?;
        Ok(parsed)
    }
}

const DEFAULT_CHUNK_LENGTH: u64 = 16 << 10;

impl CompressionArg {
    /// From the `compression` map of a table.
    fn of_schema(map: &BTreeMap<String, String>) -> CompressionArg {
        let mut options = map.clone();
        let class = options.remove("class").or_else(|| options.remove("sstable_compression"));
        let enabled = options.remove("enabled").is_none_or(|e| !e.eq_ignore_ascii_case("false"));
        CompressionArg { class: class.filter(|class| enabled && !class.is_empty()), options }
    }

    fn compression(
        &self,
        chunk_length: Option<u64>,
    ) -> std::result::Result<Option<Compression>, String> {
        let Some(class) = &self.class else { return Ok(None) };
        let kind = CompressorKind::from_class(class, &self.options)?;
        let chunk_length = match chunk_length {
            Some(given) => given,
            None => self.chunk_length()?.unwrap_or(DEFAULT_CHUNK_LENGTH),
        };
        let chunk_length = sound_chunk_length(chunk_length)?;
        let ratio = match self.options.get("min_compress_ratio") {
            None => 0.0,
            Some(text) => text
                .parse::<f64>()
                .ok()
                .filter(|ratio| *ratio == 0.0 || (*ratio >= 1.0 && ratio.is_finite()))
                .ok_or_else(|| {
                    format!("min_compress_ratio = {text}: 0 or a number from 1 expected")
                })?,
        };
        let max_compressed_length = max_compressed_length(chunk_length, ratio);
        Ok(Some(Compression { kind, chunk_length, max_compressed_length }))
    }

    fn chunk_length(&self) -> std::result::Result<Option<u64>, String> {
        let in_kb =
            ["chunk_length_in_kb", "chunk_length_kb"].iter().find_map(|n| self.options.get(*n));
        if let Some(text) = in_kb {
            let kb: Option<u64> = text.parse().ok();
            let bytes = kb.and_then(|kb| kb.checked_mul(1024));
            return bytes
                .map(Some)
                .ok_or_else(|| format!("chunk_length_in_kb = {text}: a number expected"));
        }
        self.options.get("chunk_length").map(|text| units::parse_size(text)).transpose()
    }
}

fn sound_chunk_length(length: u64) -> std::result::Result<u32, String> {
    let sound = length.is_power_of_two() && length >= 1024 && length <= u64::from(MAX_CHUNK_LENGTH);
    match u32::try_from(length) {
        Ok(length) if sound => Ok(length),
        _ => Err(format!(
            "a chunk length of {}: a power of two from 1KiB to {} expected",
            units::bytes(length),
            units::bytes(u64::from(MAX_CHUNK_LENGTH))
        )),
    }
}

/// The version to write, and why.
fn version(args: &CompactArgs, inputs: &[Arc<SSTable>]) -> Result<(Version, String)> {
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
    Ok((version, format!("version {version}: what the Cassandra that wrote the inputs reads")))
}

fn compression(
    args: &CompactArgs,
    inputs: &[Arc<SSTable>],
    schema: Option<&TableSchema>,
) -> Result<(Option<Compression>, String)> {
    let of_schema =
        schema.and_then(|s| s.options.compression.as_ref()).map(CompressionArg::of_schema);
    let (chosen, why) = match (&args.compression, of_schema) {
        (Some(given), _) => (given.clone(), "as --compression says"),
        (None, Some(of_schema)) => (of_schema, "as the schema says"),
        (None, None) => (of_inputs(inputs), "as the largest input is"),
    };
    let compression = chosen.compression(args.chunk_length).map_err(Failure::Usage)?;
    let shown = match &compression {
        Some(c) => {
            format!("{} with {} chunks", c.kind.class(), units::bytes(u64::from(c.chunk_length)))
        }
        None => "no compression".to_owned(),
    };
    Ok((compression, format!("{shown}: {why}")))
}

fn of_inputs(inputs: &[Arc<SSTable>]) -> CompressionArg {
    let largest = inputs.iter().max_by_key(|i| i.data_length());
    let Some(info) = largest.and_then(|i| i.compression()) else {
        return CompressionArg { class: None, options: BTreeMap::new() };
    };
    let mut options: BTreeMap<String, String> = info.options.iter().cloned().collect();
    options.insert("chunk_length".into(), format!("{}B", info.chunk_length));
    let is_limited = info.max_compressed_length < info.chunk_length;
    if is_limited {
        let ratio = f64::from(info.chunk_length) / f64::from(info.max_compressed_length);
        options.insert("min_compress_ratio".into(), ratio.to_string());
    }
    CompressionArg { class: Some(info.compressor.clone()), options }
}

/// Seconds before which tombstones may go, and why.
fn gc_before(args: &CompactArgs, now: u32, schema: Option<&TableSchema>) -> (u32, String) {
    let moment =
        |before: u32| format!("tombstones made before {}", units::seconds_as_instant(before));
    if let Some(before) = args.gc_before {
        return (before, format!("{} may be purged: as --gc-before says", moment(before)));
    }
    let of_schema = schema.and_then(|s| s.options.gc_grace_seconds);
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

/// Settings, and the reasons for those that were not given.
pub(super) fn choose(
    args: &CompactArgs,
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
        .unwrap_or(0.01);
    let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    let settings = Settings {
        output: None,
        ids: None,
        keep_inputs: args.keep_inputs || args.output.is_some(),
        version,
        compression,
        bloom_filter_fp_chance: fp_chance,
        min_index_interval: options.and_then(|o| o.min_index_interval).unwrap_or(128),
        column_index_size: None,
        gc_before,
        now,
        strict_liveness: schema.is_some_and(|s| s.is_view),
        split_tokens: Vec::new(),
        level: None,
        unflushed: None,
        split_size: args.split_size.filter(|size| *size > 0),
        read_mode: args.read_access.unwrap_or(args.access),
        write_mode: args.write_access.unwrap_or(args.access),
        read_ahead: StreamOptions {
            buffer_size: size(args.buffer_size),
            depth: args.read_ahead.max(1),
        },
        // What streams can do without gets three eighths (`io::buffer`). The writer takes its share of them last, and
        // without it each write would be waited for.
        read_ahead_budget: size(args.buffer_budget / 4),
        write_buffer: size(args.write_buffer_size),
        limiter: RateLimiter::bytes_per_second(
            disk.clock().clone(),
            args.throughput.filter(|rate| *rate > 0),
        ),
        own_thread: true,
    };
    Ok((settings, vec![version_why, compression_why, gc_why]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compression(text: &str) -> std::result::Result<Option<Compression>, String> {
        text.parse::<CompressionArg>()?.compression(None)
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

    #[test]
    fn a_table_may_have_its_compression_turned_off() {
        let of = |pairs: &[(&str, &str)]| {
            let map = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
            CompressionArg::of_schema(&map).compression(None).expect("sound")
        };
        assert_eq!(of(&[("enabled", "false")]), None);
        assert_eq!(of(&[("class", "LZ4Compressor"), ("enabled", "false")]), None);
        assert_eq!(of(&[("class", "")]), None);
        let limited = of(&[
            ("class", "a.b.LZ4Compressor"),
            ("min_compress_ratio", "1.3"),
            ("chunk_length_in_kb", "4"),
        ]);
        assert_eq!(limited.expect("compressed").max_compressed_length, 3151);
    }
}
