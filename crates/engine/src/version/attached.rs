//! The files of an SSTable's indexes, as long as it is live.

use std::collections::BTreeMap;
use std::sync::Arc;

use halcyon_io::{AccessMode, Disk};
use halcyon_sstable::attached::{AttachedIndex, component_name};
use halcyon_sstable::format::toc;

use super::LiveSSTable;
use crate::Result;
use crate::index::TableIndex;

impl LiveSSTable {
    /// Opens the files that it has of a table's indexes. An unusable file is logged and treated as missing,
    /// and made again.
    pub(crate) async fn open_indexes(
        &self,
        disk: &Disk,
        indexes: &[TableIndex],
        mode: AccessMode,
    ) -> Vec<String> {
        let mut problems = Vec::new();
        let files = self.identity.attached.load_full();
        let is_closed = |index: &&TableIndex| matches!(files.get(&index.name), Some(None));
        for index in indexes.iter().filter(is_closed) {
            if let Err(e) = self.open_index(disk, index, mode).await {
                problems
                    .push(format!("an index is built again, because its file cannot be used: {e}"));
            }
        }
        problems
    }

    pub(crate) async fn open_index(
        &self,
        disk: &Disk,
        index: &TableIndex,
        mode: AccessMode,
    ) -> Result<()> {
        let path = self.descriptor().path_of(&component_name(&index.name)?);
        let clusterings = &index.target.layout.clusterings;
        let opened = AttachedIndex::open(disk, &path, clusterings, mode).await?;
        if opened.fingerprint() == index.fingerprint {
            let opened = Arc::new(opened);
            self.change_attached(|all| {
                all.insert(index.name.clone(), Some(opened.clone()));
            });
        }
        Ok(())
    }

    fn change_attached(&self, change: impl Fn(&mut BTreeMap<String, Option<Arc<AttachedIndex>>>)) {
        self.identity.attached.rcu(|attached| {
            let mut changed = BTreeMap::clone(attached);
            change(&mut changed);
            changed
        });
    }

    /// Its file of an index.
    pub(crate) fn attached(&self, index: &TableIndex) -> Option<Arc<AttachedIndex>> {
        let attached = self.identity.attached.load();
        let found = attached.get(&index.name)?.as_ref()?;
        (found.fingerprint() == index.fingerprint).then(|| found.clone())
    }

    /// The indexes of which it has no file.
    pub(crate) fn lacks<'a>(
        &self,
        indexes: &'a [TableIndex],
    ) -> impl Iterator<Item = &'a TableIndex> + use<'a, '_> {
        indexes.iter().filter(|index| self.attached(index).is_none())
    }

    pub(crate) fn has_all(&self, indexes: &[TableIndex]) -> bool {
        self.lacks(indexes).next().is_none()
    }

    /// Whether it has files of all of these, and of no others.
    pub(crate) fn has_just(&self, indexes: &[TableIndex]) -> bool {
        self.has_all(indexes) && self.strangers(indexes).is_empty()
    }

    /// The names of indexes of which it has a file, but that are not among these.
    pub(crate) fn strangers(&self, indexes: &[TableIndex]) -> Vec<String> {
        let attached = self.identity.attached.load();
        let is_strange = |name: &&String| !indexes.iter().any(|index| index.name == **name);
        attached.keys().filter(is_strange).cloned().collect()
    }

    /// The components that are files of indexes.
    pub(crate) fn index_files(&self) -> Vec<String> {
        self.identity.attached.load().keys().filter_map(|name| component_name(name).ok()).collect()
    }

    /// Does not use its file of an index any more.
    pub(crate) fn close_index(&self, name: &str) {
        self.change_attached(|all| {
            all.insert(name.to_owned(), None);
        });
    }

    /// Deletes its file of a dropped index.
    pub(crate) async fn remove_index(&self, disk: &Disk, name: &str) -> Result<()> {
        self.close_index(name);
        let component = component_name(name)?;
        match disk.remove(&self.descriptor().path_of(&component)).await {
            Err(e) if !e.is_not_found() => return Err(e.into()),
            _ => toc::remove(disk, self.descriptor(), &component).await?,
        }
        self.change_attached(|all| {
            all.remove(name);
        });
        Ok(())
    }
}
