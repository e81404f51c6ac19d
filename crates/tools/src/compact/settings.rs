//! The settings of a compaction: from the request, else from the schema, else from the inputs.

use std::sync::Arc;

use halcyon_compaction::{Settings, UsableSpace, version_holding};
use halcyon_io::{Disk, RateLimiter, StreamOptions};
use halcyon_model::options::{Compression, defaults};
use halcyon_model::schema::TableSchema;
use halcyon_sstable::{Effort, ExpirationOverflow, Format, SSTable, Version};

use super::request::Request;
use crate::error::{Error, Result};
use halcyon_model::units;

/// The version to write, and the reason.
fn version(request: &Request, inputs: &[Arc<SSTable>]) -> Result<(Version, String)> {
    let wanted = request.format;
    if let Some(version) = request.version {
        if wanted.is_some_and(|format| format != version.format) {
            let what = format!(
                "version {version} is not of the format that --format asks for; leave one of them out"
            );
            return Err(Error::usage(what));
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
    request: &Request,
    inputs: &[Arc<SSTable>],
    schema: Option<&TableSchema>,
) -> Result<(Option<Compression>, String)> {
    let of_schema = schema.and_then(|s| s.options.compression.as_ref());
    let (chosen, why) = match (&request.compression, of_schema) {
        (Some(given), _) => (given.clone(), "as --compression says"),
        (None, Some(of_schema)) => (of_schema.value().0.clone(), "as the schema says"),
        (None, None) => (of_inputs(inputs)?, "as the largest input is"),
    };
    let compression = match (chosen, request.chunk_length) {
        (Some(chosen), Some(length)) => {
            Some(chosen.with_chunk_length(length).map_err(|e| Error::usage(e.to_string()))?)
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
        .map_err(Error::Usage)
}

/// The time in seconds before which tombstones can be purged, and the reason.
fn gc_before(request: &Request, now: u32, schema: Option<&TableSchema>) -> (u32, String) {
    let moment =
        |before: u32| format!("tombstones made before {}", units::seconds_as_instant(before));
    if let Some(before) = request.gc_before {
        return (before, format!("{} may be purged: as --gc-before says", moment(before)));
    }
    let options = schema.map(|s| &s.options).filter(|o| o.gc_grace_seconds.is_some());
    let of_schema = options.map(|options| options.gc_grace_seconds());
    let (grace, why) = match (request.gc_grace, of_schema) {
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
    request: &Request,
    disk: &Disk,
    inputs: &[Arc<SSTable>],
    schema: Option<&TableSchema>,
) -> Result<(Settings, Vec<String>)> {
    let now = u32::try_from(disk.clock().unix_seconds()).unwrap_or(u32::MAX);
    let now = request.now.unwrap_or(now);
    let (version, version_why) = version(request, inputs)?;
    let (compression, compression_why) = compression(request, inputs, schema)?;
    let (gc_before, gc_why) = gc_before(request, now, schema);
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
        keep_inputs: request.keep_inputs || request.output.is_some(),
        usable_space: UsableSpace::ALL,
        version,
        expiration_overflow: ExpirationOverflow::Reject,
        compression,
        effort: Effort::Default,
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
        split_size: request.split_size.filter(|size| *size > 0),
        smallest_half: None,
        read_mode: request.read_mode,
        write_mode: request.write_mode,
        read_ahead: StreamOptions {
            buffer_size: size(request.buffer_size),
            depth: request.read_ahead.max(1),
        },
        // Optional buffers get three eighths of the budget (`io::buffer`). The writer takes its buffers last: without them it would
        // wait for every write.
        read_ahead_budget: size(request.buffer_budget / 4),
        write_buffer: size(request.write_buffer_size),
        carry: None,
        watch: None,
        limiter: RateLimiter::bytes_per_second(
            disk.clock().clone(),
            request.throughput.filter(|rate| *rate > 0),
        ),
        own_thread: true,
        read_back: false,
        forced: Default::default(),
        scrub: None,
    };
    Ok((settings, vec![version_why, compression_why, gc_why]))
}
