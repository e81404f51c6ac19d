//! What one run shares: the simulated machine, the first failure, the last events, the counts.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use halcyon_io::{Mutex, Random, SimDisk, SimRuntime, clock};
use halcyon_server::Log;

const LOG_LINES_KEPT: usize = 60;
const CLOCK_POLL: Duration = Duration::from_millis(1);

/// What a run did, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Counts(BTreeMap<&'static str, u64>);

impl Counts {
    pub(crate) fn add(&mut self, other: &Counts) {
        for (name, count) in &other.0 {
            *self.0.entry(name).or_default() += count;
        }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: Vec<String> =
            self.0.iter().map(|(name, count)| format!("{count} {name}")).collect();
        f.write_str(&shown.join(", "))
    }
}

/// Of a prepared statement, and of its result.
type Ids = (Vec<u8>, Vec<u8>);

/// The last lines of the node's log.
type NodeLog = Arc<Mutex<VecDeque<String>>>;

fn keep(log: &NodeLog, line: String) {
    let mut log = log.lock();
    if log.len() == LOG_LINES_KEPT {
        log.pop_front();
    }
    log.push_back(line);
}

pub(crate) struct World {
    /// Whether the calendar is set back too.
    pub(crate) clock_back: bool,
    pub(crate) runtime: SimRuntime,
    pub(crate) disk: SimDisk,
    random: RefCell<Random>,
    counts: RefCell<Counts>,
    events: RefCell<Vec<String>>,
    node_log: NodeLog,
    /// The ids of prepared statements, by their texts, with those of their results.
    pub(crate) prepared: RefCell<BTreeMap<String, Ids>>,
    /// When this process had replayed its log.
    pub(crate) ready_at: Cell<Option<Duration>>,
    trace: Cell<u64>,
    failure: RefCell<Option<String>>,
    /// Whether errors are expected now: the disk was told to fail.
    disturbed: Cell<bool>,
    /// The latest calendar time that was seen: what is expired stays so when the clock is set back.
    latest_seconds: Cell<i64>,
    /// Statements with a TTL are under way, or the clock is to be set: never both, for the time of the write decides when it expires.
    expiring: Cell<usize>,
    clock_is_due: Cell<bool>,
}

/// While it is held, the clock is not set.
pub(crate) struct ClockHeld(Rc<World>);

impl Drop for ClockHeld {
    fn drop(&mut self) {
        self.0.expiring.set(self.0.expiring.get() - 1);
    }
}

/// While it is held, no statement with a TTL is sent.
pub(crate) struct ClockDue(Rc<World>);

impl Drop for ClockDue {
    fn drop(&mut self) {
        self.0.clock_is_due.set(false);
    }
}

impl World {
    pub(crate) fn new(seed: u64, clock_back: bool, runtime: SimRuntime, disk: SimDisk) -> World {
        World {
            clock_back,
            runtime,
            disk,
            random: RefCell::new(Random::seeded(seed ^ 0x6f70_6572_6174_6f72)),
            counts: RefCell::default(),
            events: RefCell::default(),
            node_log: NodeLog::default(),
            prepared: RefCell::default(),
            ready_at: Cell::default(),
            trace: Cell::new(seed),
            failure: RefCell::default(),
            disturbed: Cell::new(false),
            latest_seconds: Cell::new(0),
            expiring: Cell::new(0),
            clock_is_due: Cell::new(false),
        }
    }

    /// Waits until the clock may not be set.
    pub(crate) async fn hold_clock(self: &Rc<World>) -> ClockHeld {
        while self.clock_is_due.get() {
            clock::sleep(CLOCK_POLL).await;
        }
        self.expiring.set(self.expiring.get() + 1);
        ClockHeld(self.clone())
    }

    /// Waits until the clock may be set.
    pub(crate) async fn claim_clock(self: &Rc<World>) -> ClockDue {
        self.clock_is_due.set(true);
        let due = ClockDue(self.clone());
        while self.expiring.get() > 0 {
            clock::sleep(CLOCK_POLL).await;
        }
        due
    }

    /// A generator of its own, for one task: what other tasks draw does not matter to it.
    pub(crate) fn random(&self) -> Random {
        Random::seeded(self.random.borrow_mut().next_u64())
    }

    /// One more of what is named in the plural.
    pub(crate) fn count(&self, what: &'static str) {
        *self.counts.borrow_mut().0.entry(what).or_default() += 1;
    }

    pub(crate) fn counts(&self) -> Counts {
        self.counts.borrow().clone()
    }

    /// Adds to the events, and to the hash of all of them.
    pub(crate) fn note(&self, event: fmt::Arguments<'_>) {
        let millis = self.now().as_millis();
        let line = format!("{millis:>7} ms  {event}");
        let hash = line.bytes().fold(self.trace.get(), |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        self.trace.set(hash);
        self.events.borrow_mut().push(line);
    }

    pub(crate) fn events(&self) -> Vec<String> {
        self.events.borrow().clone()
    }

    /// For the node, whose last lines are kept.
    pub(crate) fn log(&self) -> Log {
        let kept = self.node_log.clone();
        Log::new(move |line| keep(&kept, line.text))
    }

    pub(crate) fn node_log_lines(&self) -> Vec<String> {
        self.node_log.lock().iter().cloned().collect()
    }

    /// One number for everything that happened.
    pub(crate) fn trace(&self) -> u64 {
        self.trace.get() ^ self.runtime.trace()
    }

    /// Ends the run; the first failure is the one that is reported.
    pub(crate) fn fail(&self, why: String) {
        self.failure.borrow_mut().get_or_insert(why);
        self.runtime.halt();
    }

    pub(crate) fn failure(&self) -> Option<String> {
        self.failure.borrow().clone()
    }

    pub(crate) fn set_disturbed(&self, disturbed: bool) {
        self.disturbed.set(disturbed);
    }

    pub(crate) fn is_disturbed(&self) -> bool {
        self.disturbed.get()
    }

    /// Of the clock that is never set.
    pub(crate) fn now(&self) -> Duration {
        Duration::from_nanos(self.runtime.clock().clock().now().as_nanos())
    }

    pub(crate) fn seconds(&self) -> i64 {
        let now = self.runtime.clock().clock().unix_seconds();
        self.latest_seconds.set(self.latest_seconds.get().max(now));
        self.latest_seconds.get()
    }
}
