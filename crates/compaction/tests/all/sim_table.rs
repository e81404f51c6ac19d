//! A table of the golden corpus on a simulated disk, and what a crash may leave of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use halcyon_compaction::{Error, Group, Outcome, Progress, Settings, UsableSpace, run, txn_log};
use halcyon_io::{AccessMode, Disk, Purpose, RateLimiter, SimDisk, StreamOptions, block_on};
use halcyon_model::options::Compression;
use halcyon_sstable::format::listing;
use halcyon_sstable::{
    Component, Descriptor, Effort, ExpirationOverflow, OpenOptions, SSTable, ScanOptions,
};
use halcyon_stream::{Fragment, FragmentStream, Layout, Merge, Row};

pub(crate) const A: &str = "/a/ks/t";
pub(crate) const B: &str = "/b/ks/t";

/// The inputs of a compaction on a simulated disk, durable.
pub(crate) struct SimTable {
    pub(crate) disk: Disk,
    pub(crate) sim: SimDisk,
    pub(crate) inputs: Vec<Arc<SSTable>>,
    pub(crate) settings: Settings,
    /// Every file, with its bytes.
    pub(crate) files: BTreeMap<PathBuf, Vec<u8>>,
    /// What the inputs say together.
    pub(crate) content: Vec<String>,
}

pub(crate) fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata")
}

fn corpus(table: &str) -> PathBuf {
    testdata().join(table).join("sstables")
}

impl SimTable {
    /// `table` is `version/name`; every second SSTable lies in the second directory if there are two.
    pub(crate) fn load(table: &str, seed: u64, directories: &[&str]) -> SimTable {
        SimTable::load_folder(&corpus(table), seed, directories)
    }

    pub(crate) fn load_folder(folder: &Path, seed: u64, directories: &[&str]) -> SimTable {
        block_on(SimTable::load_async(folder, seed, directories))
    }

    async fn load_async(folder: &Path, seed: u64, directories: &[&str]) -> SimTable {
        let (disk, sim) = Disk::simulated(seed);
        for directory in directories {
            disk.create_dir_all(Path::new(directory)).await.expect("directory");
            for ancestor in Path::new(directory).ancestors() {
                disk.sync_dir(ancestor).await.expect("synced");
            }
        }
        let mut names: Vec<String> = std::fs::read_dir(folder)
            .expect("golden files")
            .map(|entry| entry.expect("entry").file_name().into_string().expect("UTF-8"))
            .collect();
        // Data.db last and so the newest: no writer uses this order, but a copy may.
        names.sort_by_key(|name| (name.ends_with("-Data.db"), name.clone()));
        let listed = listing::group(Path::new("/"), &names).sstables;
        let prefixes: Vec<String> = listed.iter().map(|l| l.descriptor.file_prefix()).collect();
        for name in names {
            let nth = prefixes.iter().position(|p| name.starts_with(p)).expect("an SSTable's");
            let directory = Path::new(directories[nth % directories.len()]);
            let bytes = std::fs::read(folder.join(&name)).expect("readable");
            sim.clock().advance(Duration::from_millis(700));
            disk.write_new(&directory.join(&name), &bytes, Purpose::Flush).await.expect("written");
            disk.sync_dir(directory).await.expect("synced");
        }
        sim.clock().advance(Duration::from_secs(3600));
        let inputs = live(&disk, directories).await.expect("inputs open");
        let content = content(&disk, &inputs).await.expect("inputs are readable");
        let settings = settings(&inputs);
        let files = files(&sim);
        SimTable { disk, sim, inputs, settings, files, content }
    }

    /// Writes a file beside the table's own.
    pub(crate) fn put(&self, path: impl AsRef<Path>, text: &str) {
        let (path, bytes) = (path.as_ref(), text.as_bytes());
        block_on(self.disk.write_new(path, bytes, Purpose::Flush)).expect("written");
    }

    pub(crate) fn task(&self) -> Group {
        Group { inputs: self.inputs.clone(), elsewhere: Vec::new() }
    }

    pub(crate) fn compact(&self) -> Result<Outcome, Error> {
        let (task, progress) = (self.task(), Progress::default());
        self.disk.runtime().block_on(run(&self.disk, &task, &self.settings, &progress))
    }

    /// As a start does it: every directory of the table.
    pub(crate) fn recover(&self, directories: &[&str]) -> Result<(), Error> {
        for directory in directories {
            block_on(txn_log::recover(&self.disk, Path::new(directory)))?;
        }
        Ok(())
    }

    /// All old or all new, whole, readable, with the same content; and nothing else is there. Returns whether it is new.
    pub(crate) fn check(&self, directories: &[&str], when: &str) -> bool {
        let live =
            block_on(live(&self.disk, directories)).unwrap_or_else(|e| panic!("{when}: {e}"));
        let descriptors =
            |all: &[Arc<SSTable>]| all.iter().map(|s| s.descriptor().clone()).collect();
        let (old, now): (BTreeSet<Descriptor>, BTreeSet<Descriptor>) =
            (descriptors(&self.inputs), descriptors(&live));
        let is_new = now.is_disjoint(&old) && !now.is_empty();
        assert!(is_new || now == old, "{when}: neither old nor new: {now:?}");
        let found = block_on(content(&self.disk, &live)).unwrap_or_else(|e| panic!("{when}: {e}"));
        assert_eq!(found, self.content, "{when}: content");
        let there = files(&self.sim);
        if !is_new {
            assert_eq!(names(&there), names(&self.files), "{when}: files");
            assert!(there == self.files, "{when}: an input has changed");
            return false;
        }
        let components = live.iter().flat_map(|sstable| {
            let listed = sstable.listed();
            listed.components.iter().map(|c| sstable.descriptor().component_path(*c))
        });
        let expected: BTreeSet<PathBuf> = components.collect();
        assert_eq!(there.keys().cloned().collect::<BTreeSet<_>>(), expected, "{when}: leftovers");
        for sstable in &live {
            assert!(sstable.has(Component::Toc), "{when}: no TOC");
        }
        true
    }
}

fn names(files: &BTreeMap<PathBuf, Vec<u8>>) -> Vec<&PathBuf> {
    files.keys().collect()
}

pub(crate) fn files(sim: &SimDisk) -> BTreeMap<PathBuf, Vec<u8>> {
    let bytes = |path: PathBuf| sim.contents(&path).map(|bytes| (path, bytes));
    sim.files().into_iter().filter_map(bytes).collect()
}

/// The transaction logs, for messages.
pub(crate) fn logs(sim: &SimDisk) -> String {
    let logs = files(sim).into_iter().filter(|(path, _)| path.extension() == Some("log".as_ref()));
    logs.map(|(path, bytes)| format!("{}:\n{}", path.display(), bytes.escape_ascii())).collect()
}

/// Opens every SSTable that no transaction log calls dead.
pub(crate) async fn live(disk: &Disk, directories: &[&str]) -> Result<Vec<Arc<SSTable>>, Error> {
    let mut opened = Vec::new();
    for directory in directories.iter().map(Path::new) {
        let dead = txn_log::dead_in_directory(disk, directory).await?;
        let entries = disk.list(directory).await?;
        for listed in &listing::group(directory, entries.iter().map(|e| &e.name)).sstables {
            if dead.contains(&listed.descriptor.file_prefix()) {
                continue;
            }
            opened
                .push(Arc::new(SSTable::open_listed(disk, listed, OpenOptions::default()).await?));
        }
    }
    Ok(opened)
}

/// What the SSTables say together, merged and spelled out.
pub(crate) async fn content(disk: &Disk, sstables: &[Arc<SSTable>]) -> Result<Vec<String>, Error> {
    let layout = Layout::union(sstables.iter().map(|s| s.layout()))?;
    let mut scanners = Vec::new();
    for sstable in sstables {
        let options = ScanOptions {
            mode: AccessMode::Standard,
            layout: Some(layout.clone()),
            ..ScanOptions::default()
        };
        scanners.push(sstable.scan(disk, options).await?);
    }
    let mut merge = Merge::new(layout, scanners);
    let mut lines = Vec::new();
    while merge.advance().await? {
        lines.push(match merge.fragment() {
            Fragment::Row(row) => format!("row {}", spell(row)),
            Fragment::Static(row) => format!("static {}", spell(row)),
            other => format!("{other:?}"),
        });
    }
    Ok(lines)
}

fn spell(row: Row<'_>) -> String {
    let cell = |c: &halcyon_stream::Cell| {
        let (path, value) = (c.path.of(row.bytes), c.value.of(row.bytes));
        format!(
            "{} {} {} {} {path:x?} {value:x?}",
            c.column, c.ttl, c.timestamp, c.local_deletion_time
        )
    };
    let cells: Vec<String> = row.cells.iter().map(cell).collect();
    let Row { clustering, liveness, deletion, complex_deletions, .. } = row;
    format!("{clustering:x?} {liveness:?} {deletion:?} {complex_deletions:?} {cells:?}")
}

/// Outputs beside the inputs, and as them; nothing is purged.
pub(crate) fn settings(inputs: &[Arc<SSTable>]) -> Settings {
    let first = inputs.first().expect("inputs");
    let compression = first.compression().map(|info| {
        let (length, max) = (info.chunk_length, info.max_compressed_length);
        Compression::of_file(&info.compressor, &info.options, length, max).expect("known")
    });
    Settings {
        output: None,
        ids: None,
        keep_inputs: false,
        usable_space: UsableSpace::ALL,
        version: first.descriptor().version,
        expiration_overflow: ExpirationOverflow::Reject,
        compression,
        effort: Effort::Default,
        bloom_filter_fp_chance: 0.01,
        min_index_interval: 128,
        column_index_size: None,
        gc_before: 0,
        now: 0,
        strict_liveness: false,
        split_tokens: Vec::new(),
        level: None,
        level_fanout: None,
        provenance: None,
        purge_bound: None,
        split_size: None,
        smallest_half: None,
        read_mode: AccessMode::Standard,
        write_mode: AccessMode::Standard,
        read_ahead: StreamOptions { buffer_size: 4096, depth: 1 },
        read_ahead_budget: 1 << 20,
        write_buffer: 4096,
        carry: None,
        watch: None,
        limiter: RateLimiter::unlimited(),
        own_thread: false,
        read_back: false,
        forced: Default::default(),
        scrub: None,
    }
}
