//! Fills `corpus/<target>/` with the components that Cassandra wrote, for the fuzzer to begin with.

use std::path::{Path, PathBuf};

use halcyon_fuzz::protocol::form;
use halcyon_fuzz::rows::{Header, TABLES};
use halcyon_protocol::{Compression, Version};

fn put(target: &str, bytes: &[u8]) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    std::fs::create_dir_all(&dir).expect("corpus");
    // FNV-1a: the same seed twice is one file.
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    });
    std::fs::write(dir.join(format!("{hash:016x}")), bytes).expect("written");
}

fn files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).expect("readable").flatten() {
        if entry.path().is_dir() { files(&entry.path(), found) } else { found.push(entry.path()) }
    }
}

/// What a driver sent, chunk by chunk: the connection after its form, and the body of each bare envelope.
fn recorded_connections() {
    let forms = [
        ("v3-none", Version::V3, Compression::None),
        ("v3-snappy", Version::V3, Compression::Snappy),
        ("v4-none", Version::V4, Compression::None),
        ("v4-lz4", Version::V4, Compression::Lz4),
        ("v4-snappy", Version::V4, Compression::Snappy),
        ("v5-none", Version::V5, Compression::None),
        ("v5-lz4", Version::V5, Compression::Lz4),
    ];
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/protocol/testdata");
    for (name, version, compression) in forms {
        let path = testdata.join(format!("driver-{name}.txt"));
        let text = std::fs::read_to_string(path).expect("readable");
        for line in text.lines().filter(|line| line.starts_with('>') && line.len() < 8192) {
            let digits: Vec<_> = line.chars().filter_map(|c| c.to_digit(16)).collect();
            let bytes: Vec<_> = digits.chunks_exact(2).map(|d| (d[0] << 4 | d[1]) as u8).collect();
            put("protocol_connection", &[&[form(version, compression)], &*bytes].concat());
            if let ("v4-none", [_, flags, _, _, opcode, _, _, _, _, body @ ..]) = (name, &*bytes) {
                put("protocol_frames", &[&[0, 5], bytes.get(1..).unwrap_or_default()].concat());
                put("protocol_body", &[&[2, *opcode, *flags], body].concat());
            }
        }
    }
}

fn main() {
    recorded_connections();
    let mut all = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata"), &mut all);
    let targets = [
        ("-Statistics.db", "statistics"),
        ("-CompressionInfo.db", "compression_info"),
        ("-Summary.db", "summary"),
        ("-Filter.db", "filter"),
        ("-Index.db", "index_entries"),
        ("-Partitions.db", "partitions_trie"),
        ("-TOC.txt", "toc"),
        ("-CRC.db", "crc"),
        ("schema.cql", "schema"),
    ];
    for path in all {
        let name = path.to_string_lossy();
        for (_, target) in targets.iter().filter(|(end, _)| name.ends_with(end)) {
            put(target, &std::fs::read(&path).expect("readable"));
        }
        if name.ends_with("-Rows.db") {
            let mut bytes = std::fs::read(&path).expect("readable");
            bytes.extend([0, 0]);
            put("rows_trie", &bytes);
        }
    }
    for (i, table) in TABLES.iter().enumerate() {
        put("rows", &[&[i as u8], Header::load(table).rows.as_slice()].concat());
    }
    put("txn_log", b"ADD:[/d/oa-2-big-,0,8][3585343934]\nCOMMIT:[,0,0][2613697770]\n");
    let map = b"org.apache.cassandra.db.marshal.MapType(org.apache.cassandra.db.marshal.Int32Type,\
        org.apache.cassandra.db.marshal.UTF8Type)";
    put("cql_type", map);
}
