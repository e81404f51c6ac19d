//! The input of the rules: plain values, without I/O.
//!
//! The cost of a query: a read of one row that misses all caches reads one stored chunk from each SSTable that has the row, rounded
//! up to blocks of the device:
//!
//! ```text
//!   stored     │    ┌──── chunk ────┐    │          chunks are not aligned: on average one costs
//!   blocks     ├────┼────┼────┼────┼────┤          a block more than its length
//!              └─ read from the device ─┘
//! ```

use std::collections::BTreeMap;
use std::path::PathBuf;

use halcyon_io::device::{BlockDevice, FileSystem};
use halcyon_io::{Alignment, KernelVersion};
use halcyon_model::options::TableOptions;
use halcyon_model::types::quote_identifier_if_needed;

#[derive(Debug, Clone, Default)]
pub struct Facts {
    pub machine: Option<Machine>,
    pub tables: Vec<Table>,
    pub live: Option<Server>,
    /// Files that could not be read, with errors.
    pub unreadable: Vec<(String, String)>,
}

/// The machine, as far as it matters for a directory.
#[derive(Debug, Clone)]
pub struct Machine {
    pub directory: PathBuf,
    pub kernel: KernelVersion,
    pub device: Option<BlockDevice>,
    pub file_system: Option<FileSystem>,
    /// The alignment of direct I/O on its files; `None` if the kernel does not report it.
    pub alignment: Option<Alignment>,
}

/// A running server.
#[derive(Debug, Clone, Default)]
pub struct Server {
    pub address: String,
    pub is_halcyon: bool,
    pub release: String,
    pub settings: BTreeMap<String, String>,
    pub caches: Vec<Cache>,
    /// Halcyon's access modes by purpose.
    pub io_modes: BTreeMap<String, String>,
    /// Tables of `system_views` that this server does not have.
    pub missing: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cache {
    pub name: String,
    pub capacity: u64,
    pub size: u64,
    pub requests: u64,
    pub hits: u64,
}

/// All chunks of one length.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Chunks {
    pub sstables: u64,
    pub count: u64,
    /// Their stored bytes.
    pub stored: u64,
}

/// Quantiles of a histogram, in its own unit.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Quantiles {
    pub count: u64,
    pub p50: f64,
    pub p99: f64,
    pub max: f64,
}

#[derive(Debug, Clone, Default)]
pub struct Table {
    pub keyspace: String,
    pub name: String,
    /// The folder of its SSTables; `None` if only a server knows the table.
    pub folder: Option<PathBuf>,
    pub options: TableOptions,
    pub sstables: u64,
    pub file_bytes: u64,
    pub data_bytes: u64,
    pub rows: u64,
    /// By chunk length; uncompressed SSTables have length 0.
    pub chunks: BTreeMap<u32, Chunks>,
    /// Keys of all SSTables, and distinct keys.
    pub key_entries: u64,
    pub keys: u64,
    /// Bits of all Bloom filters, keys in SSTables without one, and `bloom_filter_fp_chance`.
    pub filter_bits: u64,
    pub keys_without_filter: u64,
    pub fp_chance_asked: Option<f64>,
    pub partition_bytes: Quantiles,
    /// Cells, and deletions past gc_grace.
    pub cells: f64,
    pub droppable: f64,
    pub rows_per_read: Option<Quantiles>,
    pub tombstones_per_read: Option<Quantiles>,
    pub reads: u64,
}

/// A smaller table fits into any cache, so its settings do not matter.
pub(super) const SMALL: u64 = 64 << 20;
/// The smallest read of the page cache and of most devices.
pub(super) const BLOCK: u64 = 4096;

impl Table {
    /// The name in CQL.
    pub fn cql_name(&self) -> String {
        let quoted = quote_identifier_if_needed;
        format!("{}.{}", quoted(&self.keyspace), quoted(&self.name))
    }

    pub fn is_small(&self) -> bool {
        self.data_bytes < SMALL
    }

    /// Uncompressed bytes of a row.
    pub fn row_bytes(&self) -> Option<f64> {
        (self.rows > 0).then(|| self.data_bytes as f64 / self.rows as f64)
    }

    /// The average number of SSTables that have a key, by the cardinality sketches.
    pub fn sstables_of_a_read(&self) -> f64 {
        (self.key_entries as f64 / self.keys.max(1) as f64).max(1.0)
    }

    /// The chunk length of most of the data, and the average stored length of such a chunk.
    pub fn chunk(&self) -> Option<(u32, f64)> {
        let compressed = self.chunks.iter().filter(|(length, _)| **length > 0);
        let (length, chunks) = compressed.max_by_key(|(_, chunks)| chunks.stored)?;
        Some((*length, chunks.stored as f64 / chunks.count.max(1) as f64))
    }

    /// Device bytes of one row from one SSTable.
    pub fn device_bytes_of_a_chunk(&self) -> f64 {
        match self.chunk() {
            Some((_, stored)) => stored + BLOCK as f64,
            None => self.row_bytes().unwrap_or(0.0) + BLOCK as f64,
        }
    }

    /// The ratio of stored to uncompressed bytes.
    pub fn ratio(&self) -> f64 {
        self.file_bytes as f64 / self.data_bytes.max(1) as f64
    }

    /// Its SSTables are of one span of time each, and should stay so.
    pub fn has_windows(&self) -> bool {
        self.compaction_class() == "TimeWindowCompactionStrategy"
    }

    pub fn compaction_class(&self) -> &'static str {
        self.options.compaction().class()
    }
}

impl Facts {
    /// The command that rewrites a table: of time windows one SSTable after the other, because all at once would become one window.
    pub fn rewrite(&self, table: &Table) -> String {
        let Table { keyspace, name, folder, .. } = table;
        let folder = folder.as_ref().map(|folder| folder.display().to_string());
        let folder = folder.unwrap_or_else(|| format!("DATA_DIR/{keyspace}/{name}-*"));
        let each =
            |command: &str| format!("for file in {folder}/*-Data.db; do {command} $file; done");
        let is_halcyon = self.live.as_ref().is_some_and(|live| live.is_halcyon);
        match (is_halcyon, table.has_windows()) {
            (true, true) => each("halcyon nodetool compact --user-defined"),
            (true, false) => format!("halcyon nodetool compact {keyspace} {name}"),
            (false, has_windows) => {
                let offline = match has_windows {
                    true => each("halcyon compact"),
                    false => format!("halcyon compact {folder}"),
                };
                format!(
                    "nodetool upgradesstables -a {keyspace} {name}   # or, with the server stopped: {offline}"
                )
            }
        }
    }

    /// The largest table.
    pub fn largest(&self) -> Option<&Table> {
        self.tables.iter().max_by_key(|table| table.file_bytes)
    }
}
