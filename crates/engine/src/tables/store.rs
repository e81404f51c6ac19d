//! The state of a table that all shards share: its definition, its folders, its live SSTables.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{
    AtomicBool, AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed},
};
use std::sync::{Arc, MutexGuard, OnceLock};

use arc_swap::ArcSwap;
use halcyon_compaction::strategy::History;
use halcyon_io::{Disk, Mutex, Random};
use halcyon_metrics::Counter;
use halcyon_model::{hex, path_component};
use halcyon_schema::catalog::{Table, TableKind};
use halcyon_sstable::SSTableId;
use halcyon_stream::TableId;

use crate::compact::{Backoff, Claims, DebtCache};
use crate::current::Common;
use crate::definition::Definition;
use crate::heat::Heat;
use crate::metrics::table::TableMetrics;
use crate::tables::set_apart::SetApart;
use crate::version::Version;
use crate::{Error, Options, Result};

pub(crate) struct Store {
    pub(crate) id: TableId,
    pub(crate) definition: ArcSwap<Definition>,
    /// One in each data directory.
    pub(crate) directories: Vec<PathBuf>,
    pub(crate) version: ArcSwap<Version>,
    /// Held where the definition is replaced, and where SSTables that fit it are added to the version.
    admission: Mutex<()>,
    /// The SSTables that are being compacted.
    pub(crate) claims: Arc<Claims>,
    /// The back-off after failed compactions.
    pub(crate) backoff: Backoff,
    /// The delay of each write while compaction is too far behind.
    pub(crate) write_wait_us: AtomicU32,
    /// The compaction strategy's memory of earlier picks.
    pub(crate) history: Mutex<History>,
    /// What is read often.
    pub(crate) heat: Heat,
    /// The debt of the version for which it was computed last.
    pub(crate) debt: DebtCache,
    /// The average size of a flushed SSTable.
    pub(crate) flush_size: AtomicU64,
    /// By shard.
    pub(crate) metrics: Box<[TableMetrics]>,
    /// As stored; compaction threads add to it.
    pub(crate) compaction_bytes_written: Counter,
    /// Of identifiers that are numbers.
    next_sequence: AtomicU32,
    /// Whether the strategy is asked, if an operator has said so since the start.
    automatic: Mutex<Option<bool>>,
    /// `min_threshold` and `max_threshold`, if an operator has set them since the start.
    thresholds: Mutex<Option<(usize, usize)>>,
    /// The SSTables that the start could not use.
    set_apart: OnceLock<Vec<SetApart>>,
    /// Whether the next start decides if a compaction has replaced its inputs.
    in_doubt: AtomicBool,
    /// How often all rows were removed since the start.
    truncations: AtomicU64,
}

impl Store {
    pub(crate) fn new(
        definition: Arc<Definition>,
        directories: Vec<PathBuf>,
        shards: usize,
    ) -> Arc<Store> {
        let seed =
            definition.table.id.iter().fold(0, |seed: u64, byte| seed << 4 ^ u64::from(*byte));
        Arc::new(Store {
            id: definition.table.id,
            definition: ArcSwap::new(definition),
            directories,
            version: ArcSwap::from_pointee(Version::default()),
            admission: Mutex::default(),
            claims: Arc::default(),
            backoff: Backoff::default(),
            write_wait_us: AtomicU32::new(0),
            history: Mutex::new(History::new(Random::seeded(seed))),
            heat: Heat::default(),
            debt: DebtCache::default(),
            flush_size: AtomicU64::new(0),
            metrics: (0..shards).map(|_| TableMetrics::default()).collect(),
            compaction_bytes_written: Counter::default(),
            next_sequence: AtomicU32::new(1),
            automatic: Mutex::default(),
            thresholds: Mutex::default(),
            set_apart: OnceLock::new(),
            in_doubt: AtomicBool::new(false),
            truncations: AtomicU64::new(0),
        })
    }

    pub(crate) fn lock_admission(&self) -> MutexGuard<'_, ()> {
        self.admission.lock()
    }

    pub(crate) fn common(&self) -> Common<'_> {
        (&self.definition, &self.version)
    }

    pub(crate) fn table(&self) -> Arc<Table> {
        self.definition.load().table.clone()
    }

    /// Once, when the table is opened.
    pub(crate) fn set_apart(&self, sstables: Vec<SetApart>) {
        let _ = self.set_apart.set(sstables);
    }

    pub(crate) fn apart(&self) -> &[SetApart] {
        self.set_apart.get().map_or(&[], Vec::as_slice)
    }

    pub(crate) fn is_in_doubt(&self) -> bool {
        self.in_doubt.load(Relaxed)
    }

    pub(crate) fn doubt(&self) {
        self.in_doubt.store(true, Relaxed);
    }

    /// Refuses to remove all rows where the next start may find more of them.
    pub(crate) fn check_removable(&self) -> Result<()> {
        if !self.is_in_doubt() {
            return Ok(());
        }
        Err(Error::Invalid(format!(
            "the rows of {} cannot be removed now: whether a compaction has replaced its SSTables is decided at the next start, \
             and its outputs would bring them back; look at the device and its file system, then restart the node",
            self.table().full_name()
        )))
    }

    /// All rows were removed.
    pub(crate) fn note_truncation(&self) {
        self.truncations.fetch_add(1, Relaxed);
    }

    pub(crate) fn truncations(&self) -> u64 {
        self.truncations.load(Relaxed)
    }

    pub(crate) fn automatic_compaction(&self) -> Option<bool> {
        *self.automatic.lock()
    }

    /// Overrides the table's option `enabled` until the node stops.
    pub(crate) fn set_automatic_compaction(&self, enabled: bool) {
        *self.automatic.lock() = Some(enabled);
    }

    pub(crate) fn thresholds(&self) -> Option<(usize, usize)> {
        *self.thresholds.lock()
    }

    /// Overrides the table's options `min_threshold` and `max_threshold` until the node stops.
    pub(crate) fn set_thresholds(&self, thresholds: (usize, usize)) {
        *self.thresholds.lock() = Some(thresholds);
    }

    /// Raises the next numeric identifier above these.
    pub(crate) fn note_ids(&self, ids: impl Iterator<Item = SSTableId>) {
        for id in ids {
            if let SSTableId::Sequence(n) = id {
                self.next_sequence.fetch_max(n.saturating_add(1), Relaxed);
            }
        }
    }

    pub(crate) fn fresh_id(&self, disk: &Disk, options: &Options) -> SSTableId {
        if !options.uuid_sstable_identifiers {
            return SSTableId::Sequence(self.next_sequence.fetch_add(1, Relaxed));
        }
        let nanos = u64::try_from(disk.clock().unix_micros()).unwrap_or(0).saturating_mul(1000);
        SSTableId::fresh(nanos, disk.runtime().random().next_u64())
    }

    pub(crate) fn note_flush(&self, bytes: u64) {
        let average = self.flush_size.load(Relaxed);
        let next = if average == 0 { bytes } else { average - average / 4 + bytes / 4 };
        self.flush_size.store(next, Relaxed);
    }

    /// The oldest timestamp of what is in a memtable, or may come into one again with a logged batch; `i64::MAX` if nothing is.
    pub(crate) fn oldest_unflushed(&self) -> i64 {
        // Acquire: a version that is loaded next has the data flushed before.
        let of_shard = |shard: &TableMetrics| {
            shard.min_timestamp.load(Acquire).min(shard.replayed_since.load(Acquire))
        };
        self.metrics.iter().map(of_shard).min().unwrap_or(i64::MAX)
    }

    /// The folder with the most free space.
    pub(crate) async fn roomiest(&self, disk: &Disk) -> Result<&Path> {
        let mut best: Option<(u64, &Path)> = None;
        for directory in &self.directories {
            let free = match self.directories.as_slice() {
                [_] => 0,
                _ => disk.free_space(directory).await?,
            };
            if best.is_none_or(|(most, _)| free > most) {
                best = Some((free, directory));
            }
        }
        Ok(best.map_or(Path::new("."), |(_, directory)| directory))
    }
}

/// Whether a table has rows on disk.
pub(crate) fn has_storage(table: &Table) -> bool {
    table.kind != TableKind::Virtual
}

/// `<data>/<keyspace>/<table>-<id>` in each data directory (`Directories`).
pub(crate) fn table_directories(options: &Options, table: &Table) -> Result<Vec<PathBuf>> {
    let folder = format!("{}-{}", table.schema.name, hex::encode(&table.id));
    let keyspace = path_component(&table.schema.keyspace).map_err(Error::Invalid)?;
    let folder = path_component(&folder).map_err(Error::Invalid)?;
    let place = |data: &PathBuf| data.join(keyspace).join(folder);
    Ok(options.data_directories.iter().map(place).collect())
}

/// Creates directories, each durable as a name; what several have in common is made durable once.
pub(crate) async fn create_directories(disk: &Disk, directories: &[PathBuf]) -> Result<()> {
    let mut parents = BTreeSet::new();
    for directory in directories {
        disk.create_dir_all(directory).await?;
        let ancestors = directory.ancestors().skip(1).take(3);
        parents.extend(ancestors.filter(|ancestor| !ancestor.as_os_str().is_empty()));
    }
    for parent in parents {
        disk.sync_dir(parent).await?;
    }
    Ok(())
}
