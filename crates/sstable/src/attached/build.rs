//! Writing of attached indexes, in bounded memory.
//!
//! A memtable's entries are sorted already. Those of an SSTable come in the order of its rows: they are sorted in runs, each as large as
//! the budget, which are written as files of the same format and then merged.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::{Path, PathBuf};

use halcyon_io::{AccessMode, Disk, Purpose, SequentialWriter, WriteOptions};
use halcyon_model::Clusterings;

use super::Entry;
use super::file::{AttachedIndex, Encoder};
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

/// Sorts entries and writes them.
pub struct IndexBuilder {
    disk: Disk,
    to: Destination,
    /// Bytes of memory.
    budget: usize,
    entries: Vec<Entry>,
    bytes: usize,
    runs: Vec<PathBuf>,
}

impl IndexBuilder {
    pub fn new(disk: &Disk, to: Destination, budget: usize) -> IndexBuilder {
        let disk = disk.clone();
        IndexBuilder { disk, to, budget, entries: Vec::new(), bytes: 0, runs: Vec::new() }
    }

    pub fn add(&mut self, entry: Entry) {
        self.bytes += entry.size();
        self.entries.push(entry);
    }

    /// Whether [`Self::spill`] is due.
    pub fn is_full(&self) -> bool {
        self.bytes >= self.budget
    }

    fn take_sorted(&mut self) -> Vec<Entry> {
        let mut entries = std::mem::take(&mut self.entries);
        self.bytes = 0;
        entries.sort_unstable();
        entries.dedup();
        entries
    }

    /// Writes what is in memory as a run.
    pub async fn spill(&mut self) -> Result<()> {
        let mut name = self.to.path.clone().into_os_string();
        name.push(format!(".{}.tmp", self.runs.len()));
        let path = PathBuf::from(name);
        let to = Destination { path: path.clone(), ..self.to.clone() };
        self.runs.push(path);
        let entries = self.take_sorted();
        write_sorted(&self.disk, &to, entries).await
    }

    /// Writes the index; its runs are deleted, whatever comes of it.
    pub async fn finish(mut self) -> Result<()> {
        let written = if self.runs.is_empty() {
            let entries = self.take_sorted();
            write_sorted(&self.disk, &self.to, entries).await
        } else {
            self.merge().await
        };
        self.abandon().await;
        written
    }

    /// Deletes the runs.
    pub async fn abandon(self) {
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
            self.entries = self.index.block(caches, self.next_block).await?.into_iter();
            self.next_block += 1;
        }
    }
}
