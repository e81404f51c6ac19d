//! Damage to acknowledged records.

use halcyon_io::{Purpose, SimDisk, block_on};

use super::*;
use crate::format::{SegmentHeader, Version};
use crate::{Error, Visited};

/// A closed log of more than three segments that tables still need, and its number of records.
async fn three_segments(disk: &Disk, compression: LogCompression) -> usize {
    let options = Options { compression, ..options() };
    let log = CommitLog::open(disk.clone(), options, 0, 1).await.expect("opens");
    let mut count = 0;
    while log.position().segment < 4 {
        let append = |number| log.append(&record(number), &[TABLE]).expect("fits");
        for append in (count..count + 3).map(append).collect::<Vec<_>>() {
            append.durable().await.expect("durable");
        }
        count += 3;
    }
    log.close().await.expect("closes");
    count
}

/// The end of a segment's groups, by the positions and sizes of its records: close enough to tell used from unused bytes.
fn used(simulated: &SimDisk, id: u64) -> usize {
    let bytes = simulated.contents(&path(id)).expect("a segment");
    bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)
}

/// Proves that a flipped bit anywhere in the first or second segment either has no effect (in padding) or is refused with the file
/// and an offset at or before it in the same group; and that `ignore` then replays all records but the damaged ones.
#[test]
fn flips() {
    for compression in [LogCompression::None, LogCompression::Lz4] {
        let (disk, simulated) = Disk::simulated(20);
        block_on(async {
            let count = three_segments(&disk, compression).await;
            let (_, all) = replayed(&disk).await;
            assert_eq!(all.len(), count);
            let (mut refused, mut harmless) = (0, 0);
            for id in [1, 2] {
                for offset in (0..64)
                    .chain((4096..4200).step_by(3))
                    .chain((4200..used(&simulated, id)).step_by(997))
                {
                    assert!(simulated.flip(&path(id), offset as u64, offset as u8));
                    match replayed_with(&disk, OnCorruption::Stop).await {
                        (Ok(_), records) => {
                            assert_eq!(records, all, "segment {id} offset {offset}");
                            harmless += 1;
                        }
                        (Err(Error::Corrupt { path: named, offset: said, .. }), _) => {
                            assert_eq!(named, path(id), "offset {offset}");
                            assert!(said as usize <= offset, "{said} for {offset}");
                            assert!(said as usize + 12 * 4096 > offset, "{said} for {offset}");
                            refused += 1;
                            let (report, left) = replayed_with(&disk, OnCorruption::Ignore).await;
                            assert!(!report.expect("ignored").notes.is_empty());
                            assert!(left.iter().all(|record| all.contains(record)));
                            // One record, one compressed group, one group without its header, or one segment without its header.
                            let lost = all.len() - left.len();
                            let segment = all.iter().filter(|(_, at, _)| at.segment == id).count();
                            assert!(
                                lost <= if offset < 64 { segment } else { 3 },
                                "{lost} lost at {offset}"
                            );
                        }
                        (outcome, _) => panic!("segment {id} offset {offset}: {outcome:?}"),
                    }
                    simulated.flip(&path(id), offset as u64, offset as u8);
                }
            }
            assert!(refused > 100 && harmless > 0, "{refused} refused, {harmless} harmless");
        });
    }
}

/// Proves that a torn last group ends the replay with a note and with all records acknowledged before it.
#[test]
fn torn_tail() {
    let (disk, simulated) = Disk::simulated(21);
    block_on(async {
        let count = three_segments(&disk, LogCompression::None).await;
        let (_, all) = replayed(&disk).await;
        let last = all.last().expect("records").1;
        simulated.flip(&path(last.segment), u64::from(last.offset) + 20, 0);
        let (report, records) = replayed(&disk).await;
        assert_eq!(records.len(), count - 1);
        assert_eq!(report.notes.len(), 1);
        assert!(report.notes[0].contains("never acknowledged"), "{:?}", report.notes);
    });
}

/// Proves that a segment that lost its end is refused although no valid group follows in it: the next segment has its length.
#[test]
fn lost_end() {
    let (disk, simulated) = Disk::simulated(22);
    block_on(async {
        three_segments(&disk, LogCompression::None).await;
        let bytes = simulated.contents(&path(2)).expect("a segment");
        let (_, all) = replayed(&disk).await;
        // The second segment without its last group.
        let last =
            all.iter().rfind(|(_, at, _)| at.segment == 2).expect("records").1.offset as usize;
        let group = last / 4096 * 4096 - 4096;
        disk.remove(&path(2)).await.expect("removes");
        let mut cut = bytes[..group].to_vec();
        cut.resize(bytes.len(), 0);
        disk.write_new(&path(2), &cut, Purpose::CommitLog).await.expect("writes");
        let (outcome, _) = replayed_with(&disk, OnCorruption::Stop).await;
        let error = outcome.expect_err("refused");
        assert!(
            matches!(&error, Error::Corrupt { path: named, .. } if *named == path(2)),
            "{error}"
        );
        assert!(error.to_string().contains("commit_failure_policy: ignore"), "{error}");
        let (report, left) = replayed_with(&disk, OnCorruption::Ignore).await;
        assert!(report.expect("ignored").notes[0].contains("the segment after it"));
        assert!(left.len() < all.len());
    });
}

/// Proves how other files with the names of segments are treated.
#[test]
fn other_files() {
    let header = |id, shard| {
        let compression = LogCompression::None;
        let (version, size) = (Version::Two, SEGMENT);
        SegmentHeader { version, id, salt: 1, shard, block: 4096, size, compression }.encode()
    };
    let whole = |header: &[u8]| [header, &vec![0; SEGMENT as usize - header.len()]].concat();
    let cases: [(&str, Vec<u8>, Option<&str>); 9] = [
        ("empty", vec![], None),
        ("zeros", vec![0; 9000], None),
        ("renamed and not reused", header(4, 0).to_vec(), None),
        ("made ready", whole(&header(5, 0)), None),
        ("cut", header(5, 0).to_vec(), Some("made of 65536 bytes")),
        ("another shard's", header(5, 1).to_vec(), Some("segment 5 of shard 1")),
        ("a later one's", header(6, 0).to_vec(), Some("segment 6 of shard 0")),
        ("garbage", vec![7; 100], Some("HALCYLOG")),
        ("Cassandra's", [vec![0, 0, 0, 7], vec![1; 100]].concat(), Some("nodetool drain")),
    ];
    for (name, bytes, expected) in cases {
        let (disk, _) = Disk::simulated(23);
        block_on(async {
            disk.create_dir_all(Path::new(DIRECTORY)).await.expect("creates");
            disk.write_new(&path(5), &bytes, Purpose::CommitLog).await.expect("writes");
            let (outcome, records) = replayed_with(&disk, OnCorruption::Stop).await;
            assert_eq!(records, vec![]);
            match (outcome, expected) {
                (Ok(report), None) => {
                    assert_eq!((report.next_segment, report.files), (6, vec![path(5)]), "{name}");
                }
                (Err(error), Some(text)) => assert!(error.to_string().contains(text), "{error}"),
                (outcome, _) => panic!("{name}: {outcome:?}"),
            }
        });
    }
}

/// Proves that an error of the visitor ends the replay, and that all shards are read on several threads.
#[test]
fn visitors_and_threads() {
    let (disk, sim) = Disk::simulated(24);
    sim.runtime().clone().block_on(async {
        for shard in 0..5 {
            let log = CommitLog::open(disk.clone(), options(), shard, 9).await.expect("opens");
            write(&log, 0..50).await;
            log.close().await.expect("closes");
        }
        let options = ReplayOptions {
            directory: PathBuf::from(DIRECTORY),
            mode: AccessMode::Auto,
            threads: 3,
            on_corruption: OnCorruption::Stop,
        };
        let seen: Arc<Mutex<Vec<Vec<usize>>>> = Arc::new(Mutex::new(vec![Vec::new(); 5]));
        let sink = seen.clone();
        let visit = move |shard: u32, _, record: &[u8]| {
            sink.lock().map_err(|e| e.to_string())?[shard as usize].push(number(record));
            Ok(())
        };
        let told: Arc<Mutex<Vec<(usize, usize)>>> = Arc::default();
        let tell = told.clone();
        let pause = async move |visited: Visited| {
            tell.lock().map_err(|e| e.to_string())?.push((visited.segments, visited.of));
            Ok(())
        };
        let report = replay(&disk, &options, visit, pause);
        assert_eq!(report.await.expect("replays").records, 250);
        let seen = seen.lock().expect("no thread panicked").clone();
        assert!(seen.iter().all(|numbers| numbers.iter().copied().eq(0..50)));
        let told = told.lock().expect("no thread panicked").clone();
        assert!(told.len() >= 5 && told.iter().all(|(segments, of)| segments <= of), "{told:?}");
        let refused = replay(
            &disk,
            &options,
            |_, position, _| Err(format!("not {position:?}")),
            async |_| Ok(()),
        );
        assert!(matches!(refused.await, Err(Error::Refused(why)) if why.starts_with("not")));
    });
}
