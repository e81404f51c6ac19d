//! The device's own flush: what no durable write gets below.
//!
//! - *direct*: 4 KiB into a file that is there and was written before, `O_DIRECT | O_DSYNC`, one after the other: what a commit log
//!   in recycled segments does;
//! - *append*: 4 KiB appended through the page cache and `fdatasync`: what a log that grows does.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use halcyon_oracle::Result;

use super::direct::{BLOCK, Memory, open, repeat};
use super::latency::Latencies;
use super::record::{Contender, Measurements, Record, Target};

const FILE: usize = 32 << 20;
const O_DSYNC: i32 = 0o10000;

pub(super) const HEADING: &str = "the device's own flush";
const DIRECT: &str = "direct";

/// Measures both for a while, in a file that is deleted afterwards.
pub(super) fn measure(record: &mut Record, folder: &Path, time: Duration) -> Result<()> {
    let path = folder.join("flush.scratch");
    let measured = direct(&path, time).and_then(|direct| {
        fs::remove_file(&path)?;
        Ok([(DIRECT, direct), ("appended", append(&path, time)?)])
    });
    let _ = fs::remove_file(&path);
    for (mode, all) in measured.map_err(|e| format!("{}: {e}", path.display()))? {
        let figures = Measurements::default().fields("", &all);
        record.add(HEADING, &Contender::new("device", mode), figures);
    }
    Ok(())
}

/// Of the direct ones, in µs.
pub(super) fn median(record: &Record) -> Option<f64> {
    record.median(HEADING, &Contender::new("device", DIRECT), "p50_us")
}

/// The target of one durable write at a time (µs): little more than a flush, as it was measured several times, and an empty round trip.
pub(super) fn target(record: &Record, what: String, write: f64, round_trip: f64) -> Option<Target> {
    const MOST: f64 = 1.15;
    let flush = median(record)?;
    let ratio = write / (flush + round_trip);
    Some(Target {
        what: format!("{what}, by flush and round trip"),
        to_reach: format!("≤ {MOST}"),
        measured: format!("{ratio:.2} = {write:.0} µs / ({flush:.0} + {round_trip:.0} µs)"),
        reached: ratio <= MOST,
    })
}

fn direct(path: &Path, time: Duration) -> Result<Latencies> {
    let mut file = File::create(path)?;
    file.write_all(&vec![0; FILE])?;
    file.sync_all()?;
    let file = open(path, OpenOptions::new().write(true), O_DSYNC)?;
    let mut memory = Memory::new();
    let block = memory.block()?;
    let mut at = 0u64;
    repeat(time, Duration::ZERO, |count| {
        block[..4].copy_from_slice(&count.to_le_bytes());
        file.write_all_at(block, at)?;
        at = (at + BLOCK as u64) % FILE as u64;
        Ok(())
    })
}

fn append(path: &Path, time: Duration) -> Result<Latencies> {
    let mut file = File::create(path)?;
    let block = vec![1u8; BLOCK];
    repeat(time, Duration::ZERO, |_| {
        file.write_all(&block)?;
        file.sync_data()
    })
}
