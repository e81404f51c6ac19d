//! Files that Cassandra wrote: `testdata/`, and the corpus that the environment variable HALCYON_CORPUS names.
//!
//! Each component decodes with a meaning for every byte and encodes to the same bytes; filter, summary, sketch and
//! checksums computed from keys and data are the same; `sstablemetadata` says what was decoded.

use std::fs;
use std::path::{Path, PathBuf};

use halcyon_model::bytes::Cursor;
use halcyon_model::time::NO_DELETION_TIME;
use halcyon_model::token::{Partitioner, murmur3_hash};

use super::compression_info::CompressionInfo;
use super::crc::{ChunkCrcs, ChunkCrcsBuilder};
use super::descriptor::{Component, Descriptor};
use super::digest::Digest;
use super::filter::Filter;
use super::listing::{ListedSSTable, group};
use super::statistics::cardinality::Cardinality;
use super::statistics::header::HeaderColumn;
use super::statistics::histogram::EstimatedHistogram;
use super::statistics::mutation::{Mutation, mutate};
use super::statistics::{Compaction, Statistics};
use super::summary::{Summary, SummaryBuilder};
use super::testing::{check_bytes, survives_corruption};
use super::toc::Toc;
use super::version::Format;

fn roots() -> Vec<PathBuf> {
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
    std::iter::once(testdata).chain(std::env::var_os("HALCYON_CORPUS").map(PathBuf::from)).collect()
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<_> =
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// Every SSTable, with the folder of its dumps.
fn sstables() -> Vec<(ListedSSTable, PathBuf)> {
    let mut found = Vec::new();
    for root in roots() {
        for version in names(&root) {
            for table in names(&root.join(&version)) {
                let table = root.join(&version).join(table);
                for (kind, dumps) in [("sstables", "dumps"), ("compacted", "compacted-dumps")] {
                    let directory = table.join(kind);
                    let listing = group(&directory, names(&directory));
                    let dumps = table.join(dumps);
                    found.extend(listing.sstables.into_iter().map(|s| (s, dumps.clone())));
                }
            }
        }
    }
    assert!(found.len() > 100, "{} SSTables below {:?}", found.len(), roots());
    found
}

fn read(descriptor: &Descriptor, component: Component) -> Vec<u8> {
    let path = descriptor.component_path(component);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn statistics(descriptor: &Descriptor) -> Statistics {
    let bytes = read(descriptor, Component::Statistics);
    Statistics::decode(&mut Cursor::new(&bytes), descriptor.version).expect("sound")
}

/// Keys of Index.db and the offsets of their entries.
fn index_entries(descriptor: &Descriptor) -> Vec<(Vec<u8>, u64)> {
    let bytes = read(descriptor, Component::Index);
    let mut cursor = Cursor::new(&bytes);
    let mut entries = Vec::new();
    while cursor.remaining() > 0 {
        let at = cursor.offset();
        let key = cursor.sbytes().expect("key").to_vec();
        cursor.uvint().expect("position");
        let promoted = cursor.count().expect("size");
        cursor.take(promoted).expect("promoted index");
        entries.push((key, at));
    }
    entries
}

fn encoded(encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    encode(&mut out);
    out
}

#[test]
fn statistics_are_cassandras() {
    for (ListedSSTable { descriptor, .. }, _) in sstables() {
        let version = descriptor.version;
        let bytes = read(&descriptor, Component::Statistics);
        let decoded = check_bytes(&bytes, |c| Statistics::decode(c, version));
        assert_eq!(encoded(|out| decoded.encode(version, out)), bytes, "{descriptor}");
        let unchanged = mutate(&bytes, version, Mutation::default()).expect("sound");
        assert_eq!(unchanged, bytes, "{descriptor}");
        let compaction = decoded.compaction.expect("sketch");
        let cardinality = compaction.cardinality().expect("sound sketch");
        assert_eq!(Compaction::new(&cardinality), compaction, "{descriptor}");
        if version.format == Format::Bti {
            continue;
        }
        let entries = index_entries(&descriptor);
        let mut again = Cardinality::default();
        entries.iter().for_each(|(key, _)| again.add_key(key));
        assert_eq!(Compaction::new(&again), compaction, "{descriptor}");
        let count = decoded.stats.partition_sizes.count();
        assert_eq!(count as usize, entries.len(), "{descriptor}");
        if version.has_key_range() {
            assert_eq!(decoded.stats.first_key.as_ref(), entries.first().map(|(key, _)| key));
            assert_eq!(decoded.stats.last_key.as_ref(), entries.last().map(|(key, _)| key));
        }
    }
}

#[test]
fn filters_are_cassandras() {
    for (sstable, _) in sstables() {
        let descriptor = &sstable.descriptor;
        let chance = statistics(descriptor).validation.expect("validation").bloom_filter_fp_chance;
        let made = Filter::for_keys(1, chance).expect("chance");
        assert_eq!(sstable.has(Component::Filter), made.is_some(), "{descriptor}");
        let Some(made) = made else { continue };
        let bytes = read(descriptor, Component::Filter);
        let filter = check_bytes(&bytes, |c| Filter::decode(c, descriptor.version));
        assert_eq!(encoded(|out| filter.encode(descriptor.version, out)), bytes, "{descriptor}");
        assert_eq!(filter.hash_count(), made.hash_count(), "{descriptor}");
        if descriptor.version.format == Format::Bti {
            continue;
        }
        let mut again = filter.cleared();
        let keys = index_entries(descriptor);
        let hashes: Vec<_> = keys.iter().map(|(key, _)| murmur3_hash(key)).collect();
        again.add_all(&hashes);
        assert!(again == filter, "{descriptor}");
    }
}

#[test]
fn summaries_are_cassandras() {
    for (sstable, _) in sstables().into_iter().filter(|(s, _)| s.has(Component::Summary)) {
        let descriptor = &sstable.descriptor;
        let bytes = read(descriptor, Component::Summary);
        let summary = check_bytes(&bytes, Summary::decode);
        let entries = index_entries(descriptor);
        let mut builder = SummaryBuilder::new(summary.min_index_interval);
        entries.iter().for_each(|(key, position)| builder.add(key, *position));
        let key = |entry: Option<&(Vec<u8>, u64)>| entry.expect("key").0.clone();
        let again = builder.finish(key(entries.first()), key(entries.last()));
        assert_eq!(encoded(|out| again.encode(out)), bytes, "{descriptor}");
        let validation = statistics(descriptor).validation.expect("validation");
        if Partitioner::parse(&validation.partitioner) == Ok(Partitioner::Murmur3) {
            for (i, (key, _)) in entries.iter().enumerate() {
                let key = Partitioner::Murmur3.decorate(key);
                assert_eq!(again.floor(&Partitioner::Murmur3, &key), Some(i / 128), "{descriptor}");
            }
        }
    }
}

/// Offsets delimit chunks whose checksums hold, and the lengths make the ratio that Cassandra computed.
#[test]
fn compression_infos_are_cassandras() {
    for (sstable, _) in sstables().into_iter().filter(|(s, _)| s.has(Component::CompressionInfo)) {
        let descriptor = &sstable.descriptor;
        let data = read(descriptor, Component::Data);
        let bytes = read(descriptor, Component::CompressionInfo);
        let length = data.len() as u64;
        let info = check_bytes(&bytes, |c| CompressionInfo::decode(c, descriptor.version, length));
        assert_eq!(encoded(|out| info.encode(descriptor.version, out)), bytes, "{descriptor}");
        let mut stored = 0;
        for i in 0..info.chunk_count() {
            let chunk = info.chunk(i).expect("chunk");
            let start = chunk.offset as usize;
            let (payload, rest) = data[start..].split_at(chunk.payload_length as usize);
            assert_eq!(
                halcyon_codec::crc32(payload).to_be_bytes(),
                rest[..4],
                "{descriptor} chunk {i}"
            );
            stored += payload.len();
            assert!(!chunk.is_raw || payload.len() >= chunk.data_length as usize);
        }
        let ratio = stored as f64 / info.data_length as f64;
        assert_eq!(statistics(descriptor).stats.compression_ratio, ratio, "{descriptor}");
    }
}

#[test]
fn checksums_and_contents_are_cassandras() {
    for (sstable, _) in sstables() {
        let descriptor = &sstable.descriptor;
        let data = read(descriptor, Component::Data);
        let bytes = read(descriptor, Component::Digest);
        let digest = check_bytes(&bytes, Digest::decode);
        assert_eq!(digest, Digest(halcyon_codec::crc32(&data)), "{descriptor}");
        assert_eq!(encoded(|out| digest.encode(out)), bytes);
        let bytes = read(descriptor, Component::Toc);
        let toc = check_bytes(&bytes, Toc::decode);
        assert_eq!(encoded(|out| toc.encode(out)), bytes);
        let present = sstable.components.iter().map(Component::to_string);
        assert_eq!(Toc::new(present.chain(sstable.extra.iter().cloned())), toc, "{descriptor}");
        for component in Component::of_format(descriptor.version.format) {
            assert!(!component.is_required(descriptor.version.format) || sstable.has(*component));
        }
        if sstable.has(Component::Crc) {
            let bytes = read(descriptor, Component::Crc);
            let mut builder = ChunkCrcsBuilder::default();
            builder.update(&data);
            let made = builder.finish().crcs;
            let found = check_bytes(&bytes, ChunkCrcs::decode).crcs;
            // A compaction of 5.0 to BTI ends with the checksum of no bytes.
            let (same, rest) = found.split_at(made.len());
            assert!(made == same && matches!(rest, [] | [0]), "{descriptor}: {found:?}");
        }
    }
}

/// One SSTable of each version: every cut and every changed byte of every component.
#[test]
fn corruption_is_survived() {
    let mut last = None;
    for (sstable, _) in sstables() {
        let descriptor = &sstable.descriptor;
        let version = descriptor.version;
        if last.replace(version) == Some(version) {
            continue;
        }
        let length = read(descriptor, Component::Data).len() as u64;
        for component in &sstable.components {
            let bytes = read(descriptor, *component);
            let unnoticed = match component {
                Component::Statistics => {
                    survives_corruption(&bytes, |c| Statistics::decode(c, version))
                }
                Component::CompressionInfo => {
                    survives_corruption(&bytes, |c| CompressionInfo::decode(c, version, length))
                }
                Component::Filter => survives_corruption(&bytes, |c| Filter::decode(c, version)),
                Component::Summary => survives_corruption(&bytes, Summary::decode),
                Component::Crc => survives_corruption(&bytes, ChunkCrcs::decode),
                Component::Digest => survives_corruption(&bytes, Digest::decode),
                Component::Toc => survives_corruption(&bytes, Toc::decode),
                _ => continue,
            };
            assert!(*component != Component::Statistics || unnoticed == 0, "{descriptor}");
        }
    }
}

/// `(bound, count)` of the rows of a histogram that `sstablemetadata` printed, and its percentiles.
fn printed_histogram(text: &str, title: &str) -> (Vec<(i64, i64)>, Vec<i64>) {
    let number = |text: &str| text.split_whitespace().next().and_then(|n| n.parse::<i64>().ok());
    let lines = || text.lines().skip_while(|line| line.trim_end() != title).skip(1);
    let rows = lines().take_while(|line| line.trim() != "Percentiles").filter_map(|line| {
        let (bound, rest) = line.split_once('|')?;
        Some((number(bound)?, number(rest)?))
    });
    let summary = lines().skip_while(|line| line.trim() != "Percentiles").skip(1).take(7);
    let summary = summary.map(|line| number(line.trim_start().split_once(' ').expect("label").1));
    (rows.collect(), summary.map(|n| n.expect("number")).collect())
}

fn check_histogram(histogram: &EstimatedHistogram, text: &str, title: &str) {
    let (rows, summary) = printed_histogram(text, title);
    let filled = histogram.buckets().filter(|(_, count)| *count > 0);
    let filled: Vec<_> = filled.map(|(bound, count)| (bound.expect("bound"), count)).collect();
    assert_eq!(filled, rows, "{title}");
    let mut expected: Vec<i64> =
        [0.5, 0.75, 0.95, 0.98, 0.99].iter().map(|p| histogram.percentile(*p)).collect();
    let (min, max) = histogram.extremes().expect("values");
    expected.extend([min, max]);
    assert_eq!(expected, summary, "{title}");
}

fn columns(columns: &[HeaderColumn]) -> String {
    let spelled = columns.iter().map(|column| {
        format!("{}:{}", String::from_utf8_lossy(&column.name), column.column_type.text())
    });
    sorted(&spelled.collect::<Vec<_>>().join(", "))
}

/// Columns are printed in no order.
fn sorted(list: &str) -> String {
    let mut parts: Vec<&str> = list.split(", ").collect();
    parts.sort_unstable();
    parts.join(", ")
}

/// Lines of `sstablemetadata` in the form in which `metadata_of` reduces them.
fn lines_of(statistics: &Statistics, descriptor: &Descriptor) -> Vec<(&'static str, String)> {
    let Statistics { validation, compaction, stats, header } = statistics;
    let validation = validation.as_ref().expect("validation");
    let time = |time: u32| match time {
        NO_DELETION_TIME => i64::MAX.to_string(),
        some => some.to_string(),
    };
    let uuid = |uuid: Option<[u8; 16]>| {
        uuid.map_or("--".to_string(), |uuid| format!("{:032x}", u128::from_be_bytes(uuid)))
    };
    let positions = stats.commit_log_intervals.iter().map(|(start, end)| {
        let one = |p: &super::statistics::stats::CommitLogPosition| {
            format!("CommitLogPosition(segmentId={}, position={})", p.segment, p.position)
        };
        format!("{}={}", one(start), one(end))
    });
    let positions = positions.collect::<Vec<_>>().join(", ");
    let types: Vec<&str> = header.clustering_types.iter().map(|t| t.text()).collect();
    let sketch = compaction.as_ref().expect("sketch").cardinality().expect("sound");
    let mut lines = vec![
        ("Partitioner", validation.partitioner.clone()),
        ("Minimum timestamp", stats.min_timestamp.to_string()),
        ("Maximum timestamp", stats.max_timestamp.to_string()),
        ("SSTable min local deletion time", time(stats.min_local_deletion_time)),
        ("SSTable max local deletion time", time(stats.max_local_deletion_time)),
        ("TTL min", stats.min_ttl.to_string()),
        ("TTL max", stats.max_ttl.to_string()),
        ("SSTable Level", stats.level.to_string()),
        ("Repaired at", stats.repaired_at.to_string()),
        ("Originating host id", uuid(stats.originating_host_id)),
        ("Pending repair", uuid(stats.pending_repair)),
        ("Replay positions covered", format!("{{{positions}}}")),
        ("totalColumnsSet", stats.total_columns_set.to_string()),
        ("totalRows", stats.total_rows.to_string()),
        ("EncodingStats minTTL", header.min_ttl.to_string()),
        ("EncodingStats minLocalDeletionTime", header.min_local_deletion_time.to_string()),
        ("EncodingStats minTimestamp", header.min_timestamp.to_string()),
        ("KeyType", header.key_type.text().to_string()),
        ("ClusteringTypes", format!("[{}]", types.join(", "))),
        ("StaticColumns", columns(&header.static_columns)),
        ("RegularColumns", columns(&header.regular_columns)),
        ("IsTransient", stats.is_transient.to_string()),
        ("Estimated cardinality", sketch.estimate().to_string()),
    ];
    let murmur3 = Partitioner::parse(&validation.partitioner) == Ok(Partitioner::Murmur3);
    if murmur3 && descriptor.version.has_key_range() {
        let token = |key: &Option<Vec<u8>>| {
            Partitioner::Murmur3.token(key.as_deref().unwrap_or_default()).0.to_string()
        };
        lines.push(("First token", token(&stats.first_key)));
        lines.push(("Last token", token(&stats.last_key)));
    }
    lines
}

/// The value of a line, reduced to the number where the line also spells it in words.
fn metadata_of(text: &str, label: &str) -> String {
    let line = text.lines().find_map(|line| line.strip_prefix(label)?.strip_prefix(':'));
    let value = line.unwrap_or_else(|| panic!("no line {label:?}")).trim();
    match label {
        "Originating host id" | "Pending repair" if value != "--" => value.replace('-', ""),
        "TTL min" | "TTL max" | "EncodingStats minTTL" | "First token" | "Last token" => {
            value.split(' ').next().unwrap_or_default().to_string()
        }
        // 5.0 prints times after 2038 as signed 32-bit numbers.
        "EncodingStats minLocalDeletionTime" => {
            let number: i64 = number_in(value).parse().expect("number");
            (number as u32).to_string()
        }
        _ if label.ends_with("deletion time") || label.starts_with("Encoding") => number_in(value),
        "Minimum timestamp" | "Maximum timestamp" => number_in(value),
        "StaticColumns" | "RegularColumns" => sorted(value),
        _ => value.to_string(),
    }
}

/// The number in brackets, or the whole.
fn number_in(value: &str) -> String {
    let inner = value.rsplit_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
    inner.unwrap_or(value).to_string()
}

#[test]
fn sstablemetadata_says_the_same() {
    for (ListedSSTable { descriptor, .. }, dumps) in sstables() {
        let name = descriptor.file_prefix();
        let dump = dumps.join(format!("{}.metadata.txt", name.trim_end_matches('-')));
        let Ok(text) = fs::read_to_string(&dump) else { panic!("{} is missing", dump.display()) };
        let statistics = statistics(&descriptor);
        for (label, value) in lines_of(&statistics, &descriptor) {
            assert_eq!(value, metadata_of(&text, label), "{descriptor} {label}");
        }
        let stats = &statistics.stats;
        let printed = printed_histogram(&text, "Estimated tombstone drop times:").0;
        let bins = stats.tombstone_drop_times.bins.iter();
        let bins: Vec<_> = bins.map(|bin| (i64::from(bin.point), i64::from(bin.count))).collect();
        assert_eq!(bins, printed, "{descriptor}");
        check_histogram(&stats.partition_sizes, &text, "Partition Size:");
        check_histogram(&stats.cells_per_partition, &text, "Column Count:");
    }
}
