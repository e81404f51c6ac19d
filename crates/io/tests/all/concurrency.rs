//! Futures that are dropped half-way, and threads that share a disk.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::{future::poll_fn, pin::pin, task::Poll};

use crate::support::{ScratchDir, pattern};
use halcyon_io::{
    AccessMode, BackendChoice, Disk, DiskOptions, Purpose, Random, StreamOptions, ThreadPriority,
    WriteOptions, block_on, block_on_backend, random, spawn_thread,
};

/// Polls a future at most `polls` times, then drops it.
async fn at_most<F: Future>(polls: u64, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut left = polls;
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending if left <= 1 => Poll::Ready(None),
        Poll::Pending => {
            left -= 1;
            cx.waker().wake_by_ref();
            Poll::Pending
        }
    })
    .await
}

/// Proves that `write` and `fill` may be dropped at any await and called again, without a lost, doubled
/// or misplaced byte.
#[test]
fn dropped_half_way() {
    let scratch = ScratchDir::make("half-way");
    let seed = random().next_u64();
    eprintln!("seed {seed}");
    for backend in [BackendChoice::Uring, BackendChoice::Pool] {
        let outcome = block_on_backend(backend, async {
            let disk = Disk::real(DiskOptions::default());
            let mut random = Random::seeded(seed);
            let bytes = pattern(3_000_000);
            let path = scratch.path().join(format!("{backend}"));
            let options =
                WriteOptions { buffer_size: 32 * 1024, depth: 2, ..WriteOptions::default() };
            let mut writer =
                disk.create_with(&path, AccessMode::Auto, Purpose::Flush, options).await.unwrap();
            let mut drops = 0;
            while (writer.position() as usize) < bytes.len() {
                let at = writer.position() as usize;
                let past = (at + random.below(200_000) as usize).min(bytes.len());
                let polls = 1 + random.below(3);
                match at_most(polls, writer.write(&bytes[at..past])).await {
                    Some(done) => done.unwrap(),
                    None => drops += 1,
                }
            }
            writer.finish().await.unwrap();
            let options = StreamOptions { buffer_size: 16 * 1024, depth: 2 };
            let mut reader = disk
                .open_sequential(&path, AccessMode::Auto, Purpose::Scan, options)
                .await
                .unwrap();
            while (reader.position() as usize) < bytes.len() {
                let at = reader.position() as usize;
                let ask = random.below(100_000) as usize;
                if let Some(got) = at_most(1 + random.below(3), reader.fill(ask)).await {
                    assert!(got.unwrap().len() >= ask.min(bytes.len() - at));
                } else {
                    drops += 1;
                }
                let got = reader.buffered();
                assert!(*got == bytes[at..at + got.len()], "at {at}");
                let count = random.below(got.len() as u64 + 1) as usize;
                reader.consume(count);
            }
            eprintln!("{backend}: dropped {drops} times");
            assert!(drops > 10);
        });
        if let Err(e) = outcome {
            eprintln!("SKIPPED: backend {backend}: {e}");
        }
    }
}

/// Proves that threads of every class share one disk, one file and a budget that is too small for all
/// of them at once: they wait for one another's buffers and all get their bytes.
#[test]
fn threads_share_a_budget() {
    let scratch = ScratchDir::make("threads");
    let disk = Disk::real(DiskOptions {
        buffer_budget: 512 * 1024,
        buffer_patience: std::time::Duration::from_secs(60),
        ..DiskOptions::default()
    });
    let bytes = pattern(1 << 20);
    let path = scratch.path().join("file");
    let file = block_on(async {
        let options = WriteOptions { buffer_size: 64 * 1024, ..WriteOptions::default() };
        let mut writer =
            disk.create_with(&path, AccessMode::Auto, Purpose::Flush, options).await.unwrap();
        writer.write(&bytes).await.unwrap();
        writer.finish().await.unwrap();
        disk.open(&path, AccessMode::Auto, Purpose::UserRead).await.unwrap()
    });
    let classes = [ThreadPriority::Normal, ThreadPriority::Batch, ThreadPriority::Idle];
    let threads: Vec<_> = (0..6)
        .map(|number| {
            let (disk, file, path, bytes) =
                (disk.clone(), file.clone(), path.clone(), bytes.clone());
            spawn_thread("sharer", classes[number % 3], move || {
                let mut random = Random::seeded(number as u64);
                block_on(async {
                    for _ in 0..100 {
                        let at = random.below(800_000) as usize;
                        let got = file.read_at(at as u64, 200_000).await.unwrap();
                        assert!(*got == bytes[at..at + 200_000]);
                    }
                    let options = StreamOptions { buffer_size: 64 * 1024, depth: 2 };
                    let mut reader = disk
                        .open_sequential(&path, AccessMode::Auto, Purpose::Scan, options)
                        .await
                        .unwrap();
                    while !reader.fill(1).await.unwrap().is_empty() {
                        let at = reader.position() as usize;
                        let got = reader.buffered();
                        assert!(*got == bytes[at..at + got.len()]);
                        let count = got.len();
                        reader.consume(count);
                    }
                });
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(disk.buffers().held(), 0);
}

/// Proves that a panic in a future leaves its thread, and the memory of its reads, usable.
#[test]
fn panic_with_reads_in_flight() {
    let scratch = ScratchDir::make("panic");
    let disk = Disk::real(DiskOptions::default());
    let path = scratch.path().join("file");
    let bytes = pattern(2 << 20);
    block_on(async {
        let mut writer = disk.create(&path, AccessMode::Auto, Purpose::Flush, 0).await.unwrap();
        writer.write(&bytes).await.unwrap();
        writer.finish().await.unwrap();
    });
    let open = || {
        let options = StreamOptions { buffer_size: 64 * 1024, depth: 4 };
        disk.open_sequential(&path, AccessMode::Auto, Purpose::Scan, options)
    };
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        block_on(async {
            let mut reader = open().await.unwrap();
            reader.fill(1).await.unwrap();
            panic!("on purpose");
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(disk.buffers().held(), 0);
    block_on(async {
        let mut reader = open().await.unwrap();
        assert!(reader.fill(bytes.len()).await.unwrap() == bytes);
    });
}
