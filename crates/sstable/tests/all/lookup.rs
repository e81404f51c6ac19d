//! Every key of every SSTable that Cassandra wrote is found, and no other.
//!
//! Runs over `testdata/`, or over the folder that `HALCYON_CORPUS` names.

use std::path::Path;
use std::sync::Arc;

use halcyon_io::{AccessMode, Disk, DiskOptions, Purpose, block_on};
use halcyon_sstable::read::{Budget, CacheSizes, ReadCaches, SSTableReader};
use halcyon_sstable::{
    Component, Descriptor, Format, IndexWalk, OpenOptions, Result, SSTable, ScanOptions,
};
use halcyon_stream::{Fragment, FragmentStream, PartitionKey, Slices};

use crate::corpus::{corpus, sstables_below};

async fn open(disk: &Disk, descriptor: &Descriptor) -> SSTable {
    let opened = SSTable::open(disk, descriptor, OpenOptions::default()).await;
    opened.unwrap_or_else(|e| panic!("{descriptor}: {e}"))
}

struct Reader {
    reader: SSTableReader,
    caches: ReadCaches,
}

impl Reader {
    async fn open(disk: &Disk, sstable: SSTable) -> Result<Reader> {
        let reader =
            SSTableReader::open(disk, Arc::new(sstable), disk.next_id(), AccessMode::Standard)
                .await?;
        let sizes = CacheSizes { chunks: 1 << 20, keys: 0 };
        let caches = ReadCaches::new(sizes, Budget::of(1 << 20)).without_keys();
        Ok(Reader { reader, caches })
    }

    /// One whose positions are made before anything is looked for.
    async fn walked(disk: &Disk, sstable: SSTable) -> Result<Reader> {
        let this = Reader::open(disk, sstable).await?;
        let budget = Budget::of(1 << 20);
        this.reader.make_positions(disk, AccessMode::Standard, &budget).await?;
        Ok(this)
    }

    /// One that keeps no positions.
    async fn open_without_positions(disk: &Disk, sstable: SSTable) -> Result<Reader> {
        Ok(Reader { caches: ReadCaches::of_one_pass(), ..Reader::open(disk, sstable).await? })
    }

    async fn find(&self, key: &[u8]) -> Result<Option<u64>> {
        let key = PartitionKey::of(key);
        if !self.reader.may_contain(&key) {
            return Ok(None);
        }
        let entry = self.reader.find(&self.caches, &key).await?;
        Ok(entry.map(|entry| entry.data_position))
    }
}

/// Keys and positions as Data.db has them.
async fn partitions(disk: &Disk, sstable: &SSTable) -> Vec<(Vec<u8>, u64)> {
    let mut scan = sstable.scan(disk, ScanOptions::default()).await.expect("scans");
    let mut found = Vec::new();
    while scan.advance().await.expect("sound") {
        if let Fragment::Start(start) = scan.fragment() {
            found.push((start.key.bytes.clone(), scan.partition_position()));
        }
    }
    found
}

/// Neighbours of a key in many orders, none of which is likely to be a key too.
fn strangers(key: &[u8]) -> Vec<Vec<u8>> {
    let mut changed = key.to_vec();
    if let Some(last) = changed.last_mut() {
        *last ^= 0x55;
    }
    let longer = [key, &[0]].concat();
    let shorter = key.get(..key.len().saturating_sub(1)).unwrap_or_default().to_vec();
    vec![changed, longer, shorter]
}

#[test]
fn every_key_is_found_and_no_other() {
    let mut descriptors = Vec::new();
    sstables_below(&corpus(), &mut descriptors);
    assert!(descriptors.len() > 20, "golden files are missing");
    let disk = Disk::real(DiskOptions::default());
    let (mut keys, mut absent) = (0, 0);
    block_on(async {
        for descriptor in &descriptors {
            let sstable = open(&disk, descriptor).await;
            let partitions = partitions(&disk, &sstable).await;
            let index = IndexWalk::open(&disk, &sstable, AccessMode::Auto).await.expect("opens");
            let again = async || open(&disk, descriptor).await;
            let walked = Reader::walked(&disk, again().await).await.expect("opens");
            let made = walked.reader.memory();
            let reader = Reader::open(&disk, sstable).await.expect("opens");
            let without = Reader::open_without_positions(&disk, again().await).await;
            for reader in [&reader, &walked, &without.expect("opens")] {
                for (key, position) in &partitions {
                    let found = reader.find(key).await.expect("sound");
                    assert_eq!(found, Some(*position), "{descriptor}");
                    for stranger in strangers(key) {
                        let expected = partitions.iter().find(|(key, _)| *key == stranger);
                        let found = reader.find(&stranger).await.expect("sound");
                        assert_eq!(found, expected.map(|(_, position)| *position), "{descriptor}");
                        absent += u32::from(found.is_none());
                    }
                    keys += 1;
                }
            }
            // The walk has made what the look-ups of all keys make, and they nothing more.
            assert_eq!(walked.reader.memory(), made, "{descriptor}");
            assert_eq!(reader.reader.memory(), made, "{descriptor}");
            let sources = index.sources();
            let mut walk = index.keys(&sources);
            for (key, position) in &partitions {
                let entry = walk.next().await.expect("sound").expect("as many as partitions");
                assert_eq!((entry.key, entry.data_position), (&key[..], *position));
            }
            assert_eq!(walk.next().await.expect("sound"), None, "{descriptor}");
        }
    });
    assert!(keys > 4000 && absent > 10_000, "{keys} keys, {absent} absent");
}

/// A partition that crosses from one chunk into the next is read at once, if the index says where the next one begins: when it is looked
/// for, and when its entry is known.
#[test]
fn two_chunks_are_one_read() {
    let mut descriptors = Vec::new();
    sstables_below(&corpus(), &mut descriptors);
    let disk = Disk::real(DiskOptions::default());
    for (format, least) in [(Format::Big, 101), (Format::Bti, 100)] {
        let mut reads = Vec::new();
        for descriptor in descriptors.iter().filter(|d| d.version.format == format) {
            reads.extend(block_on(reads_of_two_chunks(&disk, descriptor)));
        }
        let count = |wanted: fn(&(u64, u64)) -> bool| reads.iter().filter(|r| wanted(r)).count();
        let (at_once, of_entry) = (count(|reads| reads.0 == 1), count(|reads| reads.1 == 1));
        let apart = reads.len() - at_once;
        // The last one before a sample is read a chunk at a time.
        assert!(
            at_once >= least && apart * 20 < at_once,
            "{format:?}: {at_once} at once, {apart} apart"
        );
        assert!(of_entry >= at_once, "{format:?}: {of_entry} by their entries, {at_once} at once");
    }
}

/// How often the device is asked for partitions that are in two chunks, of which nothing was read before: each when it is looked for, and
/// when only its entry is known.
async fn reads_of_two_chunks(disk: &Disk, descriptor: &Descriptor) -> Vec<(u64, u64)> {
    let sstable = open(disk, descriptor).await;
    let Some(length) = sstable.compression().map(|info| u64::from(info.chunk_length)) else {
        return Vec::new();
    };
    let partitions = partitions(disk, &sstable).await;
    let reader = Arc::new(Reader::walked(disk, sstable).await.expect("opens").reader);
    let layout = reader.sstable().layout().clone();
    let sizes = CacheSizes { chunks: 1 << 20, keys: 0 };
    let mut all = Vec::new();
    for pair in partitions.windows(2) {
        let [(key, start), (_, next)] = pair else { continue };
        if (next - 1) / length != start / length + 1 {
            continue;
        }
        let caches = ReadCaches::new(sizes, Budget::of(1 << 20));
        if descriptor.version.format == Format::Bti {
            // Keys that are not there have the trie read, and next to nothing of the data.
            for stranger in partitions.iter().flat_map(|(key, _)| strangers(key)) {
                let found = reader.find(&caches, &PartitionKey::of(&stranger)).await;
                assert!(found.is_ok(), "sound");
            }
        }
        let key = PartitionKey::of(key);
        let read = async |caches: &ReadCaches, entry| {
            let rows = reader.rows(caches, &key, entry, Slices::all(), layout.clone());
            let mut rows = rows.await.expect("sound");
            while rows.advance().await.expect("sound") {}
            caches.stats().reads
        };
        let before = caches.stats().reads;
        let entry = reader.find(&caches, &key).await.expect("sound").expect("there");
        let after = read(&caches, entry.clone()).await;
        all.push((after - before, read(&ReadCaches::of_one_pass(), entry).await));
    }
    all
}

/// An Index.db or an uncompressed Data.db that lacks its end is reported; no key is taken for one that is not there.
#[test]
fn ends_may_be_missing() {
    let source = corpus().join("oa/uncompressed/sstables");
    let mut descriptors = Vec::new();
    sstables_below(&source, &mut descriptors);
    let descriptor = descriptors.first().expect("an SSTable");
    let disk = Disk::real(DiskOptions::default());
    let folder = std::env::temp_dir().join(format!("halcyon-ends-{}", std::process::id()));
    let descriptor = Descriptor { directory: folder.clone(), ..descriptor.clone() };
    std::fs::create_dir_all(&folder).expect("creates");
    for entry in std::fs::read_dir(&source).expect("folder").flatten() {
        std::fs::copy(entry.path(), folder.join(entry.file_name())).expect("copies");
    }
    block_on(async {
        let sstable = open(&disk, &descriptor).await;
        let partitions = partitions(&disk, &sstable).await;
        let index = descriptor.component_path(Component::Index);
        let whole = std::fs::read(&index).expect("readable");
        let all = whole.len();
        for length in (0..all).chain([all + 1]) {
            let bytes = if length < all { &whole[..length] } else { &whole };
            std::fs::write(&index, bytes).expect("writes");
            let reader = Reader::open(&disk, open(&disk, &descriptor).await).await.expect("opens");
            let mut lost = 0;
            for (key, position) in &partitions {
                match reader.find(key).await {
                    Ok(found) => assert_eq!(found, Some(*position)),
                    Err(e) => {
                        assert!(e.to_string().contains("Index.db is corrupt"), "{e}");
                        lost += 1;
                    }
                }
            }
            assert_eq!(lost > 0, length < all);
        }
        let summary = descriptor.component_path(Component::Summary);
        std::fs::remove_file(summary).expect("removes");
        for length in 0..all {
            std::fs::write(&index, &whole[..length]).expect("writes");
            let sstable = open(&disk, &descriptor).await;
            assert!(Reader::open(&disk, sstable).await.is_err());
        }
        std::fs::write(&index, &whole).expect("writes");
        let data = descriptor.component_path(Component::Data);
        std::fs::write(&data, []).expect("writes");
        let opened = SSTable::open(&disk, &descriptor, OpenOptions::default()).await;
        let error = opened.expect_err("no data").to_string();
        assert!(error.contains("Data.db is corrupt at offset 0: the file is empty"), "{error}");
    });
    let _ = std::fs::remove_dir_all(folder);
}

/// A BIG SSTable of the corpus, in a simulated disk.
async fn copied(disk: &Disk) -> Descriptor {
    let source = corpus().join("oa/strings/sstables");
    let mut descriptors = Vec::new();
    sstables_below(&source, &mut descriptors);
    let descriptor = descriptors.first().expect("an SSTable");
    assert_eq!(descriptor.version.format, Format::Big);
    disk.create_dir_all(Path::new("/t")).await.expect("creates");
    for entry in std::fs::read_dir(&source).expect("folder").flatten() {
        let bytes = std::fs::read(entry.path()).expect("readable");
        let path = Path::new("/t").join(entry.file_name());
        disk.write_new(&path, &bytes, Purpose::Flush).await.expect("writes");
    }
    Descriptor { directory: "/t".into(), ..descriptor.clone() }
}

/// For every flipped bit of Index.db, no lookup gets the partition of another key.
#[test]
fn no_index_leads_to_another_partition() {
    let (disk, simulated) = Disk::simulated(1);
    block_on(async {
        let descriptor = copied(&disk).await;
        let keys = partitions(&disk, &open(&disk, &descriptor).await).await;
        let index = descriptor.component_path(Component::Index);
        let length = disk.stat(&index).await.expect("there").len;
        let mut told = 0;
        for bit in (0..8 * length).filter(|bit| bit % 11 < 8) {
            let (offset, bit) = (bit / 8, (bit % 8) as u8);
            assert!(simulated.flip(&index, offset, bit));
            let sstable = open(&disk, &descriptor).await;
            let opened = match bit % 2 {
                0 => Reader::open(&disk, sstable).await,
                _ => Reader::open_without_positions(&disk, sstable).await,
            };
            if let Ok(reader) = opened {
                let layout = reader.reader.sstable().layout().clone();
                let reader = (Arc::new(reader.reader), reader.caches);
                for (key, _) in keys.iter().take(20) {
                    let key = PartitionKey::of(key);
                    let Ok(Some(found)) = reader.0.find(&reader.1, &key).await else { continue };
                    let rows = reader.0.rows(&reader.1, &key, found, Slices::all(), layout.clone());
                    let Ok(mut rows) = rows.await else { continue };
                    match rows.advance().await {
                        Ok(_) => match rows.fragment() {
                            Fragment::Start(start) => assert_eq!(start.key.bytes, key.bytes),
                            other => panic!("{other:?}"),
                        },
                        Err(error) => told += u32::from(error.to_string().contains("another key")),
                    }
                }
            }
            assert!(simulated.flip(&index, offset, bit));
        }
        assert!(told > 0, "no flipped bit led to another partition");
    });
}

/// An SSTable without its filter and summary, with a damaged summary, and without its index.
#[test]
fn shortcuts_may_be_missing() {
    let (disk, simulated) = Disk::simulated(1);
    block_on(async {
        let descriptor = copied(&disk).await;
        let sstable = open(&disk, &descriptor).await;
        let partitions = partitions(&disk, &sstable).await;
        let check = async || {
            let reader = Reader::open(&disk, open(&disk, &descriptor).await).await.expect("opens");
            for (key, position) in &partitions {
                assert_eq!(reader.find(key).await.expect("sound"), Some(*position));
            }
            assert_eq!(reader.find(b"nowhere").await.expect("sound"), None);
        };
        let summary = descriptor.component_path(Component::Summary);
        let length = disk.stat(&summary).await.expect("there").len;
        // Every byte of the summary, in turn: keys, positions, everything.
        for offset in 0..length {
            simulated.flip(&summary, offset, 3);
            check().await;
            simulated.flip(&summary, offset, 3);
        }
        for gone in [Component::Summary, Component::Filter] {
            disk.remove(&descriptor.component_path(gone)).await.expect("removes");
            check().await;
        }
        disk.remove(&descriptor.component_path(Component::Index)).await.expect("removes");
        let sstable = open(&disk, &descriptor).await;
        let error = Reader::open(&disk, sstable).await.err().expect("no index");
        assert!(error.to_string().contains("Index.db is missing"), "{error}");
    });
}
