mod bookkeeping;
mod carried;
mod cassandra;
mod commit_order;
mod compaction;
mod extremes;
mod failures;
mod import;
mod indexes;
mod matrix;
mod point;
mod registry;
mod requested;
mod row_cache;
mod samples;
mod set_apart;
mod snapshots;
mod spanning;
mod texts;
mod version;

use std::collections::BTreeMap;
use std::future::Future;
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use halcyon_io::{Disk, SimDisk, SimRuntime, spawn, yield_now};
use halcyon_model::clustering::{ClusteringValue, PositionBuf};
use halcyon_model::options::TableOptions;
use halcyon_model::schema::{ColumnDef, TableSchema};
use halcyon_model::{BoundKind, CqlType, DeletionTime, Liveness, NO_DELETION_TIME, NO_TTL};
use halcyon_schema::catalog::{Catalog, Keyspace, Table, TableKind};
use halcyon_stream::{
    Cell, Fragment, FragmentStream, Mutation, PartitionKey, RangeTombstone, RowBuf, Slice, Slices,
    Span, Validator,
};

use halcyon_schema::rows::{WriteTime, difference};

use crate::{
    Engine, Options, RangeBound, Read, ReadTarget, RecoveryReport, Result, Severity, Shard,
    TokenRange,
};

const ID: [u8; 16] = *b"0123456789abcdef";

fn column(name: &str, cql_type: CqlType) -> ColumnDef {
    ColumnDef { name: name.to_owned(), cql_type }
}

fn table() -> Arc<Table> {
    table_named("t", ID)
}

fn table_named(name: &str, id: [u8; 16]) -> Arc<Table> {
    let schema = TableSchema {
        keyspace: "ks".into(),
        name: name.into(),
        id: Some(id),
        partition_key: vec![column("k", CqlType::Int)],
        clustering: vec![column("c", CqlType::Int)],
        statics: vec![column("s", CqlType::Int)],
        regulars: vec![column("v", CqlType::Int)],
        dropped: Vec::new(),
        options: TableOptions::default(),
        strict_liveness: false,
    };
    Arc::new(Table::new(id, TableKind::Regular, schema))
}

/// What the node has now, and these tables in one keyspace beside.
fn catalog(engine: &Engine, tables: &[Arc<Table>]) -> Arc<Catalog> {
    let tables = tables.iter().map(|t| (t.schema.name.clone(), t.clone())).collect();
    let keyspace = Keyspace {
        name: "ks".into(),
        replication: BTreeMap::from([
            ("class".to_owned(), "org.apache.cassandra.locator.SimpleStrategy".to_owned()),
            ("replication_factor".to_owned(), "1".to_owned()),
        ]),
        durable_writes: true,
        is_virtual: false,
        tables,
        types: BTreeMap::new(),
        functions: halcyon_schema::function::Functions::default(),
    };
    let mut catalog = Catalog::clone(&engine.tables().catalog());
    catalog.keyspaces.insert("ks".to_owned(), Arc::new(keyspace));
    Arc::new(catalog)
}

async fn change(node: &Node, tables: &[Arc<Table>]) -> Result<()> {
    let to = catalog(&node.engine, tables);
    let at = WriteTime { micros: node.engine.disk().clock().unix_micros(), seconds: 1_600_000_000 };
    let rows = difference(&node.engine.tables().catalog(), &to, at);
    let lock = node.engine.schema().lock().await;
    node.engine.schema().change(&lock, to, rows).await
}

fn key(k: i32) -> PartitionKey {
    PartitionKey::of(&k.to_be_bytes())
}

fn clustering(table: &Table, c: i32) -> Vec<u8> {
    let mut out = Vec::new();
    table.layout.clusterings.write(&[ClusteringValue::Bytes(&c.to_be_bytes())], &mut out);
    out
}

fn row(table: &Table, c: i32, v: i32, timestamp: i64) -> RowBuf {
    let mut row = RowBuf::new();
    row.parts.clustering = row.store(&clustering(table, c));
    row.parts.liveness =
        Liveness { timestamp, ttl: NO_TTL, local_expiration_time: NO_DELETION_TIME };
    push_cell(&mut row, &v.to_be_bytes(), timestamp);
    row
}

/// Appends a cell of the first column that never expires.
pub(crate) fn push_cell(row: &mut RowBuf, value: &[u8], timestamp: i64) {
    let value = row.store(value);
    row.parts.cells.push(Cell {
        column: 0,
        ttl: NO_TTL,
        timestamp,
        local_deletion_time: NO_DELETION_TIME,
        path: Span::default(),
        value,
    });
}

fn insert(table: &Table, k: i32, c: i32, v: i32, timestamp: i64) -> Mutation {
    let mut mutation = Mutation::new(table.id, table.layout.clone(), key(k));
    mutation.rows.push(row(table, c, v, timestamp));
    mutation
}

fn bound(table: &Table, kind: BoundKind, c: i32) -> PositionBuf {
    PositionBuf { kind, count: 1, serialized: clustering(table, c) }
}

fn deletion(timestamp: i64) -> DeletionTime {
    DeletionTime { marked_for_delete_at: timestamp, local_deletion_time: 1_600_000_000 }
}

/// Everything that a read yields, spelled out.
async fn spell(shard: &Shard, read: Read) -> Vec<String> {
    let reversed = read.slices.reversed;
    let layout =
        if reversed { Arc::new(read.table.layout.reversed()) } else { read.table.layout.clone() };
    let mut validator = Validator::new(layout);
    let mut stream = shard.read(read).await.expect("read");
    let mut out = Vec::new();
    while stream.advance().await.expect("advance") {
        validator.check(stream.fragment()).expect("grammar");
        out.push(match stream.fragment() {
            Fragment::Start(start) => {
                format!("{:?} {}", start.key.bytes[3], start.deletion.marked_for_delete_at.max(0))
            }
            Fragment::Static(row) => format!("static {:?}", row.cells.len()),
            Fragment::Row(row) => {
                let cells: Vec<u8> = row.cells.iter().map(|c| c.value.of(row.bytes)[3]).collect();
                format!("row {} {cells:?}", row.clustering[4])
            }
            Fragment::Marker(m) => format!(
                "{:?} {} {:?} {:?}",
                m.position.kind,
                m.position.serialized.get(4).copied().unwrap_or(0),
                m.close.map(|d| d.marked_for_delete_at),
                m.open.map(|d| d.marked_for_delete_at)
            ),
            Fragment::End => continue,
        });
    }
    out
}

fn read(table: &Arc<Table>, k: i32, slices: Slices) -> Read {
    Read { table: table.clone(), target: ReadTarget::Partition(key(k)), slices }
}

fn all(table: &Arc<Table>) -> Read {
    let range = TokenRange { start: RangeBound::Open, end: RangeBound::Open };
    Read { table: table.clone(), target: ReadTarget::Range(range), slices: Slices::all() }
}

struct Node {
    engine: Arc<Engine>,
    shard: Rc<Shard>,
    report: RecoveryReport,
}

async fn start(disk: Disk) -> Result<Node> {
    start_with(disk, |_| ()).await
}

async fn start_with(disk: Disk, set: impl FnOnce(&mut Options)) -> Result<Node> {
    let mut options = Options::in_directory(Path::new("/halcyon"), 1);
    options.commitlog.segment_size = 64 << 10;
    set(&mut options);
    let (engine, report) = Engine::open(disk, options).await?;
    let (shard, inbox) = engine.open_shard(0).await?;
    spawn(inbox.serve(shard.clone())).detach();
    Ok(Node { engine, shard, report })
}

/// Runs on a simulated runtime of its own; a disk that is made inside belongs to it.
fn simulate<T>(body: impl Future<Output = T>) -> T {
    SimRuntime::seeded(1).block_on(body)
}

/// Runs on the disk's runtime, where nothing is left afterwards: as a process that is killed.
fn life<T, F: Future<Output = T>>(sim: &SimDisk, body: impl FnOnce(Disk) -> F) -> T {
    let disk = Disk::on_simulated(sim, halcyon_io::DiskOptions::default());
    sim.runtime().block_on(body(disk))
}

/// Proves that what is written is read, before and after a flush, forwards, backwards and in slices.
#[test]
fn written_is_read() {
    simulate(async {
        let (disk, _) = Disk::simulated(1);
        let node = start(disk).await.expect("starts");
        let table = table();
        change(&node, std::slice::from_ref(&table)).await.expect("schema");
        for round in 0..3 {
            for c in 0..5 {
                let m = insert(&table, 1, c * 10, c + round, 10 + i64::from(round));
                node.shard.apply(vec![m]).await.expect("applied");
            }
            let mut m = Mutation::new(table.id, table.layout.clone(), key(1));
            m.range_tombstones.push(RangeTombstone {
                start: bound(&table, BoundKind::InclStart, 5),
                end: bound(&table, BoundKind::ExclEnd, 20),
                time: deletion(11),
            });
            m.range_tombstones.push(RangeTombstone {
                start: bound(&table, BoundKind::InclStart, 15),
                end: bound(&table, BoundKind::InclEnd, 30),
                time: deletion(9),
            });
            node.shard.apply(vec![m, insert(&table, 2, 1, 7, 5)]).await.expect("applied");
            let shadowed = if round < 2 { vec![] } else { vec!["row 10 [3]".to_owned()] };
            let mut expected = vec!["1 0".to_owned(), format!("row 0 [{round}]")];
            expected.push("InclStart 5 None Some(11)".into());
            expected.extend(shadowed);
            expected.push("ExclEndInclStart 20 Some(11) Some(9)".into());
            expected.push(format!("row 20 [{}]", 2 + round));
            expected.push(format!("row 30 [{}]", 3 + round));
            expected.push("InclEnd 30 Some(9) None".into());
            expected.push(format!("row 40 [{}]", 4 + round));
            assert_eq!(spell(&node.shard, read(&table, 1, Slices::all())).await, expected);
            let mut both = spell(&node.shard, all(&table)).await;
            both.retain(|line| line.ends_with(" 0"));
            assert_eq!(both, ["1 0", "2 0"]);
            let slices = Slices {
                slices: vec![Slice {
                    start: Some(bound(&table, BoundKind::ExclStart, 12)),
                    end: Some(bound(&table, BoundKind::ExclEnd, 30)),
                }]
                .into(),
                reversed: true,
                statics: false,
            };
            assert_eq!(
                spell(&node.shard, read(&table, 1, slices)).await,
                [
                    "1 0".to_owned(),
                    "ExclStart 30 None Some(9)".into(),
                    format!("row 20 [{}]", 2 + round),
                    "InclEndExclStart 20 Some(9) Some(11)".into(),
                    "ExclEnd 12 Some(11) None".into(),
                ]
            );
            node.engine.flusher().flush(None).await.expect("flushed");
        }
        let stats = node.engine.tables().stats();
        assert_eq!(stats.iter().find(|s| s.keyspace == "ks").expect("known").sstables, 3);
    });
}

/// Rows of the table as `(k, c) -> v`; the tests only insert.
async fn contents(node: &Node, table: &Arc<Table>) -> BTreeMap<(i32, i32), i32> {
    let mut stream = node.shard.read(all(table)).await.expect("read");
    let mut rows = BTreeMap::new();
    let int = |bytes: &[u8]| i32::from_be_bytes(bytes.try_into().expect("four bytes"));
    let mut k = 0;
    while stream.advance().await.expect("advance") {
        match stream.fragment() {
            Fragment::Start(start) => k = int(&start.key.bytes),
            Fragment::Row(row) => {
                let v = int(row.cells[0].value.of(row.bytes));
                rows.insert((k, int(&row.clustering[1..])), v);
            }
            _ => {}
        }
    }
    rows
}

fn warnings(node: &Node) -> Vec<String> {
    let news = node
        .engine
        .reporter()
        .take_events()
        .into_iter()
        .filter(|news| news.severity() >= Severity::Warning);
    news.map(|news| news.to_string()).collect()
}

fn user_table(node: &Node) -> Arc<Table> {
    node.engine.tables().catalog().table("ks", "t").expect("the table").clone()
}

/// Proves that what was acknowledged is there after a kill, schema and truncation too, and after a drain without a log.
#[test]
fn acknowledged_writes_survive() {
    let (_, sim) = Disk::simulated(7);
    life(&sim, |disk| async move {
        let node = start(disk).await.expect("starts");
        let table = table();
        change(&node, std::slice::from_ref(&table)).await.expect("schema");
        for c in 0..10 {
            node.shard.apply(vec![insert(&table, c % 3, c, c, 10)]).await.expect("applied");
        }
    });
    sim.crash_to_synced();
    life(&sim, |disk| async move {
        let node = start(disk).await.expect("starts");
        assert!(node.report.mutations_replayed >= 10, "{:?}", node.report);
        let table = user_table(&node);
        assert_eq!(contents(&node, &table).await.len(), 10);
        node.engine.schema().truncate(table.id).await.expect("truncated");
        assert_eq!(contents(&node, &table).await.len(), 0);
        node.shard.apply(vec![insert(&table, 1, 1, 1, 10)]).await.expect("applied");
    });
    sim.crash_to_synced();
    life(&sim, |disk| async move {
        let node = start(disk).await.expect("starts");
        let table = user_table(&node);
        assert_eq!(contents(&node, &table).await, BTreeMap::from([((1, 1), 1)]));
        node.engine.drain().await.expect("drained");
    });
    life(&sim, |disk| async move {
        let node = start(disk).await.expect("starts");
        assert_eq!(node.report.mutations_replayed, 0);
        let table = user_table(&node);
        assert_eq!(contents(&node, &table).await, BTreeMap::from([((1, 1), 1)]));
        for round in 0..4 {
            node.shard.apply(vec![insert(&table, 1, round, 5, 20)]).await.expect("applied");
            node.engine.flusher().flush(Some(table.id)).await.expect("flushed");
        }
        node.engine.compactor().compact(table.id).await.expect("compacted");
        assert_eq!(contents(&node, &table).await.len(), 4);
        change(&node, &[]).await.expect("dropped");
        assert!(node.shard.read(all(&table)).await.is_err());
    });
}

/// Proves that under `periodic` a crash leaves no SSTable without its schema, and brings nothing back that was truncated.
#[test]
fn schema_and_truncation_do_not_wait_for_a_period() {
    fn periodic(options: &mut Options) {
        let period = std::time::Duration::from_secs(3600);
        options.commitlog.sync = halcyon_commitlog::SyncMode::Periodic { period };
        options.auto_snapshot = false;
    }
    let (_, sim) = Disk::simulated(9);
    life(&sim, |disk| async move {
        let node = start_with(disk, periodic).await.expect("starts");
        let table = table();
        change(&node, std::slice::from_ref(&table)).await.expect("schema");
        node.shard.apply(vec![insert(&table, 1, 1, 1, 10)]).await.expect("applied");
        node.engine.flusher().flush(Some(table.id)).await.expect("flushed");
    });
    sim.crash_to_synced();
    life(&sim, |disk| async move {
        let node = start_with(disk, periodic).await.expect("starts");
        let table = user_table(&node);
        assert_eq!(contents(&node, &table).await.len(), 1);
        node.shard.apply(vec![insert(&table, 1, 2, 1, 10)]).await.expect("applied");
        node.shard.log.sync().await.expect("synced");
        node.engine.schema().clear(table.id).await.expect("cleared");
    });
    sim.crash_to_synced();
    life(&sim, |disk| async move {
        let node = start_with(disk, periodic).await.expect("starts");
        assert_eq!(contents(&node, &user_table(&node)).await.len(), 0);
    });
}

/// One history of writes, flushes and compactions; `log` gets every acknowledged write, and before that every attempt.
async fn history(disk: Disk, acknowledged: Arc<Mutex<Model>>) -> Result<()> {
    let node = start(disk).await?;
    let table = user_table(&node);
    for step in 0..24 {
        let (k, c, v) = (step % 2, step % 5, step);
        acknowledged.lock().expect("lock").attempted.push((k, c, v));
        node.shard.apply(vec![insert(&table, k, c, v, i64::from(step) + 1)]).await?;
        acknowledged.lock().expect("lock").acknowledged.push((k, c, v));
        if step % 7 == 6 {
            node.engine.flusher().flush(Some(table.id)).await?;
        }
        if step == 15 {
            node.engine.compactor().compact(table.id).await?;
        }
    }
    node.engine.drain().await
}

#[derive(Default)]
struct Model {
    attempted: Vec<(i32, i32, i32)>,
    acknowledged: Vec<(i32, i32, i32)>,
}

impl Model {
    /// Each place has its last acknowledged value, or one that was attempted after it.
    fn check(&self, found: &BTreeMap<(i32, i32), i32>, when: &str) {
        for (k, c, v) in &self.acknowledged {
            let there = found.get(&(*k, *c)).copied();
            assert!(
                there.is_some_and(|there| there >= *v),
                "{when}: ({k}, {c}) = {v}, found {there:?}"
            );
        }
        for ((k, c), v) in found {
            assert!(
                self.attempted.contains(&(*k, *c, *v)),
                "{when}: ({k}, {c}) = {v} from nowhere"
            );
        }
    }
}

/// Proves that power loss at any operation of a history loses nothing acknowledged, and that the next start succeeds.
#[test]
fn power_loss_anywhere() {
    let (_, sim) = Disk::simulated(3);
    life(&sim, |disk| async move {
        let node = start(disk).await.expect("starts");
        change(&node, &[table()]).await.expect("schema");
        node.engine.drain().await.expect("drained");
    });
    let begin = sim.snapshot();
    let first = sim.ops_count();
    life(&sim, |disk| history(disk, Arc::default())).expect("undisturbed");
    let last = sim.ops_count();
    let stride = ((last - first) / 60).max(1);
    for at in (first..last).step_by(usize::try_from(stride).expect("small")) {
        sim.restore(&begin);
        sim.crash_at(at);
        let model: Arc<Mutex<Model>> = Arc::default();
        let shared = model.clone();
        // The last operations are deletions, which may fail.
        let _ = life(&sim, |disk| history(disk, shared));
        sim.restart();
        let when = format!("power lost at operation {at} of {first}..{last}");
        life(&sim, move |disk| async move {
            let node = start(disk).await.unwrap_or_else(|e| panic!("{when}: {e}"));
            let table = user_table(&node);
            let found = contents(&node, &table).await;
            model.lock().expect("lock").check(&found, &when);
        });
    }
}

const LONG: i32 = 4000;

/// Starts with little memory; how many SSTables the table then has.
async fn replayed_in_parts(disk: Disk) -> Result<usize> {
    let node = start_with(disk, |options| options.memtable_space = 64 << 10).await?;
    let table = user_table(&node);
    let rows = contents(&node, &table).await;
    assert!(rows.keys().map(|(_, c)| *c).eq(LONG / 2..LONG), "{} rows", rows.len());
    let stats = node.engine.tables().stats();
    Ok(stats.iter().find(|s| s.keyspace == "ks").map_or(0, |s| s.sstables))
}

/// Proves that a long log is replayed in little memory, into several SSTables, and that what a truncation in it has removed does not
/// come back, not even when the replay itself is cut short.
#[test]
fn a_long_replay() {
    let (_, sim) = Disk::simulated(9);
    life(&sim, |disk| async move {
        let node = start_with(disk, |options| options.auto_snapshot = false).await.expect("starts");
        let table = table();
        change(&node, std::slice::from_ref(&table)).await.expect("schema");
        for c in 0..LONG {
            if c == LONG / 2 {
                node.engine.schema().truncate(table.id).await.expect("truncated");
            }
            node.shard.apply(vec![insert(&table, 1, c, c, 10)]).await.expect("applied");
        }
    });
    sim.crash_to_synced();
    let begin = sim.snapshot();
    let first = sim.ops_count();
    let sstables = life(&sim, replayed_in_parts).expect("undisturbed");
    assert!(sstables > 2, "{sstables}");
    let last = sim.ops_count();
    for at in (first..last).step_by(usize::try_from((last - first) / 12).expect("small")) {
        sim.restore(&begin);
        sim.crash_at(at);
        let _ = life(&sim, |disk| async {
            start_with(disk, |options| options.memtable_space = 64 << 10).await.map(drop)
        });
        sim.restart();
        life(&sim, replayed_in_parts).unwrap_or_else(|e| panic!("operation {at}: {e}"));
    }
}

/// The steps of a history of schema changes: how many were begun, how many acknowledged.
type Steps = Arc<Mutex<(usize, usize)>>;

const OTHER: [u8; 16] = *b"fedcba9876543210";

/// A table made and filled, another one truncated and filled, the first one dropped.
async fn schema_history(disk: Disk, steps: Steps) -> Result<()> {
    let node = start(disk).await?;
    let (old, new) = (user_table(&node), table_named("u", OTHER));
    for step in 1..=5 {
        steps.lock().expect("lock").0 = step;
        match step {
            1 => change(&node, &[old.clone(), new.clone()]).await?,
            2 => node.shard.apply(vec![insert(&new, 1, 1, 1, 10)]).await?,
            3 => node.engine.schema().truncate(old.id).await?,
            4 => node.shard.apply(vec![insert(&old, 5, 5, 5, 10)]).await?,
            _ => change(&node, std::slice::from_ref(&old)).await?,
        }
        steps.lock().expect("lock").1 = step;
    }
    Ok(())
}

async fn check_schema_history(disk: Disk, begun: usize, done: usize, when: String) {
    let node = start(disk).await.unwrap_or_else(|e| panic!("{when}: {e}"));
    let rows = contents(&node, &user_table(&node)).await;
    let older = rows.keys().filter(|(k, _)| *k != 5).count();
    assert!(begun >= 3 || older == 3, "{when}: {older} rows before the truncation");
    assert!(done < 3 || older == 0, "{when}: {older} truncated rows are back");
    assert!(done < 4 || rows.contains_key(&(5, 5)), "{when}: the row after the truncation");
    let new = node.engine.tables().catalog().table("ks", "u").cloned();
    assert!(done < 5 || new.is_none(), "{when}: the dropped table is back");
    if (1..5).contains(&done) && begun < 5 {
        let new = new.unwrap_or_else(|| panic!("{when}: the new table is missing"));
        let rows = contents(&node, &new).await.len();
        assert!(done < 2 || rows == 1, "{when}: {rows} rows of the new table");
    }
}

/// Proves that power loss at any operation of CREATE, TRUNCATE and DROP leaves each done or not done, as it was acknowledged.
#[test]
fn power_loss_in_schema_changes() {
    let (_, sim) = Disk::simulated(4);
    life(&sim, |disk| async move {
        let node = start(disk).await.expect("starts");
        let table = table();
        change(&node, std::slice::from_ref(&table)).await.expect("schema");
        for c in 0..3 {
            node.shard.apply(vec![insert(&table, 1, c, c, 5)]).await.expect("applied");
        }
    });
    sim.crash_to_synced();
    let begin = sim.snapshot();
    let first = sim.ops_count();
    life(&sim, |disk| schema_history(disk, Arc::default())).expect("undisturbed");
    let last = sim.ops_count();
    let stride = ((last - first) / 60).max(1);
    for at in (first..last).step_by(usize::try_from(stride).expect("small")) {
        sim.restore(&begin);
        sim.crash_at(at);
        let steps = Steps::default();
        let shared = steps.clone();
        let _ = life(&sim, |disk| schema_history(disk, shared));
        sim.restart();
        let (begun, done) = *steps.lock().expect("lock");
        let when = format!("power lost at operation {at} of {first}..{last}, in step {begun}");
        life(&sim, move |disk| check_schema_history(disk, begun, done, when));
    }
}

/// Proves that a full disk stops the writes with a reason, leaves the reads, and loses nothing.
#[test]
fn a_full_disk() {
    let (_, sim) = Disk::simulated(5);
    let breaker = sim.clone();
    life(&sim, |disk| async move {
        let node = start(disk).await.expect("starts");
        let table = table();
        change(&node, std::slice::from_ref(&table)).await.expect("schema");
        for c in 0..10 {
            node.shard.apply(vec![insert(&table, 1, c, c, 10)]).await.expect("applied");
        }
        breaker.set_capacity(1);
        assert!(node.engine.flusher().flush(Some(table.id)).await.is_err());
        let (why, policy) = node.engine.reporter().failure().expect("stopped");
        assert_eq!(policy, crate::FailurePolicy::Stop);
        assert!(why.contains("no space left") && why.contains("ks.t"), "{why}");
        let refused = node.shard.apply(vec![insert(&table, 1, 1, 1, 20)]).await;
        assert!(matches!(refused, Err(crate::Error::Stopped(_))), "{refused:?}");
        assert_eq!(contents(&node, &table).await.len(), 10);
        breaker.set_capacity(None);
    });
    sim.crash_to_synced();
    life(&sim, |disk| async move {
        let node = start(disk).await.expect("starts");
        let table = user_table(&node);
        assert_eq!(contents(&node, &table).await.len(), 10);
    });
}

/// Proves that conditional writes of one partition wait for each other in their order, and that one who gives up is passed over.
#[test]
fn locks_are_passed_on() {
    simulate(async {
        let (disk, _) = Disk::simulated(6);
        let node = start(disk).await.expect("starts");
        let order = Rc::new(std::cell::RefCell::new(Vec::new()));
        let asked = Rc::new(std::cell::RefCell::new(Vec::new()));
        let first = node.shard.lock(ID, &key(1)).await;
        let other = node.shard.lock(ID, &key(2)).await;
        let waiters: Vec<_> = (0..4)
            .map(|n| {
                let (shard, order) = (node.shard.clone(), order.clone());
                let asked = asked.clone();
                spawn(async move {
                    asked.borrow_mut().push(n);
                    let _held = shard.lock(ID, &key(1)).await;
                    order.borrow_mut().push(n);
                })
            })
            .collect();
        for _ in 0..1000 {
            yield_now().await;
        }
        assert_eq!(asked.borrow().len(), 4);
        {
            let key = key(1);
            let mut impatient = std::pin::pin!(node.shard.lock(ID, &key));
            let waker = std::task::Waker::noop();
            let mut context = std::task::Context::from_waker(waker);
            assert!(impatient.as_mut().poll(&mut context).is_pending());
        }
        drop(other);
        drop(first);
        for waiter in waiters {
            waiter.await.expect("no panic");
        }
        assert_eq!(*order.borrow(), *asked.borrow());
        drop(node.shard.lock(ID, &key(1)).await);
    });
}
