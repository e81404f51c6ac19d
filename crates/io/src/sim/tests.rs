//! What the simulated disk promises, and that it promises no more.

use std::path::Path;

use crate::{
    AccessMode, Disk, Error, Fault, FaultRule, Operation, Purpose, Result, SimDisk, StreamOptions,
    block_on,
};

const FILE: &str = "/data/table/file";

fn path(text: &str) -> &Path {
    Path::new(text)
}

/// A disk with a durable directory for files.
fn prepared(seed: u64) -> (Disk, SimDisk) {
    let (disk, simulated) = Disk::simulated(seed);
    block_on(async {
        disk.create_dir_all(path("/data/table")).await.unwrap();
        disk.sync_dir(path("/data")).await.unwrap();
        disk.sync_dir(path("/")).await.unwrap();
    });
    (disk, simulated)
}

async fn write(disk: &Disk, name: &str, bytes: &[u8]) -> Result<()> {
    let mut writer = disk.create(path(name), AccessMode::Auto, Purpose::Flush, 0).await?;
    writer.write(bytes).await?;
    writer.finish().await?;
    Ok(())
}

/// Proves that a synced file with a synced name survives, and that each of the two is needed.
#[test]
fn durable_means_both_syncs() {
    let (disk, simulated) = prepared(1);
    block_on(async {
        write(&disk, FILE, b"bytes").await.unwrap();
        simulated.crash_to_synced();
        assert!(!disk.exists(path(FILE)).await.unwrap());
        write(&disk, FILE, b"bytes").await.unwrap();
        disk.sync_dir(path("/data/table")).await.unwrap();
        simulated.crash_to_synced();
        assert_eq!(disk.read(path(FILE), 100).await.unwrap(), b"bytes");
        let mut unsynced =
            disk.create(path("/data/table/b"), AccessMode::Auto, Purpose::Flush, 0).await.unwrap();
        unsynced.write(&vec![7; 3 << 20]).await.unwrap();
        disk.sync_dir(path("/data/table")).await.unwrap();
        simulated.crash_to_synced();
        assert_eq!(disk.stat(path("/data/table/b")).await.unwrap().len, 0);
        assert!(matches!(unsynced.finish().await, Err(Error::Crashed { .. })));
    });
}

/// Proves that renames and removals wait for the directory's sync.
#[test]
fn names_wait_for_sync() {
    let (disk, simulated) = prepared(2);
    block_on(async {
        write(&disk, FILE, b"one").await.unwrap();
        disk.sync_dir(path("/data/table")).await.unwrap();
        disk.rename(path(FILE), path("/data/table/other")).await.unwrap();
        assert!(!disk.exists(path(FILE)).await.unwrap());
        simulated.crash_to_synced();
        assert!(disk.exists(path(FILE)).await.unwrap());
        disk.remove(path(FILE)).await.unwrap();
        simulated.crash_to_synced();
        assert!(disk.exists(path(FILE)).await.unwrap());
        disk.remove(path(FILE)).await.unwrap();
        disk.sync_dir(path("/data/table")).await.unwrap();
        simulated.crash_to_synced();
        assert!(!disk.exists(path(FILE)).await.unwrap());
        disk.create_dir_all(path("/data/lost/deeper")).await.unwrap();
        disk.write_new(path("/data/lost/deeper/f"), b"x", Purpose::Flush).await.unwrap();
        disk.sync_dir(path("/data/lost/deeper")).await.unwrap();
        simulated.crash_to_synced();
        assert!(!disk.exists(path("/data/lost")).await.unwrap());
    });
}

/// Proves that unsynced overwrites tear by sector, each sector old or new and nothing else, that the
/// outcomes differ between seeds, and that a seed repeats its own.
#[test]
fn torn_sectors() {
    let torn = |seed| {
        let (disk, simulated) = prepared(seed);
        block_on(async {
            disk.write_new(path(FILE), &[1; 8192], Purpose::Flush).await.unwrap();
            disk.sync_dir(path("/data/table")).await.unwrap();
            simulated.fail_on(FaultRule {
                operation: Some(Operation::Sync),
                ..FaultRule::any(Fault::DeviceError)
            });
            assert!(disk.append_sync(path(FILE), &[2; 8192]).await.is_err());
            simulated.crash();
            simulated.contents(path(FILE)).unwrap()
        })
    };
    let mut lens = std::collections::BTreeSet::new();
    for seed in 0..40 {
        let left = torn(seed);
        assert_eq!(left, torn(seed), "seed {seed}");
        assert!(left.starts_with(&[1; 8192]));
        for sector in left[8192..].chunks(512) {
            assert!(sector.iter().all(|b| *b == 2) || sector.iter().all(|b| *b == 0));
        }
        lens.insert((left.len(), left.iter().filter(|b| **b == 2).count()));
    }
    assert!(lens.len() > 5, "{lens:?}");
}

/// Proves the way to use it: crash at every operation of a scenario, and find either nothing or all
/// of what was acknowledged. The scenario is an atomic replacement.
#[test]
fn crash_at_every_operation() {
    async fn scenario(disk: &Disk) -> Result<()> {
        write(disk, "/data/table/new", &[2; 10_000]).await?;
        disk.rename(path("/data/table/new"), path(FILE)).await?;
        disk.sync_dir(path("/data/table")).await
    }
    let (disk, simulated) = prepared(3);
    block_on(async {
        write(&disk, FILE, &[1; 10_000]).await.unwrap();
        disk.sync_dir(path("/data/table")).await.unwrap();
        let before = simulated.snapshot();
        let first = simulated.ops_count();
        scenario(&disk).await.unwrap();
        let past = simulated.ops_count();
        assert!(past - first >= 5);
        for index in first..=past {
            simulated.restore(&before);
            simulated.crash_at(index);
            let outcome = scenario(&disk).await;
            assert_eq!(outcome.is_err(), index < past);
            assert_eq!(simulated.is_down(), index < past);
            if let Err(e) = outcome {
                assert!(matches!(e, Error::Crashed { .. }), "{e}");
                assert!(matches!(disk.list(path("/")).await, Err(Error::Crashed { .. })));
            }
            simulated.restart();
            let left = disk.read(path(FILE), 1 << 20).await.unwrap();
            assert!(left == [1; 10_000] || left == [2; 10_000], "operation {index}");
            assert!(index < past || left == [2; 10_000]);
        }
    });
}

/// Proves that a full disk says so, by write and by preallocation, and that room comes back.
#[test]
fn full_disk() {
    let (disk, simulated) = prepared(4);
    simulated.set_capacity(4 << 20);
    block_on(async {
        let refused =
            disk.create(path(FILE), AccessMode::Auto, Purpose::Flush, 5 << 20).await.unwrap_err();
        assert!(matches!(refused, Error::NoSpace { needed: 5242880, .. }), "{refused}");
        assert!(!disk.exists(path(FILE)).await.unwrap());
        let refused = write(&disk, FILE, &vec![1; 6 << 20]).await.unwrap_err();
        assert!(refused.is_no_space());
        disk.remove(path(FILE)).await.unwrap();
        assert_eq!(disk.free_space(path("/data")).await.unwrap(), 4 << 20);
        write(&disk, FILE, &vec![1; 3 << 20]).await.unwrap();
        assert_eq!(disk.free_space(path("/data")).await.unwrap(), 1 << 20);
    });
}

/// Proves that faults strike by count, and by path and operation, as often as told.
#[test]
fn faults() {
    let (disk, simulated) = prepared(5);
    block_on(async {
        simulated.fail_after(2, Fault::DeviceError);
        disk.write_new(path("/data/a"), b"x", Purpose::Flush).await.unwrap_err();
        simulated.fail_on(FaultRule {
            path_contains: "Data.db".to_owned(),
            operation: Some(Operation::Write),
            skip: 1,
            times: 2,
            lasting: false,
            fault: Fault::NoSpace,
        });
        for (name, fails) in [("Data.db", false), ("Index.db", false), ("1-Data.db", true)] {
            let name = format!("/data/table/{name}");
            let outcome = disk.write_new(path(&name), b"x", Purpose::Flush).await;
            assert_eq!(outcome.is_err_and(|e| e.is_no_space()), fails, "{name}");
        }
        simulated.clear_faults();
        let data = path("/data/table/Data.db");
        disk.append_sync(data, b"y").await.unwrap();
        simulated.fail_on(FaultRule {
            path_contains: "Index.db".to_owned(),
            lasting: true,
            ..FaultRule::any(Fault::ReadOnly)
        });
        let index = path("/data/table/Index.db");
        disk.append_sync(data, b"y").await.expect("it is not read-only yet");
        disk.read(index, 9).await.expect("readable");
        disk.remove(index).await.unwrap_err();
        disk.append_sync(data, b"y").await.expect_err("all of it is read-only");
        assert_eq!(disk.read(data, 9).await.unwrap(), b"xyy");
    });
}

/// Proves that a write which fails in the background is reported by the next call, and stays so.
#[test]
fn background_failure_is_reported() {
    let (disk, simulated) = prepared(6);
    block_on(async {
        let mut writer =
            disk.create(path(FILE), AccessMode::Direct, Purpose::Flush, 0).await.unwrap();
        simulated.fail_on(FaultRule {
            operation: Some(Operation::Write),
            ..FaultRule::any(Fault::DeviceError)
        });
        let mut failed = None;
        for round in 0..8 {
            if let Err(e) = writer.write(&vec![1; 1 << 20]).await {
                failed.get_or_insert((round, e.to_string()));
            }
        }
        let (round, text) = failed.expect("a write fails");
        assert!(round <= 3 && text.contains(FILE) && text.contains("offset 0"), "{text}");
        assert!(writer.finish().await.unwrap_err().to_string().contains("earlier write failed"));
        disk.remove(path(FILE)).await.unwrap();
        let mut writer =
            disk.create(path(FILE), AccessMode::Direct, Purpose::Flush, 0).await.unwrap();
        writer.write(b"tail").await.unwrap();
        simulated.fail_on(FaultRule {
            operation: Some(Operation::Write),
            ..FaultRule::any(Fault::DeviceError)
        });
        assert!(writer.finish().await.is_err());
    });
}

/// Proves that a reader whose read failed can continue, and sees flipped bits as they are.
#[test]
fn reader_after_a_fault() {
    let (disk, simulated) = prepared(7);
    let bytes: Vec<u8> = (0..100_000u32).map(|i| (i / 7) as u8).collect();
    block_on(async {
        write(&disk, FILE, &bytes).await.unwrap();
        let options = StreamOptions { buffer_size: 8192, depth: 2 };
        let mut reader = disk
            .open_sequential(path(FILE), AccessMode::Direct, Purpose::Scan, options)
            .await
            .unwrap();
        assert_eq!(reader.fill(10_000).await.unwrap()[..10_000], bytes[..10_000]);
        reader.consume(3);
        simulated.fail_on(FaultRule {
            operation: Some(Operation::Read),
            skip: 1,
            ..FaultRule::any(Fault::DeviceError)
        });
        let failed = reader.fill(60_000).await.unwrap_err();
        assert!(matches!(failed, Error::Device { .. }), "{failed}");
        let got = reader.fill(99_997).await.unwrap();
        assert!(*got == bytes[3..]);
        assert!(simulated.flip(path(FILE), 50_000, 3) && !simulated.flip(path(FILE), 100_000, 0));
        let file = disk.open(path(FILE), AccessMode::Auto, Purpose::UserRead).await.unwrap();
        let read = file.read_at(49_999, 3).await.unwrap();
        assert_eq!(*read, [bytes[49_999], bytes[50_000] ^ 8, bytes[50_001]]);
    });
}

/// Proves that many readers share a budget that has room for hardly more than a buffer each.
#[test]
fn tight_budget() {
    let (_, simulated) = prepared(8);
    let options = crate::DiskOptions { buffer_budget: 256 * 1024, ..crate::DiskOptions::default() };
    let disk = Disk::on_simulated(&simulated, options);
    let bytes: Vec<u8> = (0..300_000u32).map(|i| (i / 3) as u8).collect();
    block_on(async {
        let mut writer = disk
            .create_with(
                path(FILE),
                AccessMode::Direct,
                Purpose::Flush,
                crate::WriteOptions { buffer_size: 192 * 1024, ..Default::default() },
            )
            .await
            .unwrap();
        writer.write(&bytes).await.unwrap();
        writer.finish().await.unwrap();
        // 192 KiB for streams, 16 KiB for a buffer and its headroom: twelve buffers. The first two
        // readers read ahead with half of them; the others have one each.
        let options = StreamOptions { buffer_size: 8192, depth: 4 };
        let mut readers = Vec::new();
        for _ in 0..8 {
            let opened =
                disk.open_sequential(path(FILE), AccessMode::Direct, Purpose::Scan, options);
            readers.push(opened.await.unwrap());
        }
        for at in (0..bytes.len()).step_by(1000) {
            for reader in &mut readers {
                let got = reader.fill(1000).await.unwrap();
                assert!(got[..1000] == bytes[at..at + 1000]);
                reader.consume(1000);
            }
        }
    });
    assert_eq!(disk.buffers().held(), 0);
}

/// Proves that a bit that changes between a write and its reading back is noticed, where it is, and that the writer refuses from then on.
#[test]
fn changed_before_it_is_read_back() {
    const SIZE: usize = 64 * 1024;
    for at in [70_000u64, 3 * SIZE as u64 + 5] {
        let (disk, simulated) = prepared(9);
        let options =
            crate::WriteOptions { buffer_size: SIZE, depth: 4, expected_len: 0, read_back: true };
        let failed = block_on(async {
            let created = disk.create_with(path(FILE), AccessMode::Direct, Purpose::Flush, options);
            let mut writer = created.await.unwrap();
            writer.write(&[7; 4 * SIZE]).await.unwrap();
            assert!(simulated.flip(path(FILE), at, 1));
            let failed = writer.write(&[7; 8 * SIZE]).await.unwrap_err();
            assert!(writer.write(&[7]).await.is_err());
            writer.abandon().await;
            failed
        });
        let said = failed.to_string();
        assert!(said.contains(FILE) && said.contains(&at.to_string()), "{said}");
        assert!(said.contains("other bytes than were written"), "{said}");
    }
}

/// Proves that a durable write survives, that it makes nothing else durable, that it tears by sector if the power goes
/// while it is made, and that what was durable beside it never changes.
#[test]
fn durable_blocks() {
    let torn = |seed, crash_in: Option<u64>| {
        let (disk, simulated) = prepared(seed);
        let pool = crate::BufferPool::unbounded();
        block_on(async {
            let create =
                disk.create_blocks(path(FILE), AccessMode::Auto, Purpose::CommitLog, 16384);
            let file = create.await.unwrap();
            disk.sync_dir(path("/data/table")).await.unwrap();
            for (number, fill) in [1u8, 2].into_iter().enumerate() {
                if number == 1
                    && let Some(operation) = crash_in
                {
                    simulated.crash_at(simulated.ops_count() + operation);
                }
                let mut buffer = pool.try_take(4096).unwrap();
                buffer.fill(fill);
                let (outcome, _) = file.write_durable(number as u64 * 4096, buffer, 4096).await;
                assert_eq!(outcome.is_err(), number == 1 && crash_in.is_some());
            }
            simulated.crash();
            simulated.contents(path(FILE)).unwrap()
        })
    };
    let whole = [vec![1; 4096], vec![2; 4096], vec![0; 8192]].concat();
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..30 {
        assert!(torn(seed, None) == whole);
        let left = torn(seed, Some(seed % 2));
        assert!(left[..4096] == whole[..4096] && left[8192..] == whole[8192..]);
        for sector in left[4096..8192].chunks(512) {
            assert!(sector.iter().all(|b| *b == 2) || sector.iter().all(|b| *b == 0));
        }
        seen.insert(left.iter().filter(|b| **b == 2).count());
    }
    assert!(seen.len() > 3, "{seen:?}");
}

/// Proves that cached writes survive the process but not surely a power failure, torn by sector, and that a sync makes them durable.
#[test]
fn cached_blocks() {
    let mut torn = std::collections::BTreeSet::new();
    for seed in 0..30 {
        let (disk, simulated) = prepared(seed);
        let pool = crate::BufferPool::unbounded();
        block_on(async {
            let mode = AccessMode::Standard;
            let create = disk.create_blocks(path(FILE), mode, Purpose::CommitLog, 8192);
            let file = create.await.unwrap();
            disk.sync_dir(path("/data/table")).await.unwrap();
            for number in [0u8, 1] {
                let mut buffer = pool.try_take(4096).unwrap();
                buffer.fill(1 + number);
                let (outcome, _) = file.write_cached(u64::from(number) * 4096, buffer, 4096).await;
                outcome.unwrap();
                if number == 0 {
                    file.sync(0, 4096).await.unwrap();
                }
            }
            simulated.kill();
            let whole = [[1; 4096], [2; 4096]].concat();
            assert_eq!(simulated.contents(path(FILE)).unwrap(), whole);
            assert!(file.sync(0, 4096).await.is_err(), "the file of a dead process");
            simulated.crash();
            let left = simulated.contents(path(FILE)).unwrap();
            assert!(left[..4096] == whole[..4096]);
            torn.insert(left[4096..].iter().filter(|b| **b == 2).count());
        });
    }
    assert!(torn.len() > 3, "{torn:?}");
}
