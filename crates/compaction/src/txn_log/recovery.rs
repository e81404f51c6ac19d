//! What a start does with the logs that it finds (`LogTransaction.removeUnfinishedLeftovers`).
//!
//! 1. The replicas of a log are read together and checked against the files that they are about. A doubt stops everything before
//!    anything is deleted.
//! 2. The files of dead SSTables are deleted, wherever they lie, and the directories synced.
//! 3. The replicas are deleted: those that do not decide first, so that what is left never says the opposite.
//!
//! Each step may be stopped anywhere and done again.

use std::collections::BTreeSet;
use std::path::Path;

use halcyon_io::Disk;

use super::replicas::{Found, Replicas, file_prefix, find, logs_in};
use super::transaction::absolute;
use crate::Result;

/// File-name prefixes (`oa-1-big-`) in a directory that readers must leave out, because a transaction log says so.
pub async fn dead_in_directory(disk: &Disk, directory: &Path) -> Result<Vec<String>> {
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
}

/// Finishes or undoes what the logs in `directory` describe, also in the other directories that they name; returns the
/// prefixes of the SSTables that were deleted.
pub async fn recover(disk: &Disk, directory: &Path) -> Result<Vec<String>> {
    let mut deleted = Vec::new();
    for path in logs_in(disk, &absolute(directory)).await? {
        let replicas = Replicas::load(disk, &path).await?;
        replicas.verify(disk).await?;
        let logs = replicas.in_order_of_deletion();
        let mut homes: BTreeSet<&Path> = logs.iter().filter_map(|path| path.parent()).collect();
        // What an earlier start or the transaction itself has removed must not come back after it.
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
}

async fn sync_all(disk: &Disk, directories: &BTreeSet<&Path>) -> Result<()> {
    for directory in directories {
        disk.sync_dir(directory).await?;
    }
    Ok(())
}

/// One that is gone already was reached by another name of its directory.
pub(super) async fn remove_log(disk: &Disk, path: &Path) -> Result<()> {
    match disk.remove(path).await {
        Err(e) if e.is_not_found() => {}
        other => other?,
    }
    disk.sync_dir(path.parent().unwrap_or(Path::new("/"))).await?;
    Ok(())
}

/// Deletes the files of an SSTable, oldest first, so that the newest modification time, which tells whose files they are, is there
/// until the end; of equally old ones Data.db first, so that what is left is no whole SSTable.
pub(super) async fn delete(disk: &Disk, mut found: Found) -> Result<()> {
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
