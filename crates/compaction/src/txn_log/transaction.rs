//! A running transaction: its log is written ahead of every step.
//!
//! A record must reach every replica; for the final one, a single replica is enough, because it decides for all
//! (`LogReplicaSet.append`). After a failed append, nothing more is appended: a record after a torn line would be unreadable too.
//! Before each step the replicas must be as long as this transaction has made them.
//!
//! A COMMIT whose append fails may be on the disk. So it is cut off, which needs no space, and the transaction is undone; only where that
//! fails too is the outcome in doubt.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use halcyon_io::{Disk, Purpose};
use halcyon_sstable::{Descriptor, Error as SSTableError, Format};

use super::recovery::{delete, remove_log};
use super::replicas::{absolute, any, find};
use super::{Record, RecordType};
use crate::{Error, Result};

/// Identifiers are unique unless a clock or a counter was set back; then one of the next is free.
const FRESH_TRIES: usize = 100;

/// A running transaction, with a log in each of its directories.
pub struct Transaction {
    disk: Disk,
    /// Log files by directory.
    logs: BTreeMap<PathBuf, PathBuf>,
    added: Vec<Descriptor>,
    removed: Vec<Descriptor>,
    /// Replicas that lack a record.
    short: BTreeSet<PathBuf>,
    /// The length of a replica that lacks none.
    length: u64,
}

/// The files that a committed transaction has replaced, and its log.
#[must_use = "the files stay until `delete`, or the next start"]
pub struct ReplacedFiles(Transaction);

impl ReplacedFiles {
    pub async fn delete(self) -> Result<()> {
        self.0.finish(&self.0.removed).await
    }
}

impl Transaction {
    /// Creates the logs, durable as names. `id` is a timeuuid as text.
    pub async fn begin(
        disk: &Disk,
        directories: impl IntoIterator<Item = PathBuf>,
        operation: &str,
        id: &str,
        version: halcyon_sstable::Version,
    ) -> Result<Transaction> {
        let version_part = match version.format {
            Format::Big => version.to_string(),
            Format::Bti => format!("bti-{version}"),
        };
        let name = format!("{version_part}_txn_{operation}_{id}.log");
        let log_in = |directory: PathBuf| {
            let directory = absolute(&directory);
            (directory.clone(), directory.join(&name))
        };
        let transaction = Transaction {
            disk: disk.clone(),
            logs: directories.into_iter().map(log_in).collect(),
            added: Vec::new(),
            removed: Vec::new(),
            short: BTreeSet::new(),
            length: 0,
        };
        transaction.create_logs().await?;
        Ok(transaction)
    }

    async fn create_logs(&self) -> Result<()> {
        let mut begun = Vec::new();
        let created = async {
            for (directory, path) in &self.logs {
                let created = self.disk.write_new(path, &[], Purpose::Flush).await;
                if !matches!(created, Err(halcyon_io::Error::AlreadyExists { .. })) {
                    begun.push(path);
                }
                created?;
                self.disk.sync_dir(directory).await?;
            }
            Ok(())
        };
        let created: Result<()> = created.await;
        if created.is_err() {
            for path in begun {
                // An empty log has no effect, so a failed removal is harmless.
                let _ = remove_log(&self.disk, path).await;
            }
        }
        created
    }

    /// Fails if a replica is missing, or has another length than this transaction gave it.
    async fn check_own(&self) -> Result<()> {
        for log in self.logs.values().filter(|log| !self.short.contains(*log)) {
            let length = match self.disk.stat(log).await {
                Err(e) if e.is_not_found() => None,
                found => Some(found?.len),
            };
            if length != Some(self.length) {
                return Err(Error::TakenOver { log: log.clone() });
            }
        }
        Ok(())
    }

    async fn append(&mut self, record: &Record) -> Result<()> {
        self.check_own().await?;
        let line = record.to_line();
        self.length += line.len() as u64;
        let mut failed = Ok(());
        for path in self.logs.values() {
            let appended = self.disk.append_sync(path, line.as_bytes()).await;
            if appended.is_err() {
                self.short.insert(path.clone());
                failed = failed.and(appended);
            }
        }
        // A replica in a directory that no record names cannot be found from the others.
        let decides = |(directory, path): (&PathBuf, &PathBuf)| {
            !self.short.contains(path) && self.mentions(directory)
        };
        if record.record_type.is_final() && self.logs.iter().any(decides) {
            return Ok(());
        }
        Ok(failed?)
    }

    fn mentions(&self, directory: &Path) -> bool {
        let mut all = self.added.iter().chain(&self.removed);
        all.any(|descriptor| absolute(&descriptor.directory) == directory)
    }

    /// Records an output before its first file is created. Skips a descriptor of which a file already exists: an abort deletes the files of
    /// all recorded outputs, and that file does not belong to this transaction.
    pub async fn add_fresh(
        &mut self,
        mut fresh: impl AsyncFnMut() -> Result<Descriptor>,
    ) -> Result<Descriptor> {
        let mut descriptor = fresh().await?;
        for _ in 0..FRESH_TRIES {
            if !any(&self.disk, &descriptor.directory, &descriptor.file_prefix()).await? {
                break;
            }
            descriptor = fresh().await?;
        }
        self.add(&descriptor).await?;
        Ok(descriptor)
    }

    /// To be called when the first file of a recorded output could not be created. If it already exists, an abort leaves it alone.
    pub fn create_failed(&mut self, descriptor: &Descriptor, error: &SSTableError) {
        if matches!(error, SSTableError::Io(halcyon_io::Error::AlreadyExists { .. })) {
            self.added.retain(|added| added != descriptor);
        }
    }

    /// Records an output; to be called before its first file is created.
    pub async fn add(&mut self, descriptor: &Descriptor) -> Result<()> {
        let prefix = absolute_prefix(descriptor);
        self.append(&Record { record_type: RecordType::Add, prefix, update_time_ms: 0, files: 0 })
            .await?;
        self.added.push(descriptor.clone());
        Ok(())
    }

    /// Records a replaced input; to be called once all outputs are durable.
    pub async fn remove(&mut self, descriptor: &Descriptor) -> Result<()> {
        let found = find(&self.disk, &descriptor.directory, &descriptor.file_prefix()).await?;
        self.append(&Record {
            record_type: RecordType::Remove,
            prefix: absolute_prefix(descriptor),
            update_time_ms: found.newest_ms,
            files: found.paths.len() as i32,
        })
        .await?;
        self.removed.push(descriptor.clone());
        Ok(())
    }

    /// Writes COMMIT. The caller deletes the replaced files, because readers may still hold them; a start that comes first does it too.
    /// An error means that the transaction was undone, except [`Error::InDoubt`].
    pub async fn commit(mut self) -> Result<ReplacedFiles> {
        let before = self.length;
        let failed = match self.append(&Record::last(RecordType::Commit)).await {
            Ok(()) => return Ok(ReplacedFiles(self)),
            Err(Error::Io(failed)) => failed,
            Err(taken_over) => return Err(taken_over),
        };
        if self.length > before && self.cut_off(before).await.is_err() {
            return Err(Error::InDoubt(failed));
        }
        // If this fails, the log remains, and recovery at the next start finishes it.
        let _ = self.finish(&self.added).await;
        Err(Error::Io(failed))
    }

    /// Makes the logs as short as they were, durably.
    async fn cut_off(&self, length: u64) -> Result<()> {
        for path in self.logs.values() {
            self.disk.truncate_sync(path, length).await?;
        }
        Ok(())
    }

    /// Undoes the transaction: deletes the outputs.
    pub async fn abort(mut self) -> Result<()> {
        // The ABORT record is optional: recovery does the same without it.
        self.check_own().await?;
        let mut appended = Ok(());
        if self.short.is_empty() {
            appended = self.append(&Record::last(RecordType::Abort)).await;
        }
        self.finish(&self.added).await.and(appended)
    }

    async fn finish(&self, dead: &[Descriptor]) -> Result<()> {
        for descriptor in dead {
            let found = find(&self.disk, &descriptor.directory, &descriptor.file_prefix()).await?;
            delete(&self.disk, found).await?;
        }
        for directory in self.logs.keys() {
            self.disk.sync_dir(directory).await?;
        }
        // The replica that decides goes last, as in recovery.
        let mut logs: Vec<(&PathBuf, &PathBuf)> = self.logs.iter().collect();
        logs.sort_by_key(|(directory, path)| {
            (!self.short.contains(*path), self.mentions(directory))
        });
        for (_, path) in logs {
            remove_log(&self.disk, path).await?;
        }
        Ok(())
    }
}

fn absolute_prefix(descriptor: &Descriptor) -> String {
    let prefix = absolute(&descriptor.directory).join(descriptor.file_prefix());
    prefix.to_string_lossy().into_owned()
}
