//! One run: a machine, a node that is started again and again, clients, and what disturbs them.
//!
//! 1. The seed decides everything: settings of each start, statements, order of tasks, delays, faults, and when the process is killed or
//!    the power fails.
//! 2. A start ends by a halt at a step of the executor (a kill), at an operation of the disk (a power cut), or by a drain.
//! 3. After each start all tables are read first: what was acknowledged must be there.
//! 4. Under `periodic` a kill loses nothing, a power cut at most what was acknowledged within `LOST_MAX`; logged batches stay whole.
//! 5. The last start is undisturbed; it reads everything and drains.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use futures_util::future::{Either, join_all, select};
use halcyon_commitlog::SyncMode;
use halcyon_io::{Disk, Random, SimRuntime, clock, spawn};
use halcyon_sim::{LOST_MAX, Node, settings};

use crate::counter_deletions::{self, DeletedCounters};
use crate::counters::{self, Counters};
use crate::disturb;
use crate::registers::{self, Registers};
use crate::roles::{self, Roles};
use crate::rows::{self, Table};
use crate::session::{Request, Session};
use crate::world::{Counts, World};

const KEYSPACE: &str = "CREATE KEYSPACE IF NOT EXISTS ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";
const PAIR: &str = "CREATE TYPE IF NOT EXISTS ks.pair (x int, y int)";
const STARTS_MAX: u64 = 6;
/// Clients of the registers, as many of the counters, and as many of counters that are deleted.
const SHARED_CLIENTS: usize = 3;
const CLOCK_STEPS_MAX: u64 = 3;
const TABLES: usize = 3;
const ROUNDS_MAX: u64 = 60;
/// Many times as long as all requests of a start take when each waits for its time-out.
const LIFE_MAX: Duration = Duration::from_secs(4 * 3_600);
/// Steps and operations of one start, roughly; the crash is somewhere within.
const STEPS_MAX: u64 = 60_000;
const OPERATIONS_MAX: u64 = 4_000;

/// What became of a run.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) counts: Counts,
    pub(crate) trace: u64,
    pub(crate) failure: Option<Failure>,
}

#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) why: String,
    pub(crate) events: Vec<String>,
    pub(crate) node_log: Vec<String>,
}

/// How a start ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Kill,
    PowerCut,
    Drain,
}

struct Run {
    world: Rc<World>,
    random: Random,
    known: Known,
    /// What was acknowledged since then does not survive a power cut: the process was killed under `periodic`, and no start has
    /// replayed it.
    unsynced_since: Option<Duration>,
}

/// What clients know, over all starts.
#[derive(Clone)]
struct Known {
    tables: Vec<Rc<RefCell<Table>>>,
    registers: Rc<RefCell<Registers>>,
    counters: Rc<RefCell<Counters>>,
    deleted_counters: Rc<RefCell<DeletedCounters>>,
    roles: Rc<RefCell<Roles>>,
}

impl Known {
    /// What was acknowledged since then may be lost.
    fn may_lack(&self, since: Duration) {
        self.tables.iter().for_each(|table| table.borrow_mut().may_lack(since));
        self.registers.borrow_mut().may_lack(since);
        self.counters.borrow_mut().may_lack(since);
        self.deleted_counters.borrow_mut().may_lack(since);
        self.roles.borrow_mut().may_lack(since);
    }
}

/// How the node lives until it ends.
struct Plan {
    end: End,
    /// Of each client.
    rounds: u64,
    faults: bool,
    /// Clients log in, and one grants and revokes.
    roles: bool,
}

pub(crate) fn run(seed: u64, clock_back: bool) -> Outcome {
    let runtime = SimRuntime::seeded(seed);
    let disk = runtime.block_on(async { Disk::simulated(seed).1 });
    let world = Rc::new(World::new(seed, clock_back, runtime, disk));
    let mut random = world.random();
    let tables = (0..TABLES)
        .map(|n| Rc::new(RefCell::new(rows::create(format!("ks.t{n}"), &mut random))))
        .collect();
    let registers = Rc::new(RefCell::new(Registers::empty()));
    let deleted_counters = Rc::new(RefCell::new(DeletedCounters::new(SHARED_CLIENTS)));
    let roles = Rc::new(RefCell::new(Roles::unknown()));
    let known = Known { tables, registers, counters: Rc::default(), deleted_counters, roles };
    let mut run = Run { world: world.clone(), random, known, unsynced_since: None };
    let starts = 2 + run.random.below(STARTS_MAX - 1);
    for start in 0..starts {
        let last = start + 1 == starts;
        let turned = catch_unwind(AssertUnwindSafe(|| run.start(last)));
        if let Err(panic) = turned {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or(panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            world.fail(format!("the executor panicked: {}", text.unwrap_or_default()));
        }
        if world.failure().is_some() {
            break;
        }
    }
    Outcome {
        counts: world.counts(),
        trace: world.trace(),
        failure: world.failure().map(|why| Failure {
            why,
            events: world.events(),
            node_log: world.node_log_lines(),
        }),
    }
}

impl Run {
    /// Starts the node, works, and ends it.
    fn start(&mut self, last: bool) {
        let end = match self.random.below(8) {
            _ if last => End::Drain,
            0 => End::Drain,
            1..4 => End::PowerCut,
            _ => End::Kill,
        };
        let faults = !last && self.random.chance(1, 3);
        // A role that was changed before the clock was set back would keep the change.
        let roles = !self.world.clock_back && self.random.chance(1, 2);
        let settings = match settings(&mut self.random, faults, roles) {
            Ok(settings) => settings,
            Err(why) => return self.world.fail(format!("the settings are refused: {why}")),
        };
        self.arm(end);
        self.world.count("starts");
        let shards = settings.engine.shards;
        self.world.note(format_args!("start with {shards} shards, to end by {end:?}"));
        let rounds = if last { 0 } else { 1 + self.random.below(ROUNDS_MAX) };
        let sync = settings.engine.commitlog.sync;
        self.world.count(match sync {
            SyncMode::Batch => "starts with batch",
            SyncMode::Group { .. } => "starts with group",
            SyncMode::Periodic { .. } => "starts with periodic",
        });
        let life = life(
            self.world.clone(),
            self.known.clone(),
            settings,
            Plan { end, rounds, faults, roles },
        );
        let completed = self.world.runtime.run_until_halt(bounded(self.world.clone(), life));
        self.calm();
        let disk = &self.world.disk;
        // Only the page cache may have what was acknowledged lately.
        let ready_at = self.world.ready_at.take();
        if ready_at.is_some() {
            self.unsynced_since = None;
        }
        if let (SyncMode::Periodic { .. }, Some(ready_at)) = (sync, ready_at) {
            self.unsynced_since = Some(ready_at.max(self.world.now().saturating_sub(LOST_MAX)));
        }
        match (completed, end) {
            (Some(true), End::Drain) => {
                self.unsynced_since = None;
                self.world.count("drains");
            }
            // Its work was done before the crash was due: it crashes at rest.
            (_, End::PowerCut) => {
                self.world.count("power cuts");
                disk.crash();
                if let Some(since) = self.unsynced_since.take() {
                    self.world.count("power cuts that may lose");
                    self.known.may_lack(since);
                }
            }
            _ => {
                self.world.count("kills");
                disk.kill();
            }
        }
        self.known.registers.borrow_mut().end_process();
        self.known.deleted_counters.borrow_mut().end_process();
        self.world.note(format_args!("ended by {end:?}"));
    }

    /// The next start finds a healthy disk.
    fn calm(&self) {
        self.world.disk.clear_faults();
        self.world.disk.set_capacity(None);
        self.world.set_disturbed(false);
    }

    /// Decides when the crash comes: more often early, where starts and recoveries are.
    fn arm(&mut self, end: End) {
        let within = |random: &mut Random, most: u64| {
            let scale = [1, 10, 100][random.below(3) as usize % 3];
            1 + random.below(most / scale)
        };
        match end {
            End::Kill => {
                let steps = within(&mut self.random, STEPS_MAX);
                self.world.runtime.halt_at(self.world.runtime.steps() + steps);
            }
            End::PowerCut => {
                let operations = within(&mut self.random, OPERATIONS_MAX);
                self.world.disk.crash_at(self.world.disk.ops_count() + operations);
            }
            End::Drain => {}
        }
        let latency =
            self.random.chance(2, 3).then(|| Duration::from_micros(1 + self.random.below(2_000)));
        self.world.disk.set_latency(latency);
        self.world.runtime.set_resets(if self.random.chance(1, 2) {
            self.random.below(5_000)
        } else {
            0
        });
        let stalls = if self.random.chance(1, 2) { self.random.below(300_000) } else { 0 };
        let most = Duration::from_micros(1 + self.random.below(1_000));
        self.world.runtime.set_stalls(stalls, most);
    }
}

/// A run that does not end is a failure that shows its events, even while the node's own timers fire.
async fn bounded(world: Rc<World>, life: impl Future<Output = bool>) -> bool {
    match select(pin!(life), pin!(clock::sleep(LIFE_MAX))).await {
        Either::Left((drained, _)) => drained,
        Either::Right(_) => {
            world.fail(format!("the start has not ended within {LIFE_MAX:?}"));
            false
        }
    }
}

/// One life of the node: start, check, work, end. Whether it was drained.
async fn life(
    world: Rc<World>,
    known: Known,
    settings: halcyon_server::settings::Settings,
    plan: Plan,
) -> bool {
    let disturbing = plan.faults.then(|| spawn(disturb::disturb(world.clone())));
    let node = match Node::start(&world.disk, settings, world.log()).await {
        Ok(node) => node,
        Err(why) => {
            if !world.is_disturbed() {
                world.fail(format!("the node does not start: {why}"));
            }
            world.note(format_args!("the node does not start: {why}"));
            return false;
        }
    };
    if world.is_disturbed()
        && world.node_log_lines().iter().any(|line| line.contains(" is set apart"))
    {
        // Under this policy its table is read without it, until the next start finds it readable.
        world.note(format_args!("an SSTable is set apart"));
        return false;
    }
    world.ready_at.set(Some(world.now()));
    let mut session = Session::new(&world, "start", node.address);
    if plan.roles && !session.logs_in().await {
        if !world.is_disturbed() {
            world.fail("the default superuser cannot log in".to_owned());
        }
        return false;
    }
    let creates =
        [registers::CREATE, counters::CREATE, counter_deletions::CREATE, roles::CREATE_TABLE];
    for text in [KEYSPACE, PAIR].into_iter().chain(creates) {
        if !session.ask(Request::statement(text.to_owned())).await.is_done() {
            return false;
        }
    }
    for table in &known.tables {
        rows::settle(&mut session, table).await;
    }
    counters::settle(&mut session, &known.counters).await;
    counter_deletions::settle(&mut session, &known.deleted_counters).await;
    if plan.roles {
        world.count("starts with roles");
        roles::settle(Session::new(&world, "roles", node.address), &known.roles).await;
    }
    work(&world, &known, node.address, &plan).await;
    drop(disturbing);
    if plan.end != End::Drain {
        return false;
    }
    match node.drain().await {
        Err(why) if !world.is_disturbed() => world.fail(format!("the drain failed: {why}")),
        Err(why) => world.note(format_args!("the drain failed: {why}")),
        Ok(()) => return true,
    }
    false
}

/// All clients at once, and steps of the clock.
async fn work(world: &Rc<World>, known: &Known, address: SocketAddr, plan: &Plan) {
    let rounds = plan.rounds;
    let session = |name: String| Session::new(world, &name, address);
    let mut clients = Vec::new();
    for (n, table) in known.tables.iter().enumerate() {
        clients.push(spawn(rows::work(session(format!("c{n}")), table.clone(), rounds)));
    }
    for n in 0..SHARED_CLIENTS {
        let registers = known.registers.clone();
        clients.push(spawn(registers::work(session(format!("r{n}")), registers, rounds)));
        let counters = known.counters.clone();
        clients.push(spawn(counters::work(session(format!("n{n}")), counters, rounds)));
        let deleted = known.deleted_counters.clone();
        let session = session(format!("d{n}"));
        clients.push(spawn(counter_deletions::work(session, deleted, n, rounds)));
    }
    if plan.roles {
        let roles = || known.roles.clone();
        clients.push(spawn(roles::operate(session("o".to_owned()), roles(), rounds)));
        for n in 0..roles::CLIENTS {
            let of_role = roles::log_in(session(format!("p{n}")));
            clients.push(spawn(roles::work(of_role, roles(), 2 * rounds)));
        }
    }
    let mut random = world.random();
    for _ in 0..random.below(CLOCK_STEPS_MAX) {
        clock::sleep(Duration::from_millis(random.below(300))).await;
        let _due = world.claim_clock().await;
        disturb::step_clock(world, &mut random);
    }
    if join_all(clients).await.iter().any(Option::is_none) {
        world.fail("a client panicked".to_owned());
    }
}
