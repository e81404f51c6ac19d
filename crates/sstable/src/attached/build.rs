//! Writing of attached indexes, in bounded memory.
//!
//! 1. A memtable's entries are sorted already. Those of an SSTable come in the order of its rows: they are sorted in runs, each as large as
//!    the budget, which are written as files of the same format and then merged.
//! 2. Vectors have no order. They become segments, each as large as the budget, which are written one behind the other.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::{Path, PathBuf};

use futures_util::future::LocalBoxFuture;
use halcyon_io::{AccessMode, Disk, Purpose, SequentialWriter, WriteOptions};
use halcyon_model::Clusterings;
use halcyon_stream::PrimaryKey;

use super::file::{AttachedIndex, Encoder};
use super::segment::SegmentBuilder;
use super::{Entry, Held, Target};
use crate::Result;
use crate::read::ReadCaches;

/// Bytes of one write.
const BUFFER: usize = 256 << 10;

/// Where and how an index is written.
#[derive(Debug, Clone)]
pub struct Destination {
    pub path: PathBuf,
    pub fingerprint: Vec<u8>,
    pub clusterings: Clusterings,
    pub mode: AccessMode,
    pub purpose: Purpose,
}

struct Writer {
    file: SequentialWriter,
    encoder: Encoder,
}

impl Writer {
    async fn create(disk: &Disk, to: &Destination, path: &Path) -> Result<Writer> {
        let options = WriteOptions { buffer_size: BUFFER, ..WriteOptions::default() };
        let file = disk.create_with(path, to.mode, to.purpose, options).await?;
        Ok(Writer { file, encoder: Encoder::default() })
    }

    async fn add(&mut self, entry: Entry) -> Result<()> {
        match self.encoder.add(entry)? {
            Some(block) => Ok(self.file.write(&block).await?),
            None => Ok(()),
        }
    }

    /// Durable afterwards.
    async fn finish(mut self, fingerprint: &[u8]) -> Result<()> {
        if let Some(block) = self.encoder.block()? {
            self.file.write(&block).await?;
        }
        self.file.write(&self.encoder.finish(fingerprint)).await?;
        self.file.finish().await?;
        Ok(())
    }
}

/// Memory for entries that are being sorted, and for a segment of vectors. To be written, a segment is copied.
const SORTED: usize = 32 << 20;
const SEGMENT: usize = 96 << 20;

/// Writes sorted entries, each once. The file is durable afterwards, its name is not.
pub async fn write_sorted(
    disk: &Disk,
    to: &Destination,
    entries: impl IntoIterator<Item = Entry>,
) -> Result<()> {
    let mut writer = Writer::create(disk, to, &to.path).await?;
    for entry in entries {
        if let Err(e) = writer.add(entry).await {
            writer.file.abandon().await;
            return Err(e);
        }
    }
    writer.finish(&to.fingerprint).await
}

/// Makes the index of an SSTable from its rows' entries, in any order.
pub enum IndexBuilder {
    Terms(TermBuilder),
    Vectors(Box<VectorBuilder>),
}

impl IndexBuilder {
    /// One of `sharing` builders that share the memory.
    pub fn new(disk: &Disk, to: Destination, target: &Target, sharing: usize) -> IndexBuilder {
        match VectorBuilder::new(disk, &to, target, SEGMENT / sharing.max(1)) {
            Some(builder) => IndexBuilder::Vectors(Box::new(builder)),
            None => IndexBuilder::Terms(TermBuilder::new(disk, to, SORTED / sharing.max(1))),
        }
    }

    pub fn add(&mut self, place: PrimaryKey, held: Held) {
        for entry in held.entries(place) {
            match self {
                IndexBuilder::Terms(builder) => builder.add(entry),
                IndexBuilder::Vectors(builder) => builder.add(&entry),
            }
        }
    }

    /// Whether [`Self::spill`] is due.
    pub fn is_full(&self) -> bool {
        match self {
            IndexBuilder::Terms(builder) => builder.bytes >= builder.budget,
            IndexBuilder::Vectors(builder) => builder.segment.size() >= builder.budget,
        }
    }

    /// Writes what is in memory.
    pub fn spill<'a>(&'a mut self) -> LocalBoxFuture<'a, Result<()>> {
        Box::pin(async move {
            match self {
                IndexBuilder::Terms(builder) => builder.spill().await,
                IndexBuilder::Vectors(builder) => builder.spill().await,
            }
        })
    }

    /// Writes the index; what was written on the way is deleted, whatever comes of it.
    pub fn finish(self) -> LocalBoxFuture<'static, Result<()>> {
        Box::pin(async move {
            match self {
                IndexBuilder::Terms(builder) => builder.finish().await,
                IndexBuilder::Vectors(builder) => builder.finish().await,
            }
        })
    }

    /// Deletes what was written.
    pub fn abandon(self) -> LocalBoxFuture<'static, ()> {
        Box::pin(async move {
            match self {
                IndexBuilder::Terms(builder) => builder.abandon().await,
                IndexBuilder::Vectors(builder) => {
                    if let Some(writer) = builder.writer {
                        writer.file.abandon().await;
                    }
                }
            }
        })
    }
}

/// Writes segments of vectors.
pub struct VectorBuilder {
    disk: Disk,
    to: Destination,
    budget: usize,
    target: Target,
    segment: SegmentBuilder,
    /// Since the first segment was full.
    writer: Option<Writer>,
}

impl VectorBuilder {
    /// `None`: not of vectors.
    fn new(disk: &Disk, to: &Destination, target: &Target, budget: usize) -> Option<VectorBuilder> {
        let segment = empty_segment(target)?;
        let (disk, to, target) = (disk.clone(), to.clone(), target.clone());
        Some(VectorBuilder { disk, to, budget, target, segment, writer: None })
    }

    fn add(&mut self, entry: &Entry) {
        self.segment.add(entry);
        halcyon_io::give_way(JOINED);
    }

    async fn spill(&mut self) -> Result<()> {
        let writer = match &mut self.writer {
            Some(writer) => writer,
            none => none.insert(Writer::create(&self.disk, &self.to, &self.to.path).await?),
        };
        let Some(empty) = empty_segment(&self.target) else { return Ok(()) };
        let full = std::mem::replace(&mut self.segment, empty);
        let entries = full.entries;
        let bytes = full.encode();
        writer.encoder.segment(&bytes, entries);
        Ok(writer.file.write(&bytes).await?)
    }

    async fn finish(mut self) -> Result<()> {
        if !self.segment.is_empty() || self.writer.is_none() {
            self.spill().await?;
        }
        match self.writer {
            Some(writer) => writer.finish(&self.to.fingerprint).await,
            None => Ok(()),
        }
    }
}

/// What a vector's place in a graph costs, in bytes of rows that are copied.
const JOINED: usize = 32 << 10;

fn empty_segment(target: &Target) -> Option<SegmentBuilder> {
    Some(SegmentBuilder::new(target.similarity?, target.dimension()))
}

/// Sorts entries and writes them.
pub struct TermBuilder {
    disk: Disk,
    to: Destination,
    /// Bytes of memory.
    budget: usize,
    entries: Vec<Entry>,
    bytes: usize,
    runs: Vec<PathBuf>,
}

impl TermBuilder {
    pub(super) fn new(disk: &Disk, to: Destination, budget: usize) -> TermBuilder {
        let disk = disk.clone();
        TermBuilder { disk, to, budget, entries: Vec::new(), bytes: 0, runs: Vec::new() }
    }

    pub(super) fn add(&mut self, entry: Entry) {
        self.bytes += entry.size();
        self.entries.push(entry);
    }

    fn take_sorted(&mut self) -> Vec<Entry> {
        let mut entries = std::mem::take(&mut self.entries);
        self.bytes = 0;
        entries.sort_unstable();
        entries.dedup();
        entries
    }

    /// Writes what is in memory as a run.
    pub(super) async fn spill(&mut self) -> Result<()> {
        let mut name = self.to.path.clone().into_os_string();
        name.push(format!(".{}.tmp", self.runs.len()));
        let path = PathBuf::from(name);
        let to = Destination { path: path.clone(), ..self.to.clone() };
        self.runs.push(path);
        let entries = self.take_sorted();
        write_sorted(&self.disk, &to, entries).await
    }

    pub(super) async fn finish(mut self) -> Result<()> {
        let written = if self.runs.is_empty() {
            let entries = self.take_sorted();
            write_sorted(&self.disk, &self.to, entries).await
        } else {
            self.merge().await
        };
        self.abandon().await;
        written
    }

    async fn abandon(self) {
        for run in &self.runs {
            // A next start deletes what is left: its name ends in `.tmp`.
            let _ = self.disk.remove(run).await;
        }
    }

    async fn merge(&mut self) -> Result<()> {
        self.spill().await?;
        let caches = ReadCaches::of_one_pass();
        let mut runs = Vec::new();
        let mut heads = BinaryHeap::new();
        for (number, path) in self.runs.iter().enumerate() {
            let mut run = Run::open(&self.disk, path, &self.to.clusterings).await?;
            if let Some(entry) = run.next(&caches).await? {
                heads.push(Reverse((entry, number)));
            }
            runs.push(run);
        }
        let mut writer = Writer::create(&self.disk, &self.to, &self.to.path).await?;
        let mut last: Option<Entry> = None;
        while let Some(Reverse((entry, number))) = heads.pop() {
            if let Some(run) = runs.get_mut(number)
                && let Some(next) = run.next(&caches).await?
            {
                heads.push(Reverse((next, number)));
            }
            if last.as_ref() != Some(&entry) {
                writer.add(entry.clone()).await?;
                last = Some(entry);
            }
        }
        writer.finish(&self.to.fingerprint).await
    }
}

/// A sorted run that is being merged.
struct Run {
    index: AttachedIndex,
    next_block: usize,
    entries: std::vec::IntoIter<Entry>,
}

impl Run {
    async fn open(disk: &Disk, path: &Path, clusterings: &Clusterings) -> Result<Run> {
        let index = AttachedIndex::open(disk, path, clusterings, AccessMode::Auto).await?;
        Ok(Run { index, next_block: 0, entries: Vec::new().into_iter() })
    }

    async fn next(&mut self, caches: &ReadCaches) -> Result<Option<Entry>> {
        loop {
            if let Some(entry) = self.entries.next() {
                return Ok(Some(entry));
            }
            if self.next_block >= self.index.block_count() {
                return Ok(None);
            }
            self.entries = self.index.entries_of(caches, self.next_block).await?.into_iter();
            self.next_block += 1;
        }
    }
}
