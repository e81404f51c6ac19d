//! The state of a table that all shards share: its definition, its folders, its live SSTables.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed},
};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use halcyon_compaction::strategy::History;
use halcyon_io::{Disk, Random};
use halcyon_model::hex;
use halcyon_model::options::CachedRows;
use halcyon_model::schema::TableSchema;
use halcyon_schema::catalog::{Catalog, Table, TableKind};
use halcyon_sstable::SSTableId;
use halcyon_stream::{Layout, TableId};

use crate::compact::{Backoff, Claims, DebtCache};
use crate::report::metrics::TableMetrics;
use crate::report::set_apart::SetApart;
use crate::version::Version;
use crate::{Options, Result};

/// A table's definition and the values derived from it.
pub(crate) struct Definition {
    pub(crate) table: Arc<Table>,
    pub(crate) schema: Arc<TableSchema>,
    /// Of reversed reads.
    pub(crate) reversed: Arc<Layout>,
    /// Whether writes are logged (`durable_writes` of the keyspace).
    pub(crate) durable: bool,
    pub(crate) caching: Caching,
    /// Neither counters nor collections: the newest cell of a column is the column's value.
    pub(crate) single_cells: bool,
    /// `memtable_flush_period_in_ms`
    pub(crate) flush_period: Option<Duration>,
}

/// The table's `caching`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Caching {
    pub(crate) keys: bool,
    /// Live rows of each partition's head that the row cache takes; `None`: the table is not in it.
    pub(crate) rows: Option<usize>,
}

impl Caching {
    fn of(schema: &TableSchema) -> Caching {
        let caching = schema.options.caching();
        let rows = match caching.rows {
            CachedRows::None => None,
            CachedRows::All => Some(usize::MAX),
            CachedRows::Head(rows) => usize::try_from(rows).ok(),
        };
        // One row is the whole partition there.
        let whole = schema.clustering.is_empty();
        Caching { keys: caching.keys, rows: rows.map(|rows| if whole { usize::MAX } else { rows }) }
    }
}

impl Definition {
    /// A copy with reference counts of its own.
    pub(crate) fn for_shard(&self) -> Arc<Definition> {
        let layout = Arc::new(Layout::clone(&self.table.layout));
        let table = Table { layout, ..Table::clone(&self.table) };
        Arc::new(Definition {
            table: Arc::new(table),
            schema: Arc::new(TableSchema::clone(&self.schema)),
            reversed: Arc::new(Layout::clone(&self.reversed)),
            ..*self
        })
    }

    pub(crate) fn of(table: Arc<Table>, catalog: &Catalog) -> Arc<Definition> {
        let durable =
            catalog.keyspace(&table.schema.keyspace).is_none_or(|keyspace| keyspace.durable_writes);
        let schema = Arc::new(table.schema.clone());
        let reversed = Arc::new(table.layout.reversed());
        let caching = Caching::of(&schema);
        let period = u64::try_from(schema.options.memtable_flush_period_in_ms).ok();
        let period = period.filter(|ms| *ms > 0);
        let flush_period = period.map(Duration::from_millis);
        let columns = || table.layout.regulars.iter().chain(&table.layout.statics);
        let single_cells = !table.is_counter() && !columns().any(|column| column.is_complex());
        Arc::new(Definition {
            table,
            schema,
            reversed,
            durable,
            caching,
            single_cells,
            flush_period,
        })
    }
}

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
    /// The debt of the version for which it was computed last.
    pub(crate) debt: DebtCache,
    /// The average size of a flushed SSTable.
    pub(crate) flush_size: AtomicU64,
    /// By shard.
    pub(crate) metrics: Box<[TableMetrics]>,
    /// Of identifiers that are numbers.
    next_sequence: AtomicU32,
    /// The SSTables that the start could not use.
    set_apart: OnceLock<Vec<SetApart>>,
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
            debt: DebtCache::default(),
            flush_size: AtomicU64::new(0),
            metrics: (0..shards).map(|_| TableMetrics::default()).collect(),
            next_sequence: AtomicU32::new(1),
            set_apart: OnceLock::new(),
        })
    }

    pub(crate) fn lock_admission(&self) -> MutexGuard<'_, ()> {
        self.admission.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// The oldest timestamp in a memtable; `i64::MAX` if all are empty.
    pub(crate) fn oldest_unflushed(&self) -> i64 {
        // Acquire: a version that is loaded next has the data flushed before.
        self.metrics.iter().map(|shard| shard.min_timestamp.load(Acquire)).min().unwrap_or(i64::MAX)
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
pub(crate) fn table_directories(options: &Options, table: &Table) -> Vec<PathBuf> {
    let folder = format!("{}-{}", table.schema.name, hex::encode(&table.id));
    let place = |data: &PathBuf| data.join(&table.schema.keyspace).join(&folder);
    options.data_directories.iter().map(place).collect()
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
