//! One unusable SSTable or table does not keep the node down, and nothing of it is lost.

use halcyon_model::Cursor;
use halcyon_model::options::{Entries, MapOption};
use halcyon_sstable::format::statistics::Statistics;
use halcyon_sstable::{Component, Version};

use super::*;
use crate::{DiskFailurePolicy, SetApart};

const OTHER: [u8; 16] = *b"another table's!";

/// The first Statistics.db of the first table.
fn statistics(sim: &SimDisk) -> std::path::PathBuf {
    let is_statistics = |path: &std::path::PathBuf| {
        let name = path.to_string_lossy();
        name.contains("/ks/t-") && name.ends_with(Component::Statistics.file_suffix())
    };
    sim.files().into_iter().find(is_statistics).expect("statistics")
}

/// A node with two tables, two SSTables each, of the first one a damaged.
fn damaged() -> SimDisk {
    let (_, sim) = Disk::simulated(5);
    life(&sim, |disk| async move {
        let node = start(disk).await.expect("starts");
        let tables = [table(), table_named("u", OTHER)];
        change(&node, &tables).await.expect("schema");
        for c in 0..2 {
            for table in &tables {
                node.shard.apply(vec![insert(table, 1, c, c, 10)]).await.expect("applied");
                node.engine.flusher().flush(Some(table.id)).await.expect("flushed");
            }
        }
        node.engine.drain().await.expect("drained");
    });
    assert!(sim.flip(&statistics(&sim), 40, 3));
    sim
}

async fn with_policy(disk: Disk, policy: DiskFailurePolicy) -> Result<Node> {
    start_with(disk, |options| options.disk_failure_policy = policy).await
}

/// Proves what each policy makes of a damaged SSTable: no start, or a start that serves everything else, and names it.
#[test]
fn a_damaged_sstable() {
    use DiskFailurePolicy::{BestEffort, Die, Ignore, Stop, StopParanoid};
    let sim = damaged();
    let before = sim.snapshot();
    for policy in [StopParanoid, Die] {
        life(&sim, |disk| async move {
            let refused = with_policy(disk, policy).await.err().expect("refused").to_string();
            assert!(
                refused.contains("Statistics.db") && refused.contains("best_effort"),
                "{refused}"
            );
        });
    }
    for policy in [Stop, BestEffort, Ignore] {
        sim.restore(&before);
        life(&sim, |disk| async move {
            let node = with_policy(disk, policy).await.expect("starts");
            let [SetApart { keyspace, table: name, sstable: Some(_), why }] =
                &node.engine.tables().set_apart()[..]
            else {
                panic!("{:?}", node.engine.tables().set_apart())
            };
            assert_eq!((keyspace.as_str(), name.as_str()), ("ks", "t"));
            assert!(
                node.report.warnings.iter().any(|warning| warning.contains(why)),
                "{:?}",
                node.report.warnings
            );
            let (table, other) = (user_table(&node), table_named("u", OTHER));
            assert_eq!(contents(&node, &other).await.len(), 2);
            node.shard.apply(vec![insert(&table, 2, 0, 0, 10)]).await.expect("applied");
            node.engine.flusher().flush(Some(table.id)).await.expect("flushed");
            node.engine.compactor().compact(table.id).await.expect("compacted");
            let warning = node.shard.read_warning(table.id).expect("a warning");
            assert!(warning.contains("ks.t") && !warning.contains("/halcyon"), "{warning}");
            match policy {
                Stop => {
                    let refused =
                        node.shard.read(all(&table)).await.err().expect("refused").to_string();
                    assert_eq!(refused, warning);
                }
                _ => assert_eq!(contents(&node, &table).await.len(), 2),
            }
            let refused =
                node.engine.schema().truncate(table.id).await.expect_err("refused").to_string();
            assert!(refused.contains("set apart"), "{refused}");
        });
    }
}

/// A node as `damaged`, with something in the folder of the first table that a start cannot use: what it says of that.
fn told_beside(put: impl AsyncFn(&Disk, &Path), words: &'static [&'static str]) {
    use DiskFailurePolicy::{BestEffort, Stop, StopParanoid};
    let sim = damaged();
    let statistics = statistics(&sim);
    assert!(sim.flip(&statistics, 40, 3), "sound again");
    let path = statistics.clone();
    life(&sim, |disk| async move { put(&disk, &path).await });
    life(&sim, |disk| async move {
        let refused = with_policy(disk, StopParanoid).await.err().expect("refused").to_string();
        assert!(words.iter().all(|word| refused.contains(word)), "{refused}");
    });
    for policy in [Stop, BestEffort] {
        life(&sim, |disk| async move {
            let node = with_policy(disk, policy).await.expect("starts");
            let [SetApart { table: name, sstable: Some(_), why, .. }] =
                &node.engine.tables().set_apart()[..]
            else {
                panic!("{:?}", node.engine.tables().set_apart())
            };
            assert_eq!(name, "t");
            assert!(words.iter().all(|word| why.contains(word)), "{why}");
            assert!(node.report.warnings.iter().any(|warning| warning.contains(why)));
            let read = node.shard.read(all(&user_table(&node))).await;
            assert_eq!(read.is_err(), policy == Stop);
            assert_eq!(contents(&node, &table_named("u", OTHER)).await.len(), 2);
        });
    }
}

/// Proves that SSTables from before Cassandra 3.0, and files of other names that end as those of SSTables do, are not passed over.
#[test]
fn files_of_no_readable_name() {
    for (name, words) in [
        ("ks-t-ka-1-Data.db", &["version ka", "upgradesstables"][..]),
        ("stray.db", &["stray.db is not named as an SSTable's file"]),
    ] {
        told_beside(
            async |disk, beside| {
                let purpose = halcyon_io::Purpose::Flush;
                disk.write_new(&beside.with_file_name(name), b"x", purpose).await.expect("written");
            },
            words,
        );
    }
}

/// Proves that an SSTable of another partitioner is named as such, and does not keep the node down.
#[test]
fn an_sstable_in_another_order() {
    told_beside(
        async |disk, path| {
            let bytes = disk.read(path, 1 << 20).await.expect("read");
            let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
            let version = match name.starts_with("nb") {
                true => Version::NB,
                false => Version::OA,
            };
            let decoded = Statistics::decode(&mut Cursor::new(&bytes), version);
            let mut statistics = decoded.expect("statistics");
            let validation = statistics.validation.as_mut().expect("validation");
            validation.partitioner = "org.apache.cassandra.dht.ByteOrderedPartitioner".into();
            let mut bytes = Vec::new();
            statistics.encode(version, &mut bytes);
            disk.remove(path).await.expect("removed");
            disk.write_new(path, &bytes, halcyon_io::Purpose::Flush).await.expect("written");
        },
        &["ByteOrderedPartitioner", "sstableloader"],
    );
}

/// Proves that a tombstone stays as long as an SSTable is set apart whose data it may shadow, and that the repaired SSTable is used.
#[test]
fn a_repaired_sstable_brings_nothing_back() {
    let sim = damaged();
    let path = statistics(&sim);
    life(&sim, |disk| async move {
        let node = with_policy(disk, DiskFailurePolicy::BestEffort).await.expect("starts");
        let table = user_table(&node);
        let mut m = Mutation::new(table.id, table.layout.clone(), key(1));
        m.deletion = deletion(20);
        node.shard.apply(vec![m]).await.expect("applied");
        node.engine.flusher().flush(Some(table.id)).await.expect("flushed");
        node.engine.compactor().compact(table.id).await.expect("compacted");
        node.engine.drain().await.expect("drained");
    });
    assert!(sim.flip(&path, 40, 3), "the SSTable is still there");
    life(&sim, |disk| async move {
        let node = start(disk).await.expect("starts");
        assert_eq!(node.engine.tables().set_apart(), []);
        assert_eq!(contents(&node, &user_table(&node)).await.len(), 0);
    });
}

fn with_compressor(class: &str) -> Arc<Table> {
    let mut schema = table().schema.clone();
    let entries = Entries::from([("class".to_owned(), class.to_owned())]);
    schema.options.compression = Some(MapOption::lenient(entries));
    Arc::new(Table::new(ID, TableKind::Regular, schema))
}

/// Proves that a table with an unusable schema is set apart, and that its writes in the commit log wait for a start that can use it.
#[test]
fn a_table_that_cannot_be_used() {
    let (_, sim) = Disk::simulated(6);
    let clock = sim.clock().clone();
    life(&sim, |disk| async move {
        let node = start(disk).await.expect("starts");
        let (table, other) = (table(), table_named("u", OTHER));
        change(&node, &[table.clone(), other.clone()]).await.expect("schema");
        node.shard.apply(vec![insert(&table, 1, 1, 1, 10)]).await.expect("applied");
        node.shard.apply(vec![insert(&other, 1, 1, 1, 10)]).await.expect("applied");
        // Of two schema changes at one time the first could win.
        clock.advance(std::time::Duration::from_secs(1));
        change(&node, &[with_compressor("org.acme.Fancy"), other]).await.expect("schema");
    });
    sim.crash_to_synced();
    for _ in 0..2 {
        life(&sim, |disk| async move {
            let node = start(disk).await.expect("starts");
            let [SetApart { table: name, sstable: None, why, .. }] =
                &node.engine.tables().set_apart()[..]
            else {
                panic!("{:?}", node.engine.tables().set_apart())
            };
            assert_eq!(name, "t");
            assert!(why.contains("Fancy"), "{why}");
            assert!(
                node.report.notes.iter().any(|n| n.contains("commit log is kept")),
                "{:?}",
                node.report
            );
            let refused = node
                .engine
                .tables()
                .catalog()
                .check_usable("ks", "t")
                .expect_err("refused")
                .to_string();
            assert!(refused.contains("Fancy"), "{refused}");
            assert_eq!(contents(&node, &table_named("u", OTHER)).await.len(), 1);
        });
        sim.crash_to_synced();
    }
    life(&sim, |disk| async move {
        let node = start(disk).await.expect("starts");
        let at = WriteTime {
            micros: node.engine.disk().clock().unix_micros() + 1_000_000,
            seconds: 1_600_000_000,
        };
        let other = table_named("u", OTHER);
        let broken = catalog(&node.engine, &[with_compressor("org.acme.Fancy"), other.clone()]);
        let sound = catalog(&node.engine, &[table(), other]);
        let lock = node.engine.schema().lock().await;
        let unchanged = node.engine.tables().catalog();
        node.engine
            .schema()
            .change(&lock, unchanged, difference(&broken, &sound, at))
            .await
            .expect("written");
    });
    sim.crash_to_synced();
    life(&sim, |disk| async move {
        let node = start(disk).await.expect("starts");
        assert_eq!(node.engine.tables().set_apart(), []);
        assert_eq!(contents(&node, &user_table(&node)).await, BTreeMap::from([((1, 1), 1)]));
    });
}
