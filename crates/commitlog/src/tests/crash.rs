//! Power loss at every operation.

use halcyon_io::{SimDisk, block_on};

use super::*;

/// The promises that the log made before the crash.
#[derive(Debug, Default)]
struct Promised {
    appended: usize,
    /// Records below it were acknowledged.
    acknowledged: usize,
    /// Records below it were discarded.
    discarded: usize,
}

const BATCH: usize = 12;
const BATCHES: usize = 24;

/// Writes batches that fill several segments, and discards between them, so that segments are recycled.
async fn scenario(
    disk: &Disk,
    options: Options,
    first: u64,
    from: usize,
    promised: &mut Promised,
) -> Result<()> {
    let periodic = matches!(options.sync, SyncMode::Periodic { .. });
    let log = CommitLog::open(disk.clone(), options, 0, first).await?;
    let mut batch_start = (from, log.position());
    for batch in 0..BATCHES {
        let mut appends = Vec::new();
        for _ in 0..BATCH {
            appends.push(log.append(&record(promised.appended), &[TABLE])?);
            promised.appended += 1;
        }
        for append in appends {
            append.durable().await?;
        }
        if periodic {
            log.sync().await?;
        }
        promised.acknowledged = promised.appended;
        if batch % 6 == 5 {
            // The flush that began six batches ago has ended.
            log.discard_below(TABLE, batch_start.1);
            promised.discarded = batch_start.0;
            batch_start = (promised.appended, log.position());
        }
    }
    log.close().await
}

/// Checks that a replay has all records that were acknowledged and not discarded, no record that was not appended, in order, each
/// once.
fn check(records: &Replayed, promised: &Promised, said: &str) {
    let numbers: Vec<usize> = records.iter().map(|(_, _, bytes)| number(bytes)).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "{said}: out of order");
    assert!(records.is_sorted_by(|a, b| a.1 < b.1), "{said}: positions out of order");
    for (_, _, bytes) in records {
        assert_eq!(*bytes, record(number(bytes)), "{said}");
    }
    assert!(numbers.last().is_none_or(|last| *last < promised.appended), "{said}: never appended");
    let needed = promised.discarded..promised.acknowledged;
    let kept: std::collections::BTreeSet<_> = numbers.into_iter().collect();
    if let Some(lost) = needed.into_iter().find(|number| !kept.contains(number)) {
        panic!("{said}: record {lost} is lost, {promised:?}");
    }
}

/// Runs until the power fails at `operation`, replays, runs again until it fails once more, replays. Returns the number of
/// operations.
fn crash_at(seed: u64, options: &Options, operation: u64, lucky: bool) -> u64 {
    let said = format!("seed {seed}, operation {operation}, lucky {lucky}, {options:?}");
    let (disk, simulated) = Disk::simulated(seed);
    let restart = |simulated: &SimDisk| {
        if lucky { simulated.restart() } else { simulated.crash_to_synced() }
    };
    block_on(async {
        disk.create_dir_all(Path::new(DIRECTORY)).await.expect("creates");
        disk.sync_dir(Path::new("/")).await.expect("syncs");
        let mut promised = Promised::default();
        simulated.crash_at(operation);
        let outcome = scenario(&disk, options.clone(), 1, 0, &mut promised).await;
        let operations = simulated.ops_count();
        assert_eq!(outcome.is_err(), simulated.is_down(), "{said}: {outcome:?}");
        restart(&simulated);
        let (report, records) = replayed(&disk).await;
        check(&records, &promised, &said);
        let found_first = records;

        let from = promised.appended;
        simulated.crash_at(simulated.ops_count() + operation % 40);
        let first = report.next_segment;
        let _ = scenario(&disk, options.clone(), first, from, &mut promised).await;
        restart(&simulated);
        let (_, records) = replayed(&disk).await;
        // The second start must not bring back a record that the first one lost.
        let (old, new): (Replayed, Replayed) =
            records.into_iter().partition(|(_, at, _)| at.segment < first);
        check(&new, &Promised { discarded: promised.discarded.max(from), ..promised }, &said);
        assert_eq!(old, found_first, "{said}");
        operations
    })
}

fn crash_everywhere(seed: u64, options: &Options, step: usize) {
    let operations = crash_at(seed, options, u64::MAX / 2, true);
    assert!(operations > 60, "{operations}");
    for operation in (4..operations).step_by(step) {
        crash_at(seed + operation, options, operation, true);
        crash_at(seed + operation, options, operation, false);
    }
}

/// Proves that after a power loss at any operation every acknowledged record replays, in order, with no record that was not
/// appended; and again after a power loss in the second start.
#[test]
fn power_loss_at_every_operation() {
    crash_everywhere(100, &options(), 1);
}

/// Proves the same for the other sync modes and for compressed segments.
#[test]
fn power_loss_in_every_mode() {
    for sync in [group(), periodic()] {
        crash_everywhere(200, &Options { sync, ..options() }, 3);
    }
    for compression in [LogCompression::Lz4, LogCompression::Zstd] {
        crash_everywhere(300, &Options { compression, ..options() }, 3);
    }
}
