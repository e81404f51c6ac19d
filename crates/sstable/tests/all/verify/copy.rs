//! A golden SSTable on a simulated disk, to be damaged.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use halcyon_io::{AccessMode, Disk, Purpose, SimDisk, block_on};
use halcyon_sstable::format::statistics::collector::Provenance;
use halcyon_sstable::verify::VerifyReport;
use halcyon_sstable::{
    Bases, Component, Descriptor, Effort, ExpirationOverflow, OpenOptions, SSTable, SSTableId,
    SSTableWriter, ScanOptions, Version, WriterOptions,
};
use halcyon_stream::FragmentStream;

use super::run;
use crate::corpus::{sstables_below, testdata};

/// A golden SSTable on a simulated disk.
pub(crate) struct Copy {
    pub(crate) disk: Disk,
    pub(crate) simulated: SimDisk,
    pub(crate) descriptor: Descriptor,
    pub(crate) files: BTreeMap<Component, Vec<u8>>,
}

impl Copy {
    /// The smallest one of a table.
    pub(crate) fn of(table: &str) -> Copy {
        Copy::sized(table, |sizes| sizes.iter().min().copied())
    }

    fn sized(table: &str, choose: fn(&[u64]) -> Option<u64>) -> Copy {
        let mut descriptors = Vec::new();
        sstables_below(&testdata().join(table), &mut descriptors);
        let length = |d: &Descriptor| {
            std::fs::metadata(d.component_path(Component::Data)).map_or(0, |file| file.len())
        };
        descriptors.sort();
        let sizes: Vec<u64> = descriptors.iter().map(&length).collect();
        let size = choose(&sizes).expect("an SSTable");
        let source = descriptors.iter().find(|d| length(d) == size).expect("of that size");
        let (disk, simulated) = Disk::simulated(1);
        let descriptor = Descriptor { directory: "/t".into(), ..source.clone() };
        let mut files = BTreeMap::new();
        for component in Component::of_format(source.version.format) {
            if let Ok(bytes) = std::fs::read(source.component_path(*component)) {
                files.insert(*component, bytes);
            }
        }
        block_on(async {
            disk.create_dir_all(Path::new("/t")).await.expect("creates");
            for (component, bytes) in &files {
                let path = descriptor.component_path(*component);
                disk.write_new(&path, bytes, Purpose::Flush).await.expect("writes");
            }
        });
        let copy = Copy { disk, simulated, descriptor, files };
        assert!(copy.verify().is_clean(), "{table}: {:?}", copy.verify());
        copy
    }

    pub(crate) fn verify(&self) -> VerifyReport {
        block_on(run(&self.disk, &self.descriptor, true))
    }

    pub(crate) fn path(&self, component: Component) -> PathBuf {
        self.descriptor.component_path(component)
    }

    /// Offsets at which a flip of some bit is not found.
    pub(crate) fn unnoticed_flips(&self, component: Component) -> Vec<u64> {
        let path = self.path(component);
        let length = self.files.get(&component).map_or(0, Vec::len) as u64;
        let flipped = |offset: u64| {
            let bit = (offset % 8) as u8;
            assert!(self.simulated.flip(&path, offset, bit), "{component} {offset}");
            let report = self.verify();
            self.simulated.flip(&path, offset, bit);
            report.is_clean()
        };
        (0..length).filter(|offset| flipped(*offset)).collect()
    }

    /// Runs over the SSTable with `bytes` (or nothing) for a component.
    pub(crate) fn with(&self, component: Component, bytes: Option<&[u8]>) -> VerifyReport {
        let path = self.path(component);
        block_on(async {
            self.disk.remove(&path).await.expect("removes");
            if let Some(bytes) = bytes {
                self.disk.write_new(&path, bytes, Purpose::Flush).await.expect("writes");
            }
            let report = run(&self.disk, &self.descriptor, true).await;
            if bytes.is_some() {
                self.disk.remove(&path).await.expect("removes");
            }
            if let Some(whole) = self.files.get(&component) {
                self.disk.write_new(&path, whole, Purpose::Flush).await.expect("writes");
            }
            report
        })
    }

    /// The data of a table's largest one, written again without compression, in blocks of 64 bytes and with every second key in the
    /// summary: many blocks, open range tombstones between them, many samples.
    pub(crate) fn in_small_blocks(table: &str, version: Version) -> Copy {
        let source = Copy::sized(table, |sizes| sizes.iter().max().copied());
        let directory = PathBuf::from("/u");
        let descriptor = Descriptor::new(&directory, version, SSTableId::Sequence(9));
        let disk = &source.disk;
        block_on(async {
            let opened = SSTable::open(disk, &source.descriptor, OpenOptions::default()).await;
            let sstable = opened.expect("opens");
            let header = &sstable.statistics().header;
            let bases = Bases {
                timestamp: header.min_timestamp,
                local_deletion_time: header.min_local_deletion_time,
                ttl: header.min_ttl,
            };
            let partitioner = sstable.layout().partitioner.class_name();
            let options = WriterOptions {
                mode: AccessMode::Standard,
                purpose: Purpose::Flush,
                buffer_size: 1 << 16,
                expected_length: 0,
                compression: None,
                effort: Effort::Default,
                estimated_keys: sstable.estimated_keys(),
                min_index_interval: 2,
                column_index_size: Some(64),
                own_thread: false,
                read_back: false,
                expiration_overflow: ExpirationOverflow::Reject,
                provenance: Provenance::new(partitioner, 0.01),
            };
            disk.create_dir_all(&directory).await.expect("creates");
            let layout = sstable.layout().clone();
            let created = SSTableWriter::create(disk, descriptor.clone(), layout, bases, options);
            let mut writer = created.await.expect("creates");
            let mut scan = sstable.scan(disk, ScanOptions::default()).await.expect("scans");
            while scan.advance().await.expect("sound") {
                writer.append(scan.fragment()).expect("in order");
            }
            writer.seal().await.expect("seals");
        });
        let mut copy = Copy { descriptor, files: BTreeMap::new(), ..source };
        for component in Component::of_format(version.format) {
            if let Some(bytes) = copy.simulated.contents(&copy.path(*component)) {
                copy.files.insert(*component, bytes);
            }
        }
        assert!(copy.verify().is_clean(), "{table}: {:?}", copy.verify());
        copy
    }
}
