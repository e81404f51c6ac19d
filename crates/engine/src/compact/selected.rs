//! The SSTables that an operator has selected for a compaction (`nodetool compact`), claimed.
//!
//! | selection | SSTables | what compacts them already |
//! |---|---|---|
//! | `Whole`, `Scrub` | all | is stopped |
//! | `Tokens`, `Key`, `Forced` | those whose tokens meet the range; those that may have the partitions | is stopped |
//! | `Rewrite` | those of another version or compression, or all | is stopped |
//! | `Files` | those that are named | makes it fail: they were named because of what they are |
//!
//! As in Cassandra whole SSTables are compacted, not the part of them that is in the range.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use halcyon_io::Disk;
use halcyon_model::options::Compression;
use halcyon_sstable::Descriptor;
use halcyon_stream::PartitionKey;

use super::Compactor;
use super::claims::Claim;
use super::selection::{Rewrite, Selection};
use crate::tables::store::Store;
use crate::version::{LiveSSTable, Version};
use crate::{Error, Result};

/// The SSTables of a version that are selected; not for [`Selection::Files`] and [`Selection::Rewrite`].
fn selected(selection: &Selection, version: &Version) -> Vec<Arc<LiveSSTable>> {
    let meeting = |first: i64, last: i64| {
        let positions = version.overlapping(first, last).into_iter();
        positions.filter_map(|at| version.get(at).cloned()).collect::<Vec<_>>()
    };
    match selection {
        Selection::Whole { .. } | Selection::Scrub(_) => version.sstables().to_vec(),
        Selection::Tokens { start, end } if start == end => Vec::new(),
        // The smallest token is the end of the ring, too.
        Selection::Tokens { start, end: i64::MIN } => meeting(*start, i64::MAX),
        Selection::Tokens { start, end } if start < end => meeting(*start, *end),
        Selection::Tokens { start, end } => {
            let mut found = meeting(*start, i64::MAX);
            let known: HashSet<u64> = found.iter().map(|live| live.serial()).collect();
            let before = meeting(i64::MIN, *end).into_iter();
            found.extend(before.filter(|live| !known.contains(&live.serial())));
            found
        }
        Selection::Key(bytes) => {
            let key = PartitionKey::of(bytes);
            let mut found = meeting(key.token, key.token);
            found.retain(|live| live.table.may_contain(&key));
            found
        }
        Selection::Forced(keys) => {
            let keys: Vec<PartitionKey> = keys.iter().map(|key| PartitionKey::of(key)).collect();
            let has = |live: &&Arc<LiveSSTable>| keys.iter().any(|key| live.table.may_contain(key));
            version.sstables().iter().filter(has).cloned().collect()
        }
        Selection::Files(_) | Selection::Rewrite(_) => Vec::new(),
    }
}

/// Whether an SSTable is compressed otherwise than the table's options say.
fn has_other_compression(live: &LiveSSTable, wanted: Option<&Compression>) -> bool {
    match (live.sstable().compression(), wanted) {
        (None, None) => false,
        (Some(info), Some(wanted)) => {
            info.compressor != wanted.kind.class()
                || info.chunk_length != wanted.chunk_length
                || info.max_compressed_length != wanted.max_compressed_length
                || info.options != wanted.parameters
        }
        _ => true,
    }
}

impl Compactor {
    /// Claims what is selected.
    pub(super) async fn claim_selected(
        &self,
        store: &Arc<Store>,
        selection: &Selection,
    ) -> Result<(Claim, Vec<Arc<LiveSSTable>>)> {
        if let Selection::Files(paths) = selection {
            return self.claim_files(store, paths).await;
        }
        let closed = self.stop_table(store).await;
        let selected = match selection {
            Selection::Rewrite(which) => self.to_rewrite(store, *which),
            selection => selected(selection, &store.version.load()),
        };
        Ok((closed.claim(selected.iter().map(|live| live.serial()).collect()), selected))
    }

    fn to_rewrite(&self, store: &Store, which: Rewrite) -> Vec<Arc<LiveSSTable>> {
        let compression = store.definition.load().schema.options.compression();
        let is_selected = |live: &&Arc<LiveSSTable>| match which {
            Rewrite::All => true,
            Rewrite::OtherVersion => live.descriptor().version != self.storage.version,
            Rewrite::OtherCompression => has_other_compression(live, compression.as_ref()),
        };
        store.version.load().sstables().iter().filter(is_selected).cloned().collect()
    }

    async fn claim_files(
        &self,
        store: &Arc<Store>,
        paths: &[PathBuf],
    ) -> Result<(Claim, Vec<Arc<LiveSSTable>>)> {
        let mut named = Vec::with_capacity(paths.len());
        for path in paths {
            named.push((path, descriptor_of(&self.storage.disk, store, path).await?));
        }
        let mut refusal = Error::Invalid(
            "the table's compactions are stopped for a moment; try again".to_owned(),
        );
        let claimed = store.claims.claim(|taken| {
            let found = find(store, &named, taken).map_err(|why| refusal = Error::Invalid(why));
            let found = found.ok()?;
            Some((found.iter().map(|live| live.serial()).collect(), found))
        });
        claimed.ok_or(refusal)
    }
}

/// The live SSTables that are named, each once; none of them may be claimed.
fn find(
    store: &Store,
    named: &[(&PathBuf, Descriptor)],
    taken: &HashSet<u64>,
) -> Result<Vec<Arc<LiveSSTable>>, String> {
    let version = store.version.load();
    let mut found: Vec<Arc<LiveSSTable>> = Vec::with_capacity(named.len());
    for (path, descriptor) in named {
        let is_it = |live: &&Arc<LiveSSTable>| live.descriptor() == descriptor;
        let Some(live) = version.sstables().iter().find(is_it) else {
            let table = store.table().full_name();
            return Err(format!("{} is not an active SSTable of {table}", path.display()));
        };
        if taken.contains(&live.serial()) {
            return Err(format!("{} is being compacted already", path.display()));
        }
        if live.is_suspect() {
            return Err(format!("{} could not be read, and is not compacted", path.display()));
        }
        if !found.iter().any(|known| known.serial() == live.serial()) {
            found.push(live.clone());
        }
    }
    Ok(found)
}

/// What a path names, if that is in a folder of the table.
async fn descriptor_of(disk: &Disk, store: &Store, path: &Path) -> Result<Descriptor> {
    let (named, _) = Descriptor::of_path(path).map_err(Error::Invalid)?;
    for directory in &store.directories {
        let is_here = match named.directory.is_absolute() {
            true => is_same(disk, directory, &named.directory).await?,
            false => {
                named.directory.components().count() > 1 && directory.ends_with(&named.directory)
            }
        };
        if is_here {
            return Ok(Descriptor { directory: directory.clone(), ..named });
        }
    }
    let table = store.table().full_name();
    Err(Error::Invalid(format!("{} is not in a folder of {table}", path.display())))
}

/// Whether two paths lead to one folder.
async fn is_same(disk: &Disk, known: &Path, named: &Path) -> Result<bool> {
    if known == named {
        return Ok(true);
    }
    match disk.real_path(named).await {
        Err(e) if e.is_not_found() => Ok(false),
        real => Ok(real? == disk.real_path(known).await?),
    }
}
