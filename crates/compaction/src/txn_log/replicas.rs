//! A transaction log with its replicas, one in each directory of the transaction, and the current location of its files.
//!
//! A record names its SSTable by an absolute path, but the table can have been moved, or its directory can have a second name. The
//! location of a record is
//! 1. the directory that it names, if that has a replica;
//! 2. the directory of the log, if the named one does not exist and the log names no other;
//! 3. none: the replica in the named directory was deleted, so its work is complete. Files with the record's name in the log's directory
//!    contradict that, and recovery must not judge them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use halcyon_io::Disk;

use super::log::{BadLine, Log, is_log_name};
use super::{Record, RecordType};
use crate::{Error, Result};

/// Far larger than any real log.
const MAX_LOG: u64 = 16 << 20;

/// The existing files of an SSTable, and their newest modification time except that of Statistics.db.
pub(super) struct SSTableFiles {
    pub(super) paths: Vec<(PathBuf, i64)>,
    pub(super) newest_ms: i64,
}

/// Whether a file of the SSTable exists, of whatever component.
pub(super) async fn any(disk: &Disk, directory: &Path, prefix: &str) -> Result<bool> {
    Ok(disk.list(directory).await?.iter().any(|entry| entry.name.starts_with(prefix)))
}

pub(super) async fn find(disk: &Disk, directory: &Path, prefix: &str) -> Result<SSTableFiles> {
    let mut found = SSTableFiles { paths: Vec::new(), newest_ms: 0 };
    for entry in disk.list(directory).await? {
        let Some(component) = entry.name.strip_prefix(prefix) else { continue };
        let path = directory.join(&entry.name);
        let modified = disk.stat(&path).await?.modified_ms;
        if component != "Statistics.db" && !component.ends_with(".tmp") {
            found.newest_ms = found.newest_ms.max(modified);
        }
        found.paths.push((path, modified));
    }
    Ok(found)
}

fn parent(record: &Record) -> Option<&Path> {
    Path::new(&record.prefix).parent().filter(|parent| !parent.as_os_str().is_empty())
}

/// `oa-1-big-`
pub(super) fn file_prefix(record: &Record) -> &str {
    record.prefix.rsplit('/').next().unwrap_or(&record.prefix)
}

pub(super) async fn logs_in(disk: &Disk, directory: &Path) -> Result<Vec<PathBuf>> {
    let entries = disk.list(directory).await?;
    let mut logs: Vec<PathBuf> = entries
        .iter()
        .filter(|entry| !entry.is_dir && is_log_name(&entry.name))
        .map(|entry| directory.join(&entry.name))
        .collect();
    logs.sort();
    Ok(logs)
}

/// One log.
pub(super) struct Replicas {
    /// The directory in which it was found first.
    directory: PathBuf,
    /// Contents by path.
    texts: BTreeMap<PathBuf, String>,
    /// Directories that records name but that do not exist.
    missing: BTreeSet<PathBuf>,
    pub(super) log: Log,
}

impl Replicas {
    /// Reads the log at `path`, and its replicas in the directories that it names.
    pub(super) async fn load(disk: &Disk, path: &Path) -> Result<Replicas> {
        let directory = path.parent().unwrap_or(Path::new("/")).to_path_buf();
        let name = path.file_name().unwrap_or_default();
        let mut texts = BTreeMap::new();
        let mut wanted = vec![path.to_path_buf()];
        while let Some(path) = wanted.pop() {
            if texts.contains_key(&path) {
                continue;
            }
            let bytes = match disk.read(&path, MAX_LOG).await {
                Err(e) if e.is_not_found() => continue,
                other => other?,
            };
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let records = text.lines().filter_map(|line| Record::parse(line).ok());
            wanted.extend(records.filter_map(|r| parent(&r).map(|p| p.join(name))));
            texts.insert(path, text);
        }
        let all: Vec<&str> = texts.values().map(String::as_str).collect();
        let log = Log::merge(&all).map_err(|BadLine { replica, line, what }| {
            let path = texts.keys().nth(replica).cloned().unwrap_or_default();
            refusal(path, line, &what)
        })?;
        let mut missing = BTreeSet::new();
        for named in log.records.iter().filter_map(parent) {
            if !disk.exists(named).await? {
                missing.insert(named.to_path_buf());
            }
        }
        Ok(Replicas { directory, texts, missing, log })
    }

    fn is_replica_in(&self, directory: &Path) -> bool {
        self.texts.keys().any(|path| path.parent() == Some(directory))
    }

    /// The directory of the record's files; `None` if they were deleted, and the replica with them.
    pub(super) fn home<'a>(&'a self, record: &'a Record) -> Option<&'a Path> {
        let named = parent(record);
        if let Some(named) = named.filter(|named| self.is_replica_in(named)) {
            return Some(named);
        }
        let only = self.log.records.iter().filter_map(parent).all(|other| Some(other) == named);
        let moved = named.is_none_or(|named| self.missing.contains(named));
        (only && moved).then_some(&self.directory)
    }

    /// Whether the record's files are in the log's directory, perhaps under another name of it.
    pub(super) async fn is_here(&self, disk: &Disk, record: &Record) -> Result<bool> {
        let Some(home) = self.home(record) else { return Ok(false) };
        let mentioned = self.log.records.iter().any(|r| parent(r) == Some(&self.directory));
        if home == self.directory || mentioned {
            return Ok(home == self.directory);
        }
        let (there, here) = (
            find(disk, home, file_prefix(record)).await?.paths,
            find(disk, &self.directory, file_prefix(record)).await?.paths,
        );
        let same = |((a, at), (b, bt)): (&(PathBuf, i64), &(PathBuf, i64))| {
            a.file_name() == b.file_name() && at == bt
        };
        Ok(!here.is_empty() && there.len() == here.len() && there.iter().zip(&here).all(same))
    }

    /// Fails if the files are not those of the records (`LogFile.verify`).
    pub(super) async fn verify(&self, disk: &Disk) -> Result<()> {
        let last = self.log.records.len();
        for (i, record) in self.log.records.iter().enumerate() {
            let bad = |what: &str| {
                let path = self.texts.keys().next().cloned().unwrap_or_default();
                Err(refusal(path, i + 1, what))
            };
            if record.record_type.is_final() {
                continue;
            }
            let Some(home) = self.home(record) else {
                self.check_without_location(disk, record, i + 1).await?;
                continue;
            };
            if record.record_type != RecordType::Remove {
                continue;
            }
            let found = find(disk, home, file_prefix(record)).await?;
            // Compare seconds: some file systems and backup tools keep no more. An unfinished log can end with a record that does
            // not hold yet.
            let changed = found.newest_ms / 1000 != record.update_time_ms / 1000;
            let unfinished_last = i + 1 == last && !self.log.torn;
            if found.newest_ms != 0 && changed && !unfinished_last {
                return bad(&format!(
                    "{} was modified at {} ms, the log says {} ms: it may be a restored backup",
                    record.prefix, found.newest_ms, record.update_time_ms
                ));
            }
            // The torn line could have been the COMMIT, and the deletion could have started.
            if self.log.torn && (found.paths.len() as i64) < i64::from(record.files) {
                return bad(&format!(
                    "the last line is corrupt, and {} has {} of its {} files",
                    record.prefix,
                    found.paths.len(),
                    record.files
                ));
            }
        }
        Ok(())
    }

    /// Checks that a record without a location is complete.
    async fn check_without_location(
        &self,
        disk: &Disk,
        record: &Record,
        line: usize,
    ) -> Result<()> {
        for directory in self.texts.keys().filter_map(|path| path.parent()) {
            let claims = |r: &Record| {
                file_prefix(r) == file_prefix(record) && self.home(r) == Some(directory)
            };
            if self.log.records.iter().any(claims)
                || find(disk, directory, file_prefix(record)).await?.paths.is_empty()
            {
                continue;
            }
            let path = self.texts.keys().next().cloned().unwrap_or_default();
            let what = format!(
                "{} is in a directory that has no replica of this log, and {} has files of that name",
                record.prefix,
                directory.display()
            );
            return Err(refusal(path, line, &what));
        }
        Ok(())
    }

    /// The paths in the order of deletion: the replica that decides goes last.
    pub(super) fn in_order_of_deletion(&self) -> Vec<&Path> {
        let key = |path: &Path, text: &str| {
            let decides = self.log.is_committed() && ends_with_commit(text);
            let directory = path.parent();
            let mentioned = self.log.records.iter().any(|record| parent(record) == directory);
            (decides, mentioned)
        };
        let mut paths: Vec<(&PathBuf, &String)> = self.texts.iter().collect();
        paths.sort_by_key(|(path, text)| key(path, text));
        paths.into_iter().map(|(path, _)| path.as_path()).collect()
    }
}

fn ends_with_commit(text: &str) -> bool {
    let last = text.lines().last().and_then(|line| Record::parse(line).ok());
    last.is_some_and(|record| record.record_type == RecordType::Commit)
}

fn refusal(path: PathBuf, line: usize, what: &str) -> Error {
    let cure = "Nothing was touched: find out which SSTables of this table belong together, move the others away, \
                then delete the log and its replicas in other data directories";
    Error::TransactionLog { path, line, what: format!("{what}. {cure}") }
}

/// Makes a path absolute without resolving links.
pub(crate) fn absolute(directory: &Path) -> PathBuf {
    std::path::absolute(directory).unwrap_or_else(|_| directory.to_path_buf())
}
