//! What a merge reads through the thread that reads ahead is what the SSTable has.

use std::path::Path;
use std::sync::Arc;

use halcyon_io::{Disk, Fault, FaultRule, Operation, SimDisk, StreamOptions, block_on};
use halcyon_model::options::{Compression, CompressorKind};
use halcyon_model::{Clusterings, CqlType, DeletionTime, NO_DELETION_TIME, NO_TTL, Partitioner};
use halcyon_sstable::{
    Bases, Descriptor, OpenOptions, ReadAhead, SSTable, SSTableId, SSTableScanner, SSTableWriter,
    ScanOptions, Version, scan_ahead,
};
use halcyon_stream::{
    Cell, Column, Fragment, FragmentStream, Layout, PartitionKey, PartitionStart, RowBuf, Span,
};

use crate::corpus::{sstables_below, testdata};
use crate::writing::options;

/// Larger than a block.
const LARGE: u64 = 700 << 10;

/// An SSTable of rows of a few bytes, of some chunks, and of more than a block.
async fn written(disk: &Disk, compression: Option<Compression>) -> Arc<SSTable> {
    let folder = Path::new("/ahead");
    disk.create_dir_all(folder).await.expect("creates a folder");
    let layout = Arc::new(Layout {
        partitioner: Partitioner::Murmur3,
        key_type: CqlType::Int,
        clusterings: Clusterings::new(&[]),
        clustering_types: Vec::new(),
        statics: Vec::new(),
        regulars: vec![Column::new(b"value".to_vec(), CqlType::Blob)],
    });
    let mut random = disk.runtime().random();
    let mut keys: Vec<_> = (0..60u32).map(|key| PartitionKey::of(&key.to_be_bytes())).collect();
    keys.sort_by(|a, b| layout.compare_keys(a, b));
    let descriptor = Descriptor::new(folder, Version::OA, SSTableId::Sequence(1));
    let options = options(&layout.partitioner, compression);
    let created = SSTableWriter::create(disk, descriptor, layout, Bases::NONE, options).await;
    let mut writer = created.expect("creates");
    for key in &keys {
        let start = PartitionStart { key, deletion: DeletionTime::LIVE };
        writer.append(Fragment::Start(start)).expect("in order");
        let most = [100, 20_000, LARGE][random.below(3) as usize];
        let length = random.below(most);
        let mut row = RowBuf::new();
        let bytes: Vec<u8> = (0..length).map(|_| random.below(200) as u8).collect();
        let value = row.store(&bytes);
        let (ttl, path) = (NO_TTL, Span::default());
        let local_deletion_time = NO_DELETION_TIME;
        row.parts.cells.push(Cell {
            column: 0,
            ttl,
            timestamp: 1,
            local_deletion_time,
            path,
            value,
        });
        writer.append(Fragment::Row(row.row())).expect("in order");
        writer.append(Fragment::End).expect("in order");
        writer.drain().await.expect("drains");
    }
    let sealed = writer.seal().await.expect("seals");
    let opened = SSTable::open(disk, &sealed.descriptor, OpenOptions::default()).await;
    Arc::new(opened.expect("opens"))
}

fn is_same(a: Fragment<'_>, b: Fragment<'_>) -> bool {
    match (a, b) {
        (Fragment::Start(a), Fragment::Start(b)) => (a.key, a.deletion) == (b.key, b.deletion),
        (Fragment::Row(a), Fragment::Row(b)) | (Fragment::Static(a), Fragment::Static(b)) => {
            (a.bytes, a.cells) == (b.bytes, b.cells)
        }
        (Fragment::Marker(a), Fragment::Marker(b)) => format!("{a:?}") == format!("{b:?}"),
        (Fragment::End, Fragment::End) => true,
        _ => false,
    }
}

/// Reads the SSTable as several inputs of a merge, in turn, and beside them as it is.
async fn compare(disk: &Disk, sstable: &Arc<SSTable>, inputs: usize) {
    let mut scanners = ahead(disk, sstable, inputs);
    let mut plain = sstable.scan(disk, ScanOptions::default()).await.expect("opens");
    loop {
        let advanced = plain.advance().await.expect("sound");
        for scanner in &mut scanners {
            assert_eq!(scanner.advance().await.expect("sound"), advanced);
            assert!(is_same(scanner.fragment(), plain.fragment()));
            assert_eq!(scanner.progress(), plain.progress());
        }
        if !advanced {
            break;
        }
    }
}

fn ahead(disk: &Disk, sstable: &Arc<SSTable>, inputs: usize) -> Vec<SSTableScanner<ReadAhead>> {
    let stream = StreamOptions::default().within(16 << 20, inputs);
    let options = ScanOptions { stream, ..ScanOptions::default() };
    scan_ahead(disk, std::iter::repeat_n(sstable, inputs), &options).expect("starts")
}

fn lz4(chunk_length: u32) -> Option<Compression> {
    let (kind, parameters) = (CompressorKind::Lz4, Vec::new());
    Some(Compression { kind, chunk_length, max_compressed_length: chunk_length, parameters })
}

fn simulated(compression: Option<Compression>, seed: u64) -> (Disk, SimDisk, Arc<SSTable>) {
    let (disk, simulated) = Disk::simulated(seed);
    let sstable = disk.runtime().block_on(written(&disk, compression));
    (disk, simulated, sstable)
}

/// Proves it of rows that span blocks, with blocks smaller and larger than a chunk, for few inputs and for many.
#[test]
fn rows_that_span_blocks_are_read_as_they_are() {
    for (seed, compression) in (0..).zip([None, lz4(4 << 10), lz4(64 << 10), lz4(1 << 20)]) {
        let (disk, _, sstable) = simulated(compression, seed);
        // Each input has a buffer for a chunk.
        let many = if seed == 3 { 10 } else { 200 };
        for inputs in [1, 3, many] {
            disk.runtime().block_on(compare(&disk, &sstable, inputs));
        }
    }
}

/// Proves it of what Cassandra wrote, with a thread of the system.
#[test]
fn what_cassandra_wrote_is_read_ahead() {
    let mut sources = Vec::new();
    sstables_below(&testdata(), &mut sources);
    let disk = Disk::real(halcyon_io::DiskOptions::default());
    for source in sources.iter().step_by(7) {
        block_on(async {
            let opened = SSTable::open(&disk, source, OpenOptions::default()).await;
            compare(&disk, &Arc::new(opened.expect("opens")), 2).await;
        });
    }
}

/// Proves that an error comes after what precedes it in the file, and names the file.
#[test]
fn an_error_comes_in_its_place() {
    let (disk, simulated, sstable) = simulated(lz4(4 << 10), 7);
    let mut read = Vec::new();
    for skip in [0, 2, 5] {
        let operation = Some(Operation::Read);
        simulated.fail_on(FaultRule { operation, skip, ..FaultRule::any(Fault::DeviceError) });
        read.push(disk.runtime().block_on(async {
            let mut scanner = ahead(&disk, &sstable, 1).remove(0);
            let failed = loop {
                match scanner.advance().await {
                    Ok(advanced) => assert!(advanced, "the end comes without an error"),
                    Err(e) => break e,
                }
            };
            assert!(failed.to_string().contains("/ahead/"), "{failed}");
            scanner.progress().0
        }));
        simulated.clear_faults();
    }
    assert!(read[0] == 0 && read[0] < read[1] && read[1] < read[2], "{read:?}");
}

/// Proves that the thread has ended, and holds no input, when the last scanner is dropped.
#[test]
fn the_thread_ends_with_its_scanners() {
    let mut sources = Vec::new();
    sstables_below(&testdata(), &mut sources);
    let disk = Disk::real(halcyon_io::DiskOptions::default());
    block_on(async {
        let opened = SSTable::open(&disk, &sources[0], OpenOptions::default()).await;
        let sstable = Arc::new(opened.expect("opens"));
        let mut scanners = ahead(&disk, &sstable, 5);
        assert!(scanners[0].advance().await.expect("sound"));
        drop(scanners);
        assert_eq!(Arc::strong_count(&sstable), 1);
    });
}
