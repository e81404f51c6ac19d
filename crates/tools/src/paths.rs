//! Resolves the PATHs of a command line to SSTables, grouped by folder (that is, by table).
//!
//! ```text
//!   data/                        a data directory: all keyspaces
//!   data/ks/                     a keyspace: all tables
//!   data/ks/t-<32 hex id>/       a table: its live SSTables
//!   data/ks/t-…/snapshots/tag/   a snapshot of it
//!   …/oa-1-big-Data.db           one SSTable (any component will do)
//! ```
//!
//! Folders are searched two levels deep; `snapshots`, `backups` and hidden folders only if they are named. SSTables that are not
//! live according to a transaction log, file sets without a Data.db, and those of a name that cannot be read, are left out with a
//! reason, unless one of their files is named.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use halcyon_compaction::txn_log;
use halcyon_io::{DirEntry, Disk};
use halcyon_sstable::format::listing::{ListedSSTable, UnreadableName, group};
use halcyon_sstable::{Component, Descriptor};

use crate::error::{Error, Result};
use crate::notices::Notices;

/// The SSTables of one folder.
#[derive(Debug, Clone)]
pub struct Folder {
    pub directory: PathBuf,
    pub table: TableName,
    pub sstables: Vec<ListedSSTable>,
    /// If files were named: the live SSTables of the folder that were not.
    pub elsewhere: Vec<ListedSSTable>,
    /// SSTables that were named, but are not live according to a transaction log.
    pub not_live: Vec<Descriptor>,
    /// The files that were left out, with reasons.
    pub left_out: Vec<String>,
    /// Those of the folder that are SSTables by names that cannot be read, whether files were named or not.
    pub unreadable: Vec<String>,
}

impl Folder {
    /// Warns of the files that were left out.
    pub fn warn_of_left_out(&self, notices: &dyn Notices) {
        self.left_out.iter().for_each(|why| notices.warn(format_args!("{why}")));
    }
}

/// The table that a folder's path names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableName {
    pub keyspace: Option<String>,
    /// Without the name of the index, if the folder belongs to an index.
    pub table: Option<String>,
    pub index: Option<String>,
    pub id: Option<[u8; 16]>,
    /// The directory of the keyspaces.
    pub data_directory: Option<PathBuf>,
}

impl std::fmt::Display for TableName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let keyspace = self.keyspace.as_deref().unwrap_or("keyspace");
        let table = self.table.as_deref().unwrap_or("table");
        write!(f, "{keyspace}.{table}")?;
        match &self.index {
            Some(index) => write!(f, ".{index}"),
            None => Ok(()),
        }
    }
}

impl TableName {
    /// Parses the path of a folder with SSTables.
    pub fn of_folder(directory: &Path) -> TableName {
        let mut found = TableName::default();
        let mut at = directory;
        let name = |path: &Path| path.file_name().map(|n| n.to_string_lossy().into_owned());
        if let Some(index) = name(at).filter(|n| n.starts_with('.') && n.len() > 1 && n != "..") {
            found.index = index.get(1..).map(str::to_owned);
            at = at.parent().unwrap_or(at);
        }
        let grand = at.parent().and_then(name);
        if grand.as_deref() == Some("snapshots") || name(at).as_deref() == Some("backups") {
            let up = if grand.as_deref() == Some("snapshots") { 2 } else { 1 };
            at = at.ancestors().nth(up).unwrap_or(at);
        }
        let Some((table, id)) = name(at).as_deref().and_then(split_table_folder) else {
            return found;
        };
        found.table = Some(table);
        found.id = Some(id);
        let keyspace = at.parent();
        found.keyspace = keyspace.and_then(name);
        found.data_directory = keyspace.and_then(Path::parent).map(Path::to_path_buf);
        found
    }
}

/// `events-<32 hexadecimal digits>`
fn split_table_folder(name: &str) -> Option<(String, [u8; 16])> {
    let (table, id) = name.rsplit_once('-')?;
    let id = halcyon_model::uuid::parse_digits(id)?;
    (!table.is_empty()).then(|| (table.to_owned(), id))
}

/// Finds the SSTables that the paths name; it is an error if there are none.
pub async fn find(disk: &Disk, paths: &[PathBuf]) -> Result<Vec<Folder>> {
    let mut folders: BTreeMap<PathBuf, Folder> = BTreeMap::new();
    for path in paths {
        let path = &absolute(path)?;
        let stat = disk.stat(path).await.map_err(|e| match e.is_not_found() {
            true => Error::unreadable(path, "no such file or directory"),
            false => Error::from(e),
        })?;
        if stat.is_dir {
            let found = in_directory(disk, path).await?;
            if found.is_empty() {
                return Err(nothing_in(path));
            }
            for folder in found {
                add(&mut folders, folder);
            }
        } else {
            add(&mut folders, of_file(disk, path).await?);
        }
    }
    Ok(folders.into_values().collect())
}

/// Makes a path absolute: the names of keyspace and table are in its parents, even for `.`.
fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|e| Error::unreadable(path, e))
}

fn add(folders: &mut BTreeMap<PathBuf, Folder>, folder: Folder) {
    match folders.get_mut(&folder.directory) {
        None => {
            folders.insert(folder.directory.clone(), folder);
        }
        Some(known) => {
            for sstable in folder.sstables {
                if !known.sstables.iter().any(|s| s.descriptor == sstable.descriptor) {
                    known.sstables.push(sstable);
                }
            }
            known.sstables.sort_by(|a, b| a.descriptor.cmp(&b.descriptor));
            known.not_live.extend(folder.not_live);
            let named = &known.sstables;
            known.elsewhere.retain(|e| !named.iter().any(|n| n.descriptor == e.descriptor));
        }
    }
}

fn nothing_in(path: &Path) -> Error {
    Error::unreadable(
        path,
        "no SSTable in this folder. Give a Data.db file, a table's folder (…/keyspace/table-<id>), a \
         keyspace's folder or a data directory; name snapshots and backups themselves",
    )
}

async fn of_file(disk: &Disk, path: &Path) -> Result<Folder> {
    let (descriptor, _) = Descriptor::of_path(path)
        .map_err(|what| Error::Usage(format!("{}: {what}", path.display())))?;
    let directory = descriptor.directory.clone();
    let entries = disk.list(&directory).await?;
    let is_named = |s: &ListedSSTable| s.descriptor == descriptor;
    let listed = group(&directory, names(&entries)).sstables.into_iter().find(is_named);
    let listed =
        listed.ok_or_else(|| Error::unreadable(path, "no component of this SSTable is there"))?;
    let mut folder = live(disk, &directory, &entries).await?;
    folder.left_out.clear();
    if listed.has(Component::Data) && !folder.sstables.iter().any(is_named) {
        folder.left_out.push(format!(
            "{descriptor}: a transaction log says that it is not live; read because it was named"
        ));
        folder.not_live.push(descriptor.clone());
    }
    folder.elsewhere = std::mem::replace(&mut folder.sstables, vec![listed]);
    folder.elsewhere.retain(|s| !is_named(s));
    Ok(folder)
}

fn names(entries: &[DirEntry]) -> impl Iterator<Item = &str> {
    entries.iter().filter(|entry| !entry.is_dir).map(|entry| entry.name.as_str())
}

async fn in_directory(disk: &Disk, root: &Path) -> Result<Vec<Folder>> {
    /// Data directory, keyspace, table.
    const LEVELS: usize = 3;
    let mut found = Vec::new();
    let mut level = vec![root.to_path_buf()];
    for _ in 0..LEVELS {
        let mut below = Vec::new();
        for directory in level {
            let entries = disk.list(&directory).await?;
            let folder = live(disk, &directory, &entries).await?;
            if folder.sstables.is_empty() && folder.left_out.is_empty() {
                let folders = entries.iter().filter(|e| e.is_dir && is_entered(&e.name));
                below.extend(folders.map(|e| directory.join(&e.name)));
            } else {
                found.push(folder);
            }
        }
        level = below;
    }
    Ok(found)
}

fn is_entered(name: &str) -> bool {
    !name.starts_with('.') && !["snapshots", "backups", "tmp"].contains(&name)
}

/// The live SSTables of one folder.
async fn live(disk: &Disk, directory: &Path, entries: &[DirEntry]) -> Result<Folder> {
    let dead = txn_log::dead_in_directory(disk, directory)
        .await
        .map_err(|e| Error::Unreadable(e.to_string()))?;
    let mut folder = Folder {
        directory: directory.to_path_buf(),
        table: TableName::of_folder(directory),
        sstables: Vec::new(),
        elsewhere: Vec::new(),
        not_live: Vec::new(),
        left_out: Vec::new(),
        unreadable: Vec::new(),
    };
    let listing = group(directory, names(entries));
    let unreadable = listing
        .unreadable
        .into_iter()
        .map(|UnreadableName { name, why }| format!("{}: {why}", directory.join(name).display()));
    folder.unreadable.extend(unreadable);
    folder.left_out.extend_from_slice(&folder.unreadable);
    for sstable in listing.sstables {
        let prefix = sstable.descriptor.file_prefix();
        if dead.contains(&prefix) {
            folder.left_out.push(format!("{prefix}*: a transaction log says that it is not live"));
        } else if !sstable.has(Component::Data) {
            folder.left_out.push(format!("{prefix}*: has no Data.db; leftovers of a deletion"));
        } else {
            folder.sstables.push(sstable);
        }
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "75ee4750e53a11f1ae1d0546acdd82e0";

    fn name(path: &str) -> String {
        let found = TableName::of_folder(Path::new(path));
        let data = found.data_directory.as_ref().map_or("-".into(), |d| d.display().to_string());
        format!("{found} {data}")
    }

    #[test]
    fn folders_name_their_tables() {
        assert_eq!(name(&format!("/d/ks/ev-ents-{ID}")), "ks.ev-ents /d");
        assert_eq!(name(&format!("/d/ks/t-{ID}/snapshots/before")), "ks.t /d");
        assert_eq!(name(&format!("/d/ks/t-{ID}/backups")), "ks.t /d");
        assert_eq!(name(&format!("/d/ks/t-{ID}/.by_v")), "ks.t.by_v /d");
        assert_eq!(name(&format!("/d/ks/t-{ID}/snapshots/tag/.by_v")), "ks.t.by_v /d");
        assert_eq!(name("/somewhere/else"), "keyspace.table -");
        assert_eq!(name("/"), "keyspace.table -");
        assert_eq!(name("/d/ks/t-75ee"), "keyspace.table -");
    }
}
