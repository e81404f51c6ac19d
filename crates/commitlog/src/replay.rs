//! Replays the segments of earlier starts.
//!
//! 1. Each shard's segments form a chain, in the order of their ids. Chains are replayed in parallel.
//! 2. A chain may end in a torn group, which was never acknowledged. All other damage is corruption of acknowledged records: a
//!    torn group that segments of the same start follow, too, and a segment that is shorter than the next one says. The replay
//!    then stops with an error, or skips the damage and reports it.
//! 3. The files are kept until `ReplayReport::delete`.

#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use halcyon_io::{AccessMode, Disk, Purpose, StreamOptions, ThreadPriority};

use crate::format::parse_file_name;
use crate::scan::{Damage, Scanned, SegmentState, scan, segment_state};
use crate::{Error, OnCorruption, ReplayPosition, Result};

/// A file larger than this is not a segment.
const SEGMENT_MAX: u64 = 2 << 30;
const READ: StreamOptions = StreamOptions { buffer_size: 1 << 20, depth: 2 };

#[derive(Debug, Clone)]
pub struct ReplayOptions {
    pub directory: PathBuf,
    pub mode: AccessMode,
    /// Shards replayed in parallel, each on its own thread; 1 replays on the calling thread.
    pub threads: usize,
    pub on_corruption: OnCorruption,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplayReport {
    /// Segments with records.
    pub segments: usize,
    pub records: u64,
    /// Bytes of the records.
    pub bytes: u64,
    /// Messages for the operator: torn tails and skipped damage.
    pub notes: Vec<String>,
    /// Greater than every segment id in the directory.
    pub next_segment: u64,
    /// All segment files, including those that were never used.
    pub files: Vec<PathBuf>,
}

impl ReplayReport {
    /// Deletes the segments; call it once their records are durable in SSTables.
    pub async fn delete(&self, disk: &Disk) -> Result<()> {
        for file in &self.files {
            match disk.remove(file).await {
                Err(e) if !e.is_not_found() => return Err(e.into()),
                _ => {}
            }
        }
        match self.files.first().and_then(|file| file.parent()) {
            Some(directory) => Ok(disk.sync_dir(directory).await?),
            None => Ok(()),
        }
    }
}

/// Progress: a segment has been visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Visited {
    pub shard: u32,
    /// Over all shards: segments visited so far, and their total.
    pub segments: usize,
    pub of: usize,
}

/// Calls `visit` with shard, position and body of every record, in order within each shard; shards run in parallel. `pause` is
/// awaited after each segment, for example to flush. An error of either ends the replay. Blocks the thread: for start-up
/// only.
pub async fn replay<V, P>(
    disk: &Disk,
    options: &ReplayOptions,
    visit: V,
    pause: P,
) -> Result<ReplayReport>
where
    V: Fn(u32, ReplayPosition, &[u8]) -> Result<(), String> + Send + Sync + 'static,
    P: AsyncFn(Visited) -> Result<(), String> + Send + Sync + 'static,
{
    let chains = chains(disk, &options.directory).await?;
    let mut report = ReplayReport { next_segment: 1, ..ReplayReport::default() };
    for (shard, ids) in &chains {
        let path = |id| options.directory.join(crate::format::file_name(*shard, id));
        report.files.extend(ids.iter().map(|id| path(*id)));
        report.next_segment =
            ids.iter().fold(report.next_segment, |next, id| next.max(id.saturating_add(1)));
    }
    let threads = options.threads.clamp(1, chains.len().max(1));
    let work = Arc::new(Work {
        disk: disk.clone(),
        options: options.clone(),
        chains,
        next: AtomicUsize::new(0),
        segments: AtomicUsize::new(0),
        of: report.files.len(),
        visit,
        pause,
    });
    let mut parts = Vec::new();
    if threads == 1 {
        parts.extend(work.run().await);
    } else {
        let start = |_| {
            let work = work.clone();
            let body = move || async move { work.run().await };
            disk.runtime().spawn_thread("commitlog-replay", ThreadPriority::Normal, body)
        };
        for thread in (0..threads).map(start).collect::<Vec<_>>() {
            let Some(chains) = thread.join().await else { panic!("a replay thread panicked") };
            parts.extend(chains);
        }
    }
    parts.sort_by_key(|(chain, _)| *chain);
    for (_, part) in parts {
        let part = part?;
        report.segments += part.segments;
        report.records += part.records;
        report.bytes += part.bytes;
        report.notes.extend(part.notes);
    }
    Ok(report)
}

/// The ids of each shard's segments, in order.
async fn chains(disk: &Disk, directory: &Path) -> Result<Vec<(u32, Vec<u64>)>> {
    let entries = match disk.list(directory).await {
        Err(e) if e.is_not_found() => Vec::new(),
        entries => entries?,
    };
    let mut chains: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for (shard, id) in entries.iter().filter_map(|entry| parse_file_name(&entry.name)) {
        chains.entry(shard).or_default().push(id);
    }
    chains.values_mut().for_each(|ids| ids.sort_unstable());
    Ok(chains.into_iter().collect())
}

struct Work<V, P> {
    disk: Disk,
    options: ReplayOptions,
    chains: Vec<(u32, Vec<u64>)>,
    next: AtomicUsize,
    /// Segments visited so far, and their total.
    segments: AtomicUsize,
    of: usize,
    visit: V,
    pause: P,
}

/// The previous segment of a chain, and how it ended.
struct ChainEnd {
    path: PathBuf,
    id: u64,
    salt: u64,
    end: usize,
    torn: Option<Damage>,
}

impl<V, P> Work<V, P>
where
    V: Fn(u32, ReplayPosition, &[u8]) -> Result<(), String>,
    P: AsyncFn(Visited) -> Result<(), String>,
{
    /// Replays chains until none is left or one fails.
    async fn run(&self) -> Vec<(usize, Result<ReplayReport>)> {
        let mut parts = Vec::new();
        loop {
            let index = self.next.fetch_add(1, Relaxed);
            let Some((shard, ids)) = self.chains.get(index) else { return parts };
            let part = self.chain(*shard, ids).await;
            if part.is_err() {
                self.next.store(self.chains.len(), Relaxed);
            }
            parts.push((index, part));
        }
    }

    async fn chain(&self, shard: u32, ids: &[u64]) -> Result<ReplayReport> {
        let mut report = ReplayReport::default();
        let mut last: Option<ChainEnd> = None;
        for &id in ids {
            let path = self.options.directory.join(crate::format::file_name(shard, id));
            let bytes = self.read(&path).await?;
            let header = match segment_state(&bytes, shard, id) {
                SegmentState::Unused => continue,
                SegmentState::Foreign => return Err(Error::Foreign(path)),
                SegmentState::Damaged(what) => {
                    self.damaged(&path, Damage { offset: 0, what }, &mut report.notes)?;
                    continue;
                }
                SegmentState::Used(header) => header,
            };
            let visit = |offset, record: &[u8]| {
                let position = ReplayPosition { segment: id, offset };
                (self.visit)(shard, position, record).map_err(Error::Refused)
            };
            let scanned = scan(&bytes, &header, self.options.on_corruption, visit)?;
            drop(bytes);
            let segments = self.segments.fetch_add(1, Relaxed) + 1;
            let visited = Visited { shard, segments, of: self.of };
            (self.pause)(visited).await.map_err(Error::Refused)?;
            if scanned.previous.is_some()
                && let Some(last) = last.take().filter(|last| last.salt == header.salt)
            {
                self.joined(last, &scanned, &mut report.notes)?;
            }
            for damage in &scanned.damage {
                self.damaged(&path, damage.clone(), &mut report.notes)?;
            }
            report.segments += usize::from(scanned.records > 0);
            report.records += scanned.records;
            report.bytes += scanned.bytes;
            if let Some(Damage { offset, what }) = &scanned.torn {
                report.notes.push(format!(
                    "{}: the last group, at offset {offset}, was being written when the machine stopped ({what}); \
                     it was never acknowledged",
                    path.display()
                ));
            }
            let Scanned { end, torn, .. } = scanned;
            if scanned.groups > 0 || torn.is_some() {
                last = Some(ChainEnd { path, id, salt: header.salt, end, torn });
            }
        }
        Ok(report)
    }

    /// Checks a segment that another one of the same start follows: it must be complete.
    fn joined(&self, last: ChainEnd, next: &Scanned, notes: &mut Vec<String>) -> Result<()> {
        if let Some(torn) = last.torn {
            return self.damaged(&last.path, torn, notes);
        }
        match next.previous {
            Some(previous) if previous.segment == last.id && previous.end as usize > last.end => {
                let what = format!(
                    "it ends here, but the segment after it says that it was filled to {}",
                    previous.end
                );
                self.damaged(&last.path, Damage { offset: last.end, what }, notes)
            }
            _ => Ok(()),
        }
    }

    fn damaged(&self, path: &Path, damage: Damage, notes: &mut Vec<String>) -> Result<()> {
        let Damage { offset, what } = damage;
        match self.options.on_corruption {
            OnCorruption::Stop => {
                Err(Error::Corrupt { path: path.to_path_buf(), offset: offset as u64, what })
            }
            OnCorruption::Ignore => {
                notes
                    .push(format!("{}: skipped damage at offset {offset}: {what}", path.display()));
                Ok(())
            }
        }
    }

    async fn read(&self, path: &Path) -> Result<Vec<u8>> {
        let (mode, purpose) = (self.options.mode, Purpose::CommitLog);
        let mut reader = self.disk.open_sequential(path, mode, purpose, READ).await?;
        if reader.len() > SEGMENT_MAX {
            let what = format!("{} bytes are no segment", reader.len());
            return Err(Error::Corrupt { path: path.to_path_buf(), offset: 0, what });
        }
        let mut bytes = Vec::with_capacity(reader.len() as usize);
        loop {
            let got = reader.fill(1).await?;
            if got.is_empty() {
                return Ok(bytes);
            }
            let count = got.len();
            bytes.extend_from_slice(got);
            reader.consume(count);
        }
    }
}
