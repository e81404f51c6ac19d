//! The control thread: it starts compaction threads, sets the rate, and checks tables periodically.
//!
//! 1. It starts compaction threads when work is due. No other thread does, because a thread inherits its scheduling class from its parent
//!    and cannot leave the idle class.
//! 2. While compaction runs under a latency target, it measures the reads ten times a second (`io::pacing`).
//! 3. Once a second it computes the backlog and reacts to it (`compact/backlog.rs`); once a minute it looks whether the node gets its
//!    processors.
//! 4. Once a minute it asks the strategies of all tables, because data expires without any event, and looks whether a snapshot has expired.
//! 5. Every five minutes what was hot grows old (`heat.rs`).

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::Duration;

use futures_channel::mpsc::UnboundedReceiver;
use futures_util::{FutureExt, StreamExt};

use halcyon_io::clock::{Clock, Instant};
use halcyon_io::{Thread, ThreadPriority, caught, contained, panic_point};

use crate::compact::Compactor;
use crate::compact::schedule::{Slot, Work};
use crate::engine::Engine;
use crate::heat::{BYTES_MAX, GENERATION};
use crate::index::Indexes;
use crate::report::processors::Seen;
use crate::tables::Tables;

const LATENCY_LOOK: Duration = Duration::from_millis(100);
const BACKLOG_LOOK: Duration = Duration::from_secs(1);
const TABLES_LOOK: Duration = Duration::from_secs(60);
/// The first check of all tables waits, so that it does not compete with the start.
const FIRST_TABLES_LOOK: Duration = Duration::from_secs(10);
/// As in Cassandra: `cassandra.snapshot.ttl_cleanup_period_seconds`, `…initial_delay_seconds`.
const SNAPSHOTS_LOOK: Duration = Duration::from_secs(60);
const FIRST_SNAPSHOTS_LOOK: Duration = Duration::from_secs(5);

/// Starts the control thread; to be called once, after the start.
pub(crate) fn start(engine: &Arc<Engine>, woken: UnboundedReceiver<()>) -> Thread<()> {
    let disk = engine.disk();
    let began = disk.clock().now();
    let clock = disk.clock().clone();
    let processors = Seen::at(disk, began);
    let engine = Arc::downgrade(engine);
    let body = move || control(engine, woken, clock, began, processors);
    disk.runtime().spawn_thread("compaction-control", ThreadPriority::Normal, body)
}

/// One compaction thread.
async fn work(compactor: Arc<Compactor>, indexes: Arc<Indexes>, slot: Slot) {
    while let Some(work) = slot.next() {
        let done = async {
            match work {
                Work::Pick(store) => compactor.pick_and_run(&store).await,
                Work::Indexes(store) => indexes.complete(&store).await,
                Work::Requested(request) => compactor.run_request(request).await,
            }
        };
        contained(done).await;
    }
    // Release the services before the slot: a waiter for the slot may need the directories' locks.
    drop((compactor, indexes));
    drop(slot);
}

fn start_workers(engine: &Engine) {
    for slot in engine.tables.schedule.slots() {
        let (compactor, indexes) = (engine.compactor.clone(), engine.indexes.clone());
        let body = move || work(compactor, indexes, slot);
        engine.disk().runtime().spawn_thread("compaction", ThreadPriority::Idle, body).detach();
    }
}

fn advance_heat(tables: &Tables, ends: bool) {
    let mut room = BYTES_MAX;
    for store in tables.stores.load().values() {
        let stored = || store.version.load().totals().disk_space;
        room = room.saturating_sub(store.heat.advance(ends, stored, room));
    }
}

async fn control(
    engine: Weak<Engine>,
    mut woken: UnboundedReceiver<()>,
    clock: Clock,
    began: Instant,
    processors: Seen,
) {
    let mut pause = BACKLOG_LOOK;
    let mut looks = Looks {
        backlog: began,
        tables: began + FIRST_TABLES_LOOK,
        snapshots: began + FIRST_SNAPSHOTS_LOOK,
        generation: began + GENERATION,
        processors,
    };
    while woken_or_after(&mut woken, &clock, pause).await {
        let Some(engine) = engine.upgrade() else { return };
        if engine.tables.schedule.is_stopped() {
            return;
        }
        // What panics is not looked at again before it is due.
        pause = caught(|| looks.look(&engine, clock.now())).unwrap_or(BACKLOG_LOOK);
    }
}

/// When the control thread looks at what.
struct Looks {
    /// The last one.
    backlog: Instant,
    /// The next ones.
    tables: Instant,
    snapshots: Instant,
    generation: Instant,
    processors: Seen,
}

impl Looks {
    /// Looks at what is due; the time until the next look.
    fn look(&mut self, engine: &Arc<Engine>, now: Instant) -> Duration {
        if now >= self.tables {
            self.tables = now + TABLES_LOOK;
            engine.compactor.consider_all();
        }
        if now >= self.snapshots {
            self.snapshots = now + SNAPSHOTS_LOOK;
            engine.snapshots.look();
        }
        if now - self.backlog >= BACKLOG_LOOK {
            self.backlog = now;
            panic_point("the control of compactions");
            engine.compactor.look_at_backlog();
            engine.tables.memory.share(&engine.tables.stores.load());
            self.processors.look(engine.disk(), now, engine.reporter());
            let ends = now >= self.generation;
            if ends {
                self.generation = now + GENERATION;
            }
            advance_heat(&engine.tables, ends);
        }
        start_workers(engine);
        if engine.compactor.keep_pace(now) { LATENCY_LOOK } else { BACKLOG_LOOK }
    }
}

/// Waits for a wake-up, at most for `pause`, and takes all that have come. `false`: the schedule is dropped.
async fn woken_or_after(woken: &mut UnboundedReceiver<()>, clock: &Clock, pause: Duration) -> bool {
    let mut sleep = pin!(clock.sleep(pause));
    let goes_on = poll_fn(|context| match woken.poll_next_unpin(context) {
        Poll::Ready(wake) => Poll::Ready(wake.is_some()),
        Poll::Pending => sleep.as_mut().poll(context).map(|()| true),
    })
    .await;
    while woken.next().now_or_never().flatten().is_some() {}
    goes_on
}
