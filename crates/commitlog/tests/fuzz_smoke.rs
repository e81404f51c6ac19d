//! The function of the fuzz target on real segments with random changes.

#[path = "../../../fuzz/src/commitlog.rs"]
#[allow(unreachable_pub, reason = "shared with the crate of the fuzz targets")]
mod commitlog;
#[path = "../../../fuzz/src/mutation.rs"]
#[allow(unreachable_pub, reason = "shared with the crate of the fuzz targets")]
mod mutation;

use std::path::{Path, PathBuf};

use halcyon_commitlog::{CommitLog, LogCompression, Options, SyncMode};
use halcyon_io::{AccessMode, Disk, block_on};

/// Two segments of a real log, the first without its trailing zeros.
fn segments(compression: LogCompression) -> Vec<u8> {
    let (disk, simulated) = Disk::simulated(1);
    let options = Options {
        directory: PathBuf::from("/log"),
        sync: SyncMode::Batch,
        mode: AccessMode::Auto,
        segment_size: 64 << 10,
        total_space: 1 << 20,
        compression,
    };
    block_on(async {
        let log = CommitLog::open(disk.clone(), options, 0, 1).await.expect("opens");
        while log.position().segment < 2 {
            for number in 0..3 {
                let append = log.append(&[number; 40], &[[1; 16]]).expect("an append");
                if number == 2 {
                    append.durable().await.expect("durable");
                }
            }
        }
        log.sync().await.expect("syncs");
    });
    let contents = |id| {
        let path = format!("/log/CommitLog-0-{id}.log");
        simulated.contents(Path::new(&path)).expect("a segment")
    };
    [contents(1), contents(2)].concat()
}

/// Proves that no change makes a replay panic, hang, or allocate without bound.
#[test]
fn changed_segments() {
    let samples: Vec<Vec<u8>> = [LogCompression::None, LogCompression::Lz4, LogCompression::Zstd]
        .into_iter()
        .map(segments)
        .collect();
    samples.iter().for_each(|bytes| commitlog::segments(bytes));
    for seed in 0..1500 {
        eprintln!("seed {seed}");
        commitlog::segments(&mutation::Mutator::new(seed).change_one_of(&samples));
    }
}
