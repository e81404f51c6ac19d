//! Whose a folder is: a node and the tools that write do not work in the same one.
//!
//! ```text
//!                   node     tool
//!   data/           alone    shared     the lock of a directory, by how its holder has it
//!   data/ks/                 shared
//!   data/ks/t-…/             alone      a node: only if it is a link to elsewhere
//! ```
//!
//! 1. So a tool is refused beside a node and a node beside a tool, whichever comes first; tools in different tables do not hinder each
//!    other. Locks are of inodes: another path, a bind mount, a link lead to the same one.
//! 2. The kernel drops the locks of a process that has ended, so nothing stale is left by a kill.
//! 3. Cassandra takes no locks. It is seen by the SSTables that it has open: before anything is touched, and once more before the
//!    COMMIT. If its start undoes the transaction, the log is missing, and the transaction ends without touching any file (`txn_log`).
//! 4. Then interrupted transactions are finished or undone, before any file is opened.
//!
//! Not seen: see `halcyon_io::OpenElsewhere`; a program of Cassandra's whose files cannot be seen is reported.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use futures_util::future::LocalBoxFuture;
use halcyon_io::{DirLock, Disk, Process};

use crate::{Error, Result, txn_log};

/// The folders above a table's, up to the data directory of an index's folder.
const ABOVE: usize = 3;

/// Folders that belong to this process until the claim is dropped.
#[derive(Debug)]
pub struct Claim {
    /// Path prefixes of the SSTables that recovery deleted.
    pub recovered: Vec<String>,
    /// Cassandra's programs whose open files cannot be listed.
    pub unseen: Vec<Process>,
    directories: Vec<PathBuf>,
    _locks: Vec<DirLock>,
}

/// Locks and recovers `directories`.
pub fn claim<'a>(disk: &'a Disk, directories: &'a [PathBuf]) -> LocalBoxFuture<'a, Result<Claim>> {
    Box::pin(async move {
        let _locks = lock(disk, directories).await?;
        let directories = directories.to_vec();
        let mut claim = Claim { recovered: Vec::new(), unseen: Vec::new(), directories, _locks };
        claim.unseen = claim.check(disk).await?;
        for directory in &claim.directories {
            claim.recovered.extend(txn_log::recover(disk, directory).await?);
        }
        Ok(claim)
    })
}

async fn lock(disk: &Disk, directories: &[PathBuf]) -> Result<Vec<DirLock>> {
    let (mut own, mut above) = (BTreeSet::new(), BTreeSet::new());
    for directory in directories {
        let real = disk.real_path(directory).await?;
        for path in [&txn_log::absolute(directory), &real] {
            for ancestor in path.ancestors().skip(1).take(ABOVE) {
                above.insert(disk.real_path(ancestor).await?);
            }
        }
        own.insert(real);
    }
    let mut locks = Vec::new();
    for directory in &own {
        locks.push(disk.lock_dir(directory).await?);
    }
    for directory in above.difference(&own) {
        match disk.share_dir(directory).await {
            // Who may not read it has no node in it.
            Err(halcyon_io::Error::Denied { .. }) => {}
            taken => locks.push(taken?),
        }
    }
    Ok(locks)
}

impl Claim {
    /// Fails if another process has a file of the folders open, or Cassandra one of another table in the same data directory. Returns
    /// Cassandra's programs whose open files cannot be listed.
    pub fn check<'a>(&'a self, disk: &'a Disk) -> LocalBoxFuture<'a, Result<Vec<Process>>> {
        Box::pin(async move {
            let mut files = Vec::new();
            for directory in &self.directories {
                files.extend(files_in(disk, directory).await?);
            }
            let elsewhere = disk.open_elsewhere(files).await?;
            if let Some((process, file)) = elsewhere.users.into_iter().next() {
                return Err(Error::InUse { process, file });
            }
            let absolute = self.directories.iter().map(|directory| txn_log::absolute(directory));
            let data = absolute.filter_map(|path| path.ancestors().nth(2).map(Path::to_path_buf));
            let unseen = refuse_cassandra(disk, &data.collect::<BTreeSet<_>>()).await?;
            Ok(unseen)
        })
    }
}

/// Fails if Cassandra has an SSTable in one of the data directories open. Returns its programs whose open files cannot be listed.
pub async fn refuse_cassandra<'a>(
    disk: &Disk,
    data: impl IntoIterator<Item = &'a PathBuf>,
) -> Result<Vec<Process>> {
    let mut files = Vec::new();
    for data in data {
        for keyspace in folders_in(disk, data).await? {
            for table in folders_in(disk, &keyspace).await? {
                files.extend(files_in(disk, &table).await?);
            }
        }
    }
    files.retain(|path| path.to_string_lossy().ends_with("-Data.db"));
    let elsewhere = disk.open_elsewhere(files).await?;
    match elsewhere.users.into_iter().find(|(process, _)| process.is_cassandra) {
        Some((process, file)) => Err(Error::InUse { process, file }),
        None => Ok(elsewhere.unseen),
    }
}

async fn folders_in(disk: &Disk, directory: &Path) -> Result<Vec<PathBuf>> {
    entries(disk, directory, true).await
}

async fn files_in(disk: &Disk, directory: &Path) -> Result<Vec<PathBuf>> {
    entries(disk, directory, false).await
}

/// What may not be listed, or has just been removed, is not a table's folder.
async fn entries(disk: &Disk, directory: &Path, folders: bool) -> Result<Vec<PathBuf>> {
    use halcyon_io::Error as Io;
    let entries = match disk.list(directory).await {
        Err(Io::Denied { .. } | Io::NotFound { .. }) => return Ok(Vec::new()),
        entries => entries?,
    };
    let wanted = entries.iter().filter(|entry| entry.is_dir == folders);
    Ok(wanted.map(|entry| directory.join(&entry.name)).collect())
}
