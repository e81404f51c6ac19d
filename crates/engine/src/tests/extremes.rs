//! Whatever a statement may write can be flushed, compacted and read again, in every version that the node is set to.

use halcyon_sstable::Version;

use super::*;

const LATE: u32 = 3_000_000_000;

/// A deletion of the partition, of a range over several index blocks, and rows on both sides of it.
fn negative(table: &Table, k: i32) -> Mutation {
    let mut m = Mutation::new(table.id, table.layout.clone(), key(k));
    m.deletion = deletion(-7);
    m.range_tombstones.push(RangeTombstone {
        start: bound(table, BoundKind::InclStart, 0),
        end: bound(table, BoundKind::InclEnd, 5000),
        time: deletion(-5),
    });
    m.rows.extend((0..8000).map(|c| row(table, c, 1, if c % 2 == 0 { -4 } else { -6 })));
    m
}

fn late(table: &Table, k: i32) -> Mutation {
    let mut m = insert(table, k, 1, 1, 10);
    for row in &mut m.rows {
        row.parts.liveness.ttl = 100;
        row.parts.liveness.local_expiration_time = LATE;
        for cell in &mut row.parts.cells {
            (cell.ttl, cell.local_deletion_time) = (100, LATE);
        }
    }
    m
}

fn versions(node: &Node, table: &Table) -> Vec<String> {
    let store = node.engine.tables.stores.load().get(&table.id).cloned().expect("the table");
    let version = store.version.load();
    let mut names: Vec<_> =
        version.sstables().iter().map(|live| live.descriptor().version.to_string()).collect();
    names.sort();
    names
}

/// What a node that writes `version` makes of the mutations: versions after a flush of each, versions after a compaction, rows.
async fn kept(
    version: Option<Version>,
    mutations: impl Fn(&Table) -> Vec<Mutation>,
) -> (Vec<String>, Vec<String>, Vec<(i32, i32)>) {
    let (disk, _) = Disk::simulated(1);
    let set = |options: &mut Options| {
        options.version = version;
        options.commitlog.segment_size = 1 << 20;
    };
    let node = start_with(disk, set).await.expect("starts");
    let table = table();
    change(&node, std::slice::from_ref(&table)).await.expect("schema");
    for mutation in mutations(&table) {
        node.shard.apply(vec![mutation]).await.expect("applied");
        node.engine.flusher().flush(Some(table.id)).await.expect("flushed");
    }
    let before = contents(&node, &table).await;
    let flushed = versions(&node, &table);
    node.engine.compactor().compact(table.id).await.expect("compacted");
    let after = contents(&node, &table).await;
    assert_eq!(before, after);
    (flushed, versions(&node, &table), after.into_keys().collect())
}

/// Proves that deletions at timestamps below zero are kept, and that the SSTables are in the one version that can store them.
#[test]
fn negative_timestamps_are_kept() {
    for version in [Version::NB, Version::OA, Version::PA, Version::DA, Version::EA] {
        simulate(async move {
            let (flushed, compacted, rows) =
                kept(Some(version), |table| vec![negative(table, 1), insert(table, 2, 1, 1, 5)])
                    .await;
            let mut expected = vec!["nb".to_owned(), version.to_string()];
            expected.sort();
            assert_eq!(flushed, expected);
            assert_eq!(compacted, ["nb"], "{version}");
            let alive = |c: &i32| *c > 5000 || c % 2 == 0;
            let expected: Vec<_> =
                (0..8000).filter(alive).map(|c| (1, c)).chain([(2, 1)]).collect();
            assert_eq!(rows.len(), expected.len(), "{version}");
            assert_eq!(rows, expected, "{version}");
        });
    }
}

/// Proves that an expiration after 2038 is kept, also in `nb`, where it does not fit: beside a deletion below zero it is capped.
#[test]
fn late_expirations_are_kept() {
    simulate(async {
        let (flushed, compacted, rows) =
            kept(Some(Version::NB), |table| vec![late(table, 1), insert(table, 2, 1, 1, 5)]).await;
        assert_eq!(flushed, ["nb", "oa"]);
        assert_eq!(compacted, ["oa"]);
        assert_eq!(rows, [(1, 1), (2, 1)]);
        let both = |table: &Table| {
            let mut both = late(table, 1);
            both.deletion = deletion(-7);
            vec![both]
        };
        let (flushed, _, rows) = kept(Some(Version::OA), both).await;
        assert_eq!((flushed, rows), (vec!["nb".to_owned()], vec![(1, 1)]));
    });
}

/// Proves that without a setting a node writes what the directory's last owner could read.
#[test]
fn a_directory_keeps_its_version() {
    for version in [None, Some(Version::OA), Some(Version::DA), Some(Version::NB)] {
        let (_, sim) = Disk::simulated(7);
        let set = move |options: &mut Options| options.version = version;
        life(&sim, |disk| async move {
            let node = start_with(disk, set).await.expect("starts");
            change(&node, &[table()]).await.expect("schema");
            node.engine.drain().await.expect("drained");
        });
        life(&sim, |disk| async move {
            let node = start_with(disk, |options| options.version = None).await.expect("starts");
            let table = user_table(&node);
            node.shard.apply(vec![insert(&table, 1, 1, 1, 10)]).await.expect("applied");
            node.engine.flusher().flush(Some(table.id)).await.expect("flushed");
            let newer = version.is_some_and(|version| version != Version::NB);
            assert_eq!(versions(&node, &table), [if newer { "oa" } else { "nb" }]);
            let latest = if newer { u32::MAX - 2 } else { i32::MAX as u32 - 1 };
            assert_eq!(node.engine.tables().latest_expiration(), latest);
        });
    }
}
