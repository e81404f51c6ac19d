//! The engine's options; `server` sets them from `cassandra.yaml`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use halcyon_commitlog::{LogCompression, OnCorruption, SyncMode};
use halcyon_compaction::UsableSpace;
use halcyon_guardrails::Guardrails;
use halcyon_io::AccessMode;
use halcyon_model::options::{Compaction, MapOption};
use halcyon_schema::catalog::Keyspace;
use halcyon_schema::function::FunctionSettings;
use halcyon_schema::index::IndexSettings;
use halcyon_schema::mask::MaskSettings;
use halcyon_schema::view::ViewSettings;
use halcyon_sstable::{Effort, Version};

/// The reaction to an I/O error on data files (`disk_failure_policy`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DiskFailurePolicy {
    /// Clients are served no more, the process stays.
    #[default]
    Stop,
    /// As `Stop`, and one corrupt SSTable is enough.
    StopParanoid,
    /// Serve reads; retry failed writes of SSTables.
    BestEffort,
    Ignore,
    /// Like `StopParanoid`, and the server ends the process (`Reporter::failure`).
    Die,
}

/// The reaction to a failed write of the commit log (`commit_failure_policy`). Lack of space is not a failure: the log continues once there
/// is some.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CommitFailurePolicy {
    /// Clients are served no more, the process stays.
    #[default]
    Stop,
    /// Refuse writes, serve reads.
    StopCommit,
    /// Fail only the affected writes.
    Ignore,
    Die,
}

/// What compaction may slow the reads to, at p99 (`compaction_latency_target`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LatencyTarget {
    Off,
    /// A quarter more than they take without compaction.
    #[default]
    Auto,
    Fixed(Duration),
}

/// A number that can change while the node runs; clones share it.
#[derive(Debug, Clone, Default)]
pub struct Adjustable(Arc<AtomicU64>);

impl Adjustable {
    pub fn of(number: u64) -> Adjustable {
        Adjustable(Arc::new(number.into()))
    }

    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    pub fn set(&self, number: u64) {
        self.0.store(number, Relaxed);
    }
}

/// Sizes are in bytes for the whole node.
#[derive(Debug, Clone)]
pub struct Options {
    /// `data_file_directories`: each holds `<keyspace>/<table>-<id>/`.
    pub data_directories: Vec<PathBuf>,
    pub commitlog: halcyon_commitlog::Options,
    pub commit_failure_policy: CommitFailurePolicy,
    /// The reaction of a replay to damaged acknowledged records (`commit_failure_policy`).
    pub on_corruption: OnCorruption,
    pub saved_caches_directory: PathBuf,
    pub shards: usize,
    /// `memtable_heap_space` + `memtable_offheap_space`.
    pub memtable_space: u64,
    /// `memtable_flush_writers`
    pub flush_writers: usize,
    /// Of the SSTables that are written (`storage_compatibility_mode`, `sstable.selected_format`). `None`: the version that the last owner
    /// of the directory could read: `nb`, as Cassandra without the setting, unless there are newer SSTables.
    pub version: Option<Version>,
    /// `uuid_sstable_identifiers_enabled`
    pub uuid_sstable_identifiers: bool,
    /// `disk_access_mode`
    pub read_mode: AccessMode,
    pub background_read_mode: AccessMode,
    pub background_write_mode: AccessMode,
    pub direct_write_buffer_size: usize,
    /// Of flushes, and of compactions whose outputs are soon rewritten.
    pub short_lived_compression: Effort,
    /// `column_index_size`; `u64::MAX`: the format's own.
    pub column_index_size: Adjustable,
    pub chunk_cache_size: u64,
    /// So much of it stays, however much memory filters, summaries and offsets of chunks take from it.
    pub chunk_cache_least: u64,
    pub key_cache_size: u64,
    /// `index_summary_capacity`: of the positions between the samples of summaries; the samples themselves are always held.
    pub index_summary_capacity: u64,
    pub row_cache_size: u64,
    pub concurrent_compactors: usize,
    /// Bytes per second; `None`: unlimited.
    pub compaction_throughput: Option<u64>,
    pub compaction_latency_target: LatencyTarget,
    pub compaction_space: UsableSpace,
    /// `autocompaction_on_startup_enabled`: of the tables that there are when it starts.
    pub compacts_after_start: bool,
    pub auto_snapshot: bool,
    pub incremental_backups: bool,
    /// `snapshot_links_per_second`; 0: unlimited.
    pub snapshot_links_per_second: u64,
    /// `default_compaction`: of a table that is made without `compaction`.
    pub default_compaction: Option<MapOption<Compaction>>,
    pub indexes: IndexSettings,
    pub views: ViewSettings,
    pub functions: FunctionSettings,
    pub masks: MaskSettings,
    /// Whether `ALTER TABLE … DROP COMPACT STORAGE` is allowed.
    pub drops_compact_storage: bool,
    /// What clients may not do, and what flushes and compactions warn of.
    pub guardrails: Arc<Guardrails>,
    /// Whether reads measure the row indexes that they open (`row_index_read_size_…_threshold`).
    pub measures_row_indexes: bool,
    /// `use_statements_enabled`
    pub allows_use: bool,
    /// The replication factor of a keyspace whose statement has none.
    pub default_keyspace_rf: Adjustable,
    pub disk_failure_policy: DiskFailurePolicy,
    /// What the catalog has besides the keyspaces with storage.
    pub virtual_keyspaces: Vec<Arc<Keyspace>>,
}

impl Options {
    /// Of the SSTables that are begun now; `None`: the format's own.
    pub(crate) fn index_distance(&self) -> Option<u64> {
        Some(self.column_index_size.get()).filter(|distance| *distance != u64::MAX)
    }

    /// All data below one directory, with the defaults of an embedded node.
    pub fn in_directory(directory: &Path, shards: usize) -> Options {
        Options {
            data_directories: vec![directory.join("data")],
            commitlog: halcyon_commitlog::Options {
                directory: directory.join("commitlog"),
                sync: SyncMode::Batch,
                mode: AccessMode::Auto,
                segment_size: 32 << 20,
                total_space: 1 << 30,
                compression: LogCompression::None,
            },
            commit_failure_policy: CommitFailurePolicy::Stop,
            on_corruption: OnCorruption::Stop,
            saved_caches_directory: directory.join("saved_caches"),
            shards,
            memtable_space: 256 << 20,
            flush_writers: 1,
            version: Some(Version::OA),
            uuid_sstable_identifiers: true,
            read_mode: AccessMode::Auto,
            background_read_mode: AccessMode::Auto,
            background_write_mode: AccessMode::Auto,
            direct_write_buffer_size: 1 << 20,
            short_lived_compression: Effort::Fast,
            column_index_size: Adjustable::of(u64::MAX),
            chunk_cache_size: 64 << 20,
            chunk_cache_least: 64 << 20,
            key_cache_size: 16 << 20,
            index_summary_capacity: 16 << 20,
            row_cache_size: 0,
            concurrent_compactors: 1,
            compaction_throughput: Some(64 << 20),
            compaction_latency_target: LatencyTarget::default(),
            compaction_space: UsableSpace::ALL,
            compacts_after_start: true,
            auto_snapshot: true,
            incremental_backups: false,
            snapshot_links_per_second: 0,
            default_compaction: None,
            indexes: IndexSettings::default(),
            views: ViewSettings::default(),
            functions: FunctionSettings::default(),
            masks: MaskSettings::default(),
            drops_compact_storage: false,
            guardrails: Arc::default(),
            measures_row_indexes: false,
            allows_use: true,
            default_keyspace_rf: Adjustable::of(1),
            disk_failure_policy: DiskFailurePolicy::Stop,
            virtual_keyspaces: Vec::new(),
        }
    }
}
