//! The index components of an SSTable, open for reads at any offset through caches.

use halcyon_io::{AccessMode, Disk, Purpose, ReadFile};
use halcyon_model::DecodeError;

use super::cached_index::CachedIndex;
use super::caches::{FileId, ReadCaches};
use crate::bti::{PartitionIndex, RowIndexEntry};
use crate::row_index::IndexSource;
use crate::{Component, Error, Format, Result, SSTable};

/// Immutable; threads share it, each with caches of its own.
pub(super) struct IndexFiles {
    /// Of the SSTable, in the caches.
    id: u64,
    files: Files,
}

enum Files {
    Big { index: ReadFile },
    Bti { partitions: ReadFile, rows: ReadFile, root: PartitionIndex },
}

/// The same through a thread's caches.
pub enum IndexSources<'a> {
    Big { index: CachedIndex<'a> },
    Bti { partitions: CachedIndex<'a>, rows: CachedIndex<'a>, root: &'a PartitionIndex },
}

impl IndexFiles {
    pub(super) async fn open(
        disk: &Disk,
        sstable: &SSTable,
        id: u64,
        (mode, purpose): (AccessMode, Purpose),
    ) -> Result<IndexFiles> {
        let open = async |component: Component| {
            let path = sstable.descriptor().component_path(component);
            let opened = disk.open(&path, mode, purpose).await;
            opened.map_err(|error| match error {
                error if error.is_not_found() => {
                    let why =
                        "partitions cannot be found without it; rewrite the SSTable with Cassandra's sstablescrub";
                    Error::Missing { path, component, why: why.into() }
                }
                error => Error::Io(error),
            })
        };
        let files = match sstable.descriptor().version.format {
            Format::Big => Files::Big { index: open(Component::Index).await? },
            Format::Bti => {
                let partitions = open(Component::Partitions).await?;
                let caches = ReadCaches::of_one_pass();
                let id = FileId::of(id, Component::Partitions);
                let source = CachedIndex::new(&partitions, id, Component::Partitions, &caches);
                let root = PartitionIndex::open(&source).await?;
                Files::Bti { partitions, rows: open(Component::Rows).await?, root }
            }
        };
        Ok(IndexFiles { id, files })
    }

    pub(super) fn through<'a>(&'a self, caches: &'a ReadCaches) -> IndexSources<'a> {
        let source = |file, component| {
            CachedIndex::new(file, FileId::of(self.id, component), component, caches)
        };
        match &self.files {
            Files::Big { index } => IndexSources::Big { index: source(index, Component::Index) },
            Files::Bti { partitions, rows, root } => IndexSources::Bti {
                partitions: source(partitions, Component::Partitions),
                rows: source(rows, Component::Rows),
                root,
            },
        }
    }

    /// The component that has the row indexes.
    pub(super) fn row_index<'a>(&'a self, caches: &'a ReadCaches) -> CachedIndex<'a> {
        match self.through(caches) {
            IndexSources::Big { index } => index,
            IndexSources::Bti { rows, .. } => rows,
        }
    }

    /// BTI: the footer of Partitions.db.
    pub(super) fn root(&self) -> Option<&PartitionIndex> {
        match &self.files {
            Files::Big { .. } => None,
            Files::Bti { root, .. } => Some(root),
        }
    }
}

/// The entry in Rows.db to which a payload of the trie of partitions leads.
pub(crate) async fn row_entry<S: IndexSource<Error = Error>>(
    partitions: &S,
    rows: &S,
    position: u64,
) -> Result<RowIndexEntry> {
    if position >= rows.len() {
        let what = format!("entry at {position} of the {} bytes of Rows.db", rows.len());
        return Err(partitions.corrupt(DecodeError { offset: 0, what }));
    }
    RowIndexEntry::read(rows, position).await
}
