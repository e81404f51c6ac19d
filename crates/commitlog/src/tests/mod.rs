//! The log on the simulated disk.

mod crash;
mod damage;
mod golden;
mod hostile;
mod loss;
mod modes;
mod pace;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use halcyon_io::{AccessMode, Disk};

use crate::format::file_name;
use crate::{
    CommitLog, LogCompression, OnCorruption, Options, ReplayOptions, ReplayPosition, ReplayReport,
    Result, SyncMode, TableId, replay,
};

const DIRECTORY: &str = "/commitlog";
const TABLE: TableId = [1; 16];
const OTHER: TableId = [2; 16];
const SEGMENT: u32 = 64 << 10;
const COMPRESSIONS: [LogCompression; 5] = [
    LogCompression::None,
    LogCompression::Lz4,
    LogCompression::Snappy,
    LogCompression::Deflate,
    LogCompression::Zstd,
];

fn options() -> Options {
    Options {
        directory: PathBuf::from(DIRECTORY),
        sync: SyncMode::Batch,
        mode: AccessMode::Auto,
        segment_size: SEGMENT,
        total_space: 8 * u64::from(SEGMENT),
        compression: LogCompression::None,
    }
}

fn group() -> SyncMode {
    SyncMode::Group { window: Duration::from_millis(10) }
}

fn periodic() -> SyncMode {
    SyncMode::Periodic { period: Duration::from_secs(10) }
}

/// A record that contains its number; compressible, and of varying length.
fn record(number: usize) -> Vec<u8> {
    let mut bytes = format!("record {number:06} ").into_bytes();
    bytes.extend(std::iter::repeat_n(b'a' + (number % 26) as u8, number * 37 % 3000));
    bytes
}

fn number(record: &[u8]) -> usize {
    let digits = record.get(7..13).and_then(|digits| std::str::from_utf8(digits).ok());
    digits.and_then(|digits| digits.parse().ok()).expect("a record of the tests")
}

type Replayed = Vec<(u32, ReplayPosition, Vec<u8>)>;

async fn replayed_with(
    disk: &Disk,
    on_corruption: OnCorruption,
) -> (Result<ReplayReport>, Replayed) {
    let directory = PathBuf::from(DIRECTORY);
    let options = ReplayOptions { directory, mode: AccessMode::Auto, threads: 1, on_corruption };
    let records: Arc<Mutex<Replayed>> = Arc::default();
    let sink = records.clone();
    let visit = move |shard, position, record: &[u8]| {
        sink.lock().map_err(|e| e.to_string())?.push((shard, position, record.to_vec()));
        Ok(())
    };
    let report = replay(disk, &options, visit, async |_| Ok(())).await;
    let records = records.lock().expect("no thread panicked").clone();
    (report, records)
}

async fn replayed(disk: &Disk) -> (ReplayReport, Replayed) {
    let (report, records) = replayed_with(disk, OnCorruption::Stop).await;
    (report.expect("a replay"), records)
}

/// Appends records one after the other, each durable before the next.
async fn write(log: &CommitLog, numbers: std::ops::Range<usize>) -> Vec<ReplayPosition> {
    let mut positions = Vec::new();
    for number in numbers {
        let append = log.append(&record(number), &[TABLE]).expect("an append");
        positions.push(append.position);
        append.durable().await.expect("durable");
    }
    positions
}

fn logs(files: &[PathBuf]) -> Vec<&Path> {
    files.iter().map(PathBuf::as_path).filter(|path| path.starts_with(DIRECTORY)).collect()
}

/// The file of a segment of shard 0.
fn path(id: u64) -> PathBuf {
    Path::new(DIRECTORY).join(file_name(0, id))
}
