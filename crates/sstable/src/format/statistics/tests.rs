use halcyon_model::clustering::Position;
use halcyon_model::{BoundKind, DeletionTime, Liveness};

use super::collector::Provenance;
use super::covered::CoveredClustering;
use super::header::{HeaderColumn, HeaderType};
use super::mutation::{Mutation, RepairState, mutate};
use super::stats::CommitLogPosition;
use super::*;
use crate::format::testing::{check_bytes, survives_corruption};

const MARSHAL: &str = "org.apache.cassandra.db.marshal.";

fn header_type(name: &str) -> HeaderType {
    HeaderType::parse(&format!("{MARSHAL}{name}")).expect("type")
}

fn header() -> SerializationHeader {
    let column = |name: &str, t| HeaderColumn { name: name.into(), column_type: header_type(t) };
    SerializationHeader {
        min_timestamp: 1_700_000_000_000_000,
        min_local_deletion_time: 1_700_000_000,
        static_columns: vec![column("s", "UTF8Type")],
        regular_columns: vec![column("v", "Int32Type"), column("w", "LongType")],
        ..SerializationHeader::new(
            header_type("Int32Type"),
            vec![header_type("UTF8Type"), header_type("Int32Type")],
        )
    }
}

fn position(kind: BoundKind, count: usize, serialized: &[u8]) -> Position<'_> {
    Position { kind, count, serialized }
}

/// Three partitions with a row, a range tombstone and a partition deletion.
fn sample() -> Statistics {
    let header = header();
    let mut collector = MetadataCollector::new(header.clusterings());
    collector.liveness(&Liveness { timestamp: 50, ..Liveness::EMPTY });
    collector.cells([(60, 0, u32::MAX), (55, 100, 1_700_000_100)].into_iter());
    collector.row(2);
    collector.cover(position(BoundKind::Clustering, 2, b"\0\x01m\0\0\0\x07"));
    collector.end_partition(&[0, 0, 0, 1], 60);
    collector
        .deletion(&DeletionTime { marked_for_delete_at: 70, local_deletion_time: 1_700_000_000 });
    collector.cover(position(BoundKind::ExclStart, 1, b"\0\x01a"));
    collector.cover(position(BoundKind::InclEnd, 1, b"\0\x01c"));
    collector.end_partition(&[0, 0, 0, 0], 40);
    collector.partition_deletion(&DeletionTime {
        marked_for_delete_at: 40,
        local_deletion_time: 1_700_000_001,
    });
    collector.end_partition(&[0, 0, 0, 2], 30);
    let mut provenance =
        Provenance::new("org.apache.cassandra.dht.Murmur3Partitioner".into(), 0.01);
    provenance.compression_ratio = Some(0.5);
    let at = |segment, position| CommitLogPosition { segment, position };
    provenance.commit_log_intervals = vec![(at(1, 2), at(3, 4)), (at(5, 6), at(7, 8))];
    provenance.originating_host_id = Some([9; 16]);
    collector.finish(header, provenance)
}

fn encoded(statistics: &Statistics, version: Version) -> Vec<u8> {
    let mut out = Vec::new();
    statistics.encode(version, &mut out);
    out
}

#[test]
fn collected_values() {
    let stats = sample().stats;
    assert_eq!((stats.min_timestamp, stats.max_timestamp), (40, 70));
    assert_eq!(stats.min_local_deletion_time, 1_700_000_000);
    assert_eq!(stats.max_local_deletion_time, u32::MAX);
    assert_eq!((stats.min_ttl, stats.max_ttl), (0, 100));
    assert_eq!((stats.total_columns_set, stats.total_rows), (2, 1));
    assert!(stats.has_partition_level_deletions);
    let cells: Vec<_> = stats.cells_per_partition.buckets().filter(|b| b.1 > 0).collect();
    assert_eq!(cells, [(Some(1), 2), (Some(2), 1)]);
    assert_eq!(stats.covered.start.position().kind, BoundKind::ExclStart);
    assert_eq!(stats.covered.start.serialized, b"\0\x01a");
    assert_eq!(stats.covered.end.kind, BoundKind::InclEnd);
    assert_eq!(stats.covered.end.serialized, b"\0\x01m\0\0\0\x07");
    let points: Vec<u32> = stats.tombstone_drop_times.bins.iter().map(|bin| bin.count).collect();
    assert_eq!(points, [2, 1]);
    assert_eq!(stats.first_key.as_deref(), Some(&[0, 0, 0, 1][..]));
    assert_eq!(stats.last_key.as_deref(), Some(&[0, 0, 0, 2][..]));
}

#[test]
fn collected_from_nothing() {
    let header = header();
    let collector = MetadataCollector::new(header.clusterings());
    let stats = collector.finish(header, Provenance::new(String::new(), 0.1)).stats;
    assert_eq!((stats.min_timestamp, stats.max_timestamp), (i64::MIN, i64::MAX));
    assert_eq!(stats.min_local_deletion_time, u32::MAX);
    assert_eq!(stats.max_local_deletion_time, u32::MAX);
    assert_eq!((stats.min_ttl, stats.max_ttl), (0, 0));
    assert_eq!(stats.covered, CoveredClustering::nothing(stats.covered.types.clone()));
}

/// Decoded statistics encode to the same bytes, in every version whose clustering bounds are correct.
#[test]
fn every_version_round_trips() {
    for version in Version::ALL {
        let bytes = encoded(&sample(), version);
        let decoded = check_bytes(&bytes, |c| Statistics::decode(c, version));
        assert_eq!(decoded.header, sample().header);
        if version.has_accurate_min_max() {
            assert_eq!(encoded(&decoded, version), bytes, "{version}");
        }
        assert_eq!(decoded.compaction.expect("sketch").cardinality().expect("sound").estimate(), 3);
    }
}

/// From `na` on each changed byte is noticed, in the part that checksums cover: all of it.
#[test]
fn corruption_is_survived() {
    for version in [Version::MA, Version::ME, Version::NB, Version::OA] {
        let bytes = encoded(&sample(), version);
        let unnoticed = survives_corruption(&bytes, |c| Statistics::decode(c, version));
        assert_eq!(unnoticed == 0, version.has_metadata_checksum(), "{version}: {unnoticed}");
    }
}

/// Rows are read without the sketch of the keys; a new Statistics.db leaves it out, and does not give it a checksum.
#[test]
fn a_damaged_sketch_is_left_out() {
    for version in [Version::NB, Version::OA] {
        let mut bytes = encoded(&sample(), version);
        let contents = decode_contents(&mut Cursor::new(&bytes), version).expect("sound");
        let sketch = contents.iter().find(|(kind, _)| *kind == Kind::Compaction).expect("sketch");
        bytes[sketch.1.end - 1] ^= 1;
        let mut cursor = Cursor::new(&bytes);
        let read = Statistics::decode(&mut cursor, version).expect("readable");
        let without = Statistics { compaction: None, ..sample() };
        assert_eq!(encoded(&read, version), encoded(&without, version), "{version}");
        assert!(matches!(cursor.remarks(), [remark] if remark.is_damage), "{:?}", cursor.remarks());
        let changed = mutate(&bytes, version, Mutation::default()).expect("readable");
        assert_eq!(changed, encoded(&without, version));
    }
}

/// Behind the checksums too: components with a changed byte and a checksum that holds.
#[test]
fn corruption_within_components_is_survived() {
    let Statistics { stats, header, validation, .. } = sample();
    for version in Version::ALL {
        let mut bytes = Vec::new();
        stats.encode(version, &mut bytes);
        let types = &header.clustering_types;
        survives_corruption(&bytes, |c| {
            let stats = Stats::decode(c, version, types)?;
            stats.encode(version, &mut Vec::new());
            Ok((stats.partition_sizes.percentile(0.5), stats.partition_sizes.mean()))
        });
    }
    let mut bytes = Vec::new();
    header.encode(&mut bytes);
    survives_corruption(&bytes, |c| {
        SerializationHeader::decode(c).map(|header| header.encode(&mut Vec::new()))
    });
    let validation = encoded_validation(&validation.expect("validation"));
    survives_corruption(&validation, Validation::decode);
    survives_corruption(&[0, 0, 0, 2, 7, 7], decode_compaction);
}

fn encoded_validation(validation: &Validation) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.put_utf(&validation.partitioner);
    bytes.put_f64(validation.bloom_filter_fp_chance);
    bytes
}

#[test]
fn mutation_keeps_the_rest() {
    for version in Version::ALL {
        let bytes = encoded(&sample(), version);
        let same = mutate(&bytes, version, Mutation::default()).expect("sound");
        assert_eq!(same, bytes);
        let pending_repair = version.has_pending_repair().then_some([7; 16]);
        let is_transient = version.has_is_transient();
        let repair = RepairState { repaired_at: 123, pending_repair, is_transient };
        let mutation = Mutation { level: Some(3), repair: Some(repair) };
        let changed = mutate(&bytes, version, mutation).expect("sound");
        let mut expected = check_bytes(&bytes, |c| Statistics::decode(c, version));
        expected.stats.level = 3;
        expected.stats.repaired_at = 123;
        expected.stats.pending_repair = pending_repair;
        expected.stats.is_transient = is_transient;
        let found = check_bytes(&changed, |c| Statistics::decode(c, version));
        assert_eq!(format!("{found:?}"), format!("{expected:?}"), "{version}");
        let undone = RepairState { repaired_at: 0, pending_repair: None, is_transient: false };
        let undone = Mutation { level: Some(0), repair: Some(undone) };
        assert_eq!(mutate(&changed, version, undone).expect("sound"), bytes);
    }
    let pending =
        RepairState { repaired_at: 0, pending_repair: Some([1; 16]), is_transient: false };
    let mutation = Mutation { level: None, repair: Some(pending) };
    assert!(mutate(&encoded(&sample(), Version::MA), Version::MA, mutation).is_err());
}
