//! Segments of the commit log, replayed from a simulated disk.

use std::path::{Path, PathBuf};

use halcyon_commitlog::{OnCorruption, ReplayOptions, replay};
use halcyon_io::{AccessMode, Disk, Purpose, block_on};

/// The bytes are two segments of one shard, parted in the middle.
pub fn segments(bytes: &[u8]) {
    let (disk, _) = Disk::simulated(1);
    let (one, two) = bytes.split_at(bytes.len() / 2);
    block_on(async {
        disk.create_dir_all(Path::new("/log")).await.expect("an empty disk");
        for (name, bytes) in [("/log/CommitLog-0-1.log", one), ("/log/CommitLog-0-2.log", two)] {
            disk.write_new(Path::new(name), bytes, Purpose::CommitLog).await.expect("room");
        }
        for on_corruption in [OnCorruption::Stop, OnCorruption::Ignore] {
            let (directory, mode) = (PathBuf::from("/log"), AccessMode::Auto);
            let options = ReplayOptions { directory, mode, threads: 1, on_corruption };
            if let Ok(report) = replay(&disk, &options, |_, _, _| Ok(()), async |_| Ok(())).await {
                assert!(report.segments <= 2 && report.files.len() == 2);
            }
        }
    });
}
