//! Recovery from transaction logs at the start (`LogTransaction.removeUnfinishedLeftovers`).
//!
//! 1. Read all replicas of a log and compare them with the files that they name. A contradiction stops the recovery before any
//!    deletion.
//! 2. Delete the files of dead SSTables in all directories, and sync the directories.
//! 3. Delete the replicas. The one that decides goes last, so that the remaining ones never mean the opposite.
//!
//! Each step can be interrupted and repeated.

use std::collections::BTreeSet;
use std::path::Path;

use futures_util::future::LocalBoxFuture;
use halcyon_io::Disk;

use super::replicas::{Replicas, SSTableFiles, absolute, file_prefix, find, logs_in};
use crate::Result;

/// The file-name prefixes (`oa-1-big-`) of SSTables in a directory that are not live according to a transaction log.
pub fn dead_in_directory<'a>(
    disk: &'a Disk,
    directory: &'a Path,
) -> LocalBoxFuture<'a, Result<Vec<String>>> {
    Box::pin(async move {
        let mut dead = Vec::new();
        for path in logs_in(disk, &absolute(directory)).await? {
            let replicas = Replicas::load(disk, &path).await?;
            replicas.verify(disk).await?;
            for record in replicas.log.dead() {
                if replicas.is_here(disk, record).await? {
                    dead.push(file_prefix(record).to_string());
                }
            }
        }
        Ok(dead)
    })
}

/// The file-name prefixes (`oa-1-big-`) of all SSTables that transactions with a log in a directory of a running node add or remove.
pub fn named_in_directory<'a>(
    disk: &'a Disk,
    directory: &'a Path,
) -> LocalBoxFuture<'a, Result<BTreeSet<String>>> {
    Box::pin(async move {
        let mut named = BTreeSet::new();
        for path in logs_in(disk, &absolute(directory)).await? {
            // A log that has gone since is read as one without records: its transaction is over.
            let replicas = Replicas::load(disk, &path).await?;
            named.extend(replicas.log.records.iter().map(|record| file_prefix(record).to_owned()));
        }
        Ok(named)
    })
}

/// Finishes or undoes the transactions with a log in `directory`, in all directories that they name. Returns the prefixes of deleted
/// SSTables.
pub fn recover<'a>(disk: &'a Disk, directory: &'a Path) -> LocalBoxFuture<'a, Result<Vec<String>>> {
    Box::pin(async move {
        let mut deleted = Vec::new();
        for path in logs_in(disk, &absolute(directory)).await? {
            let replicas = Replicas::load(disk, &path).await?;
            replicas.verify(disk).await?;
            let logs = replicas.in_order_of_deletion();
            let mut homes: BTreeSet<&Path> = logs.iter().filter_map(|path| path.parent()).collect();
            // Make earlier deletions (by the transaction or by another start) durable before the log is deleted.
            sync_all(disk, &homes).await?;
            for record in replicas.log.dead() {
                let Some(home) = replicas.home(record) else { continue };
                delete(disk, find(disk, home, file_prefix(record)).await?).await?;
                homes.insert(home);
                deleted.push(record.prefix.clone());
            }
            sync_all(disk, &homes).await?;
            for path in logs {
                remove_log(disk, path).await?;
            }
        }
        Ok(deleted)
    })
}

async fn sync_all(disk: &Disk, directories: &BTreeSet<&Path>) -> Result<()> {
    for directory in directories {
        disk.sync_dir(directory).await?;
    }
    Ok(())
}

/// Deletes a log. It can be missing already, if its directory has a second name.
pub(super) async fn remove_log(disk: &Disk, path: &Path) -> Result<()> {
    match disk.remove(path).await {
        Err(e) if e.is_not_found() => {}
        other => other?,
    }
    disk.sync_dir(path.parent().unwrap_or(Path::new("/"))).await?;
    Ok(())
}

/// Deletes the files of an SSTable, oldest first: the newest modification time identifies the files, and must remain until the end. Among
/// files of the same age Data.db goes first, so that the rest cannot pass for a complete SSTable.
pub(super) async fn delete(disk: &Disk, mut found: SSTableFiles) -> Result<()> {
    found.paths.sort_by_key(|(path, modified)| {
        (*modified / 1000, !path.to_string_lossy().ends_with("-Data.db"), path.clone())
    });
    for (path, _) in found.paths {
        match disk.remove(&path).await {
            Err(e) if e.is_not_found() => {}
            other => other?,
        }
    }
    Ok(())
}
