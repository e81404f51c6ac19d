//! What to compact, and how.

use std::path::PathBuf;
use std::time::Duration;

use halcyon_io::AccessMode;
use halcyon_model::options::Compression;
use halcyon_sstable::{Format, Version};

use crate::schema_source::SchemaSource;

/// `None`: as the schema says, else as the inputs are.
pub struct Request {
    pub paths: Vec<PathBuf>,
    pub schema: SchemaSource,
    /// Where to write; `None` replaces the inputs. Several tables get subfolders.
    pub output: Option<PathBuf>,
    pub keep_inputs: bool,
    pub format: Option<Format>,
    pub version: Option<Version>,
    pub read_mode: AccessMode,
    pub write_mode: AccessMode,
    /// Bytes per second that are read; `None` and 0 are unlimited.
    pub throughput: Option<u64>,
    /// Seconds since 1970.
    pub gc_before: Option<u32>,
    pub gc_grace: Option<Duration>,
    /// Seconds since 1970; `None` is the current time.
    pub now: Option<u32>,
    /// Compressed bytes.
    pub split_size: Option<u64>,
    /// `Some(None)`: outputs are not compressed.
    pub compression: Option<Option<Compression>>,
    /// Uncompressed bytes of a chunk.
    pub chunk_length: Option<u64>,
    /// Bytes of one read, and reads in flight for each input.
    pub buffer_size: u64,
    pub read_ahead: usize,
    /// Bytes of one write.
    pub write_buffer_size: u64,
    /// Bytes of all I/O buffers together.
    pub buffer_budget: u64,
}
