//! The inputs: one set of SSTables for each compressor, shape of rows and format of files, made once and kept.
//!
//! ```text
//! bench/data/                        (git-ignored)
//!   lz4-4-4096MiB-24/  oa-1-big-Data.db …  dataset.json
//!   split-bti-lz4-4-1536MiB-4/  da-1-bti-Data.db …
//!   wide-lz4-4-2048MiB-24/  wide-lz4-4-2048MiB-24-copy-2/  the same for the second node of a ring
//!   nodes/  5.0.9-buffered …
//!   scratch/  what a run writes
//! ```
//! A run gets hard links: no process ever writes into these files.

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
    /// Uncompressed bytes of a chunk.
    pub(super) fn chunk(&self) -> u64 {
        self.0.split_once('-').and_then(|(_, kib)| kib.parse::<u64>().ok()).unwrap_or(0) << 10
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
    /// One row of 1 KiB in a partition, in one SSTable.
    Single,
    /// The same row, but of its four parts each SSTable has one.
    Split,
    /// The same row whole, and of the ring each SSTable has a range of its own.
    Ranges,
}

/// Of those that are compacted.
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
            Shape::Single => "single",
            Shape::Split => "split",
            Shape::Ranges => "ranges",
        }
    }

    /// Under which a record says what such a set has.
    pub(super) fn inputs(self) -> String {
        format!("{} inputs", self.name())
    }

    /// Its columns, in CQL.
    fn columns(self) -> &'static str {
        match self {
            Shape::Rows | Shape::Wide => {
                "device bigint, at bigint, amount int, body text, digest blob, kind text, rate double, \
                 PRIMARY KEY (device, at)"
            }
            Shape::Single | Shape::Split | Shape::Ranges => {
                "id bigint PRIMARY KEY, part_1 blob, part_2 blob, part_3 blob, part_4 blob"
            }
        }
    }
}

/// Of the files: how they are indexed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(super) enum Format {
    Big,
    Bti,
}

impl Format {
    /// As Cassandra's documentation has it.
    pub(super) fn title(self) -> &'static str {
        match self {
            Format::Big => "BIG",
            Format::Bti => "BTI",
        }
    }

    /// The version that all contenders read.
    fn version(self) -> &'static str {
        match self {
            Format::Big => "oa",
            Format::Bti => "da",
        }
    }
}

/// What a set is made of.
#[derive(Clone)]
pub(super) struct Kind {
    pub(super) codec: Codec,
    pub(super) shape: Shape,
    pub(super) format: Format,
}

impl Kind {
    /// In the format that 5.0 writes if it is not told otherwise.
    pub(super) fn big(codec: &Codec, shape: Shape) -> Kind {
        Kind { codec: codec.clone(), shape, format: Format::Big }
    }

    /// As folders and tables call it; what most sets are is left out.
    fn name(&self, always: &[&str]) -> String {
        let format = (self.format == Format::Bti).then_some("bti");
        let words = always.iter().copied().chain(format).chain([self.codec.0.as_str()]);
        words.collect::<Vec<_>>().join("-")
    }
}

#[derive(Clone)]
pub(super) struct DataSet {
    pub(super) kind: Kind,
    pub(super) folder: PathBuf,
    /// What `measure inspect` says of it.
    pub(super) content: Value,
}

/// What is known of the set in a folder, if it is complete.
fn about(folder: &Path) -> Option<Value> {
    serde_json::from_slice(&fs::read(folder.join(ABOUT)).ok()?).ok()
}

impl DataSet {
    /// Opens a set of each shape, and puts into the record what it has.
    pub(super) fn open_all(
        invocation: &mut Invocation,
        codec: &Codec,
        shapes: &[Shape],
        bytes: u64,
        sstables: u32,
    ) -> Result<Vec<DataSet>> {
        let mut sets = Vec::new();
        for shape in shapes {
            let set = DataSet::open(invocation, &Kind::big(codec, *shape), bytes, sstables)?;
            invocation.record.beside.insert(shape.inputs(), set.content.clone());
            sets.push(set);
        }
        Ok(sets)
    }

    /// Opens a set, making it first if it is not there.
    pub(super) fn open(
        invocation: &Invocation,
        kind: &Kind,
        bytes: u64,
        sstables: u32,
    ) -> Result<DataSet> {
        let programs = &invocation.programs;
        let shape = kind.shape.name();
        let shown: &[&str] = if kind.shape == Shape::Rows { &[] } else { &[shape] };
        let name = format!("{}-{}MiB-{sstables}", kind.name(shown), bytes >> 20);
        let folder = invocation.data.join(&name);
        let known = about(&folder).filter(|content| content["generation"] == GENERATION);
        if let Some(content) = known {
            return Ok(DataSet { kind: kind.clone(), folder, content });
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
            &kind.codec.0,
            "--shape",
            shape,
            "--version",
            kind.format.version(),
        ];
        let generated = programs.measure(&arguments)?;
        let mut content = programs.measure(&["inspect", &shown])?;
        content["generation"] = GENERATION.into();
        content["keys"] = generated["partitions"].clone();
        fs::write(folder.join(ABOUT), content.to_string())?;
        Ok(DataSet { kind: kind.clone(), folder, content })
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
        self.kind.name(&[self.kind.shape.name()]).replace('-', "_")
    }

    /// Its CQL.
    pub(super) fn schema(&self) -> String {
        let codec = &self.kind.codec.0;
        let (name, kib) = codec.split_once('-').unwrap_or((codec, "16"));
        let class = if name == "lz4" { "LZ4Compressor" } else { "ZstdCompressor" };
        format!(
            "CREATE TABLE IF NOT EXISTS {KEYSPACE}.{} ({}) \
             WITH compression = {{'class': '{class}', 'chunk_length_in_kb': '{kib}'}} \
             AND compaction = {{'class': 'SizeTieredCompactionStrategy', 'enabled': 'false'}} \
             AND gc_grace_seconds = 864000",
            self.table(),
            self.kind.shape.columns()
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

    /// Of all SSTables: a partition counts once for each SSTable that it is in.
    pub(super) fn partitions(&self) -> u64 {
        self.content["partitions"].as_u64().unwrap_or(0)
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
