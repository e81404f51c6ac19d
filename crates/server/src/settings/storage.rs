//! The engine's options from settings.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use halcyon_engine::{
    Adjustable, CommitFailurePolicy, CommitLogOptions, DiskFailurePolicy, Effort, LatencyTarget,
    LogCompression, OnCorruption, Options, SyncMode, UsableSpace, Version,
};
use halcyon_model::options::{Compaction, Entries, MapOption};
use halcyon_model::units;
use halcyon_query::ReadSizes;
use halcyon_schema::function::FunctionSettings;
use halcyon_schema::index::IndexSettings;
use halcyon_schema::mask::MaskSettings;
use halcyon_schema::view::ViewSettings;

use super::error::{Error, Result};
use super::file::Node;
use super::{Machine, Values};

/// Bytes.
struct Caches {
    chunks: u64,
    chunks_least: u64,
    positions: u64,
    keys: u64,
}

impl Values {
    pub(super) fn engine(
        &self,
        data_dir: &Path,
        shards: usize,
        machine: Machine,
    ) -> Result<Options> {
        let memtable_space = self.memtable_space(machine)?;
        // Each is a thread with buffers of its own.
        let compactors = self.count_within("concurrent_compactors", 1, 128)?;
        // Cassandra's rule: the smaller of disks and cores, at least 2, at most 8.
        let disks = self.data_directories(data_dir).len().max(2);
        let compactors = compactors.unwrap_or_else(|| machine.cores.clamp(2, 8).min(disks));
        let caches = self.caches(machine)?;
        Ok(Options {
            data_directories: self.data_directories(data_dir),
            commitlog: self.commitlog(data_dir, shards)?,
            saved_caches_directory: self.saved_caches_directory(data_dir),
            shards,
            memtable_space,
            // Cassandra takes 0 for its own choice.
            flush_writers: self.count_within("memtable_flush_writers", 0, 128)?.unwrap_or(0).max(1),
            uuid_sstable_identifiers: self.boolean("uuid_sstable_identifiers_enabled")?,
            disk_failure_policy: self.disk_failure_policy(),
            virtual_keyspaces: Vec::new(),
            commit_failure_policy: self.commit_failure_policy(),
            on_corruption: match self.text("commit_failure_policy").as_deref() {
                Some("ignore") => OnCorruption::Ignore,
                _ => OnCorruption::Stop,
            },
            version: self.version()?,
            read_mode: self.mode("disk_access_mode"),
            background_read_mode: self.mode("background_read_disk_access_mode"),
            background_write_mode: self.mode("background_write_disk_access_mode"),
            direct_write_buffer_size: self.bytes("direct_write_buffer_size")?.unwrap_or(1 << 20)
                as usize,
            short_lived_compression: self.short_lived_compression(),
            column_index_size: Adjustable::of(self.bytes("column_index_size")?.unwrap_or(u64::MAX)),
            snapshot_links_per_second: self.links_per_second()?,
            chunk_cache_size: caches.chunks,
            chunk_cache_least: caches.chunks_least,
            index_summary_capacity: caches.positions,
            key_cache_size: caches.keys,
            row_cache_size: self.bytes("row_cache_size")?.unwrap_or(0),
            concurrent_compactors: compactors,
            compaction_throughput: self
                .get("compaction_throughput", units::settings::rate)?
                .filter(|rate| *rate != 0),
            compaction_latency_target: self
                .get("compaction_latency_target", super::value::latency_target)?
                .unwrap_or(LatencyTarget::Off),
            compaction_space: self.compaction_space()?,
            compacts_after_start: self.boolean("autocompaction_on_startup_enabled")?,
            auto_snapshot: self.boolean("auto_snapshot")?,
            incremental_backups: self.boolean("incremental_backups")?,
            default_compaction: self.default_compaction()?,
            indexes: self.indexes()?,
            views: self.views()?,
            functions: self.functions()?,
            masks: MaskSettings { are_enabled: self.boolean("dynamic_data_masking_enabled")? },
            drops_compact_storage: self.boolean("drop_compact_storage_enabled")?,
            guardrails: Arc::new(self.guardrails()?),
            measures_row_indexes: self.read_sizes()?.row_index != ReadSizes::OFF.row_index,
            default_keyspace_rf: Adjustable::of(self.default_keyspace_rf()?.into()),
            allows_use: self.boolean("use_statements_enabled")?,
        })
    }

    fn commit_failure_policy(&self) -> CommitFailurePolicy {
        match self.text("commit_failure_policy").as_deref() {
            Some("stop_commit") => CommitFailurePolicy::StopCommit,
            Some("ignore") => CommitFailurePolicy::Ignore,
            Some("die") => CommitFailurePolicy::Die,
            _ => CommitFailurePolicy::Stop,
        }
    }

    /// Half of the memory is for what was read, and for what finds it. With direct I/O there is no page cache that would take what is left.
    fn caches(&self, machine: Machine) -> Result<Caches> {
        let positions = self.bytes("index_summary_capacity")?.unwrap_or(machine.memory / 32);
        let keys = self.bytes("key_cache_size")?.unwrap_or((machine.memory / 20).min(100 << 20));
        let left = (machine.memory / 2).saturating_sub(positions.saturating_add(keys));
        let given = self.bytes("file_cache_size")?;
        let chunks_least = given.unwrap_or(machine.memory / 8);
        let chunks = given.unwrap_or(left.max(chunks_least));
        Ok(Caches { chunks, chunks_least, positions, keys })
    }

    fn short_lived_compression(&self) -> Effort {
        match self.text("short_lived_compression").as_deref() {
            Some("table") => Effort::Default,
            _ => Effort::Fast,
        }
    }

    fn memtable_space(&self, machine: Machine) -> Result<u64> {
        Ok(match (self.bytes("memtable_heap_space")?, self.bytes("memtable_offheap_space")?) {
            (None, None) => machine.memory / 8,
            (heap, offheap) => heap.unwrap_or(0).saturating_add(offheap.unwrap_or(0)),
        })
    }

    fn data_directories(&self, data_dir: &Path) -> Vec<PathBuf> {
        match self.node("data_file_directories") {
            Some(Node::List(items)) if !items.is_empty() => {
                items.iter().filter_map(Node::scalar).map(PathBuf::from).collect()
            }
            _ => vec![data_dir.join("data")],
        }
    }

    fn saved_caches_directory(&self, data_dir: &Path) -> PathBuf {
        self.directory("saved_caches_directory", data_dir, "saved_caches")
    }

    fn commitlog(&self, data_dir: &Path, shards: usize) -> Result<CommitLogOptions> {
        let segment = self.bytes("commitlog_segment_size")?.unwrap_or(32 << 20);
        let segment_size = u32::try_from(segment)
            .ok()
            .filter(|size| (1 << 20..2 << 30).contains(size))
            .ok_or_else(|| self.wrong("commitlog_segment_size", "1MiB to 2047MiB"))?;
        let total = self.bytes("commitlog_total_space")?.unwrap_or_default();
        Ok(CommitLogOptions {
            directory: self.directory("commitlog_directory", data_dir, "commitlog"),
            sync: self.sync_mode()?,
            mode: self.mode("commitlog_disk_access_mode"),
            segment_size,
            // One that is written, one that is ready, one that is being freed.
            total_space: (total / shards as u64).max(3 * segment),
            compression: self.log_compression()?,
        })
    }

    fn disk_failure_policy(&self) -> DiskFailurePolicy {
        match self.text("disk_failure_policy").as_deref() {
            Some("best_effort") => DiskFailurePolicy::BestEffort,
            Some("stop_paranoid") => DiskFailurePolicy::StopParanoid,
            Some("ignore") => DiskFailurePolicy::Ignore,
            Some("die") => DiskFailurePolicy::Die,
            _ => DiskFailurePolicy::Stop,
        }
    }

    fn compaction_space(&self) -> Result<UsableSpace> {
        let name = "max_space_usable_for_compactions_in_percentage";
        let share = self.get(name, |text| text.parse().ok())?.unwrap_or(0.95);
        if !(0.0..=1.0).contains(&share) {
            return Err(self.wrong(name, "0.0 to 1.0"));
        }
        Ok(UsableSpace { kept: self.bytes("min_free_space_per_drive")?.unwrap_or(50 << 20), share })
    }

    fn views(&self) -> Result<ViewSettings> {
        Ok(ViewSettings { is_creation_allowed: self.boolean("materialized_views_enabled")? })
    }

    fn functions(&self) -> Result<FunctionSettings> {
        let default = FunctionSettings::default();
        let fail_timeout = self.duration("user_defined_functions_fail_timeout")?;
        let warn_timeout = self.duration("user_defined_functions_warn_timeout")?;
        let settings = FunctionSettings {
            are_enabled: self.boolean("user_defined_functions_enabled")?,
            fail_timeout: fail_timeout.unwrap_or(default.fail_timeout),
            warn_timeout: warn_timeout.unwrap_or(default.warn_timeout),
        };
        if settings.fail_timeout < settings.warn_timeout {
            return Err(self.wrong(
                "user_defined_functions_warn_timeout",
                "at most user_defined_functions_fail_timeout",
            ));
        }
        Ok(settings)
    }

    fn indexes(&self) -> Result<IndexSettings> {
        Ok(IndexSettings {
            default_class: self.text("default_secondary_index").unwrap_or_default(),
            has_default: self.boolean("default_secondary_index_enabled")?,
            is_sasi_allowed: self.boolean("sasi_indexes_enabled")?,
        })
    }

    fn default_compaction(&self) -> Result<Option<MapOption<Compaction>>> {
        let name = "default_compaction";
        let Some(class) = self.class(name) else { return Ok(None) };
        let mut entries: Entries = match self.node(name).and_then(|node| node.get("parameters")) {
            Some(Node::Map(members)) => {
                members.iter().map(|(name, value)| (name.clone(), value.to_string())).collect()
            }
            _ => Entries::new(),
        };
        entries.insert("class".to_owned(), class);
        MapOption::checked(entries)
            .map(Some)
            .map_err(|e| self.wrong(name, &format!("a compaction strategy ({e})")))
    }

    /// Durable before acknowledged, unless the file says otherwise.
    fn sync_mode(&self) -> Result<SyncMode> {
        let needed = |name: &str| match self.duration(name)? {
            Some(time) if time > Duration::ZERO => Ok(time),
            _ => Err(Error::Refused(format!("Missing value for {name}"))),
        };
        match self.text("commitlog_sync").map(|word| word.to_ascii_lowercase()).as_deref() {
            Some("periodic") => Ok(SyncMode::Periodic { period: needed("commitlog_sync_period")? }),
            Some("group") => Ok(SyncMode::Group { window: needed("commitlog_sync_group_window")? }),
            _ => Ok(SyncMode::Batch),
        }
    }

    fn log_compression(&self) -> Result<LogCompression> {
        match self.class("commitlog_compression").as_deref() {
            None => Ok(LogCompression::None),
            Some("LZ4Compressor") => Ok(LogCompression::Lz4),
            Some("SnappyCompressor") => Ok(LogCompression::Snappy),
            Some("DeflateCompressor") => Ok(LogCompression::Deflate),
            Some("ZstdCompressor") => Ok(LogCompression::Zstd),
            Some(_) => Err(self.wrong(
                "commitlog_compression",
                "LZ4Compressor, SnappyCompressor, DeflateCompressor or ZstdCompressor",
            )),
        }
    }

    /// Cassandra without `storage_compatibility_mode` is in CASSANDRA_4.
    fn version(&self) -> Result<Option<Version>> {
        let format = match self.node("sstable").map(|node| node.get("selected_format")) {
            Some(Some(Node::Scalar(format))) => format.clone(),
            _ => "big".to_owned(),
        };
        let mode = self.text("storage_compatibility_mode");
        match (format.as_str(), mode.as_deref()) {
            ("big", None) => Ok(None),
            ("big", Some("CASSANDRA_4")) => Ok(Some(Version::NB)),
            ("big", Some(_)) => Ok(Some(Version::OA)),
            ("bti", None | Some("CASSANDRA_4")) => Err(Error::Refused(
                "Selected sstable format 'bti' is not available when in storage compatibility mode 'CASSANDRA_4'. \
                 Set storage_compatibility_mode to NONE, or sstable.selected_format to big"
                    .to_owned(),
            )),
            ("bti", Some(_)) => Ok(Some(Version::DA)),
            _ => Err(Error::Wrong {
                key: "sstable.selected_format".to_owned(),
                value: format,
                allowed: "big or bti".to_owned(),
            }),
        }
    }
}
