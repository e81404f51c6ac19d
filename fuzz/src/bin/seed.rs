//! Fills `corpus/<target>/` with what Cassandra wrote and answered, for the fuzzer to begin with.

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Mutex;

use halcyon_fuzz::node::{Connection, Host, paging, recorded};
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

/// Statements of the recorded sessions, a few together; of each group one form of execution.
fn recorded_statements() {
    let statements = recorded();
    let mut used = String::new();
    let mut group = Vec::new();
    let mut form = 0;
    for (mark, statement) in statements {
        if statement.starts_with("USE ") || statement.starts_with("use ") {
            used = statement;
            continue;
        }
        if mark == '!' || statement.len() > 1000 {
            continue;
        }
        put(
            "prepared",
            format!("{}\n{statement}", used.split(' ').nth(1).unwrap_or_default()).as_bytes(),
        );
        group.push(statement);
        if group.len() == 5 {
            form = (form + 1) % 16;
            let texts = [&[used.clone()], &*std::mem::take(&mut group)].concat();
            put("statements", &[&[form], texts.join("\n").as_bytes()].concat());
        }
    }
    let ddl = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/schema/tests/data/ddl.txt");
    let ddl = std::fs::read_to_string(ddl).expect("readable");
    let statements: Vec<_> =
        ddl.split("\n====\n").filter_map(|part| part.split("\n----\n").next()).collect();
    for group in statements.chunks(4) {
        let keyspace = "CREATE KEYSPACE a WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";
        let texts: Vec<_> = group.iter().map(|text| text.replace('\n', " ")).collect();
        put("statements", format!("\0{keyspace}\nUSE a\n{}", texts.join("\n")).as_bytes());
    }
}

static STATES: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

/// Pages of the query to the end.
fn collect<'a>(
    connection: &'a mut Connection,
    choice: &'a [u8],
) -> Pin<Box<dyn Future<Output = ()> + 'a>> {
    Box::pin(async move {
        let mut state = Vec::new();
        while let Some(next) = paging::page(connection, choice[0], &state).await {
            STATES.lock().expect("one thread").push([choice, &next].concat());
            state = next;
        }
    })
}

fn paging_states() {
    let host = Host::start(collect, None);
    (0..paging::QUERIES.len()).for_each(|query| host.put(&[query as u8]));
    host.finish();
    // Every third of the large ones says as much as all.
    for state in STATES.lock().expect("one thread").iter().step_by(3) {
        put("paging", state);
    }
}

fn texts_of_settings() {
    let stock =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/server/src/settings/stock-5.0.yaml");
    let stock = std::fs::read_to_string(stock).expect("readable");
    put("settings", stock.as_bytes());
    let lines: Vec<&str> = stock.lines().collect();
    lines.chunks(12).for_each(|lines| put("settings", lines.join("\n").as_bytes()));
}

fn main() {
    recorded_connections();
    recorded_statements();
    paging_states();
    texts_of_settings();
    halcyon_fuzz::schema::samples().iter().for_each(|bytes| put("schema_rows", bytes));
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
    put("lz4", &[&[3], include_bytes!("seed.rs").as_slice()].concat());
    put("full_query_log", &halcyon_binlog::record::HEADER);
    put("txn_log", b"ADD:[/d/oa-2-big-,0,8][3585343934]\nCOMMIT:[,0,0][2613697770]\n");
    let map = b"org.apache.cassandra.db.marshal.MapType(org.apache.cassandra.db.marshal.Int32Type,\
        org.apache.cassandra.db.marshal.UTF8Type)";
    put("cql_type", map);
}
