//! What one run shares: the simulated machine, the first failure, the last events, the counts.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use halcyon_io::{Random, SimDisk, SimRuntime, clock};

const LOG_LINES_KEPT: usize = 60;
const CLOCK_POLL: Duration = Duration::from_millis(1);

/// What a run did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) starts: u64,
    pub(crate) kills: u64,
    pub(crate) power_cuts: u64,
    pub(crate) drains: u64,
    pub(crate) faults: u64,
    pub(crate) clock_steps: u64,
    pub(crate) operations: u64,
    pub(crate) unanswered: u64,
    pub(crate) answers_checked: u64,
}

impl Counts {
    pub(crate) fn add(&mut self, other: &Counts) {
        let Counts { starts, kills, power_cuts, drains, faults, .. } = other;
        self.starts += starts;
        self.kills += kills;
        self.power_cuts += power_cuts;
        self.drains += drains;
        self.faults += faults;
        self.clock_steps += other.clock_steps;
        self.operations += other.operations;
        self.unanswered += other.unanswered;
        self.answers_checked += other.answers_checked;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} starts, {} kills, {} power cuts, {} drains, {} faults, {} clock steps, {} operations ({} unanswered), \
             {} answers checked",
            self.starts,
            self.kills,
            self.power_cuts,
            self.drains,
            self.faults,
            self.clock_steps,
            self.operations,
            self.unanswered,
            self.answers_checked
        )
    }
}

/// The last lines of the node's log.
pub(crate) type NodeLog = Arc<Mutex<VecDeque<String>>>;

pub(crate) fn keep(log: &NodeLog, line: String) {
    let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
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
    counts: Cell<Counts>,
    events: RefCell<Vec<String>>,
    node_log: NodeLog,
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
            counts: Cell::default(),
            events: RefCell::default(),
            node_log: NodeLog::default(),
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

    pub(crate) fn count(&self, change: impl FnOnce(&mut Counts)) {
        let mut counts = self.counts.get();
        change(&mut counts);
        self.counts.set(counts);
    }

    pub(crate) fn counts(&self) -> Counts {
        self.counts.get()
    }

    /// Adds to the events, and to the hash of all of them.
    pub(crate) fn note(&self, event: fmt::Arguments<'_>) {
        let millis = self.runtime.clock().clock().now().as_nanos() / 1_000_000;
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

    pub(crate) fn node_log(&self) -> NodeLog {
        self.node_log.clone()
    }

    pub(crate) fn node_log_lines(&self) -> Vec<String> {
        self.node_log.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
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

    pub(crate) fn seconds(&self) -> i64 {
        let now = self.runtime.clock().clock().unix_seconds();
        self.latest_seconds.set(self.latest_seconds.get().max(now));
        self.latest_seconds.get()
    }
}
