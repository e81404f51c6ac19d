//! SSTables whose bytes have changed although every checksum is right, or whose small components have: an error that names
//! component and offset, never a panic, never a hang, never more memory than a sound file takes.

use halcyon_io::block_on;
use halcyon_sstable::{Component, Error};

use crate::hostile::{
    CountingAllocator, HostileTable, assert_corrupt, count_fragments, peak_memory, rewrite,
};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Windows, read-ahead and write buffers; none of the files here is larger than a few KiB.
const CEILING: i64 = 4 << 20;

/// Statics, collections, user types, range tombstones, counters, TTLs, deletions, more than 64 columns, a row index, many clusterings.
const TABLES: [&str; 12] = [
    "nb/statics",
    "oa/list_multicell",
    "pa/map_multicell",
    "da/user_types",
    "ea/range_boundaries_asc",
    "nb/counters",
    "oa/columns_75",
    "oa/ttl",
    "da/deletions",
    "ea/wide_static",
    "nb/clusterings_35",
    "nb/ttl",
];

/// At most this many bytes of a table are changed, evenly spread.
const PLACES: usize = 500;

fn places(length: usize) -> impl Iterator<Item = usize> {
    (0..length).step_by(length.div_ceil(PLACES).max(1))
}

/// Proves that a scan of hostile rows ends in corruption of Data.db with an offset in it, or in rows.
#[test]
fn changed_bytes_of_the_rows() {
    for name in TABLES {
        let table = HostileTable::plain(name);
        let sstable = table.open().expect("opens");
        let path = table.path(Component::Data);
        let length = table.stream.len() as u64;
        let (mut sound, mut corrupt) = (0, 0);
        for at in places(table.stream.len()) {
            for pattern in [0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xff, table.stream[at]]
            {
                flip(&table, at, pattern);
                let when = format!("{name}: byte {at} changed by {pattern:02x}");
                let (outcome, memory) =
                    peak_memory(|| block_on(count_fragments(&table.disk, &sstable)));
                assert!(memory < CEILING, "{when}: {memory} bytes of memory");
                match outcome {
                    Ok(fragments) => {
                        sound += 1;
                        assert!(fragments <= 2 * length, "{when}: {fragments} fragments");
                    }
                    Err(e) => {
                        corrupt += 1;
                        assert_corrupt(&e, Component::Data, length, &when);
                    }
                }
                flip(&table, at, pattern);
            }
        }
        assert_eq!(table.sim.contents(&path).as_ref(), Some(&table.stream));
        assert!(sound > 50 && corrupt > 50, "{name}: {sound} sound, {corrupt} corrupt");
    }
}

fn flip(table: &HostileTable, at: usize, pattern: u8) {
    let path = table.path(Component::Data);
    for bit in (0..8).filter(|bit| pattern >> bit & 1 == 1) {
        assert!(table.sim.flip(&path, at as u64, bit));
    }
}

/// Proves that whatever could be read can be written, or is refused; and that what was written can be read.
#[test]
fn changed_rows_are_written_again() {
    for name in TABLES {
        let table = HostileTable::plain(name);
        let sstable = table.open().expect("opens");
        let mut written = 0;
        for at in places(table.stream.len()) {
            let pattern = 1 << (at % 8);
            flip(&table, at, pattern);
            let when = format!("{name}: byte {at} changed by {pattern:02x}");
            let (outcome, memory) = peak_memory(|| block_on(rewrite(&table.disk, &sstable)));
            assert!(memory < CEILING, "{when}: {memory} bytes of memory");
            if let Ok((read, again)) = outcome {
                written += 1;
                assert_eq!(read, again, "{when}: fragments");
            }
            flip(&table, at, pattern);
        }
        assert!(written > 0, "{name}");
    }
}

/// Proves that data that ends early is never taken for all of it, except where a partition ends.
#[test]
fn truncated_rows() {
    for name in TABLES {
        let table = HostileTable::plain(name);
        for length in places(table.stream.len()) {
            table.put(Component::Data, &table.stream[..length]);
            let when = format!("{name}: cut to {length}");
            match table.read() {
                Ok((_, content)) => {
                    assert!(table.content.starts_with(&content), "{when}");
                    assert!(content.last().is_none_or(|last| last == "End"), "{when}");
                }
                Err(e) => assert_corrupt(&e, Component::Data, length as u64, &when),
            }
        }
    }
}

/// Proves that a changed or cut component is an error of this component, or one of the data that it leads to, or harmless.
#[test]
fn changed_components() {
    let tables = ["nb/compressed_lz4_4", "oa/uncompressed", "pa/compressed_zstd_4", "ea/statics"];
    for name in tables {
        let table = HostileTable::as_written(name);
        for component in [Component::Statistics, Component::CompressionInfo, Component::Crc] {
            let path = table.path(component);
            let Some(sound) = table.sim.contents(&path) else { continue };
            for at in places(sound.len()) {
                let mut bytes = sound.clone();
                bytes[at] ^= 1 << (at % 8);
                check_changed(&table, component, &bytes, &format!("{name}: {component} at {at}"));
                for pattern in [0x80, 0xff].iter().filter(|_| component != Component::Statistics) {
                    bytes[at] = sound[at] ^ pattern;
                    check_changed(
                        &table,
                        component,
                        &bytes,
                        &format!("{name}: {component} at {at}"),
                    );
                }
                let when = format!("{name}: {component} cut to {at}");
                check_changed(&table, component, &sound[..at], &when);
            }
            table.put(component, &sound);
        }
    }
}

fn check_changed(table: &HostileTable, component: Component, bytes: &[u8], when: &str) {
    table.put(component, bytes);
    let (outcome, memory) = peak_memory(|| table.read());
    assert!(memory < CEILING, "{when}: {memory} bytes of memory");
    match outcome {
        Ok((_, content)) => assert!(content == table.content, "{when}: other data"),
        Err(Error::Corrupt { component: found, offset, .. }) => {
            let length = match found {
                Component::Data => u64::MAX,
                _ => bytes.len() as u64,
            };
            assert!(found == component || found == Component::Data, "{when}: {found}");
            assert!(offset <= length, "{when}: offset {offset}");
        }
        Err(Error::Unsupported { .. }) => {}
        Err(e) => panic!("{when}: {e}"),
    }
}
