//! Every byte flipped, every file cut at every length, every file missing: found, or shown not to matter.

use halcyon_io::{Purpose, block_on};
use halcyon_sstable::verify::Severity;
use halcyon_sstable::{Component, Version};

use super::copy::Copy;

const TABLES: [&str; 4] = ["oa/strings", "oa/uncompressed", "da/strings", "da/uncompressed"];

/// Offsets whose flips change nothing that a reader could notice.
fn does_not_matter(component: Component, offset: u64) -> bool {
    match component {
        // min_index_interval: another one that samples these few keys in the same way.
        Component::Summary => offset < 4,
        // Bits that are set without need: more false positives.
        Component::Filter => offset >= 8,
        // max_compressed_length: another one above the length of every chunk.
        Component::CompressionInfo => (23..27).contains(&offset),
        _ => false,
    }
}

#[test]
fn flipped_bits_are_found() {
    for table in TABLES {
        let copy = Copy::of(table);
        for component in copy.files.keys() {
            let unnoticed = copy.unnoticed_flips(*component);
            println!("{table} {component}: {unnoticed:?}");
            assert!(
                unnoticed.iter().all(|offset| does_not_matter(*component, *offset)),
                "{table}: {component}: {unnoticed:?}"
            );
        }
    }
}

/// The index components of SSTables with many blocks, samples and open range tombstones. What may go unnoticed:
/// whether the last block's width counts the end flag (writers differ), and a separator that still separates.
#[test]
fn flipped_bits_of_indexes_are_found() {
    use Component::{Index, Partitions, Rows, Summary};
    for (table, version) in [
        ("oa/range_tombstones_mixed", Version::NB),
        ("oa/range_tombstones_mixed", Version::DA),
        ("oa/equal_timestamps", Version::OA),
        ("oa/equal_timestamps", Version::DA),
    ] {
        let copy = Copy::in_small_blocks(table, version);
        let partitions = copy.verify().checked.partitions as usize;
        for (component, bytes) in &copy.files {
            let allowed = match component {
                Index => partitions,
                Rows => bytes.len() / 15,
                Partitions | Summary => 0,
                _ => continue,
            };
            let unnoticed = copy.unnoticed_flips(*component);
            println!("{table} {version} {component}: {unnoticed:?} of {}", bytes.len());
            assert!(unnoticed.len() <= allowed, "{table} {version}: {component}: {unnoticed:?}");
        }
    }
}

/// With nothing to guard them, the bytes of rows speak for themselves; most flips do, none does harm.
#[test]
fn unguarded_data() {
    for table in ["oa/range_tombstones_mixed", "oa/equal_timestamps"] {
        let copy = Copy::in_small_blocks(table, Version::OA);
        for component in [Component::Crc, Component::Digest] {
            block_on(copy.disk.remove(&copy.path(component))).expect("removes");
        }
        let before = copy.verify().findings.len();
        let length = copy.files.get(&Component::Data).map_or(0, Vec::len) as u64;
        let path = copy.path(Component::Data);
        let (mut unnoticed, mut flips) = (0, 0);
        for offset in (0..length).step_by(3) {
            flips += 1;
            copy.simulated.flip(&path, offset, (offset % 8) as u8);
            unnoticed += u64::from(copy.verify().findings.len() == before);
            copy.simulated.flip(&path, offset, (offset % 8) as u8);
        }
        println!("{table}: {unnoticed} of {flips} flips unnoticed");
        assert!(unnoticed < flips / 2, "{table}: {unnoticed} of {flips}");
    }
}

/// After a damaged partition, those behind it are read on.
#[test]
fn what_follows_damage_is_read() {
    for version in [Version::OA, Version::DA] {
        let copy = Copy::in_small_blocks("oa/equal_timestamps", version);
        let partitions = copy.verify().checked.partitions;
        for component in [Component::Crc, Component::Digest] {
            block_on(copy.disk.remove(&copy.path(component))).expect("removes");
        }
        // The flags of the first partition's first row: a marker of an impossible kind.
        let data = copy.files.get(&Component::Data).expect("data");
        let key_length = usize::from(u16::from_be_bytes([data[0], data[1]]));
        let mut damaged = data.clone();
        damaged[2 + key_length + 1] = 2;
        damaged[2 + key_length + 2] = 0xee;
        let report = copy.with(Component::Data, Some(&damaged));
        assert!(report.has_problems());
        assert_eq!(report.checked.partitions, partitions, "{version}: {report:?}");
    }
}

#[test]
fn truncations_are_found() {
    for table in TABLES {
        let copy = Copy::of(table);
        for (component, whole) in &copy.files {
            // In the middle of a large file one length is like the next.
            let step = if whole.len() > 8192 { 7 } else { 1 };
            for length in (0..whole.len()).step_by(step) {
                let report = copy.with(*component, whole.get(..length));
                // TOC.txt ends in a newline, CRC.db after a compaction in the checksum of nothing.
                let needless = match component {
                    Component::Toc => length + 1 == whole.len(),
                    Component::Crc => length + 4 == whole.len() && whole.ends_with(&[0; 4]),
                    _ => false,
                };
                assert!(needless || !report.is_clean(), "{table}: {component} cut to {length}");
            }
        }
    }
}

#[test]
fn missing_components_are_found() {
    for table in TABLES {
        let copy = Copy::of(table);
        for component in copy.files.keys() {
            let report = copy.with(*component, None);
            let required = component.is_required(copy.descriptor.version.format)
                || *component == Component::CompressionInfo;
            assert!(!report.is_clean(), "{table}: without {component}");
            assert_eq!(report.has_problems(), required, "{table}: without {component}: {report:?}");
            let errors = report.findings.iter().filter(|f| f.severity == Severity::Problem);
            let named = errors.map(|f| f.to_string()).collect::<Vec<_>>().join("; ");
            assert!(!required || named.contains(component.file_suffix()), "{named}");
        }
    }
}

/// Device errors are findings like others.
#[test]
fn unreadable_components_are_found() {
    use halcyon_io::{Fault, FaultRule, Operation};
    let copy = Copy::of("da/strings");
    for component in copy.files.keys() {
        if copy.files[component].is_empty() {
            continue;
        }
        copy.simulated.fail_on(FaultRule {
            path_contains: component.file_suffix().into(),
            operation: Some(Operation::Read),
            times: u64::MAX,
            ..FaultRule::any(Fault::DeviceError)
        });
        assert!(!copy.verify().is_clean(), "{component}");
        copy.simulated.clear_faults();
    }
    let gone = Copy::of("da/strings");
    block_on(async {
        for component in gone.files.keys() {
            gone.disk.remove(&gone.path(*component)).await.expect("removes");
        }
        let stray = gone.descriptor.directory.join("notes.txt");
        gone.disk.write_new(&stray, b"x", Purpose::Flush).await.expect("writes");
    });
    assert!(gone.verify().has_problems());
}
