//! Replays the segments of earlier starts.
//!
//! 1. Each shard's segments form a chain (`chain`). Chains are replayed in parallel.
//! 2. The files are kept until `ReplayReport::delete`, and those that were damaged are kept for good.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use halcyon_io::{Disk, ThreadPriority, contained, panic_point};

use crate::chain::{Chain, ReplayOptions, Replayed, Replayer, Visited};
use crate::format::{BadHeader, file_name, parse_file_name};
use crate::manifest::{self, Listed, manifest_path, parse_manifest_name};
use crate::shared::remove_if_there;
use crate::{Error, OnCorruption, ReplayPosition, Result};

/// Replaces the extension of what was damaged: it is not deleted with the rest, nor replayed again.
const SET_ASIDE: &str = "damaged";

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
    /// Files of which damage was skipped.
    damaged: BTreeSet<PathBuf>,
    manifests: Vec<(u32, Listed)>,
}

impl ReplayReport {
    /// Deletes the segments; call it once their records are durable in SSTables. Those with damage that was skipped are renamed.
    pub async fn delete(&self, disk: &Disk, directory: &Path) -> Result<()> {
        for (shard, listed) in &self.manifests {
            listed.clear(disk, &manifest_path(directory, *shard), *shard).await?;
        }
        for path in self.files.iter().filter(|path| !self.damaged.contains(*path)) {
            remove_if_there(disk, path).await?;
        }
        for path in &self.damaged {
            let mut name = path.clone().into_os_string();
            name.push(format!(".{SET_ASIDE}"));
            match disk.rename(path, Path::new(&name)).await {
                Err(e) if !e.is_not_found() => return Err(e.into()),
                _ => {}
            }
        }
        disk.sync_dir(directory).await?;
        for (shard, _) in &self.manifests {
            remove_if_there(disk, &manifest_path(directory, *shard)).await?;
        }
        Ok(disk.sync_dir(directory).await?)
    }
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
    let (chains, mut report) = chains(disk, options).await?;
    let threads = options.threads.clamp(1, chains.len().max(1));
    let replayer = Replayer {
        disk: disk.clone(),
        options: options.clone(),
        segments: AtomicUsize::new(0),
        of: report.files.len(),
        visit,
        pause,
    };
    let work = Arc::new(Work { chains, next: AtomicUsize::new(0), replayer });
    let mut parts = Vec::new();
    if threads == 1 {
        parts.extend(contained(work.run()).await.ok_or_else(panicked)?);
    } else {
        let start = |_| {
            let work = work.clone();
            let body = move || async move { work.run().await };
            disk.runtime().spawn_thread("commitlog-replay", ThreadPriority::Normal, body)
        };
        for thread in (0..threads).map(start).collect::<Vec<_>>() {
            parts.extend(thread.join().await.ok_or_else(panicked)?);
        }
    }
    parts.sort_by_key(|(chain, _)| *chain);
    for (_, part) in parts {
        let part = part?;
        report.segments += part.segments;
        report.records += part.records;
        report.bytes += part.bytes;
        report.notes.extend(part.notes);
        report.damaged.extend(part.damaged);
    }
    Ok(report)
}

fn panicked() -> Error {
    Error::Refused("an internal error has stopped the replay of the commit log; keep its files, and report this defect".to_owned())
}

/// Finds the segments and manifests of all shards.
async fn chains(disk: &Disk, options: &ReplayOptions) -> Result<(Vec<Chain>, ReplayReport)> {
    let directory = &options.directory;
    let entries = match disk.list(directory).await {
        Err(e) if e.is_not_found() => Vec::new(),
        entries => entries?,
    };
    let mut report = ReplayReport { next_segment: 1, ..ReplayReport::default() };
    let mut ids: BTreeMap<u32, BTreeSet<u64>> = BTreeMap::new();
    for entry in &entries {
        let aside = entry.name.strip_suffix(SET_ASIDE).and_then(|name| name.strip_suffix('.'));
        if let Some((shard, id)) = parse_file_name(aside.unwrap_or(&entry.name)) {
            report.next_segment = report.next_segment.max(id.saturating_add(1));
            if aside.is_none() {
                report.files.push(directory.join(file_name(shard, id)));
                ids.entry(shard).or_default().insert(id);
            }
        } else if let Some(shard) = parse_manifest_name(&entry.name) {
            ids.entry(shard).or_default();
        }
    }
    report.files.sort();
    let mut chains = Vec::new();
    for (shard, mut ids) in ids {
        let listed = read_manifest(disk, options, shard, &mut report).await?;
        if let Some(Listed { segments, .. }) = &listed {
            ids.extend(segments);
            let last = segments.last().copied().unwrap_or(0);
            report.next_segment = report.next_segment.max(last.saturating_add(1));
        }
        let manifest = listed.as_ref().map(|listed| listed.segments.clone());
        let is_whole = listed.as_ref().is_some_and(|listed| listed.is_whole);
        report.manifests.extend(listed.map(|listed| (shard, listed)));
        chains.push(Chain { shard, ids, manifest, is_whole });
    }
    Ok((chains, report))
}

/// A shard's manifest, if it has one that can be read.
async fn read_manifest(
    disk: &Disk,
    options: &ReplayOptions,
    shard: u32,
    report: &mut ReplayReport,
) -> Result<Option<Listed>> {
    let path = manifest_path(&options.directory, shard);
    let Some(bytes) = manifest::read(disk, &path).await? else { return Ok(None) };
    match Listed::decode(&bytes, shard) {
        Ok(listed) => Ok(Some(listed)),
        Err(BadHeader::Newer(version)) => {
            Err(Error::Newer { path, version, known: manifest::VERSION })
        }
        Err(BadHeader::Damaged(what)) if options.on_corruption == OnCorruption::Stop => {
            Err(Error::Corrupt { path, offset: 0, what })
        }
        Err(BadHeader::Damaged(what)) => {
            report.notes.push(format!("{}: skipped: {what}", path.display()));
            report.damaged.insert(path);
            Ok(None)
        }
    }
}

struct Work<V, P> {
    chains: Vec<Chain>,
    next: AtomicUsize,
    replayer: Replayer<V, P>,
}

impl<V, P> Work<V, P>
where
    V: Fn(u32, ReplayPosition, &[u8]) -> Result<(), String>,
    P: AsyncFn(Visited) -> Result<(), String>,
{
    /// Replays chains until none is left or one fails.
    async fn run(&self) -> Vec<(usize, Result<Replayed>)> {
        let mut parts = Vec::new();
        loop {
            let index = self.next.fetch_add(1, Relaxed);
            let Some(chain) = self.chains.get(index) else { return parts };
            panic_point("a replay");
            let part = self.replayer.chain(chain).await;
            if part.is_err() {
                self.next.store(self.chains.len(), Relaxed);
            }
            parts.push((index, part));
        }
    }
}
