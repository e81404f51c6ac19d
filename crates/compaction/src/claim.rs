//! Taking folders for a compaction that replaces SSTables in them.
//!
//! Each folder is locked against a second compaction, and what a transaction that was cut short left there is finished
//! or undone, before anything in it is opened.

use std::path::PathBuf;

use halcyon_io::{DirLock, Disk};

use crate::{Result, txn_log};

/// Folders that are this process's until the claim is dropped.
#[derive(Debug)]
pub struct Claim {
    /// Path prefixes of the SSTables that an unfinished transaction had left and that are deleted now.
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
