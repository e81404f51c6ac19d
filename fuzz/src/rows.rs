//! Data.db: partitions, rows, cells, under the header of a table of the golden corpus, without checksums.

use std::path::{Path, PathBuf};

use halcyon_io::{AccessMode, Disk, DiskOptions, Purpose, StreamOptions, block_on};
use halcyon_sstable::format::listing;
use halcyon_sstable::{Component, Descriptor, Error, OpenOptions, SSTable, ScanOptions};
use halcyon_stream::{FragmentStream, Validator};

/// Tables with every kind of column and both kinds of deletion time.
pub const TABLES: [&str; 5] =
    ["nb/ttl", "oa/columns_75", "pa/statics", "da/user_types", "ea/range_boundaries_asc"];

/// An SSTable on a simulated disk whose Data.db can be anything.
pub struct Header {
    disk: Disk,
    descriptor: Descriptor,
    /// The rows that Cassandra wrote.
    pub rows: Vec<u8>,
}

fn testdata() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = here.ancestors().find(|dir| dir.join("testdata/README.md").exists());
    root.unwrap_or(here).join("testdata")
}

impl Header {
    pub fn load(table: &str) -> Header {
        let from = testdata().join(table).join("sstables");
        let names = std::fs::read_dir(&from).expect("golden files").flatten();
        let names: Vec<String> =
            names.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
        let listed = listing::group(&from, &names).sstables.remove(0);
        let descriptor = Descriptor { directory: "/t".into(), ..listed.descriptor.clone() };
        let (disk, _) = Disk::simulated(1);
        let rows = block_on(async {
            let real = Disk::real(DiskOptions::default());
            let options = OpenOptions::default();
            let sstable = SSTable::open(&real, &listed.descriptor, options).await.expect("opens");
            disk.create_dir_all(Path::new("/t")).await.expect("directory");
            let statistics = std::fs::read(listed.descriptor.component_path(Component::Statistics));
            let path = descriptor.component_path(Component::Statistics);
            let statistics = statistics.expect("readable");
            disk.write_new(&path, &statistics, Purpose::Flush).await.expect("written");
            disk.write_new(&descriptor.component_path(Component::Data), &[], Purpose::Flush)
                .await
                .expect("written");
            sstable.read_data(&real).await.expect("reads")
        });
        Header { disk, descriptor, rows }
    }

    pub fn scan(&self, data: &[u8]) -> Result<(), Error> {
        let path = self.descriptor.component_path(Component::Data);
        block_on(async {
            self.disk.remove(&path).await?;
            self.disk.write_new(&path, data, Purpose::Flush).await?;
            let options = OpenOptions::default();
            let sstable = SSTable::open(&self.disk, &self.descriptor, options).await?;
            let stream = StreamOptions { buffer_size: 4096, depth: 1 };
            let options =
                ScanOptions { mode: AccessMode::Standard, stream, ..ScanOptions::default() };
            let mut scanner = sstable.scan(&self.disk, options).await?;
            let mut validator = Validator::new(sstable.layout().clone());
            while scanner.advance().await? {
                let _ = validator.check(scanner.fragment());
            }
            Ok(())
        })
    }
}

/// The first byte chooses the table.
pub fn rows(bytes: &[u8]) {
    thread_local! {
        static HEADERS: [Header; TABLES.len()] = TABLES.map(Header::load);
    }
    let Some((choice, data)) = bytes.split_first() else { return };
    HEADERS.with(|headers| {
        let header = &headers[usize::from(*choice) % TABLES.len()];
        match header.scan(data) {
            Ok(()) => {}
            Err(Error::Corrupt { component: Component::Data, offset, .. }) => {
                assert!(offset <= data.len() as u64, "offset {offset} of {}", data.len());
            }
            Err(e) => panic!("{e}"),
        }
    });
}
