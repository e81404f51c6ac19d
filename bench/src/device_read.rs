//! The device's own read: what no cold read gets below. 4 KiB at a random place of files that are there, past the page cache, one
//! after the other: at once, or after a pause, in which cores go to sleep as they do between requests that come at a rate.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::Duration;

use halcyon_oracle::Result;

use crate::direct::{BLOCK, Memory, open, repeat};
use crate::latency::Latencies;
use crate::load::Random;

/// Every block of all files is as likely as any other.
pub(crate) fn measure(
    files: &[PathBuf],
    time: Duration,
    pause: Duration,
    seed: u64,
) -> Result<Latencies> {
    let mut opened: Vec<(File, u64)> = Vec::new();
    let mut blocks = 0;
    for path in files {
        let file = open(path, OpenOptions::new().read(true), 0)?;
        blocks += file.metadata()?.len() / BLOCK as u64;
        opened.push((file, blocks));
    }
    if blocks == 0 {
        return Err("no file has a block".into());
    }
    let mut random = Random(seed);
    let mut memory = Memory::new();
    let block = memory.block()?;
    repeat(time, pause, |_| {
        let place = random.below(blocks);
        let number = opened.partition_point(|(_, end)| *end <= place);
        let before = number.checked_sub(1).map_or(0, |before| opened[before].1);
        opened[number].0.read_exact_at(block, (place - before) * BLOCK as u64)
    })
}
