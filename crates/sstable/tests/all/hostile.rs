//! SSTables of the golden corpus on a simulated disk, as uncompressed bytes that a test can change at will; and a count of the
//! memory that reading them takes.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::path::{Path, PathBuf};

use halcyon_io::{AccessMode, Disk, Purpose, SimDisk, StreamOptions, block_on};
use halcyon_sstable::format::listing;
use halcyon_sstable::format::statistics::collector::Provenance;
use halcyon_sstable::{
    Bases, Component, Descriptor, Effort, Error, ExpirationOverflow, OpenOptions, Result, SSTable,
    SSTableId, SSTableWriter, ScanOptions, WriterOptions,
};
use halcyon_stream::{Fragment, FragmentStream, Row};

use crate::corpus::testdata;

/// Counts what the current thread has allocated; everything on a simulated disk happens on it.
pub(crate) struct CountingAllocator;

thread_local! {
    static LIVE: Cell<i64> = const { Cell::new(0) };
    static PEAK: Cell<i64> = const { Cell::new(0) };
}

fn count(bytes: i64) {
    // Fails only while the thread ends, when no caller is left.
    let _ = LIVE.try_with(|live| {
        live.set(live.get() + bytes);
        PEAK.with(|peak| peak.set(peak.get().max(live.get())));
    });
}

// SAFETY: every call is handed to the system's allocator with the arguments that came in.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller's promises are those that the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: the pointer came from `alloc`, which is the system's.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Bytes that `act` held at most, beyond what was held before.
pub(crate) fn peak_memory<T>(act: impl FnOnce() -> T) -> (T, i64) {
    let before = LIVE.with(Cell::get);
    PEAK.with(|peak| peak.set(before));
    let result = act();
    (result, PEAK.with(Cell::get) - before)
}

pub(crate) const DIR: &str = "/data/ks/t";

pub(crate) struct HostileTable {
    pub(crate) disk: Disk,
    pub(crate) sim: SimDisk,
    pub(crate) descriptor: Descriptor,
    /// The uncompressed Data.db.
    pub(crate) stream: Vec<u8>,
    pub(crate) content: Vec<String>,
}

pub(crate) fn first_sstable(table: &str) -> Descriptor {
    let dir = testdata().join(table).join("sstables");
    let names: Vec<String> = std::fs::read_dir(&dir)
        .expect("golden files")
        .map(|entry| entry.expect("entry").file_name().into_string().expect("UTF-8"))
        .collect();
    let listed = listing::group(&dir, &names).sstables.into_iter().next();
    listed.expect("an SSTable").descriptor
}

impl HostileTable {
    /// The first SSTable of `version/name`, as Cassandra wrote it.
    pub(crate) fn as_written(table: &str) -> HostileTable {
        HostileTable::load(table, false)
    }

    /// The same without compression and checksums: any change of its bytes is believed.
    pub(crate) fn plain(table: &str) -> HostileTable {
        HostileTable::load(table, true)
    }

    fn load(table: &str, plain: bool) -> HostileTable {
        let (disk, sim) = Disk::simulated(1);
        let source = first_sstable(table);
        let descriptor = Descriptor { directory: PathBuf::from(DIR), ..source.clone() };
        let stream = block_on(async {
            disk.create_dir_all(Path::new(DIR)).await.expect("directory");
            let real = Disk::real(halcyon_io::DiskOptions::default());
            let sstable =
                SSTable::open(&real, &source, OpenOptions::default()).await.expect("opens");
            let stream = sstable.read_data(&real).await.expect("reads");
            for &component in &sstable.listed().components {
                let bytes = match component {
                    Component::Data if plain => stream.clone(),
                    Component::CompressionInfo
                    | Component::Crc
                    | Component::Digest
                    | Component::Toc
                        if plain =>
                    {
                        continue;
                    }
                    other => std::fs::read(source.component_path(other)).expect("readable"),
                };
                let path = descriptor.component_path(component);
                disk.write_new(&path, &bytes, Purpose::Flush).await.expect("written");
            }
            stream
        });
        let mut table = HostileTable { disk, sim, descriptor, stream, content: Vec::new() };
        table.content = table.read().expect("sound").1;
        table
    }

    pub(crate) fn path(&self, component: Component) -> PathBuf {
        self.descriptor.component_path(component)
    }

    /// Replaces a component.
    pub(crate) fn put(&self, component: Component, bytes: &[u8]) {
        let path = self.path(component);
        block_on(async {
            self.disk.remove(&path).await.expect("removed");
            self.disk.write_new(&path, bytes, Purpose::Flush).await.expect("written");
        });
    }

    pub(crate) fn open(&self) -> Result<SSTable> {
        block_on(SSTable::open(&self.disk, &self.descriptor, OpenOptions::default()))
    }

    /// Opens and scans; what it says.
    pub(crate) fn read(&self) -> Result<(SSTable, Vec<String>)> {
        let sstable = self.open()?;
        let content = block_on(scan(&self.disk, &sstable))?;
        Ok((sstable, content))
    }
}

fn scan_options() -> ScanOptions {
    ScanOptions {
        mode: AccessMode::Standard,
        stream: StreamOptions { buffer_size: 16 << 10, depth: 1 },
        ..ScanOptions::default()
    }
}

pub(crate) async fn scan(disk: &Disk, sstable: &SSTable) -> Result<Vec<String>> {
    let mut scanner = sstable.scan(disk, scan_options()).await?;
    let mut lines = Vec::new();
    while scanner.advance().await? {
        lines.push(match scanner.fragment() {
            Fragment::Row(row) => format!("row {}", spell(row)),
            Fragment::Static(row) => format!("static {}", spell(row)),
            other => format!("{other:?}"),
        });
    }
    Ok(lines)
}

fn spell(row: Row<'_>) -> String {
    let cells = row.cells.iter().map(|cell| {
        let (path, value) = (cell.path.of(row.bytes), cell.value.of(row.bytes));
        let times = (cell.timestamp, cell.ttl, cell.local_deletion_time);
        format!("{} {times:?} {path:x?} {value:x?}", cell.column)
    });
    let cells: Vec<String> = cells.collect();
    let Row { clustering, liveness, deletion, complex_deletions, .. } = row;
    format!("{clustering:x?} {liveness:?} {deletion:?} {complex_deletions:?} {cells:?}")
}

/// Fragments of a scan, without spelling them out.
pub(crate) async fn count_fragments(disk: &Disk, sstable: &SSTable) -> Result<u64> {
    let mut scanner = sstable.scan(disk, scan_options()).await?;
    let mut fragments = 0;
    while scanner.advance().await? {
        fragments += 1;
    }
    Ok(fragments)
}

/// Writes what a scan gives as a new SSTable and scans that; returns the fragments of both.
pub(crate) async fn rewrite(disk: &Disk, sstable: &SSTable) -> Result<(u64, u64)> {
    let descriptor =
        Descriptor::new(Path::new(DIR), sstable.descriptor().version, SSTableId::Sequence(99));
    let written = copy(disk, sstable, &descriptor).await;
    let outcome = match written {
        Ok(fragments) => {
            let again = SSTable::open(disk, &descriptor, OpenOptions::default()).await;
            Ok((fragments, count_fragments(disk, &again.expect("opens")).await.expect("scans")))
        }
        Err(e) => Err(e),
    };
    for entry in disk.list(Path::new(DIR)).await? {
        if entry.name.starts_with(&descriptor.file_prefix()) {
            disk.remove(&Path::new(DIR).join(entry.name)).await?;
        }
    }
    outcome
}

async fn copy(disk: &Disk, sstable: &SSTable, to: &Descriptor) -> Result<u64> {
    let options = WriterOptions {
        mode: AccessMode::Standard,
        purpose: Purpose::Flush,
        buffer_size: 16 << 10,
        expected_length: 0,
        compression: None,
        effort: Effort::Default,
        estimated_keys: 16,
        min_index_interval: 128,
        column_index_size: Some(256),
        own_thread: false,
        read_back: false,
        expiration_overflow: ExpirationOverflow::Reject,
        provenance: Provenance::new("org.apache.cassandra.dht.Murmur3Partitioner".into(), 0.01),
    };
    let layout = sstable.layout().clone();
    let mut writer = SSTableWriter::create(disk, to.clone(), layout, Bases::NONE, options).await?;
    let mut scanner = sstable.scan(disk, scan_options()).await?;
    let mut fragments = 0;
    while scanner.advance().await? {
        writer.append(scanner.fragment())?;
        fragments += 1;
        if writer.wants_drain() {
            writer.drain().await?;
        }
    }
    writer.seal().await?;
    Ok(fragments)
}

/// Corruption of `component` with an offset in it.
pub(crate) fn assert_corrupt(error: &Error, component: Component, length: u64, when: &str) {
    match error {
        Error::Corrupt { component: found, offset, path, .. } => {
            assert_eq!(*found, component, "{when}: {error}");
            assert!(path.to_string_lossy().starts_with(DIR), "{when}: {error}");
            assert!(*offset <= length, "{when}: {error}, of {length}");
        }
        _ => panic!("{when}: {error}"),
    }
}
