//! The function of the fuzz target on its seeds, and on real segments with random changes.

#[path = "../../../fuzz/src/commitlog.rs"]
#[allow(unreachable_pub, reason = "shared with the crate of the fuzz targets")]
mod commitlog;
#[path = "../../../fuzz/src/mutation.rs"]
#[allow(unreachable_pub, reason = "shared with the crate of the fuzz targets")]
mod mutation;

use std::path::{Path, PathBuf};
use std::time::Duration;

use halcyon_commitlog::{CommitLog, LogCompression, Options, SyncMode};
use halcyon_io::{AccessMode, Disk, block_on};

/// Manifest and segments of a real log.
fn chain(sync: SyncMode, compression: LogCompression) -> Vec<u8> {
    let (disk, simulated) = Disk::simulated(1);
    let options = Options {
        directory: PathBuf::from("/log"),
        sync,
        mode: AccessMode::Auto,
        segment_size: 64 << 10,
        total_space: 1 << 20,
        compression,
    };
    block_on(async {
        let log = CommitLog::open(disk.clone(), options, 0, 1).await.expect("opens");
        let mut number = 0u8;
        while log.position().segment < 4 {
            number = number.wrapping_add(1);
            let record: Vec<u8> = (0..2000).map(|at| number.wrapping_mul(at as u8)).collect();
            let append = log.append(&record, &[[1; 16]]).expect("an append");
            if number % 3 == 2 {
                append.durable().await.expect("durable");
            }
        }
        log.sync().await.expect("syncs");
    });
    let contents = |name: String| {
        simulated.contents(&Path::new("/log").join(name)).expect("a file of the log")
    };
    let manifest = std::iter::once("CommitLog-0.manifest".to_owned());
    let names = manifest.chain((1..=4).map(|id| format!("CommitLog-0-{id}.log")));
    commitlog::joined(&names.map(contents).collect::<Vec<_>>())
}

/// Proves that no change makes a replay panic, hang, or allocate without bound.
#[test]
fn changed_segments() {
    let periodic = SyncMode::Periodic { period: Duration::from_secs(10) };
    let samples: Vec<Vec<u8>> = [
        (SyncMode::Batch, LogCompression::None),
        (periodic, LogCompression::None),
        (periodic, LogCompression::Lz4),
        (SyncMode::Batch, LogCompression::Zstd),
    ]
    .map(|(sync, compression)| chain(sync, compression))
    .to_vec();
    samples.iter().for_each(|bytes| commitlog::chain(bytes));
    mutation::seeds("commitlog").iter().for_each(|bytes| commitlog::chain(bytes));
    for seed in 0..600 {
        eprintln!("seed {seed}");
        commitlog::chain(&mutation::Mutator::new(seed).change_one_of(&samples));
    }
}
