//! Sync modes, compression, recycling, and space.

use halcyon_io::{Fault, FaultRule, Operation, Purpose, block_on, spawn};

use super::*;
use crate::Error;
use crate::manifest::manifest_path;

/// Proves for every sync mode and compression that records over many segments replay completely, in order, at the positions that
/// `append` returned; and that compression saves space.
#[test]
fn round_trip() {
    for sync in [SyncMode::Batch, group(), periodic()] {
        let mut segments = Vec::new();
        for compression in COMPRESSIONS {
            let (disk, _) = Disk::simulated(1);
            let count = 300;
            let (report, records, positions) = block_on(async {
                let options = Options { sync, compression, ..options() };
                let log = CommitLog::open(disk.clone(), options, 3, 7).await.expect("opens");
                let mut positions = Vec::new();
                for batch in 0..count / 10 {
                    let numbers = batch * 10..batch * 10 + 10;
                    let append = |number| log.append(&record(number), &[TABLE]).expect("fits");
                    let appends: Vec<_> = numbers.map(append).collect();
                    for append in appends {
                        positions.push(append.position);
                        append.durable().await.expect("durable");
                    }
                }
                assert!(positions.last() < Some(&log.position()));
                log.close().await.expect("closes");
                let (report, records) = replayed(&disk).await;
                (report, records, positions)
            });
            assert!(positions.is_sorted());
            let expected = positions.into_iter().enumerate().map(|(i, p)| (3, p, record(i)));
            assert!(records.into_iter().eq(expected), "{sync:?} {compression:?}");
            assert_eq!((report.records, report.notes), (count as u64, vec![]));
            segments.push(report.segments);
        }
        assert!(segments[0] > 4, "{segments:?}");
        assert!(segments[1..].iter().all(|count| *count < segments[0]), "{segments:?}");
    }
}

/// Proves that the next segment's zeros keep ahead of the records, and no more: that few are written before there are records, and all of
/// them when the segment is half full.
#[test]
fn zeros_keep_ahead() {
    let (disk, simulated) = Disk::simulated(1);
    simulated.record();
    // Since the last call.
    let pieces = || {
        let recorded = simulated.recorded();
        simulated.record();
        recorded.iter().filter(|of| **of == (Operation::Write, path(2))).count()
    };
    block_on(async {
        let options = Options { segment_size: 4 << 20, ..options() };
        let log = CommitLog::open(disk.clone(), options, 0, 1).await.expect("opens");
        write(&log, 0..10).await;
        let early = pieces();
        assert!((1..=2).contains(&early), "{early}");
        let mut number = 10;
        while log.position().offset < (5 << 20) / 2 {
            write(&log, number..number + 1).await;
            number += 1;
        }
        // The header too.
        assert_eq!(early + pieces(), 17);
        log.close().await.expect("closes");
    });
}

/// Proves that records appended before or during a write share the next one, and that all writers are answered.
#[test]
fn one_write_for_many() {
    let (disk, _) = Disk::simulated(2);
    block_on(async {
        let log = CommitLog::open(disk.clone(), options(), 0, 1).await.expect("opens");
        let writes = || {
            let stats = disk.histograms();
            stats.iter().find(|s| s.purpose == Purpose::CommitLog).map_or(0, |s| s.operations)
        };
        // Meanwhile the next segment is prepared.
        write(&log, 0..5).await;
        let before = writes();
        let writers: Vec<_> = (0..50)
            .map(|number| {
                let log = log.clone();
                spawn(async move {
                    let append = log.append(&record(number % 5), &[TABLE]).expect("an append");
                    append.durable().await
                })
            })
            .collect();
        for writer in writers {
            assert!(writer.await.expect("no panic").is_ok());
        }
        assert!(writes() - before == 1, "{}", writes() - before);
    });
}

/// Proves that segments that no table needs are recycled, that one table keeps its segment and all later ones (the log is a suffix
/// of the history), and that the old records of a recycled file never replay.
#[test]
fn recycling() {
    let (disk, simulated) = Disk::simulated(3);
    block_on(async {
        let log = CommitLog::open(disk.clone(), options(), 0, 1).await.expect("opens");
        let mut files = 0;
        for round in 0..40 {
            write(&log, round * 50..(round + 1) * 50).await;
            log.discard_below(TABLE, log.position());
            files = files.max(logs(&simulated.files()).len());
        }
        assert!(log.position().segment > 30);
        assert!(files <= 8, "{files} files");
        let kept = log.append(b"other", &[OTHER]).expect("an append");
        let pinned = kept.position.segment;
        kept.durable().await.expect("durable");
        for round in 40..50 {
            write(&log, round * 50..(round + 1) * 50).await;
            log.discard_below(TABLE, log.position());
        }
        let oldest = log.oldest_dirty().expect("one segment is still needed");
        assert_eq!((oldest.segment, oldest.tables), (pinned, vec![OTHER]));
        let behind = log.position().segment - pinned;
        assert!(logs(&simulated.files()).len() as u64 >= behind, "nothing behind it is freed");
        let position = log.position();
        write(&log, 5000..5003).await;
        simulated.crash_to_synced();
        let (_, records) = replayed(&disk).await;
        let later = records.iter().filter(|(_, at, _)| *at >= position);
        assert!(later.map(|(_, _, record)| number(record)).eq(5000..5003));
        assert!(records.iter().any(|(_, _, record)| record == b"other"));
    });
}

/// Proves that a closed log leaves only the segments that a table needs.
#[test]
fn closing() {
    let (disk, simulated) = Disk::simulated(4);
    block_on(async {
        let log = CommitLog::open(disk.clone(), options(), 0, 1).await.expect("opens");
        write(&log, 0..100).await;
        log.discard_below(TABLE, log.position());
        log.close().await.expect("closes");
        assert_eq!(logs(&simulated.files()), Vec::<&Path>::new());
        assert!(matches!(log.append(b"late", &[TABLE]), Err(Error::Closed)));

        let log = CommitLog::open(disk.clone(), options(), 0, 50).await.expect("opens");
        write(&log, 0..100).await;
        let position = log.position();
        write(&log, 100..101).await;
        log.discard_below(TABLE, position);
        log.close().await.expect("closes");
        let (last, manifest) = (log.position().segment, manifest_path(Path::new(DIRECTORY), 0));
        assert_eq!(logs(&simulated.files()), [path(last).as_path(), &manifest]);
        let (report, records) = replayed(&disk).await;
        assert!(records.iter().any(|(_, _, record)| number(record) == 100));
        assert!(report.next_segment > 50);
        report.delete(&disk, Path::new(DIRECTORY)).await.expect("deletes");
        assert_eq!(logs(&simulated.files()), Vec::<&Path>::new());
    });
}

/// Proves that the table that keeps the oldest segment is named when space is short, and that its flush frees space.
#[test]
fn pressure() {
    let (disk, _) = Disk::simulated(5);
    block_on(async {
        let log = CommitLog::open(disk, options(), 0, 1).await.expect("opens");
        log.append(b"old", &[OTHER]).expect("an append").durable().await.expect("durable");
        let waiting = {
            let log = log.clone();
            spawn(async move { log.short_of_space().await })
        };
        while !log.is_short_of_space() {
            write(&log, 0..10).await;
            log.discard_below(TABLE, ReplayPosition::default());
        }
        waiting.await.expect("is woken");
        assert_eq!(log.oldest_dirty().expect("dirty").tables, vec![TABLE, OTHER]);
        log.discard_below(TABLE, log.position());
        log.discard_below(OTHER, log.position());
        assert!(!log.is_short_of_space());
    });
}

/// Proves that after a failed write every waiter, later writer, `sync` and `close` fails; and after a failed sync, before which records
/// are acknowledged under `periodic`, all that comes later.
#[test]
fn write_errors_are_final() {
    for sync in [SyncMode::Batch, group(), periodic()] {
        for operation in [Operation::Write, Operation::Sync] {
            let (disk, simulated) = Disk::simulated(6);
            block_on(async {
                let options = Options { sync, ..options() };
                let log = CommitLog::open(disk.clone(), options, 0, 1).await.expect("opens");
                write(&log, 0..3).await;
                log.sync().await.expect("syncs");
                simulated.fail_on(FaultRule {
                    operation: Some(operation),
                    ..FaultRule::any(Fault::DeviceError)
                });
                let appends: Vec<_> = (3..9)
                    .map(|number| log.append(&record(number), &[TABLE]).expect("an append"))
                    .collect();
                let written = matches!(sync, SyncMode::Periodic { .. });
                if !written || operation == Operation::Write {
                    for append in appends {
                        assert!(matches!(append.durable().await, Err(Error::Failed(_))));
                    }
                } else {
                    assert!(matches!(log.sync().await, Err(Error::Failed(_))));
                }
                assert!(matches!(log.append(b"later", &[TABLE]), Err(Error::Failed(_))));
                assert!(matches!(log.sync().await, Err(Error::Failed(_))));
                assert!(matches!(log.close().await, Err(Error::Failed(_))));
                let (_, records) = replayed(&disk).await;
                assert!(records.len() >= 3);
            });
        }
    }
}

/// Proves that under `periodic` writers blocked by a slow device continue as soon as it catches up: their group will not fill up,
/// and its period is an hour.
#[test]
fn held_up_writers_wait_for_no_period() {
    let (disk, _) = Disk::simulated(8);
    block_on(async {
        let sync = SyncMode::Periodic { period: Duration::from_secs(3600) };
        let options = Options { sync, segment_size: 4 << 20, total_space: 256 << 20, ..options() };
        let log = CommitLog::open(disk.clone(), options, 0, 1).await.expect("opens");
        let began = disk.clock().now();
        // More bytes than may be unsynced, and a group that has just opened.
        let large = vec![7; 1 << 20];
        for _ in 0..20 {
            drop(log.append(&large, &[TABLE]).expect("fits"));
        }
        let small = log.append(b"small", &[TABLE]).expect("fits");
        // Its own task, which only its record wakes.
        spawn(small.durable()).await.expect("runs").expect("durable");
        let waited = disk.clock().now() - began;
        assert!(waited < Duration::from_secs(3600), "{waited:?}");
        log.close().await.expect("closes");
    });
}

/// Proves for every mode that where a segment file cannot be made, for want of space or of descriptors, only the records without one are
/// refused, that acknowledged ones stay, that the log continues by itself, and that no position is given twice.
#[test]
fn no_room() {
    for (sync, fault) in [SyncMode::Batch, group(), periodic()]
        .into_iter()
        .flat_map(|sync| [(sync, Fault::NoSpace), (sync, Fault::NoDescriptors)])
    {
        let (disk, simulated) = Disk::simulated(7);
        simulated.runtime().clone().block_on(async {
            let options = Options { sync, ..options() };
            let log = CommitLog::open(disk.clone(), options, 0, 1).await.expect("opens");
            write(&log, 0..5).await;
            simulated.fail_on(FaultRule {
                operation: Some(Operation::Create),
                times: u64::MAX,
                ..FaultRule::any(fault)
            });
            let (mut acknowledged, mut refused) = (Vec::new(), 0);
            for number in 5..200 {
                let append = log.append(&record(number), &[TABLE]).expect("takes records");
                let position = append.position;
                match append.durable().await {
                    Ok(()) => acknowledged.push(position),
                    Err(Error::NoSpace(e)) => {
                        assert_eq!(e.is_no_space(), fault == Fault::NoSpace, "{e}");
                        refused += 1;
                    }
                    Err(e) => panic!("{e}"),
                }
            }
            assert!(acknowledged.len() > 10 && refused > 10, "{sync:?}");
            let frozen = log.position();
            simulated.clear_faults();
            let again = write(&log, 9000..9005).await;
            assert!(again[0] >= frozen);
            simulated.kill();
            let (report, records) = replayed(&disk).await;
            assert_eq!(report.notes, Vec::<String>::new());
            let found = records.iter().map(|(_, at, _)| *at).skip(5);
            assert!(found.eq(acknowledged.into_iter().chain(again)), "{sync:?} {fault:?}");
        });
    }
}

/// Proves the limits of a record's size: half a segment, and zero.
#[test]
fn record_sizes() {
    let (disk, _) = Disk::simulated(8);
    block_on(async {
        let log = CommitLog::open(disk.clone(), options(), 0, 1).await.expect("opens");
        let largest = SEGMENT as usize / 2 - 12;
        assert!(matches!(
            log.append(&vec![1; largest + 1], &[TABLE]),
            Err(Error::RecordTooLarge { len, max }) if len == largest + 1 && max == largest
        ));
        for len in [largest, 0, largest, 1, largest] {
            let append = log.append(&vec![7; len], &[TABLE]).expect("an append");
            append.durable().await.expect("durable");
        }
        log.close().await.expect("closes");
        let (_, records) = replayed(&disk).await;
        let lens: Vec<usize> = records.iter().map(|(_, _, record)| record.len()).collect();
        assert_eq!(lens, [largest, 0, largest, 1, largest]);
    });
}

/// Proves that a log whose handles are dropped writes its records, also across the end of a segment.
#[test]
fn dropped_without_close() {
    let (disk, _) = Disk::simulated(9);
    block_on(async {
        let options = Options { sync: periodic(), ..options() };
        let log = CommitLog::open(disk.clone(), options, 0, 1).await.expect("opens");
        let appends: Vec<_> =
            (0..100).map(|number| log.append(&record(number), &[TABLE]).expect("fits")).collect();
        assert!(appends.last().expect("appended").position.segment > 1);
        drop(log);
        for append in appends {
            append.durable().await.expect("durable");
        }
        // The tasks of a dropped log keep running; one turn of the runtime for each write lets them end.
        for _ in 0..50 {
            spawn(async {}).await;
        }
        let (_, records) = replayed(&disk).await;
        assert_eq!(records.len(), 100);
    });
}
