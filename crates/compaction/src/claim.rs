//! Claims folders for a compaction that replaces SSTables in them.
//!
//! Each folder is locked against another process. Interrupted transactions in it are finished or undone before any of its files is
//! opened.

use std::path::PathBuf;

use halcyon_io::{DirLock, Disk};

use crate::{Result, txn_log};

/// Folders that belong to this process until the claim is dropped.
#[derive(Debug)]
pub struct Claim {
    /// Path prefixes of the SSTables that recovery deleted.
    pub recovered: Vec<String>,
    _locks: Vec<DirLock>,
}

/// Locks and recovers `directories`.
pub async fn claim(disk: &Disk, directories: &[PathBuf]) -> Result<Claim> {
    let mut locks = Vec::with_capacity(directories.len());
    for directory in directories {
        locks.push(disk.lock_dir(directory).await?);
    }
    let mut recovered = Vec::new();
    for directory in directories {
        recovered.extend(txn_log::recover(disk, directory).await?);
    }
    Ok(Claim { recovered, _locks: locks })
}
