//! Every backend × every mode × awkward sizes: what was written is what is read, both ways of
//! reading, and the page cache stays as the mode promises.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::path::Path;

use crate::support::{ScratchDir, cached_pages, pattern};
use halcyon_io::{
    AccessMode, BackendChoice, Disk, DiskOptions, Error, Purpose, Random, StreamOptions,
    WriteOptions, block_on_backend, random,
};

const BACKENDS: [BackendChoice; 2] = [BackendChoice::Uring, BackendChoice::Pool];
const MODES: [AccessMode; 4] =
    [AccessMode::Auto, AccessMode::Direct, AccessMode::Uncached, AccessMode::Standard];
const SMALL: StreamOptions = StreamOptions { buffer_size: 16 * 1024, depth: 2 };

/// Runs a test body for each backend that this machine has; says so if it has not both.
fn on_backends(body: impl AsyncFn(BackendChoice)) {
    for backend in BACKENDS {
        match block_on_backend(backend, body(backend)) {
            Ok(()) => {}
            Err(e) => eprintln!("SKIPPED: backend {backend}: {e}"),
        }
    }
}

fn modes_of(disk: &Disk, dir: &Path) -> Vec<AccessMode> {
    MODES
        .into_iter()
        .filter(|mode| match disk.resolve_write_mode(dir, *mode) {
            Ok(_) => true,
            Err(e) => {
                eprintln!("SKIPPED: mode {mode}: {e}");
                false
            }
        })
        .collect()
}

async fn write_file(disk: &Disk, path: &Path, mode: AccessMode, bytes: &[u8], piece: usize) {
    let options = WriteOptions {
        buffer_size: 64 * 1024,
        depth: 2,
        expected_len: bytes.len() as u64 + 100_000,
        read_back: false,
    };
    write_with(disk, path, mode, bytes, piece, options).await;
}

async fn write_with(
    disk: &Disk,
    path: &Path,
    mode: AccessMode,
    bytes: &[u8],
    piece: usize,
    options: WriteOptions,
) {
    let mut writer = disk.create_with(path, mode, Purpose::CompactionWrite, options).await.unwrap();
    for part in bytes.chunks(piece.max(1)) {
        writer.write(part).await.unwrap();
    }
    assert_eq!(writer.position(), bytes.len() as u64);
    assert_eq!(writer.finish().await.unwrap(), bytes.len() as u64);
}

async fn read_all(
    disk: &Disk,
    path: &Path,
    mode: AccessMode,
    options: StreamOptions,
    ask: usize,
) -> Vec<u8> {
    let mut reader =
        disk.open_sequential(path, mode, Purpose::CompactionRead, options).await.unwrap();
    let mut all = Vec::new();
    loop {
        let got = reader.fill(ask).await.unwrap();
        if got.is_empty() {
            break;
        }
        let take = got.len().min(ask);
        all.extend_from_slice(&got[..take]);
        reader.consume(take);
        assert_eq!(reader.position(), all.len() as u64);
    }
    all
}

/// Proves that a file that is read back while it is written is the same, with little memory too, in all modes.
#[test]
fn read_back() {
    let scratch = ScratchDir::make("read-back");
    on_backends(async |backend| {
        for buffer_budget in [64 << 20, 200 * 1024] {
            let disk = Disk::real(DiskOptions { buffer_budget, ..DiskOptions::default() });
            for mode in modes_of(&disk, scratch.path()) {
                for size in [0, 1, 65_536, 65_537, 3_000_001] {
                    let path =
                        scratch.path().join(format!("{backend}-{mode}-{size}-{buffer_budget}"));
                    let bytes = pattern(size);
                    let options = WriteOptions {
                        buffer_size: 64 * 1024,
                        depth: 3,
                        expected_len: 0,
                        read_back: true,
                    };
                    write_with(&disk, &path, mode, &bytes, 10_007, options).await;
                    let read = read_all(&disk, &path, mode, SMALL, 5_000).await;
                    assert!(read == bytes, "{backend} {mode} {size} {buffer_budget}");
                }
            }
            assert_eq!(disk.buffers().held(), 0);
        }
    });
}

/// Proves that sizes on, below and above every boundary come back whole, sequentially and at random.
#[test]
fn awkward_sizes() {
    const MIB: usize = 1 << 20;
    let sizes =
        [0, 1, 511, 512, 4095, 4096, 4097, 65536, 65537, MIB - 1, MIB, MIB + 1, 3 * MIB + 7];
    let scratch = ScratchDir::make("sizes");
    on_backends(async |backend| {
        let disk = Disk::real(DiskOptions::default());
        for mode in modes_of(&disk, scratch.path()) {
            for size in sizes {
                let path = scratch.path().join(format!("{backend}-{mode}-{size}"));
                let bytes = pattern(size);
                write_file(&disk, &path, mode, &bytes, 10_007).await;
                let stat = disk.stat(&path).await.unwrap();
                assert_eq!(stat.len, size as u64, "{backend} {mode}");
                let read = read_all(&disk, &path, mode, SMALL, 5_000).await;
                assert!(read == bytes, "{backend} {mode} {size}");
                let file = disk.open(&path, mode, Purpose::UserRead).await.unwrap();
                assert_eq!(file.len(), size as u64);
                for (offset, len) in
                    [(0, size), (size / 2, size - size / 2), (size, 0), (size / 3, 1)]
                {
                    if offset + len <= size {
                        let got = file.read_at(offset as u64, len).await.unwrap();
                        assert!(*got == bytes[offset..offset + len], "{backend} {mode} {size}");
                    }
                }
                assert!(matches!(file.read_at(size as u64, 1).await, Err(Error::ShortRead { .. })));
            }
        }
        assert_eq!(disk.buffers().held(), 0);
    });
}

/// Proves that seeks, odd requests and requests larger than a buffer see the right bytes, by
/// comparing random walks with the plain slice.
#[test]
fn random_walks() {
    let scratch = ScratchDir::make("walks");
    let seed = random().next_u64();
    eprintln!("seed {seed}");
    let disk = Disk::real(DiskOptions::default());
    on_backends(async |backend| {
        let bytes = pattern(1_234_567);
        for mode in modes_of(&disk, scratch.path()) {
            let path = scratch.path().join(format!("{backend}-{mode}"));
            write_file(&disk, &path, mode, &bytes, 100_000).await;
            let mut random = Random::seeded(seed);
            for depth in [1, 2, 4] {
                let options = StreamOptions { buffer_size: 16 * 1024, depth };
                let mut reader =
                    disk.open_sequential(&path, mode, Purpose::Scan, options).await.unwrap();
                for _ in 0..300 {
                    if random.chance(1, 4) {
                        let near = random.chance(1, 2);
                        let to = match near {
                            true => (reader.position() + random.below(60_000)).min(reader.len()),
                            false => random.below(reader.len() + 1),
                        };
                        reader.seek(to).await.unwrap();
                        assert_eq!(reader.position(), to);
                    }
                    let ask = match random.below(10) {
                        0 => random.below(200_000),
                        _ => random.below(9_000),
                    } as usize;
                    let at = reader.position() as usize;
                    let got = reader.fill(ask).await.unwrap();
                    assert!(got.len() >= ask.min(bytes.len() - at));
                    assert!(*got == bytes[at..at + got.len()], "{backend} {mode} at {at}");
                    let len = got.len() as u64;
                    reader.consume(random.below(len + 1) as usize);
                }
            }
        }
    });
    // Reads that seeks left behind have ended with `block_on`.
    assert_eq!(disk.buffers().held(), 0);
}

/// Proves that direct and uncached I/O leave no pages behind, and that standard I/O does, so that
/// the measurement itself is known to work.
#[test]
fn page_cache() {
    let scratch = ScratchDir::make("cache");
    on_backends(async |backend| {
        let disk = Disk::real(DiskOptions::default());
        let bytes = pattern(4 << 20);
        for mode in modes_of(&disk, scratch.path()) {
            let path = scratch.path().join(format!("{backend}-{mode}"));
            write_file(&disk, &path, mode, &bytes, 1 << 20).await;
            let after_write = cached_pages(&path);
            assert!(read_all(&disk, &path, mode, SMALL, 4096).await == bytes);
            let file = disk.open(&path, mode, Purpose::UserRead).await.unwrap();
            assert!(*file.read_at(1_000_000, 70_000).await.unwrap() == bytes[1_000_000..1_070_000]);
            let after_read = cached_pages(&path);
            eprintln!("{backend} {mode}: {after_write} pages after write, {after_read} after read");
            match file.mode().mode {
                AccessMode::Direct => assert_eq!((after_write, after_read), (0, 0)),
                // The kernel drops uncached pages when write-back ends; a few may be on their way.
                AccessMode::Uncached => assert!(after_read <= 64, "{after_read}"),
                _ => assert_eq!(after_read, 1024),
            }
        }
    });
}

/// Proves that readers that are dropped with reads in flight harm no other reader: the buffers come back,
/// and nothing else is written over.
#[test]
fn dropped_readers() {
    let scratch = ScratchDir::make("dropped");
    on_backends(async |backend| {
        let disk = Disk::real(DiskOptions::default());
        let bytes = pattern(2 << 20);
        let path = scratch.path().join(format!("{backend}"));
        write_file(&disk, &path, AccessMode::Auto, &bytes, 1 << 20).await;
        for round in 0..200 {
            let options = StreamOptions { buffer_size: 64 * 1024, depth: 4 };
            let mut reader = disk
                .open_sequential(&path, AccessMode::Auto, Purpose::Scan, options)
                .await
                .unwrap();
            let got = reader.fill(10).await.unwrap();
            assert!(*got == bytes[..got.len()]);
            if round % 2 == 0 {
                reader.seek(1_000_000).await.unwrap();
                assert!(reader.fill(100).await.unwrap()[..100] == bytes[1_000_000..1_000_100]);
            }
        }
        // A read into memory that a dropped read still owned would show here.
        assert!(read_all(&disk, &path, AccessMode::Auto, SMALL, 4096).await == bytes);
        let file = disk.open(&path, AccessMode::Auto, Purpose::UserRead).await.unwrap();
        drop(file.read_at(0, 4096));
    });
}

/// Proves that a reader outlives the `block_on` that opened it, and the thread's later ones.
#[test]
fn reader_across_block_on() {
    let scratch = ScratchDir::make("across");
    let disk = Disk::real(DiskOptions::default());
    let bytes = pattern(1 << 20);
    let path = scratch.path().join("file");
    halcyon_io::block_on(write_file(&disk, &path, AccessMode::Auto, &bytes, 1 << 20));
    let mut reader =
        halcyon_io::block_on(disk.open_sequential(&path, AccessMode::Auto, Purpose::Scan, SMALL))
            .unwrap();
    let mut at = 0;
    while at < bytes.len() {
        let got = halcyon_io::block_on(reader.fill(7_000)).unwrap();
        assert!(*got == bytes[at..at + got.len()]);
        let count = got.len();
        reader.consume(count);
        at += count;
    }
}

/// Proves that names behave: create refuses what exists, missing files are named, renames replace.
#[test]
fn names() {
    let scratch = ScratchDir::make("names");
    on_backends(async |backend| {
        let disk = Disk::real(DiskOptions::default());
        let dir = scratch.path().join(format!("{backend}/a/b"));
        disk.create_dir_all(&dir).await.unwrap();
        let (a, b, c) = (dir.join("a"), dir.join("b"), dir.join("c"));
        disk.write_new(&a, b"hello", Purpose::Flush).await.unwrap();
        let again = disk.write_new(&a, b"hello", Purpose::Flush).await;
        assert!(matches!(again, Err(Error::AlreadyExists { .. })));
        let again = disk.create(&a, AccessMode::Auto, Purpose::Flush, 0).await;
        assert!(matches!(again, Err(Error::AlreadyExists { .. })));
        disk.append_sync(&a, b" world").await.unwrap();
        assert_eq!(disk.read(&a, 100).await.unwrap(), b"hello world");
        match disk.read(&a, 10).await {
            Err(Error::TooLarge { path, len: 11, max: 10 }) => assert_eq!(path, a),
            other => panic!("{other:?}"),
        }
        disk.hard_link(&a, &b).await.unwrap();
        assert!(disk.append_sync(&c, b"new").await.unwrap_err().is_not_found());
        disk.write_new(&c, b"new", Purpose::Flush).await.unwrap();
        disk.rename(&c, &b).await.unwrap();
        disk.sync_dir(&dir).await.unwrap();
        assert_eq!(disk.read(&b, 100).await.unwrap(), b"new");
        let names: Vec<String> =
            disk.list(&dir).await.unwrap().into_iter().map(|entry| entry.name).collect();
        assert_eq!(names, ["a", "b"]);
        assert!(disk.exists(&a).await.unwrap() && !disk.exists(&c).await.unwrap());
        disk.remove(&a).await.unwrap();
        let missing = disk.open(&a, AccessMode::Auto, Purpose::Scan).await;
        assert!(matches!(missing, Err(Error::NotFound { path, .. }) if path == a));
        let nowhere = dir.join("no/where");
        let missing = disk.create(&nowhere, AccessMode::Auto, Purpose::Scan, 0).await;
        assert!(matches!(missing, Err(Error::NotFound { path, .. }) if path == nowhere));
        assert!(disk.free_space(&dir).await.unwrap() > 0);
        let writer = disk.create(&c, AccessMode::Auto, Purpose::Flush, 1 << 20).await.unwrap();
        writer.abandon().await;
        assert!(!disk.exists(&c).await.unwrap());
    });
}

/// Proves that a file that is written and read whole is the same whatever the pieces in which that is done.
#[test]
fn whole() {
    let scratch = ScratchDir::make("whole");
    on_backends(async |backend| {
        let disk = Disk::real(DiskOptions::default());
        for len in [0, 1, 256 << 10, (256 << 10) + 1, (1 << 20) + 12_345] {
            let path = scratch.path().join(format!("{backend}-{len}"));
            let bytes: Vec<u8> = (0..len).map(|at: usize| (at % 251) as u8).collect();
            disk.write_new(&path, &bytes, Purpose::Flush).await.unwrap();
            assert!(disk.read(&path, u64::MAX).await.unwrap() == bytes);
            assert!(disk.read(&path, len as u64).await.unwrap() == bytes);
            if let Some(max) = (len as u64).checked_sub(1) {
                assert!(matches!(disk.read(&path, max).await, Err(Error::TooLarge { .. })));
            }
        }
    });
}

/// Proves that every purpose is counted apart, with bytes, depth and latency.
#[test]
fn histograms() {
    let scratch = ScratchDir::make("histograms");
    on_backends(async |backend| {
        let disk = Disk::real(DiskOptions::default());
        let bytes = pattern(1 << 20);
        let path = scratch.path().join(format!("{backend}"));
        write_file(&disk, &path, AccessMode::Direct, &bytes, 1 << 20).await;
        let file = disk.open(&path, AccessMode::Direct, Purpose::UserRead).await.unwrap();
        for offset in 0..100 {
            file.read_at(offset * 4096, 4096).await.unwrap();
        }
        let stats = disk.histograms();
        let of = |purpose| stats.iter().find(|stats| stats.purpose == purpose).unwrap();
        let reads = of(Purpose::UserRead);
        assert_eq!((reads.operations, reads.bytes, reads.overlapped), (100, 409_600, 0));
        assert_eq!(reads.latency.total(), 100);
        assert_eq!((reads.queue_depth, reads.queue_depth_max), (0, 1));
        let writes = of(Purpose::CompactionWrite);
        assert_eq!(writes.operations, 16);
        assert_eq!(writes.overlapped + writes.latency.total(), 16);
        assert!(writes.queue_depth_max >= 1 && writes.queue_depth == 0);
        assert_eq!(of(Purpose::Scan).operations, 0);
    });
}

/// Proves, for every backend and mode, that blocks written at chosen places are read back, that the rest of the file stays
/// zeros, that a reopened file continues, and that a length that is not a multiple of a page is refused without a file.
#[test]
fn durable_blocks() {
    on_backends(async |backend| {
        let scratch = ScratchDir::make("blocks");
        let disk = Disk::real(DiskOptions { backend: Some(backend), ..DiskOptions::default() });
        let pool = halcyon_io::BufferPool::unbounded();
        for mode in modes_of(&disk, scratch.path()) {
            let path = scratch.path().join(format!("{mode}"));
            let purpose = Purpose::CommitLog;
            let refused = disk.create_blocks(&path, mode, purpose, 5000).await;
            assert!(matches!(refused, Err(Error::Unsupported { .. })));
            let len = 3 << 20;
            let created = disk.create_blocks(&path, mode, purpose, len).await.unwrap();
            let block = created.block();
            let mut expected = vec![0; len as usize];
            let mut file = created;
            for (round, at) in [5, 0, 700, 6].into_iter().enumerate() {
                let (offset, len) = (at * block, (round + 1) * block);
                let mut buffer = pool.try_take(len).unwrap();
                buffer[..len].copy_from_slice(&pattern(len + round)[round..]);
                expected[offset..offset + len].copy_from_slice(&buffer[..len]);
                let (outcome, _) = file.write_durable(offset as u64, buffer, len).await;
                outcome.unwrap();
                file = disk.open_blocks(&path, mode, purpose).await.unwrap();
            }
            assert_eq!(std::fs::read(&path).unwrap(), expected, "{backend} {mode}");
        }
    });
}
