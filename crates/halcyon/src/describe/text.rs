//! Prints a description as text.

use halcyon_model::clustering::ClusteringValue;
use halcyon_model::options::compression::NO_MAX_COMPRESSED_LENGTH;
use halcyon_model::value::{to_cql_literal, to_string};
use halcyon_model::{BoundKind, CqlType, NO_DELETION_TIME};
use halcyon_sstable::format::statistics::covered::ClusteringBound;
use halcyon_sstable::format::statistics::header::HeaderColumn;
use halcyon_sstable::format::statistics::histogram::EstimatedHistogram;
use halcyon_sstable::{Format, Version};
use halcyon_tools::describe::{Description, key_text};

use crate::bars::{self, Bucket};
use halcyon_model::units;

/// One line of a description.
fn line(out: &mut String, name: &str, value: impl std::fmt::Display) {
    push(out, format_args!("  {name:<26} {value}"));
}

fn push(out: &mut String, text: impl std::fmt::Display) {
    out.push_str(&text.to_string());
    out.push('\n');
}

pub(super) fn of(d: &Description<'_>) -> String {
    let mut text = String::new();
    let out = &mut text;
    push(out, &d.listed.descriptor);
    line(out, "table", d.table);
    line(
        out,
        "version",
        format_args!("{}, written by {}", version_name(d), writer_of(d.listed.descriptor.version)),
    );
    files(out, d);
    data(out, d);
    filter(out, d);
    keys(out, d);
    times(out, d);
    origin(out, d);
    header(out, d);
    histograms(out, d);
    text
}

fn version_name(d: &Description<'_>) -> String {
    let version = d.listed.descriptor.version;
    let format = if version.format == Format::Big { "BIG" } else { "BTI" };
    format!("{version} ({format})")
}

fn writer_of(version: Version) -> &'static str {
    match version.letters[0] {
        b'm' => "Cassandra 3",
        b'n' => "Cassandra 4 (or 5.0 in its compatibility mode)",
        b'o' | b'd' => "Cassandra 5.0",
        _ => "Cassandra 6.0",
    }
}

fn files(out: &mut String, d: &Description<'_>) {
    push(out, "  files");
    for (name, size) in &d.files {
        let unlisted = d.toc.as_ref().is_some_and(|toc| !toc.contains(name));
        let mark = if unlisted { "   (TOC.txt does not list it)" } else { "" };
        push(
            out,
            format_args!(
                "    {name:<24} {:>10}  {:>14} B{mark}",
                units::bytes(*size),
                units::count(*size)
            ),
        );
    }
    for name in d.toc.iter().flatten().filter(|name| !d.files.iter().any(|(n, _)| n == *name)) {
        push(out, format_args!("    {name:<24} MISSING: TOC.txt lists it"));
    }
    if d.toc.is_none() {
        push(out, "    TOC.txt                  missing; the files in the folder count");
    }
}

fn data(out: &mut String, d: &Description<'_>) {
    let sstable = &d.sstable;
    line(out, "data", format_args!("{} B uncompressed", units::count(sstable.data_length())));
    let Some(info) = sstable.compression() else {
        line(out, "compression", "none (checksums in CRC.db)");
        return;
    };
    let options: Vec<String> = info.options.iter().map(|(k, v)| format!(", {k}={v}")).collect();
    let chunk = units::bytes(u64::from(info.chunk_length));
    line(
        out,
        "compression",
        format_args!("{}{}, {chunk} chunks", info.compressor, options.concat()),
    );
    let raw = (0..info.chunk_count()).filter_map(|i| info.chunk(i)).filter(|c| c.is_raw).count();
    let chunks = units::count(info.chunk_count() as u64);
    line(
        out,
        "chunks",
        format_args!("{chunks}, of which {} are stored uncompressed", units::count(raw as u64)),
    );
    if info.max_compressed_length != NO_MAX_COMPRESSED_LENGTH {
        line(
            out,
            "max compressed length",
            format_args!(
                "{} B: what compresses less is stored as it is",
                info.max_compressed_length
            ),
        );
    }
    if let Some(dictionary) = &info.dictionary {
        line(
            out,
            "dictionary",
            format_args!("id {}, {}", dictionary.id, units::bytes(dictionary.bytes.len() as u64)),
        );
    }
    line(out, "compression ratio", sstable.statistics().stats.compression_ratio);
}

fn filter(out: &mut String, d: &Description<'_>) {
    let wanted = d.sstable.statistics().validation.as_ref().map(|v| v.bloom_filter_fp_chance);
    match (&d.filter, d.filter_bits()) {
        (Some(filter), Some(bits)) if bits > 0 => {
            let keys = d.sstable.estimated_keys().max(1);
            let hashes = f64::from(filter.hash_count());
            let chance = (1.0 - (-hashes * keys as f64 / bits as f64).exp()).powf(hashes);
            line(
                out,
                "Bloom filter",
                format_args!(
                    "{} bits, {} hashes: about {:.1} bits a key, false positives {:.4} (asked for {})",
                    units::count(bits),
                    filter.hash_count(),
                    bits as f64 / keys as f64,
                    chance,
                    wanted.unwrap_or(f64::NAN)
                ),
            );
        }
        _ => line(out, "Bloom filter", "none: every key may be in it"),
    }
}

fn keys(out: &mut String, d: &Description<'_>) {
    let statistics = d.sstable.statistics();
    let layout = d.sstable.layout();
    if let Some(validation) = &statistics.validation {
        line(out, "partitioner", &validation.partitioner);
    }
    line(out, "partitions", format_args!("about {}", units::count(d.sstable.estimated_keys())));
    let shown = |key: &[u8]| {
        let token = layout.partitioner.token(key).0;
        format!("{} (token {token})", key_text(&layout.key_type, key))
    };
    if let (Some(first), Some(last)) = (&statistics.stats.first_key, &statistics.stats.last_key) {
        line(out, "first key", shown(first));
        line(out, "last key", shown(last));
    }
    let stats = &statistics.stats;
    line(out, "rows", units::count(u64::try_from(stats.total_rows).unwrap_or(0)));
    line(out, "columns set", units::count(u64::try_from(stats.total_columns_set).unwrap_or(0)));
    let (start, end) = (&stats.covered.start, &stats.covered.end);
    line(out, "covered clusterings", format_args!("{} to {}", bound(d, start), bound(d, end)));
}

fn bound(d: &Description<'_>, bound: &ClusteringBound) -> String {
    let layout = d.sstable.layout();
    let values = layout.clusterings.values(&bound.serialized, usize::from(bound.count));
    let values: Vec<String> = values
        .zip(&layout.clustering_types)
        .map(|(value, t)| match value {
            ClusteringValue::Null => "null".to_owned(),
            ClusteringValue::Bytes(bytes) => to_cql_literal(t, bytes),
        })
        .collect();
    if values.is_empty() {
        return if bound.kind.opens() { "the first" } else { "the last" }.to_owned();
    }
    let inclusive =
        matches!(bound.kind, BoundKind::InclStart | BoundKind::InclEnd | BoundKind::Clustering);
    format!("({}){}", values.join(", "), if inclusive { "" } else { " exclusive" })
}

fn times(out: &mut String, d: &Description<'_>) {
    let stats = &d.sstable.statistics().stats;
    let micros = |t: i64| format!("{t} ({})", units::micros_as_instant(t));
    line(
        out,
        "timestamps",
        format_args!("{} to {}", micros(stats.min_timestamp), micros(stats.max_timestamp)),
    );
    let seconds = |t: u32| match t {
        NO_DELETION_TIME => "none".to_owned(),
        t => format!("{t} ({})", units::seconds_as_instant(t)),
    };
    let (min, max) = (stats.min_local_deletion_time, stats.max_local_deletion_time);
    line(out, "local deletion times", format_args!("{} to {}", seconds(min), seconds(max)));
    line(out, "TTL", format_args!("{} to {} s", stats.min_ttl, stats.max_ttl));
    line(
        out,
        "droppable tombstones",
        format_args!("{:.3} of all cells, if gc_grace_seconds were 0", d.droppable_ratio()),
    );
}

fn origin(out: &mut String, d: &Description<'_>) {
    let stats = &d.sstable.statistics().stats;
    line(out, "level", stats.level);
    match stats.repaired_at {
        0 => line(out, "repaired", "no"),
        at => line(out, "repaired", units::micros_as_instant(at.saturating_mul(1000))),
    }
    let uuid = |id: &[u8; 16]| to_string(&CqlType::Uuid, id);
    if let Some(id) = &stats.pending_repair {
        line(out, "pending repair", uuid(id));
    }
    if stats.is_transient {
        line(out, "transient", "yes");
    }
    if let Some(id) = &stats.originating_host_id {
        line(out, "written by host", uuid(id));
    }
    for (start, end) in &stats.commit_log_intervals {
        line(
            out,
            "commit log",
            format_args!(
                "segment {} position {} to segment {} position {}",
                start.segment, start.position, end.segment, end.position
            ),
        );
    }
    if stats.has_legacy_counter_shards {
        line(out, "counters", "has local or remote shards of old Cassandra");
    }
    line(
        out,
        "partition deletions",
        if stats.has_partition_level_deletions { "some" } else { "none" },
    );
    if !stats.token_space_coverage.is_nan() {
        line(out, "token space coverage", stats.token_space_coverage);
    }
}

fn header(out: &mut String, d: &Description<'_>) {
    let header = &d.sstable.statistics().header;
    push(out, "  serialization header");
    push(
        out,
        format_args!(
            "    bases: timestamp {}, local deletion time {}, TTL {}",
            header.min_timestamp, header.min_local_deletion_time, header.min_ttl
        ),
    );
    push(out, format_args!("    partition key  {}", type_name(header.key_type.cql())));
    for t in &header.clustering_types {
        push(out, format_args!("    clustering     {}", type_name(t.cql())));
    }
    let mut columns = |kind: &str, columns: &[HeaderColumn]| {
        for c in columns {
            let name = String::from_utf8_lossy(&c.name);
            push(out, format_args!("    {kind:<14} {name} {}", type_name(c.column_type.cql())));
        }
    };
    columns("static", &header.static_columns);
    columns("regular", &header.regular_columns);
}

pub(super) fn type_name(cql_type: &CqlType) -> String {
    match cql_type {
        CqlType::Composite(parts) => {
            let parts: Vec<String> = parts.iter().map(CqlType::cql_name).collect();
            format!("({})", parts.join(", "))
        }
        CqlType::Reversed(base) => format!("{} desc", base.cql_name()),
        other => other.cql_name(),
    }
}

fn histograms(out: &mut String, d: &Description<'_>) {
    let stats = &d.sstable.statistics().stats;
    estimated(out, "partition size", &stats.partition_sizes, units::bytes);
    estimated(out, "cells a partition", &stats.cells_per_partition, units::count);
    let bins = &stats.tombstone_drop_times.bins;
    if bins.is_empty() {
        line(out, "tombstone drop times", "no tombstones, nothing expires");
        return;
    }
    let buckets: Vec<Bucket> = bins
        .iter()
        .map(|bin| Bucket {
            label: units::seconds_as_instant(bin.point),
            count: u64::from(bin.count),
        })
        .collect();
    out.push_str(&bars::draw("tombstone drop time", &buckets));
}

fn estimated(
    out: &mut String,
    what: &str,
    histogram: &EstimatedHistogram,
    unit: impl Fn(u64) -> String,
) {
    let positive = |n: i64| u64::try_from(n).unwrap_or(0);
    let mut below = 0;
    let mut buckets = Vec::new();
    for (bound, count) in histogram.buckets() {
        let label = match bound {
            Some(bound) => format!("{} -> {}", unit(below), unit(positive(bound))),
            None => format!("more than {}", unit(below)),
        };
        below = bound.map_or(below, positive);
        buckets.push(Bucket { label, count: positive(count) });
    }
    let drawn = bars::draw(what, &buckets);
    if drawn.is_empty() {
        line(out, what, "nothing recorded");
        return;
    }
    out.push_str(&drawn);
    let percentile = |p: f64| unit(positive(histogram.percentile(p)));
    push(
        out,
        format_args!(
            "  {what}: p50 {}, p75 {}, p95 {}, p98 {}, p99 {}, max {}",
            percentile(0.5),
            percentile(0.75),
            percentile(0.95),
            percentile(0.98),
            percentile(0.99),
            percentile(1.0)
        ),
    );
}
