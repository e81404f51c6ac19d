//! Segments and manifests that are missing, emptied, zeroed or cut, and those of other versions.

use halcyon_io::{Purpose, SimDisk};

use super::*;
use crate::Error;
use crate::format::put_magic;
use crate::manifest::manifest_path;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Loss {
    Deleted,
    Emptied,
    Zeroed,
    Cut,
    /// Its first half is zeros.
    Half,
}

const LOSSES: [Loss; 5] = [Loss::Deleted, Loss::Emptied, Loss::Zeroed, Loss::Cut, Loss::Half];

/// A killed log of four segments that a table needs; the numbers of its records by segment.
async fn killed(disk: &Disk, simulated: &SimDisk, sync: SyncMode) -> Vec<Vec<usize>> {
    let log = CommitLog::open(disk.clone(), Options { sync, ..options() }, 0, 1).await;
    let log = log.expect("opens");
    let mut numbers = vec![Vec::new(); 5];
    for number in 0.. {
        let at = write(&log, number..number + 1).await[0];
        numbers[at.segment as usize].push(number);
        if at.segment == 4 {
            break;
        }
    }
    simulated.kill();
    numbers
}

async fn replace(disk: &Disk, path: &Path, bytes: &[u8]) {
    disk.remove(path).await.expect("removes");
    disk.write_new(path, bytes, Purpose::CommitLog).await.expect("writes");
}

async fn lose(disk: &Disk, simulated: &SimDisk, path: &Path, loss: Loss) {
    let bytes = simulated.contents(path).expect("a segment");
    match loss {
        Loss::Deleted => disk.remove(path).await.expect("removes"),
        Loss::Emptied => replace(disk, path, &[]).await,
        Loss::Zeroed => replace(disk, path, &vec![0; bytes.len()]).await,
        Loss::Cut => replace(disk, path, &bytes[..bytes.len() / 2]).await,
        Loss::Half => {
            let (zeroed, kept) = bytes.split_at(bytes.len() / 2);
            replace(disk, path, &[&vec![0; zeroed.len()], kept].concat()).await;
        }
    }
}

/// Proves for each segment, and for all of them, that its loss stops a start with an error that names it and the cure, that `ignore`
/// replays all the others, keeps what is left of it, and lets the next start begin after it.
#[test]
fn lost_segments() {
    for sync in [SyncMode::Batch, periodic()] {
        for loss in LOSSES {
            for lost in [vec![1], vec![2], vec![4], vec![2, 3], vec![1, 2, 3, 4]] {
                let (disk, simulated) = Disk::simulated(40);
                simulated.runtime().clone().block_on(async {
                    let said = format!("{sync:?} {loss:?} {lost:?}");
                    let numbers = killed(&disk, &simulated, sync).await;
                    for id in &lost {
                        lose(&disk, &simulated, &path(*id), loss).await;
                    }
                    let (outcome, _) = replayed_with(&disk, OnCorruption::Stop).await;
                    let error = outcome.expect_err(&said).to_string();
                    let name = path(lost[0]).display().to_string();
                    assert!(error.contains(&name), "{said}: {error}");
                    assert!(error.contains("`commit_failure_policy: ignore`"), "{said}: {error}");

                    let (report, records) = replayed_with(&disk, OnCorruption::Ignore).await;
                    let report = report.expect(&said);
                    let found: Vec<_> =
                        records.iter().map(|(_, _, record)| number(record)).collect();
                    for (id, numbers) in numbers.iter().enumerate() {
                        if lost.contains(&(id as u64)) {
                            let some = numbers.iter().any(|number| found.contains(number));
                            assert!(!some || loss == Loss::Cut, "{said}");
                        } else {
                            let whole = numbers.iter().all(|number| found.contains(number));
                            assert!(whole, "{said}: {id}");
                        }
                    }
                    assert!(report.notes.iter().any(|note| note.contains(&name)), "{said}");

                    report.delete(&disk, Path::new(DIRECTORY)).await.expect("deletes");
                    let kept = simulated.files();
                    let expected = if loss == Loss::Deleted { 0 } else { lost.len() };
                    assert_eq!(logs(&kept).len(), expected, "{said}: {kept:?}");
                    assert!(
                        kept.iter().all(|path| path.extension().is_some_and(|e| e == "damaged"))
                    );
                    let (report, records) = replayed(&disk).await;
                    assert_eq!((records, report.notes), (vec![], vec![]), "{said}");
                    assert!(report.next_segment > *lost.last().expect("some") || kept.is_empty());
                });
            }
        }
    }
}

/// Proves that a manifest that is missing or damaged is noticed, and that with `ignore` the segments replay without it.
#[test]
fn lost_manifests() {
    for loss in LOSSES {
        let (disk, simulated) = Disk::simulated(41);
        simulated.runtime().clone().block_on(async {
            let numbers = killed(&disk, &simulated, SyncMode::Batch).await;
            let manifest = manifest_path(Path::new(DIRECTORY), 0);
            lose(&disk, &simulated, &manifest, loss).await;
            let (outcome, _) = replayed_with(&disk, OnCorruption::Stop).await;
            let (report, records) = replayed_with(&disk, OnCorruption::Ignore).await;
            assert_eq!(records.len(), numbers.concat().len(), "{loss:?}");
            match (loss, outcome) {
                // One of its two slots is whole.
                (Loss::Cut | Loss::Half, Ok(_)) => {}
                (Loss::Deleted, Err(Error::Missing { path, .. })) => assert_eq!(path, manifest),
                (_, Err(Error::Corrupt { path, .. })) => assert_eq!(path, manifest),
                (loss, outcome) => panic!("{loss:?}: {outcome:?}"),
            }
            report.expect("ignored").delete(&disk, Path::new(DIRECTORY)).await.expect("deletes");
            assert!(replayed(&disk).await.1.is_empty());
        });
    }
}

/// Proves that a start that ends between any two operations of deleting what it replayed leaves nothing that the next one refuses.
#[test]
fn cut_short_deletions() {
    for operation in 0.. {
        let (disk, simulated) = Disk::simulated(42 + operation);
        let done = simulated.runtime().clone().block_on(async {
            killed(&disk, &simulated, SyncMode::Batch).await;
            let (report, _) = replayed(&disk).await;
            simulated.crash_at(simulated.ops_count() + operation);
            let outcome = report.delete(&disk, Path::new(DIRECTORY)).await;
            simulated.restart();
            let (report, records) = replayed(&disk).await;
            assert_eq!(report.notes, Vec::<String>::new(), "operation {operation}");
            assert!(records.is_sorted_by_key(|(_, at, _)| *at));
            outcome.is_ok()
        });
        if done {
            assert!(operation > 6, "{operation}");
            return;
        }
    }
}

/// Proves that a segment and a manifest of a newer version are refused by that name, whatever the policy, and that a damaged version is
/// damage.
#[test]
fn newer_versions() {
    for (file, magic) in
        [(path(2), *b"HALCYLOG"), (manifest_path(Path::new(DIRECTORY), 0), *b"HALCMANI")]
    {
        let (disk, simulated) = Disk::simulated(43);
        simulated.runtime().clone().block_on(async {
            killed(&disk, &simulated, SyncMode::Batch).await;
            let mut bytes = simulated.contents(&file).expect("a file");
            put_magic(&mut bytes, magic, 77);
            replace(&disk, &file, &bytes).await;
            for policy in [OnCorruption::Stop, OnCorruption::Ignore] {
                match replayed_with(&disk, policy).await.0 {
                    Err(Error::Newer { path, version: 77, .. }) => assert_eq!(path, file),
                    outcome => panic!("{outcome:?}"),
                }
            }
        });
    }
}

/// The bytes of a segment that the first version wrote, from their description.
fn segment_1() -> Vec<u8> {
    let text = include_str!("segments_1.txt");
    let mut bytes = Vec::new();
    for line in text.lines().skip(1).take_while(|line| line.starts_with(' ')) {
        let mut words = line.get(8..).expect("an offset").split_whitespace();
        if line.as_bytes().get(8) == Some(&b' ') {
            continue;
        }
        let first = words.next().expect("bytes");
        match words.next() {
            Some("×") => {
                let byte = u8::from_str_radix(words.next().expect("a byte"), 16).expect("hex");
                bytes.extend(std::iter::repeat_n(byte, first.parse().expect("a number")));
            }
            _ => bytes.extend(first.as_bytes().chunks(2).map(|digits| {
                let digits = std::str::from_utf8(digits).expect("digits");
                u8::from_str_radix(digits, 16).expect("hex")
            })),
        }
    }
    bytes.resize(SEGMENT as usize, 0);
    bytes
}

/// Proves that a directory from before the manifest replays: a segment of the first version, and a file that was being prepared.
#[test]
fn first_version() {
    let (disk, _) = Disk::simulated(44);
    simulated_directory(&disk);
    let name = |id| Path::new(DIRECTORY).join(file_name(2, id));
    halcyon_io::block_on(async {
        disk.write_new(&name(7), &segment_1(), Purpose::CommitLog).await.expect("writes");
        disk.write_new(&name(8), &[0; 4096], Purpose::CommitLog).await.expect("writes");
        let (report, records) = replayed(&disk).await;
        let bodies: Vec<_> = records.into_iter().map(|(_, _, body)| body).collect();
        assert_eq!(bodies, [b"first".to_vec(), vec![b'x'; 70], vec![]]);
        assert_eq!((report.notes, report.next_segment), (vec![], 9));
    });
}

fn simulated_directory(disk: &Disk) {
    halcyon_io::block_on(disk.create_dir_all(Path::new(DIRECTORY))).expect("creates");
}
