//! Every fault of a disk, at every operation on every kind of file, in the life of a node.
//!
//! 1. A life is recorded: a start that replays, flushes, a compaction, a truncation and a DROP with their snapshots, a schema change, saved
//!    caches. `KINDS` sorts its operations by file; `every_kind_has_its_operations` compares them with the list, so that none is missed.
//! 2. Each cell, (kind, operation) × fault × the first and another of them × once or lasting, is a life of its own with the fault in it,
//!    under a policy that ignores it (`ignore`) or one that stops.
//! 3. The node's reaction is what the policies say. Then the fault ends, and a node that was not stopped serves and writes by itself.
//! 4. The process is killed, or the power fails. The next start must succeed, with everything that was acknowledged and nothing that was
//!    never asked for. What a start that failed leaves on the disk is what it found.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use halcyon_io::{Fault, FaultRule, Operation, Random, SimSnapshot};

use super::point::uncompacted;
use super::*;
use crate::{CommitFailurePolicy, DiskFailurePolicy, FailurePolicy, SavedCache};

/// Parts of paths, each with what it stands for. The first that a path has is its kind.
const KINDS: [(&str, &str); 17] = [
    ("/snapshots", "snapshot"),
    ("_txn_", "transaction log"),
    (".manifest", "manifest of the commit log"),
    ("CommitLog-0-", "segment of the commit log"),
    ("/commitlog", "folder of the commit log"),
    ("/saved_caches", "saved caches"),
    ("/system", "system table"),
    ("-Data.db", "Data.db"),
    ("-Index.db", "Index.db"),
    ("-Filter.db", "Filter.db"),
    ("-Summary.db", "Summary.db"),
    ("-Statistics.db", "Statistics.db"),
    ("-CompressionInfo.db", "CompressionInfo.db"),
    ("-Digest.crc32", "Digest.crc32"),
    ("-TOC.txt", "TOC.txt"),
    ("/ks", "folder of a table"),
    ("", "data directory"),
];

fn kind(path: &Path) -> &'static str {
    let path = path.to_string_lossy();
    KINDS.iter().find(|(part, _)| path.contains(part)).map_or("", |(_, kind)| kind)
}

const FAULTS: [Fault; 4] =
    [Fault::NoSpace, Fault::DeviceError, Fault::NoDescriptors, Fault::ReadOnly];

/// What clients know: rows are (table, c), and never written twice.
#[derive(Debug, Clone, Default)]
struct Known {
    acknowledged: BTreeSet<(&'static str, i32)>,
    asked: BTreeSet<(&'static str, i32)>,
    /// TRUNCATE of `u` began, and was acknowledged.
    truncating: bool,
    truncated: bool,
    dropping: bool,
    dropped: bool,
    created: bool,
}

type Shared = Rc<std::cell::RefCell<Known>>;

fn tables() -> [Arc<Table>; 3] {
    [
        uncompacted("t", ID),
        uncompacted("u", *b"1123456789abcdef"),
        uncompacted("d", *b"2123456789abcdef"),
    ]
}

fn named(node: &Node, name: &str) -> Option<Arc<Table>> {
    node.engine.tables().catalog().table("ks", name).cloned()
}

async fn put(node: &Node, known: &Shared, name: &'static str, rows: std::ops::Range<i32>) {
    let Some(table) = named(node, name) else { return };
    for c in rows {
        known.borrow_mut().asked.insert((name, c));
        if node.shard.apply(vec![insert(&table, 1, c, c, 10)]).await.is_ok() {
            known.borrow_mut().acknowledged.insert((name, c));
        }
    }
}

async fn flush(node: &Node, name: &str) {
    if let Some(table) = named(node, name) {
        let _ = node.engine.flusher().flush(Some(table.id)).await;
    }
}

/// The life before: it leaves a commit log with rows of all tables, and SSTables.
async fn first_life(disk: Disk, known: Shared) {
    let node = start(disk).await.expect("starts");
    change(&node, &tables()).await.expect("schema");
    for name in ["t", "u", "d"] {
        put(&node, &known, name, 0..3).await;
        flush(&node, name).await;
        put(&node, &known, name, 3..5).await;
    }
}

fn set(options: &mut Options, goes_on: bool) {
    options.uuid_sstable_identifiers = false;
    if goes_on {
        options.disk_failure_policy = DiskFailurePolicy::Ignore;
        options.commit_failure_policy = CommitFailurePolicy::Ignore;
    }
}

/// The life in which the fault strikes. Every step is tried, whatever came of the one before.
async fn second_life(disk: Disk, known: Shared, goes_on: bool) -> Result<Node> {
    let node = start_with(disk, |options| set(options, goes_on)).await?;
    // Enough for the commit log to recycle a segment.
    put(&node, &known, "t", 100..130).await;
    let _ = node.engine.flusher().flush(None).await;
    put(&node, &known, "t", 10..13).await;
    read_by_key(&node).await;
    flush(&node, "t").await;
    put(&node, &known, "t", 13..16).await;
    put(&node, &known, "u", 10..12).await;
    flush(&node, "t").await;
    if let Some(table) = named(&node, "t") {
        let _ = node.engine.compactor().compact(table.id).await;
    }
    if let Some(table) = named(&node, "u") {
        known.borrow_mut().truncating = true;
        if node.engine.schema().truncate(table.id).await.is_ok() {
            known.borrow_mut().truncated = true;
        }
    }
    put(&node, &known, "u", 20..22).await;
    let [t, u, _] = tables();
    known.borrow_mut().dropping = true;
    let new = uncompacted("n", *b"3123456789abcdef");
    if change(&node, &[t, u, new]).await.is_ok() {
        let mut known = known.borrow_mut();
        (known.dropped, known.created) = (true, true);
    }
    put(&node, &known, "n", 0..3).await;
    let _ = node.engine.saved_caches().save(SavedCache::Keys, 100).await;
    put(&node, &known, "t", 16..35).await;
    Ok(node)
}

/// Fills the key cache; an error is a client's.
async fn read_by_key(node: &Node) {
    let Some(table) = named(node, "t") else { return };
    let Ok(mut stream) = node.shard.read(read(&table, 1, Slices::all())).await else { return };
    while let Ok(true) = stream.advance().await {}
}

async fn rows(node: &Node, table: &Arc<Table>) -> BTreeSet<i32> {
    contents(node, table).await.into_keys().map(|(_, c)| c).collect()
}

/// What is there is what was acknowledged, and perhaps more of what was asked for.
async fn check(node: &Node, known: &Known, when: &str) {
    for name in ["t", "u", "d", "n"] {
        let of_table = |all: &BTreeSet<(&str, i32)>| -> BTreeSet<i32> {
            all.iter().filter(|(table, _)| *table == name).map(|(_, c)| *c).collect()
        };
        let (mut least, mut most) = (of_table(&known.acknowledged), of_table(&known.asked));
        let Some(table) = named(node, name) else {
            let may_lack = (name == "d" && known.dropping) || (name == "n" && !known.created);
            assert!(may_lack, "{when}: table {name} is missing");
            continue;
        };
        assert!(!(name == "d" && known.dropped), "{when}: the dropped table is back");
        if name == "u" && known.truncating {
            least.retain(|c| *c >= 20);
            if known.truncated {
                most.retain(|c| *c >= 20);
            }
        }
        let found = rows(node, &table).await;
        assert!(found.is_superset(&least), "{when}: of {name} {least:?} there are {found:?}");
        assert!(
            found.is_subset(&most),
            "{when}: of {name} {most:?} were asked, there are {found:?}"
        );
    }
}

struct Matrix {
    sim: SimDisk,
    base: SimSnapshot,
    known: Known,
    /// The operations of an undisturbed second life, and how many of them are its start's.
    recorded: Vec<(Operation, PathBuf)>,
}

impl Matrix {
    fn new(seed: u64) -> Matrix {
        let (_, sim) = Disk::simulated(seed);
        let known = Shared::default();
        life(&sim, |disk| first_life(disk, known.clone()));
        sim.kill();
        let (base, before) = (sim.snapshot(), known.borrow().clone());
        sim.record();
        let undisturbed = life(&sim, |disk| async move {
            let node = second_life(disk, known.clone(), false).await.expect("starts");
            let known = known.borrow().clone();
            check(&node, &known, "undisturbed").await;
            known
        });
        assert!(
            undisturbed.truncated && undisturbed.created && undisturbed.acknowledged.len() == 77
        );
        let recorded = sim.recorded();
        sim.restore(&base);
        Matrix { sim, base, known: before, recorded }
    }

    /// The rows and columns of the matrix, with how often each operation is done.
    fn cells(&self) -> BTreeMap<(&'static str, Operation), u64> {
        let mut cells = BTreeMap::new();
        for (operation, path) in &self.recorded {
            *cells.entry((kind(path), *operation)).or_insert(0) += 1;
        }
        cells
    }

    /// One life with a fault in it, and the one after it.
    fn run(&self, cell: &Cell) {
        let when = format!("{cell:?}");
        self.sim.restore(&self.base);
        self.sim.fail_on(cell.rule(&self.recorded));
        let known = Rc::new(std::cell::RefCell::new(self.known.clone()));
        let (shared, breaker) = (known.clone(), self.sim.clone());
        let before = self.names();
        let outcome = life(&self.sim, |disk| async move {
            let started = second_life(disk.clone(), shared.clone(), cell.goes_on).await;
            let struck = breaker.struck() > 0;
            breaker.clear_faults();
            let node = started.map_err(|e| e.to_string())?;
            cell.check_policy(&node, struck, &when);
            disk.clock().sleep(Duration::from_secs(60)).await;
            let so_far = shared.borrow().clone();
            check(&node, &so_far, &when).await;
            if node.engine.reporter().failure().is_none() {
                cell.goes_on_by_itself(&node, &shared, &when).await;
            }
            Ok::<(), String>(())
        });
        let is_killed = cell.nth.is_multiple_of(2);
        match is_killed {
            true => self.sim.kill(),
            false => self.sim.crash_to_synced(),
        }
        let when = format!("{cell:?}, after {outcome:?}");
        let known = known.borrow().clone();
        if outcome.is_err() && is_killed && cell.leaves_nothing() {
            let left: Vec<_> = self.names().difference(&before).cloned().collect();
            assert!(left.is_empty(), "{when}: the start has left {left:?}");
        }
        let (when, known) = (&when, &known);
        for life_after in ["next", "one after"] {
            life(&self.sim, |disk| async move {
                let node = start_with(disk, |options| set(options, false)).await;
                let node = node.unwrap_or_else(|e| panic!("{when}: the {life_after} start: {e}"));
                check(&node, known, when).await;
                node.engine.drain().await.unwrap_or_else(|e| panic!("{when}: drain: {e}"));
            });
            self.sim.kill();
        }
    }

    fn names(&self) -> BTreeSet<PathBuf> {
        self.sim.files().into_iter().collect()
    }
}

/// A fault, aimed.
#[derive(Debug, Clone, Copy)]
struct Cell {
    kind: &'static str,
    operation: Operation,
    nth: u64,
    fault: Fault,
    lasting: bool,
    goes_on: bool,
}

impl Cell {
    /// Kinds overlap: what is counted is the operations on paths with the kind's part.
    fn rule(&self, recorded: &[(Operation, PathBuf)]) -> FaultRule {
        let part = KINDS.iter().find(|(_, kind)| *kind == self.kind).map_or("", |(part, _)| part);
        let counted = recorded.iter().filter(|(operation, path)| {
            *operation == self.operation && path.to_string_lossy().contains(part)
        });
        let of_kind = counted.enumerate().filter(|(_, (_, path))| kind(path) == self.kind);
        let skip = of_kind.map(|(at, _)| at as u64).nth(self.nth as usize).expect("recorded");
        FaultRule {
            path_contains: part.to_owned(),
            operation: Some(self.operation),
            skip,
            times: 1,
            lasting: self.lasting,
            fault: self.fault,
        }
    }

    /// Whether a start that this fails can leave the disk as it was: nothing can be removed from a broken device, and a new log is begun
    /// only after the old one is replayed and gone.
    fn leaves_nothing(&self) -> bool {
        let removes = !self.lasting || self.fault == Fault::NoSpace;
        removes && !self.kind.ends_with("of the commit log")
    }

    /// What the failure policies say: those that ignore stop nothing, a lack of descriptors is not a failure.
    fn check_policy(&self, node: &Node, struck: bool, when: &str) {
        let failure = node.engine.reporter().failure();
        if self.goes_on || self.fault == Fault::NoDescriptors || !struck {
            assert!(failure.is_none(), "{when}: {failure:?}");
        }
        if let Some((why, policy)) = failure {
            assert_eq!(policy, FailurePolicy::Stop, "{when}: {why}");
        }
    }

    /// Writes and flushes resume once the fault has ended, except to a commit log whose contents are unknown since.
    async fn goes_on_by_itself(&self, node: &Node, known: &Shared, when: &str) {
        let table = named(node, "t").unwrap_or_else(|| panic!("{when}: no table"));
        known.borrow_mut().asked.insert(("t", 90));
        match node.shard.apply(vec![insert(&table, 1, 90, 90, 10)]).await {
            Ok(()) => drop(known.borrow_mut().acknowledged.insert(("t", 90))),
            Err(e) => {
                let unknown = e.to_string().contains("commit log has failed");
                assert!(unknown && self.goes_on, "{when}: {e}");
            }
        }
        let flushed = node.engine.flusher().flush(Some(table.id)).await;
        flushed.unwrap_or_else(|e| panic!("{when}: a flush afterwards: {e}"));
        let so_far = known.borrow().clone();
        check(node, &so_far, when).await;
    }
}

/// What the life does at least with the files of each kind. Where an operation goes, this list says so.
const CELLS: [(&str, &[Operation]); 17] = {
    use Operation::{
        Create, CreateDir, FreeSpace, HardLink, List, Open, Preallocate, Read, Remove, Rename,
        Stat, Sync, SyncDir, Truncate, Write,
    };
    const COMPONENT: &[Operation] = &[Create, Write, Sync, Stat, Remove, HardLink];
    [
        ("snapshot", &[Create, Write, Sync, Stat, CreateDir, SyncDir]),
        ("transaction log", &[Open, Create, Write, Sync, Stat, Remove]),
        (
            "manifest of the commit log",
            &[Open, Create, Read, Write, Sync, Preallocate, Remove, Rename],
        ),
        (
            "segment of the commit log",
            &[Open, Create, Read, Write, Sync, Preallocate, Remove, Rename],
        ),
        ("folder of the commit log", &[Stat, List, CreateDir, SyncDir]),
        ("saved caches", &[Stat, CreateDir]),
        ("system table", &[Open, Create, Read, Write, Sync, Truncate, Stat, List, SyncDir]),
        (
            "Data.db",
            &[Open, Create, Read, Write, Sync, Truncate, Preallocate, Stat, Remove, HardLink],
        ),
        ("Index.db", &[Open, Create, Write, Sync, Truncate, Stat, Remove, HardLink]),
        ("Filter.db", COMPONENT),
        ("Summary.db", COMPONENT),
        ("Statistics.db", COMPONENT),
        ("CompressionInfo.db", COMPONENT),
        ("Digest.crc32", COMPONENT),
        ("TOC.txt", COMPONENT),
        ("folder of a table", &[List, CreateDir, SyncDir, FreeSpace]),
        ("data directory", &[List, CreateDir, SyncDir]),
    ]
};

/// Proves that the recorded life has the operations that the list says, so that the matrix has no hole.
#[test]
fn every_kind_has_its_operations() {
    let cells = Matrix::new(61).cells();
    let lacks = |kind: &&str, operation: &&Operation| !cells.contains_key(&(*kind, **operation));
    let listed =
        CELLS.iter().flat_map(|(kind, all)| all.iter().map(move |operation| (kind, operation)));
    let missing: Vec<_> = listed.filter(|(kind, operation)| lacks(kind, operation)).collect();
    assert!(missing.is_empty(), "{missing:?} of {cells:?}");
}

/// Proves of every cell that policies are followed, nothing acknowledged is lost, and the next start succeeds.
#[test]
fn every_fault_at_every_operation() {
    let mut matrix = Matrix::new(62);
    let seed = std::env::var("HALCYON_MATRIX_SEED").ok().and_then(|seed| seed.parse().ok());
    let mut random = Random::seeded(seed.unwrap_or(62));
    let only = std::env::var("HALCYON_MATRIX").unwrap_or_default();
    let (mut lives, mut failed) = (0, Vec::new());
    for ((kind, operation), count) in matrix.cells() {
        for fault in FAULTS.into_iter().filter(|fault| fault.may_strike(operation)) {
            for nth in BTreeSet::from([0, random.below(count)]) {
                let lasting = random.chance(1, 2);
                let goes_on = random.chance(1, 2);
                let cell = Cell { kind, operation, nth, fault, lasting, goes_on };
                if !format!("{cell:?}").contains(&only) {
                    continue;
                }
                lives += 1;
                let run = std::panic::AssertUnwindSafe(|| matrix.run(&cell));
                if std::panic::catch_unwind(run).is_err() {
                    failed.push(cell);
                    matrix = Matrix::new(62);
                }
            }
        }
    }
    assert!(failed.is_empty(), "{} of {lives} lives: {failed:#?}", failed.len());
}

/// Proves that a device that is slow, and a clock that is set forward and back, fail nothing and lose nothing.
#[test]
fn a_slow_device_and_a_clock_that_steps() {
    let matrix = Matrix::new(63);
    for steps in [false, true] {
        matrix.sim.restore(&matrix.base);
        matrix.sim.set_latency((!steps).then_some(Duration::from_millis(300)));
        let known = Rc::new(std::cell::RefCell::new(matrix.known.clone()));
        let (shared, sim) = (known.clone(), matrix.sim.clone());
        life(&matrix.sim, |disk| async move {
            let clock = sim.clock().clone();
            spawn(async move {
                for micros in [3_600_000_000, -7_200_000_000, 1, -1, 86_400_000_000].iter().cycle()
                {
                    if steps {
                        clock.step_calendar(*micros);
                    }
                    clock.clock().sleep(Duration::from_millis(7)).await;
                }
            })
            .detach();
            let node = second_life(disk, shared.clone(), false).await.expect("starts");
            assert!(node.engine.reporter().failure().is_none() && warnings(&node).is_empty());
            let known = shared.borrow().clone();
            assert!(known.truncated && known.created && known.acknowledged.len() == 77);
            check(&node, &known, "disturbed").await;
        });
        matrix.sim.set_latency(None);
        matrix.sim.crash_to_synced();
        let known = &known.borrow().clone();
        life(&matrix.sim, |disk| async move {
            let node = start(disk).await.expect("starts");
            check(&node, known, "afterwards").await;
        });
    }
}
