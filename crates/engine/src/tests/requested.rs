//! Compactions of some SSTables, on request.

use std::path::PathBuf;
use std::time::Duration;

use super::*;
use crate::{MajorState, Rewrite, ScrubOptions, Selection};

/// A node with an SSTable for each of the keys.
async fn filled(disk: Disk, keys: &[i32]) -> Node {
    let node = start(disk).await.expect("starts");
    change(&node, &[table(), table_named("u", [7; 16])]).await.expect("schema");
    node.engine.compactor().set_automatic(ID, false).expect("known");
    for k in keys {
        node.shard.apply(vec![insert(&user_table(&node), *k, 1, 1, 1)]).await.expect("applied");
        node.engine.flusher().flush(Some(ID)).await.expect("flushed");
    }
    node
}

fn files(node: &Node) -> Vec<PathBuf> {
    let store = node.engine.tables.store_of(ID).expect("known");
    let version = store.version.load_full();
    let path = |live: &Arc<crate::version::LiveSSTable>| {
        live.descriptor().component_path(halcyon_sstable::Component::Data)
    };
    version.sstables().iter().map(path).collect()
}

/// What became of it, and how many SSTables went in and out.
async fn compact(node: &Node, selection: Selection) -> Result<(usize, usize), String> {
    node.engine.compactor().begin_major(ID, selection, None).map_err(|e| e.to_string())?;
    for _ in 0..10_000 {
        let major = node.engine.compactor().majors().remove(0);
        match major.state {
            MajorState::Running => {
                node.engine.disk().clock().sleep(Duration::from_millis(100)).await;
            }
            MajorState::Done => return Ok((major.sstables_in, major.sstables_out)),
            MajorState::Stopped => return Err("stopped".to_owned()),
            MajorState::Failed(why) => return Err(why),
        }
    }
    panic!("a compaction never ends")
}

/// Proves that ranges have both of their ends, that they can go around the ring, and that one without tokens has no SSTable.
#[test]
fn ranges_of_tokens() {
    simulate(async {
        let (disk, _) = Disk::simulated(41);
        let mut keys: Vec<i32> = (1..=4).collect();
        keys.sort_by_key(|k| key(*k).token);
        let tokens: Vec<i64> = keys.iter().map(|k| key(*k).token).collect();
        let node = filled(disk, &keys).await;
        let range = |start, end| Selection::Tokens { start, end };
        let cases = [
            (range(tokens[1], tokens[1]), (0, 0)),
            (range(tokens[1] + 1, tokens[2] - 1), (0, 0)),
            (range(tokens[1] - 1, tokens[1]), (1, 1)),
            (range(tokens[3], i64::MIN), (1, 1)),
            (range(i64::MIN, tokens[0]), (1, 1)),
            // Two of four, then both ends of the ring.
            (range(tokens[1], tokens[2]), (2, 1)),
            (range(tokens[3], tokens[0]), (2, 1)),
            (range(i64::MIN, i64::MAX), (2, 1)),
        ];
        for (selection, expected) in cases {
            let what = format!("{selection:?}");
            assert_eq!(compact(&node, selection).await, Ok(expected), "{what}");
        }
        assert_eq!((files(&node).len(), contents(&node, &user_table(&node)).await.len()), (1, 4));
    });
}

/// Proves that only the SSTables that may have a partition are compacted for it.
#[test]
fn partitions() {
    simulate(async {
        let (disk, _) = Disk::simulated(42);
        let node = filled(disk, &[1, 2, 1, 3]).await;
        let of = |k: i32| Selection::Key(k.to_be_bytes().to_vec());
        assert_eq!(compact(&node, of(1)).await, Ok((2, 1)));
        assert_eq!(compact(&node, of(77)).await, Ok((0, 0)));
        assert_eq!(files(&node).len(), 3);
    });
}

/// Proves that named files become one, and that a file that is not an SSTable of the table, or is being compacted, is refused unchanged.
#[test]
fn named_files() {
    simulate(async {
        let (disk, _) = Disk::simulated(43);
        let node = filled(disk, &[1, 2, 3]).await;
        let paths = files(&node);
        let [first, second, third] = paths.as_slice() else { panic!("{paths:?}") };
        let folder = first.parent().expect("a folder");
        let named = |paths: &[PathBuf]| Selection::Files(paths.to_vec());
        let name = first.file_name().expect("a name");
        let missing = folder.join("oa-99-big-Data.db");
        let elsewhere = PathBuf::from("/tmp/ks").join(folder.file_name().expect("one")).join(name);
        let refusals = [
            (missing, "is not an active SSTable of ks.t"),
            (elsewhere, "is not in a folder of ks.t"),
            (PathBuf::from(name), "is not in a folder of ks.t"),
            (PathBuf::from("../..").join(name), "is not in a folder of ks.t"),
            (PathBuf::from("/etc/passwd"), "expected, found"),
        ];
        for (path, refusal) in refusals {
            let refused = compact(&node, named(&[second.clone(), path])).await;
            assert!(refused.as_ref().is_err_and(|why| why.contains(refusal)), "{refused:?}");
        }
        let store = node.engine.tables.store_of(ID).expect("known");
        let serial = store.version.load().sstables()[0].serial();
        let (claim, ()) = store.claims.claim(|_| Some((vec![serial], ()))).expect("free");
        let refused = compact(&node, named(&[first.clone(), second.clone()])).await;
        assert!(refused.is_err_and(|why| why.contains("is being compacted already")));
        // What is free can be compacted meanwhile; the same file twice is one.
        assert_eq!(compact(&node, named(&[third.clone(), third.clone()])).await, Ok((1, 1)));
        drop(claim);
        let tail: PathBuf =
            second.components().rev().take(3).collect::<Vec<_>>().into_iter().rev().collect();
        assert_eq!(compact(&node, named(&[first.clone(), tail])).await, Ok((2, 1)));
        assert_eq!((files(&node).len(), contents(&node, &user_table(&node)).await.len()), (2, 3));
    });
}

/// Proves that an SSTable of the current version and compression is rewritten only if all are, each alone, and that all rows remain.
#[test]
fn rewrites_of_sstables() {
    simulate(async {
        let (disk, _) = Disk::simulated(45);
        let node = filled(disk, &[1, 2, 3]).await;
        for (which, expected) in [
            (Rewrite::OtherVersion, (0, 0)),
            (Rewrite::OtherCompression, (0, 0)),
            (Rewrite::All, (3, 3)),
        ] {
            let before = files(&node);
            assert_eq!(compact(&node, Selection::Rewrite(which)).await, Ok(expected));
            let after = files(&node);
            assert_eq!(after.iter().filter(|file| before.contains(file)).count(), 3 - expected.0);
        }
        assert_eq!(node.engine.tables().verify(ID, true).await.expect("verified"), []);
        let (path, level) = &node.engine.tables().sstables_of(ID, key(2)).await.expect("found")[0];
        assert!(files(&node).contains(path) && *level == 0);
        assert_eq!(node.engine.tables().sstables_of(ID, key(9)).await.expect("none"), []);
    });
}

/// Proves that a scrub leaves out what a flipped bit has made unreadable, and nothing else: the other SSTables keep their rows, the damaged
/// one is compacted again, and the log says what was lost. Without readable rows an SSTable has no successor.
#[test]
fn a_scrub_keeps_what_is_sound() {
    simulate(async {
        let (disk, sim) = Disk::simulated(46);
        let node = filled(disk, &[1, 2, 3]).await;
        let options = ScrubOptions { validates: true, ..ScrubOptions::default() };
        let scrub = || compact(&node, Selection::Scrub(options));
        assert_eq!(scrub().await, Ok((3, 3)));
        let damaged = files(&node).swap_remove(1);
        assert!(sim.flip(&damaged, 7, 3));
        assert!(compact(&node, Selection::Whole { split_output: false }).await.is_err());
        assert_eq!(scrub().await, Ok((3, 2)));
        assert!(!files(&node).contains(&damaged));
        assert_eq!(contents(&node, &user_table(&node)).await.len(), 2);
        assert_eq!(node.engine.tables().verify(ID, true).await.expect("verified"), []);
        assert_eq!(compact(&node, Selection::Whole { split_output: false }).await, Ok((2, 1)));
        let lost = "1 partitions are lost";
        let warned = warnings(&node);
        assert!(warned.iter().any(|line| line.contains(lost)), "{warned:?}");
    });
}

/// Proves that the tombstones of named partitions go before gc grace, and that those of others stay.
#[test]
fn forced_keys() {
    simulate(async {
        let (disk, _) = Disk::simulated(47);
        let node = filled(disk, &[1, 2]).await;
        let table = user_table(&node);
        for k in [1, 2] {
            let mut deleted = Mutation::new(ID, table.layout.clone(), key(k));
            deleted.deletion = deletion(5);
            node.shard.apply(vec![deleted]).await.expect("applied");
        }
        node.engine.flusher().flush(Some(ID)).await.expect("flushed");
        assert_eq!(contents(&node, &table).await.len(), 0);
        let forced = |k: i32| Selection::Forced(vec![k.to_be_bytes().to_vec()]);
        assert_eq!(compact(&node, forced(1)).await, Ok((2, 1)));
        let has = async |k: i32| {
            !node.engine.tables().sstables_of(ID, key(k)).await.expect("known").is_empty()
        };
        assert!(!has(1).await && has(2).await);
        assert_eq!(contents(&node, &table).await.len(), 0);
    });
}
