//! Power failures and killed processes at every operation.

use halcyon_io::SimDisk;

use super::*;

/// What the crash leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Crash {
    /// All that was written.
    Kill,
    /// Some of what was not synced.
    Torn,
    /// Nothing that was not synced.
    Synced,
}

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
    crash: Crash,
    promised: &mut Promised,
) -> Result<()> {
    let cached = matches!(options.sync, SyncMode::Periodic { .. });
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
        if cached && batch % 3 == 2 {
            log.sync().await?;
        }
        if !cached || batch % 3 == 2 || crash == Crash::Kill {
            promised.acknowledged = promised.appended;
        }
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
/// once, and none without those before it.
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
    if let (Some(first), Some(last)) = (kept.first(), kept.last()) {
        assert_eq!(kept.len(), last - first + 1, "{said}: a gap");
    }
    if let Some(lost) = needed.into_iter().find(|number| !kept.contains(number)) {
        panic!("{said}: record {lost} is lost, {promised:?}");
    }
}

/// Runs until the crash at `operation`, replays, runs again until it happens once more, replays. Returns the number of
/// operations.
fn crash_at(seed: u64, options: &Options, operation: u64, crash: Crash) -> u64 {
    let said = format!("seed {seed}, operation {operation}, {crash:?}, {options:?}");
    let (disk, simulated) = Disk::simulated(seed);
    let restart = |simulated: &SimDisk| match crash {
        Crash::Kill => simulated.kill(),
        Crash::Torn => simulated.restart(),
        Crash::Synced => simulated.crash_to_synced(),
    };
    simulated.runtime().clone().block_on(async {
        disk.create_dir_all(Path::new(DIRECTORY)).await.expect("creates");
        disk.sync_dir(Path::new("/")).await.expect("syncs");
        let mut promised = Promised::default();
        simulated.crash_at(operation);
        let outcome = scenario(&disk, options.clone(), 1, 0, crash, &mut promised).await;
        let operations = simulated.ops_count();
        assert_eq!(outcome.is_err(), simulated.is_down(), "{said}: {outcome:?}");
        restart(&simulated);
        let (report, records) = replayed(&disk).await;
        check(&records, &promised, &said);
        let found_first = records;

        let from = promised.appended;
        simulated.crash_at(simulated.ops_count() + operation % 40);
        let first = report.next_segment;
        let _ = scenario(&disk, options.clone(), first, from, crash, &mut promised).await;
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
    let operations = crash_at(seed, options, u64::MAX / 2, Crash::Torn);
    assert!(operations > 60, "{operations}");
    for operation in (4..operations).step_by(step) {
        for crash in [Crash::Kill, Crash::Torn, Crash::Synced] {
            crash_at(seed + operation, options, operation, crash);
        }
    }
}

/// Proves that after a crash at any operation every record replays that the mode promises to keep, in order, with no record that was
/// not appended and none without those before it; and again after a crash in the second start.
#[test]
fn batch() {
    crash_everywhere(100, &options(), 1);
}

/// Proves the same for `group`.
#[test]
fn group_windows() {
    crash_everywhere(200, &Options { sync: group(), ..options() }, 3);
}

/// Proves the same for `periodic`: a killed process loses nothing that was acknowledged, a power failure nothing that was synced.
#[test]
fn cached_writes() {
    for (compression, step) in [(LogCompression::None, 1), (LogCompression::Lz4, 3)] {
        let options = Options { sync: periodic(), compression, ..options() };
        crash_everywhere(400, &options, step);
    }
}

/// Proves the same for compressed segments.
#[test]
fn compressed() {
    for compression in [LogCompression::Lz4, LogCompression::Zstd] {
        crash_everywhere(300, &Options { compression, ..options() }, 3);
    }
}
