//! A data directory that Cassandra has drained is taken over; one that it has not is refused.

use std::path::PathBuf;

use halcyon_io::{DiskOptions, block_on};

use super::*;

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/nodes/5.0.9-drained")
}

/// A copy of the golden node, gone when dropped.
struct Copy(PathBuf);

impl Copy {
    fn make(name: &str) -> Copy {
        let to = std::env::temp_dir().join(format!("halcyon-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&to);
        copy(&golden(), &to);
        Copy(to)
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("directory");
    for entry in std::fs::read_dir(from).expect("golden") {
        let entry = entry.expect("entry");
        let target = to.join(entry.file_name());
        if entry.file_type().expect("type").is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).expect("copied");
        }
    }
}

async fn start(directory: &Path) -> Result<Node> {
    let disk = Disk::real(DiskOptions::default());
    start_with(disk, |options| *options = Options::in_directory(directory, 1)).await
}

/// `v` by `k` and `c` of `ks.t`, as far as it is live.
async fn rows(engine: &Engine, shard: &Shard) -> BTreeMap<(i32, i32), String> {
    let table = engine.tables().catalog().table("ks", "t").expect("known").clone();
    let at = table.find_column("v").expect("a column").index;
    let int = |bytes: &[u8]| i32::from_be_bytes(bytes.try_into().expect("four bytes"));
    let range = TokenRange { start: RangeBound::Open, end: RangeBound::Open };
    let (target, slices) = (ReadTarget::Range(range), Slices::all());
    let mut stream = shard.read(Read { table: table.clone(), target, slices }).await.expect("read");
    let (mut rows, mut k) = (BTreeMap::new(), 0);
    while stream.advance().await.expect("advance") {
        match stream.fragment() {
            Fragment::Start(start) => k = int(&start.key.bytes),
            Fragment::Row(row) => {
                let mut values = table.layout.clusterings.values(row.clustering, 1);
                let Some(ClusteringValue::Bytes(c)) = values.next() else { panic!("a value") };
                let cell = row.cells.iter().find(|cell| cell.column == at).expect("v");
                let v = String::from_utf8(cell.value.of(row.bytes).to_vec()).expect("text");
                rows.insert((k, int(c)), v);
            }
            _ => {}
        }
    }
    rows
}

/// Rows of a table; in `alt` some were written with a column that was dropped later.
async fn count(engine: &Engine, shard: &Shard, table: &str) -> usize {
    let table = engine.tables().catalog().table("ks", table).expect("known").clone();
    let range = TokenRange { start: RangeBound::Open, end: RangeBound::Open };
    let (target, slices) = (ReadTarget::Range(range), Slices::all());
    let mut stream = shard.read(Read { table, target, slices }).await.expect("read");
    let mut rows = 0;
    while stream.advance().await.expect("advance") {
        rows += usize::from(matches!(stream.fragment(), Fragment::Row(_)));
    }
    rows
}

/// Proves that schema and rows of a drained node are there, and that they still are after a drain of ours.
#[test]
fn a_drained_node_is_taken_over() {
    let node = Copy::make("drained");
    let expected: BTreeMap<(i32, i32), String> = (0..20)
        .flat_map(|k| (0..5).map(move |c| ((k, c), format!("v{}", k * 10 + c))))
        .filter(|((k, c), _)| *k != 3 && !(*k == 4 && (2..4).contains(c)))
        .collect();
    for round in 0..2 {
        let (directory, expected) = (node.0.clone(), expected.clone());
        let life = move || {
            block_on(async {
                let Node { engine, shard, report } = start(&directory).await.expect("starts");
                assert!(report.sstables > 20, "{report:?}");
                let catalog = engine.tables().catalog();
                let tables: Vec<&String> = catalog.keyspaces["ks"].tables.keys().collect();
                assert_eq!(tables, ["alt", "cnt", "t"]);
                assert_eq!(catalog.keyspaces["ks"].types.len(), 1);
                assert_eq!(rows(&engine, &shard).await, expected, "round {round}");
                assert_eq!(count(&engine, &shard, "alt").await, 21);
                assert_eq!(count(&engine, &shard, "cnt").await, 20);
                engine.drain().await.expect("drained");
            });
        };
        // A runtime of its own, so that nothing of the first life holds the directory in the second.
        std::thread::spawn(life).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    }
    let log = std::fs::read_dir(node.0.join("commitlog")).expect("there");
    assert_eq!(log.count(), 0);
}

/// Proves that a segment with a write in it, and a directory of 6.0, are refused, and nothing is changed.
#[test]
fn what_cannot_be_taken_over_is_refused() {
    let node = Copy::make("refused");
    let segment = std::fs::read_dir(node.0.join("commitlog")).expect("there").next();
    let segment = segment.expect("one").expect("entry").path();
    let mut bytes = std::fs::read(&segment).expect("readable");
    bytes[100] = 1;
    std::fs::write(&segment, &bytes).expect("written");
    let refusal = |what: &str| {
        let e = block_on(start(&node.0)).err().map(|e| e.to_string()).expect("refused");
        assert!(e.contains(what), "{e}");
    };
    refusal("nodetool drain");
    assert_eq!(std::fs::read(&segment).expect("still there"), bytes);
    std::fs::create_dir_all(node.0.join("data/system_cluster_metadata")).expect("made");
    refusal("Cassandra 6.0");
}
