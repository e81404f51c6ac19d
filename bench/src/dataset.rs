//! The inputs: one set of SSTables for each compressor and shape of rows, made once and kept.
//!
//! ```text
//! bench/data/                        (git-ignored)
//!   lz4-4-4096MiB-24/  oa-1-big-Data.db …  dataset.json
//!   wide-lz4-4-2048MiB-24/  wide-lz4-4-2048MiB-24-copy-2/  the same for the second node of a ring
//!   nodes/  5.0.9-buffered …
//!   scratch/  what a run writes
//! ```
//! A run gets hard links: nobody ever writes into these files.

use std::fs;
use std::path::{Path, PathBuf};

use halcyon_oracle::Result;
use serde::Serialize;
use serde_json::Value;

use crate::invocation::Invocation;
use crate::machine::files_below;

/// Raised when `measure generate` makes other data.
const GENERATION: u64 = 2;
const ABOUT: &str = "dataset.json";
/// Of the tables that sets become.
pub(super) const KEYSPACE: &str = "bench";

/// A compressor and the KiB of its chunks, as `lz4-4`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(super) struct Codec(pub(super) String);

impl std::str::FromStr for Codec {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Codec, String> {
        let known = ["lz4", "zstd"];
        match text.split_once('-') {
            Some((name, kib)) if known.contains(&name) && kib.parse::<u32>().is_ok() => {
                Ok(Codec(text.to_owned()))
            }
            _ => Err(format!("{text}: lz4-4, lz4-16, zstd-16 … expected")),
        }
    }
}

impl Codec {
    /// For a person.
    pub(super) fn title(&self) -> String {
        let (name, kib) = self.0.split_once('-').unwrap_or((&self.0, "?"));
        let name = if name == "lz4" { "LZ4" } else { "Zstd" };
        format!("{name}, {kib} KiB chunks")
    }
}

/// What the rows are like.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Shape {
    /// Small partitions of rows of 1 KiB, overwritten and deleted in part, some of them with a TTL.
    Rows,
    /// One row in a partition, of large values; half of them overwritten as a whole.
    Wide,
}

impl std::str::FromStr for Shape {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Shape, String> {
        let known = [Shape::Rows, Shape::Wide].into_iter().find(|shape| shape.name() == text);
        known.ok_or_else(|| format!("{text}: rows or wide expected"))
    }
}

impl Shape {
    pub(super) fn name(self) -> &'static str {
        match self {
            Shape::Rows => "rows",
            Shape::Wide => "wide",
        }
    }
}

#[derive(Clone)]
pub(super) struct DataSet {
    pub(super) codec: Codec,
    pub(super) shape: Shape,
    pub(super) folder: PathBuf,
    /// What `measure inspect` says of it.
    pub(super) content: Value,
}

/// What is known of the set in a folder, if it is complete.
fn about(folder: &Path) -> Option<Value> {
    serde_json::from_slice(&fs::read(folder.join(ABOUT)).ok()?).ok()
}

impl DataSet {
    /// Opens a set, making it first if it is not there.
    pub(super) fn open(
        invocation: &Invocation,
        codec: &Codec,
        shape: Shape,
        bytes: u64,
        sstables: u32,
    ) -> Result<DataSet> {
        let programs = &invocation.programs;
        let prefix = if shape == Shape::Wide { "wide-" } else { "" };
        let name = format!("{prefix}{}-{}MiB-{sstables}", codec.0, bytes >> 20);
        let folder = invocation.data.join(&name);
        let known = about(&folder).filter(|content| content["generation"] == GENERATION);
        if let Some(content) = known {
            return Ok(DataSet { codec: codec.clone(), shape, folder, content });
        }
        eprintln!("bench: making {name}");
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        let shown = folder.display().to_string();
        let (bytes, sstables) = (bytes.to_string(), sstables.to_string());
        let arguments = [
            "generate",
            &shown,
            "--bytes",
            &bytes,
            "--sstables",
            &sstables,
            "--compression",
            &codec.0,
            "--shape",
            shape.name(),
        ];
        let generated = programs.measure(&arguments)?;
        let mut content = programs.measure(&["inspect", &shown])?;
        content["generation"] = GENERATION.into();
        content["keys"] = generated["partitions"].clone();
        fs::write(folder.join(ABOUT), content.to_string())?;
        Ok(DataSet { codec: codec.clone(), shape, folder, content })
    }

    /// The same set in files of their own, made once and kept: nodes that had links to the same files would share their page cache.
    pub(super) fn copy(&self, number: u8) -> Result<DataSet> {
        let mut folder = self.folder.clone().into_os_string();
        folder.push(format!("-copy-{number}"));
        let copy = DataSet { folder: PathBuf::from(folder), ..self.clone() };
        if about(&copy.folder).as_ref() == Some(&self.content) {
            return Ok(copy);
        }
        if copy.folder.exists() {
            fs::remove_dir_all(&copy.folder)?;
        }
        fs::create_dir_all(&copy.folder)?;
        for file in self.files() {
            fs::copy(&file, copy.folder.join(file.file_name().unwrap_or_default()))?;
        }
        fs::write(copy.folder.join(ABOUT), self.content.to_string())?;
        Ok(copy)
    }

    /// The table that Cassandra keeps this set in.
    pub(super) fn table(&self) -> String {
        format!("{}_{}", self.shape.name(), self.codec.0.replace('-', "_"))
    }

    /// Its CQL.
    pub(super) fn schema(&self) -> String {
        let (name, kib) = self.codec.0.split_once('-').unwrap_or((&self.codec.0, "16"));
        let class = if name == "lz4" { "LZ4Compressor" } else { "ZstdCompressor" };
        format!(
            "CREATE TABLE IF NOT EXISTS {KEYSPACE}.{} (device bigint, at bigint, amount int, body text, \
             digest blob, kind text, rate double, PRIMARY KEY (device, at)) \
             WITH compression = {{'class': '{class}', 'chunk_length_in_kb': '{kib}'}} \
             AND compaction = {{'class': 'SizeTieredCompactionStrategy', 'enabled': 'false'}} \
             AND gc_grace_seconds = 864000",
            self.table()
        )
    }

    /// Uncompressed bytes: what rates are measured in.
    pub(super) fn data_bytes(&self) -> u64 {
        self.content["data_bytes"].as_u64().unwrap_or(0)
    }

    pub(super) fn sstables(&self) -> u32 {
        self.content["sstables"].as_u64().and_then(|n| u32::try_from(n).ok()).unwrap_or(0)
    }

    /// Partitions are numbered from zero to this; `inspect` counts one once for each SSTable that it is in.
    pub(super) fn keys(&self) -> u64 {
        self.content["keys"].as_u64().unwrap_or(0)
    }

    pub(super) fn file_bytes(&self) -> u64 {
        self.content["file_bytes"].as_u64().unwrap_or(0)
    }

    pub(super) fn files(&self) -> Vec<PathBuf> {
        let mut files = files_below(&self.folder);
        files.retain(|path| !path.ends_with(ABOUT));
        files
    }

    /// Hard-links the files, those of the first SSTables only if `sstables` says so.
    pub(super) fn link_into(&self, folder: &Path, sstables: Option<u32>) -> Result<()> {
        for file in self.files() {
            let name = file.file_name().unwrap_or_default();
            let number = name.to_str().and_then(|name| name.split('-').nth(1)?.parse::<u32>().ok());
            if number.is_some_and(|number| number <= sstables.unwrap_or(u32::MAX)) {
                fs::hard_link(&file, folder.join(name))?;
            }
        }
        Ok(())
    }
}
