//! Chains of segments of the commit log with their manifest, replayed from a simulated disk.

use std::path::{Path, PathBuf};

use halcyon_commitlog::{OnCorruption, ReplayOptions, replay};
use halcyon_io::{AccessMode, Disk, Purpose, block_on};

/// The lengths of the manifest and of all segments but the last are in front of the bytes.
const LENGTHS: usize = 4;
/// In a length: the file is there, although it is empty. Else an empty file is one that is missing.
const THERE: u32 = 1 << 31;

/// Bytes for `chain`, of whole files.
#[allow(dead_code, reason = "the fuzz target gets its bytes from elsewhere")]
pub fn joined(files: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = vec![0; 4 * LENGTHS];
    for (length, file) in bytes.chunks_mut(4).zip(files) {
        length.copy_from_slice(&(file.len() as u32).to_be_bytes());
    }
    bytes.extend(files.concat());
    bytes
}

/// A manifest and segments of one shard.
pub fn chain(bytes: &[u8]) {
    let Some((lengths, mut rest)) = bytes.split_at_checked(4 * LENGTHS) else { return };
    let mut files = Vec::new();
    for length in lengths.chunks(4) {
        let length = length.try_into().map_or(0, u32::from_be_bytes);
        let (file, others) = rest.split_at(((length & !THERE) as usize).min(rest.len()));
        files.push((length & THERE != 0, file));
        rest = others;
    }
    files.push((false, rest));
    let (disk, _) = Disk::simulated(1);
    let directory = Path::new("/log");
    block_on(async {
        disk.create_dir_all(directory).await.expect("an empty disk");
        for (id, (is_there, bytes)) in files.iter().enumerate() {
            let name = match id {
                0 => "CommitLog-0.manifest".to_owned(),
                id => format!("CommitLog-0-{id}.log"),
            };
            if *is_there || !bytes.is_empty() {
                let path = directory.join(name);
                disk.write_new(&path, bytes, Purpose::CommitLog).await.expect("room");
            }
        }
        for on_corruption in [OnCorruption::Stop, OnCorruption::Ignore] {
            let (directory, mode) = (PathBuf::from(directory), AccessMode::Auto);
            let options = ReplayOptions { directory, mode, threads: 1, on_corruption };
            if let Ok(report) = replay(&disk, &options, |_, _, _| Ok(()), async |_| Ok(())).await {
                assert!(report.segments <= LENGTHS && report.files.len() <= LENGTHS);
                if on_corruption == OnCorruption::Ignore {
                    report.delete(&disk, Path::new("/log")).await.expect("a disk without faults");
                }
            }
        }
    });
}
