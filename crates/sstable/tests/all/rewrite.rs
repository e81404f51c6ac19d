//! Reads every SSTable that Cassandra wrote and writes it again, with the same header: the data must come out byte for
//! byte, and so must every component that does not depend on estimates.
//!
//! Runs over `testdata/`, or over the folder that `HALCYON_CORPUS` names.

use std::path::Path;

use halcyon_io::{AccessMode, Disk, Purpose, block_on};
use halcyon_model::options::Compression;
use halcyon_sstable::format::statistics::collector::Provenance;
use halcyon_sstable::{
    Bases, Component, Descriptor, Effort, ExpirationOverflow, OpenOptions, Result, SSTable,
    SSTableId, SSTableWriter, ScanOptions, WriterOptions,
};
use halcyon_stream::FragmentStream;

use crate::corpus::{corpus, sstables_below};

fn options(sstable: &SSTable, keys: u64) -> WriterOptions {
    let stats = &sstable.statistics().stats;
    let compression = sstable.compression().map(|info| {
        let (length, max) = (info.chunk_length, info.max_compressed_length);
        Compression::of_file(&info.compressor, &info.options, length, max).expect("known")
    });
    let validation = sstable.statistics().validation.as_ref().expect("validation");
    let mut provenance =
        Provenance::new(validation.partitioner.clone(), validation.bloom_filter_fp_chance);
    provenance.repaired_at = stats.repaired_at;
    provenance.originating_host_id = stats.originating_host_id;
    provenance.commit_log_intervals = stats.commit_log_intervals.clone();
    WriterOptions {
        mode: AccessMode::Standard,
        purpose: Purpose::Flush,
        buffer_size: 1 << 20,
        expected_length: 0,
        compression,
        effort: Effort::Default,
        estimated_keys: keys,
        min_index_interval: 128,
        column_index_size: None,
        own_thread: false,
        read_back: false,
        expiration_overflow: ExpirationOverflow::Reject,
        provenance,
    }
}

async fn rewrite(disk: &Disk, source: &Descriptor, to: &Path) -> Result<SSTable> {
    let sstable = SSTable::open(disk, source, OpenOptions::default()).await?;
    let mut keys = 0;
    let mut scan = sstable.scan(disk, ScanOptions::default()).await?;
    while scan.advance().await? {
        keys += u64::from(matches!(scan.fragment(), halcyon_stream::Fragment::Start(_)));
    }
    let header = &sstable.statistics().header;
    let bases = Bases {
        timestamp: header.min_timestamp,
        local_deletion_time: header.min_local_deletion_time,
        ttl: header.min_ttl,
    };
    let descriptor = Descriptor::new(to, source.version, SSTableId::Sequence(1));
    let layout = sstable.layout().clone();
    let options = options(&sstable, keys);
    let mut writer = SSTableWriter::create(disk, descriptor, layout, bases, options).await?;
    let mut scan = sstable.scan(disk, ScanOptions::default()).await?;
    while scan.advance().await? {
        writer.append(scan.fragment())?;
        if writer.wants_drain() {
            writer.drain().await?;
        }
    }
    let written = writer.seal().await?;
    SSTable::open(disk, &written.descriptor, OpenOptions::default()).await
}

/// A simulated disk with the files of one SSTable.
async fn in_memory(source: &Descriptor) -> Disk {
    let (disk, _) = Disk::simulated(1);
    disk.create_dir_all(&source.directory).await.expect("creates a folder");
    for entry in std::fs::read_dir(&source.directory).expect("readable folder").flatten() {
        if entry.file_name().to_string_lossy().starts_with(&source.file_prefix()) {
            let bytes = std::fs::read(entry.path()).expect("readable file");
            disk.write_new(&entry.path(), &bytes, Purpose::Flush).await.expect("copies a file");
        }
    }
    disk
}

/// The uncompressed data of an SSTable.
async fn data(disk: &Disk, sstable: &SSTable) -> Vec<u8> {
    sstable.read_data(disk).await.unwrap_or_else(|e| panic!("{e}"))
}

fn first_difference(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).position(|(x, y)| x != y).unwrap_or(a.len().min(b.len()))
}

#[test]
fn what_cassandra_wrote_is_written_again_byte_for_byte() {
    let mut sources = Vec::new();
    sstables_below(&corpus(), &mut sources);
    assert!(sources.len() > 20, "golden files are missing");
    let mut failures = Vec::new();
    for source in &sources {
        failures.extend(block_on(async {
            let disk = in_memory(source).await;
            let to = Path::new("/rewritten");
            disk.create_dir_all(to).await.expect("creates a folder");
            compare(&disk, source, to).await
        }));
    }
    assert!(failures.is_empty(), "{} differences:\n{}", failures.len(), failures.join("\n"));
}

async fn compare(disk: &Disk, source: &Descriptor, to: &Path) -> Vec<String> {
    let original = match SSTable::open(disk, source, OpenOptions::default()).await {
        Ok(sstable) => sstable,
        Err(e) => return vec![format!("{source}: {e}")],
    };
    let written = match rewrite(disk, source, to).await {
        Ok(sstable) => sstable,
        Err(e) => return vec![format!("{source}: {e}")],
    };
    let mut failures = Vec::new();
    let (was, is) = (data(disk, &original).await, data(disk, &written).await);
    if was != is {
        let at = first_difference(&was, &is);
        let around = |bytes: &[u8]| {
            format!("{:02x?}", &bytes[at.saturating_sub(8)..bytes.len().min(at + 24)])
        };
        failures.push(format!(
            "{source}: data differs at {at} of {}\n  {}\n  {}",
            was.len(),
            around(&was),
            around(&is)
        ));
        return failures;
    }
    for component in [
        Component::Index,
        Component::Partitions,
        Component::Rows,
        Component::Summary,
        Component::Toc,
        Component::Crc,
        Component::Filter,
    ] {
        // Cassandra sizes the filter of a compaction by estimates of its inputs.
        let by_estimate = component == Component::Filter && source.directory.ends_with("compacted");
        if !original.has(component) || by_estimate {
            continue;
        }
        let read = async |d: &Descriptor| disk.read(&d.component_path(component), 1 << 30).await;
        let (was, is) =
            (read(source).await.expect("reads"), read(written.descriptor()).await.expect("reads"));
        // Cassandra's compaction ends with one more chunk, an empty one, whose CRC is 0.
        let was = match was.strip_suffix(&[0; 4]) {
            Some(shorter) if component == Component::Crc && was.len() != is.len() => shorter,
            _ => &was,
        };
        if was != is {
            let at = first_difference(was, &is);
            failures.push(format!(
                "{source}: {component} differs at {at} of {} ({})",
                was.len(),
                is.len()
            ));
        }
    }
    let (was, is) = (original.statistics(), written.statistics());
    if was.header != is.header {
        failures.push(format!("{source}: headers differ\n  {:?}\n  {:?}", was.header, is.header));
    }
    let comparable = |s: &halcyon_sstable::format::statistics::Statistics| {
        let mut stats = s.stats.clone();
        stats.compression_ratio = 0.0;
        stats.token_space_coverage = 0.0;
        format!("{stats:#?}")
    };
    let (was_text, is_text) = (comparable(was), comparable(is));
    for (a, b) in was_text.lines().zip(is_text.lines()).filter(|(a, b)| a != b).take(3) {
        failures.push(format!("{source}: statistics: {} / {}", a.trim(), b.trim()));
    }
    failures
}
