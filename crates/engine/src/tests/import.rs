//! SSTables of other directories that become part of a table, and backups of what is added.

use std::path::PathBuf;

use super::*;
use crate::{ImportOptions, Imported, SnapshotOptions};

const ROWS: usize = 10;
const MOVED: ImportOptions = ImportOptions {
    verifies: true,
    is_extended: true,
    keeps_level: false,
    keeps_repaired: false,
    invalidates_caches: true,
    copies: false,
    needs_indexes: false,
};
const KEPT: ImportOptions = ImportOptions { copies: true, ..MOVED };

/// A disk with an empty table, and the folder where its two SSTables are.
fn emptied(seed: u64) -> (SimDisk, PathBuf) {
    let (_, sim) = Disk::simulated(seed);
    life(&sim, |disk| async move {
        let node = start_with(disk, |options| options.auto_snapshot = false).await.expect("starts");
        change(&node, &[table()]).await.expect("schema");
        let table = user_table(&node);
        for half in 0..2 {
            for c in (0..ROWS as i32).filter(|c| c % 2 == half) {
                node.shard.apply(vec![insert(&table, 1, c, c, 10)]).await.expect("applied");
            }
            node.engine.flusher().flush(Some(ID)).await.expect("flushed");
        }
        let options = SnapshotOptions { skip_flush: true, ttl_seconds: None };
        node.engine.snapshots().take(&[ID], "there", options).await.expect("taken");
        node.engine.schema().truncate(ID).await.expect("truncated");
        node.engine.drain().await.expect("drained");
    });
    let data = sim.files().into_iter().find(|file| file.to_string_lossy().contains("/there/"));
    let folder = data.and_then(|file| file.parent().map(Path::to_path_buf)).expect("a snapshot");
    (sim, folder)
}

async fn import(disk: Disk, folder: PathBuf, options: ImportOptions) -> Result<Imported> {
    let node = start(disk).await?;
    node.engine.schema().import(ID, vec![folder], options).await
}

fn data_files(sim: &SimDisk, folder: &Path) -> usize {
    let is_there = |file: &PathBuf| {
        file.parent() == Some(folder) && file.to_string_lossy().ends_with("-Data.db")
    };
    sim.files().iter().filter(|file| is_there(file)).count()
}

/// Proves that power loss at any operation of an import leaves the table with all rows of the directory or with none, and that with none
/// the directory has all of its files.
#[test]
fn power_loss_while_importing() {
    for options in [MOVED, KEPT] {
        let (sim, folder) = emptied(41);
        let begin = sim.snapshot();
        life(&sim, |disk| async move { start(disk).await.map(drop) }).expect("starts");
        let first = sim.ops_count();
        sim.restore(&begin);
        let done = life(&sim, |disk| import(disk, folder.clone(), options)).expect("undisturbed");
        assert_eq!((done.sstables, done.failed), (2, Vec::new()));
        let last = sim.ops_count();
        assert_eq!(data_files(&sim, &folder), if options.copies { 2 } else { 0 });
        let mut seen = [0, 0];
        for at in first..last {
            sim.restore(&begin);
            sim.crash_at(at);
            let _ = life(&sim, |disk| import(disk, folder.clone(), options));
            sim.restart();
            let rows = life(&sim, |disk| async move {
                let node = start(disk).await.unwrap_or_else(|e| panic!("power lost at {at}: {e}"));
                contents(&node, &user_table(&node)).await.len()
            });
            assert!(rows == 0 || rows == ROWS, "power lost at {at}: {rows} rows");
            let left = data_files(&sim, &folder);
            assert!(rows == ROWS || left == 2, "power lost at {at}: {left} files");
            seen[usize::from(rows == ROWS)] += 1;
        }
        assert!(seen.iter().all(|times| *times > 3), "{seen:?}");
    }
}

/// Proves that a directory with a damaged SSTable is left as it is unless nothing is checked, that the others are imported, and that
/// folders of tables and directories that do not exist are refused.
#[test]
fn damaged_directories_are_left() {
    let (sim, folder) = emptied(42);
    let data = sim.files().into_iter().find(|file| {
        file.parent() == Some(folder.as_path()) && file.to_string_lossy().ends_with("-Data.db")
    });
    assert!(sim.flip(&data.expect("a file"), 40, 3));
    let begin = sim.snapshot();
    let failed = life(&sim, |disk| import(disk, folder.clone(), MOVED)).expect("answered");
    assert_eq!((failed.sstables, data_files(&sim, &folder)), (0, 2));
    assert!(failed.failed.iter().all(|(of, why)| *of == folder && why.contains("-Data.db")));
    sim.restore(&begin);
    let unchecked = ImportOptions { verifies: false, ..MOVED };
    let done = life(&sim, |disk| import(disk, folder.clone(), unchecked)).expect("answered");
    assert_eq!((done.sstables, data_files(&sim, &folder)), (2, 0));
    let own = folder.ancestors().nth(2).expect("a table's folder").to_path_buf();
    let refused = life(&sim, |disk| import(disk, own, MOVED)).expect("answered").failed;
    assert!(refused[0].1.contains("is a folder of a table of this node"), "{refused:?}");
    let missing = life(&sim, |disk| import(disk, "/none".into(), MOVED)).map_err(|e| e.to_string());
    assert_eq!(missing, Err("Directory /none does not exist".to_owned()));
}

/// Proves that flushes and imports leave links in `backups/` while backups are on, and that these outlive their SSTables.
#[test]
fn what_is_added_is_backed_up() {
    let (sim, folder) = emptied(43);
    let own = folder.ancestors().nth(2).expect("a table's folder").join("backups");
    life(&sim, |disk| async move {
        let node = start_with(disk, |options| options.auto_snapshot = false).await.expect("starts");
        let table = user_table(&node);
        let flushed = async |c| {
            node.shard.apply(vec![insert(&table, 1, c, c, 10)]).await.expect("applied");
            node.engine.flusher().flush(Some(ID)).await.expect("flushed");
        };
        flushed(1).await;
        node.engine.tables().set_incremental_backups(true);
        flushed(2).await;
        let imported = node.engine.schema().import(ID, vec![folder], MOVED).await;
        assert_eq!(imported.expect("imported").sstables, 2);
        node.engine.tables().set_incremental_backups(false);
        flushed(3).await;
        node.engine.schema().truncate(ID).await.expect("truncated");
    });
    assert_eq!(data_files(&sim, &own), 3);
}
