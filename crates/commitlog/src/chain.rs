//! The replay of one shard's segments, oldest first.
//!
//! 1. The manifest says which segments there must be, each group header where the group before it ended. So a segment that is missing,
//!    emptied, zeroed or cut is noticed by its neighbours or by the manifest; without a manifest, a missing one by its neighbours alone.
//!    A segment that is there and that the manifest no longer lists is not replayed: a crash came before its deletion.
//! 2. The segments of one start of the log (of one salt) are a *run*. The last valid group of a run says what was durable when it was
//!    written. Damage below that is corruption: the replay stops with an error, or skips it and reports it.
//! 3. Damage above it was left by a crash. The run ends there: what follows was not durable either, and is not replayed, because a
//!    write must not be there without those before it.
//!
//! Limit: groups that are lost at the end of the newest segment, which is otherwise whole, look as if they had never been written.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use halcyon_io::{AccessMode, Disk, Purpose, StreamOptions};

use crate::format::{self, FilePosition, SegmentHeader, Version, file_name, parse_file_name};
use crate::manifest::{self, Listed, manifest_path};
use crate::scan::{Damage, SegmentState, group_headers, scan, segment_state};
use crate::{Error, OnCorruption, ReplayPosition, Result};

#[derive(Debug, Clone)]
pub struct ReplayOptions {
    pub directory: PathBuf,
    pub mode: AccessMode,
    /// Shards replayed in parallel, each on its own thread; 1 replays on the calling thread.
    pub threads: usize,
    pub on_corruption: OnCorruption,
}

/// Progress: a segment has been visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Visited {
    pub shard: u32,
    /// Over all shards: segments visited so far, and their total.
    pub segments: usize,
    pub of: usize,
}

/// One shard's segments.
pub(crate) struct Chain {
    pub(crate) shard: u32,
    /// Those that are there, and those that the manifest lists.
    pub(crate) ids: BTreeSet<u64>,
    pub(crate) manifest: Option<BTreeSet<u64>>,
    /// Segments that it does not list have no writes but those in SSTables.
    pub(crate) is_whole: bool,
}

impl Chain {
    /// Whether it was about to be deleted, or is. Replayed in spite of that, it would bring back what was deleted since then, where a
    /// compaction has dropped the tombstones.
    fn is_deleted(&self, id: u64) -> bool {
        let is_listed = self.manifest.as_ref().is_none_or(|listed| listed.contains(&id));
        self.is_whole && !is_listed
    }
}

/// A file larger than this is not a segment.
const SEGMENT_MAX: u64 = 2 << 30;
/// More than a segment's header.
const FRONT: u64 = 64;
const READ: StreamOptions = StreamOptions { buffer_size: 1 << 20, depth: 2 };

/// Segments of earlier starts that are still there: those that their manifest lists, or all with a header where it cannot be read.
pub(crate) async fn kept(disk: &Disk, directory: &Path, shard: u32) -> Result<BTreeSet<u64>> {
    let listed = manifest::read(disk, &manifest_path(directory, shard)).await?;
    let listed = listed.and_then(|bytes| Listed::decode(&bytes, shard).ok());
    let mut kept = BTreeSet::new();
    for entry in disk.list(directory).await? {
        let Some((_, id)) = parse_file_name(&entry.name).filter(|(of, _)| *of == shard) else {
            continue;
        };
        let is_kept = match &listed {
            Some(listed) => listed.segments.contains(&id),
            None => {
                let path = directory.join(&entry.name);
                let state = front_state(disk, &path, AccessMode::Standard, (shard, id)).await?;
                matches!(state, Some(SegmentState::Used(_)))
            }
        };
        kept.extend(is_kept.then_some(id));
    }
    Ok(kept)
}

/// The state of a segment by its first bytes; `None` if the file does not exist.
async fn front_state(
    disk: &Disk,
    path: &Path,
    mode: AccessMode,
    (shard, id): (u32, u64),
) -> Result<Option<SegmentState>> {
    let file = match disk.open(path, mode, Purpose::CommitLog).await {
        Err(e) if e.is_not_found() => return Ok(None),
        file => file?,
    };
    let front = file.read_at(0, file.len().min(FRONT) as usize).await?;
    Ok(Some(segment_state(&front, shard, id)))
}

/// Replays chains; threads share it.
pub(crate) struct Replayer<V, P> {
    pub(crate) disk: Disk,
    pub(crate) options: ReplayOptions,
    /// Segments visited so far, and their total.
    pub(crate) segments: AtomicUsize,
    pub(crate) of: usize,
    pub(crate) visit: V,
    pub(crate) pause: P,
}

/// What a chain's replay did.
#[derive(Default)]
pub(crate) struct Replayed {
    pub(crate) segments: usize,
    pub(crate) records: u64,
    pub(crate) bytes: u64,
    pub(crate) notes: Vec<String>,
    pub(crate) damaged: BTreeSet<PathBuf>,
}

/// A segment that can be replayed.
struct Usable {
    id: u64,
    path: PathBuf,
    header: SegmentHeader,
}

/// A run, as far as it is replayed.
#[derive(Default)]
struct Run {
    salt: u64,
    durable: FilePosition,
    /// The last segment, and the end of its last group.
    last: Option<(PathBuf, FilePosition)>,
    /// It has ended in damage to what was not durable.
    ended: bool,
}

impl<V, P> Replayer<V, P>
where
    V: Fn(u32, ReplayPosition, &[u8]) -> Result<(), String>,
    P: AsyncFn(Visited) -> Result<(), String>,
{
    pub(crate) async fn chain(&self, chain: &Chain) -> Result<Replayed> {
        let mut replayed = Replayed::default();
        let usable = self.survey(chain, &mut replayed).await?;
        let durable = self.durable(&usable).await?;
        if chain.manifest.is_none() {
            let two = |segment: &Usable| segment.header.version == Version::Two;
            let written = |segment: &&Usable| durable.contains_key(&segment.header.salt);
            if let Some(segment) = usable.iter().filter(|s| two(s)).find(written) {
                let path = manifest_path(&self.options.directory, chain.shard);
                let what = format!(
                    "it lists every segment with writes, and {} has some",
                    segment.path.display()
                );
                self.missing(path, what, &mut replayed)?;
            }
        }
        let mut run = Run::default();
        for segment in &usable {
            if run.salt != segment.header.salt {
                let salt = segment.header.salt;
                let durable = durable.get(&salt).copied().unwrap_or_default();
                run = Run { salt, durable, ..Run::default() };
            }
            self.segment(chain, segment, &mut run, &mut replayed).await?;
        }
        Ok(replayed)
    }

    /// Looks at the headers. What is neither usable nor unused is corruption.
    async fn survey(&self, chain: &Chain, replayed: &mut Replayed) -> Result<Vec<Usable>> {
        let mut usable = Vec::new();
        for &id in &chain.ids {
            let path = self.options.directory.join(file_name(chain.shard, id));
            let listed = chain.manifest.as_ref().is_some_and(|listed| listed.contains(&id));
            match self.state(&path, chain.shard, id).await? {
                None => {
                    let what = "the manifest of its directory lists it".to_owned();
                    self.missing(path, what, replayed)?;
                }
                Some(SegmentState::Unused(_)) if !listed => {}
                Some(SegmentState::Used(_) | SegmentState::Damaged(_)) if chain.is_deleted(id) => {}
                Some(SegmentState::Unused(why)) => {
                    let what = format!("{why}, although the manifest of its directory lists it");
                    self.damaged(&path, Damage { offset: 0, what }, replayed)?;
                }
                Some(SegmentState::Foreign) => return Err(Error::Foreign(path)),
                Some(SegmentState::Newer(version)) => {
                    return Err(Error::Newer { path, version, known: format::VERSION });
                }
                Some(SegmentState::Damaged(what)) => {
                    self.damaged(&path, Damage { offset: 0, what }, replayed)?;
                }
                Some(SegmentState::Used(header)) => {
                    // A killed process may not have synced it. An SSTable must not outlive the records that it was flushed from: see
                    // `engine/src/write/spanning.rs`.
                    self.disk.append_sync(&path, &[]).await?;
                    usable.push(Usable { id, path, header });
                }
            }
        }
        Ok(usable)
    }

    /// `None` if the file does not exist.
    async fn state(&self, path: &Path, shard: u32, id: u64) -> Result<Option<SegmentState>> {
        let state = front_state(&self.disk, path, self.options.mode, (shard, id)).await?;
        if !matches!(state, Some(SegmentState::Unused(_))) {
            return Ok(state);
        }
        // Whether it has only zeros, all of it tells.
        Ok(Some(segment_state(&self.read(path).await?, shard, id)))
    }

    /// What was durable, for the salt of each run that has groups.
    async fn durable(&self, usable: &[Usable]) -> Result<BTreeMap<u64, FilePosition>> {
        let mut durable = BTreeMap::new();
        for Usable { path, header, .. } in usable.iter().rev() {
            if durable.contains_key(&header.salt) {
                continue;
            }
            let bytes = self.read(path).await?;
            let newest = group_headers(&bytes, header).map(|(_, group)| group.durable).max();
            durable.extend(newest.map(|newest| (header.salt, newest)));
        }
        Ok(durable)
    }

    async fn segment(
        &self,
        chain: &Chain,
        segment: &Usable,
        run: &mut Run,
        replayed: &mut Replayed,
    ) -> Result<()> {
        let Usable { id, path, header } = segment;
        let bytes = self.read(path).await?;
        let first = group_headers(&bytes, header).next();
        if let Some((_, first)) = &first {
            self.joined(chain, run, *id, first.previous, replayed)?;
        }
        if run.ended {
            if first.is_some() {
                let note = "not replayed, since it was written after what was lost";
                replayed.notes.push(format!("{}: {note}", path.display()));
            }
            return Ok(());
        }
        let mut durable = run.durable;
        if bytes.len() < header.size as usize {
            let what = format!("it ends here, but was made of {} bytes", header.size);
            self.damaged(path, Damage { offset: bytes.len(), what }, replayed)?;
            // No crash does that, whatever was synced.
            durable.segment = u64::MAX;
        }
        let visit = |offset, record: &[u8]| {
            let position = ReplayPosition { segment: *id, offset };
            (self.visit)(chain.shard, position, record).map_err(Error::Refused)
        };
        let scanned = scan(&bytes, header, durable, self.options.on_corruption, visit)?;
        drop(bytes);
        let segments = self.segments.fetch_add(1, Relaxed) + 1;
        (self.pause)(Visited { shard: chain.shard, segments, of: self.of })
            .await
            .map_err(Error::Refused)?;
        for damage in scanned.damage {
            self.damaged(path, damage, replayed)?;
        }
        replayed.segments += usize::from(scanned.records > 0);
        replayed.records += scanned.records;
        replayed.bytes += scanned.bytes;
        let end = FilePosition { segment: *id, offset: scanned.end as u32 };
        if let Some(torn) = scanned.torn {
            run.end(path, torn, replayed);
        }
        run.last = Some((path.clone(), end));
        Ok(())
    }

    /// Checks that a segment follows the last one without a gap. `previous` is what its first group says.
    fn joined(
        &self,
        chain: &Chain,
        run: &mut Run,
        id: u64,
        previous: FilePosition,
        replayed: &mut Replayed,
    ) -> Result<()> {
        let Some((path, end)) = run.last.clone().filter(|_| !run.ended) else { return Ok(()) };
        if previous.segment > end.segment && previous.segment < id {
            let path = self.options.directory.join(file_name(chain.shard, previous.segment));
            if chain.is_deleted(previous.segment) || replayed.damaged.contains(&path) {
                return Ok(());
            }
            let what = format!("segment {id} was written after it");
            return self.missing(path, what, replayed);
        }
        // Skipped damage may have had the end in it.
        if previous.segment != end.segment
            || previous.offset <= end.offset
            || replayed.damaged.contains(&path)
        {
            return Ok(());
        }
        let what = format!(
            "it ends here, but the segment after it says that it was filled to {}",
            previous.offset
        );
        let damage = Damage { offset: end.offset as usize, what };
        if end < run.durable {
            return self.damaged(&path, damage, replayed);
        }
        run.end(&path, damage, replayed);
        Ok(())
    }

    fn damaged(&self, path: &Path, damage: Damage, replayed: &mut Replayed) -> Result<()> {
        let Damage { offset, what } = damage;
        if self.options.on_corruption == OnCorruption::Stop {
            return Err(Error::Corrupt { path: path.to_path_buf(), offset: offset as u64, what });
        }
        let note = format!("{}: skipped damage at offset {offset}: {what}", path.display());
        replayed.notes.push(note);
        replayed.damaged.insert(path.to_path_buf());
        Ok(())
    }

    fn missing(&self, path: PathBuf, what: String, replayed: &mut Replayed) -> Result<()> {
        if self.options.on_corruption == OnCorruption::Stop {
            return Err(Error::Missing { path, what });
        }
        replayed.notes.push(format!("{}: it is missing, and skipped: {what}", path.display()));
        replayed.damaged.insert(path);
        Ok(())
    }

    async fn read(&self, path: &Path) -> Result<Vec<u8>> {
        let (mode, purpose): (AccessMode, _) = (self.options.mode, Purpose::CommitLog);
        let mut reader = self.disk.open_sequential(path, mode, purpose, READ).await?;
        if reader.len() > SEGMENT_MAX {
            let what = format!("{} bytes are too many for a segment", reader.len());
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

impl Run {
    /// Ends at damage to what was not durable.
    fn end(&mut self, path: &Path, damage: Damage, replayed: &mut Replayed) {
        let Damage { offset, what } = damage;
        self.ended = true;
        replayed.notes.push(format!(
            "{}: what follows offset {offset} was not synced when the machine stopped ({what}); under `commitlog_sync: periodic` a \
             power failure may cost that, otherwise it was never acknowledged",
            path.display()
        ));
    }
}
