//! The control thread: it starts compaction threads, sets the rate, and checks tables periodically.
//!
//! 1. It starts compaction threads when work is due. No other thread does, because a thread inherits its scheduling class from its parent
//!    and cannot leave the idle class.
//! 2. While compaction runs under a latency target, it measures the reads ten times a second (`io::pacing`).
//! 3. Once a second it computes the backlog and reacts to it (`backlog`).
//! 4. Once a minute it asks the strategies of all tables, because data expires without any event.

use std::future::poll_fn;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use halcyon_io::clock::Instant;
use halcyon_io::{ThreadPriority, block_on, spawn_thread};

use super::schedule::Work;
use crate::engine::Engine;

const LATENCY_LOOK: Duration = Duration::from_millis(100);
const BACKLOG_LOOK: Duration = Duration::from_secs(1);
const TABLES_LOOK: Duration = Duration::from_secs(60);
/// The first check of all tables waits, so that it does not compete with the start.
const FIRST_TABLES_LOOK: Duration = Duration::from_secs(10);

impl Engine {
    /// To be called once, after the start.
    pub(crate) fn start_control(self: &Arc<Engine>) {
        if self.disk.is_simulated() {
            return;
        }
        let Some(woken) = self.compactions.take_listener() else { return };
        let engine = Arc::downgrade(self);
        let began = self.disk.clock().now();
        let body = move || control(&engine, &woken, began);
        let thread = spawn_thread("compaction-control", ThreadPriority::Normal, body);
        self.compactions.set_control(thread);
    }

    /// Where there is no control thread, because the disk is simulated: does what is due, on as many compactors as there are.
    pub(crate) async fn catch_up(&self) {
        let Some(engine) = self.this.upgrade().filter(|_| self.disk.is_simulated()) else { return };
        let mut compactors = FuturesUnordered::new();
        poll_fn(|context| {
            loop {
                let slots = engine.compactions.schedule.slots();
                compactors.extend(slots.into_iter().map(|slot| engine.clone().compactor(slot)));
                match compactors.poll_next_unpin(context) {
                    Poll::Ready(Some(())) => {}
                    Poll::Ready(None) => return Poll::Ready(()),
                    Poll::Pending => return Poll::Pending,
                }
            }
        })
        .await;
    }

    /// One compaction thread.
    async fn compactor(self: Arc<Engine>, slot: super::schedule::Slot) {
        while let Some(work) = slot.next() {
            match work {
                Work::Look(store) => self.look_at(&store).await,
                Work::Job(job) => job(self.clone()).await,
            }
        }
        // Release the engine before the slot: a waiter for the slot may need the directories' locks.
        drop(self);
        drop(slot);
    }

    fn start_compactors(self: &Arc<Engine>) {
        for slot in self.compactions.schedule.slots() {
            let engine = self.clone();
            let body = move || block_on(engine.compactor(slot));
            drop(spawn_thread("compaction", ThreadPriority::Idle, body));
        }
    }
}

fn control(engine: &Weak<Engine>, woken: &Receiver<()>, began: Instant) {
    let mut pause = BACKLOG_LOOK;
    let (mut backlog_looked, mut tables_due) = (began, began + FIRST_TABLES_LOOK);
    loop {
        if woken.recv_timeout(pause) == Err(RecvTimeoutError::Disconnected) {
            return;
        }
        while woken.try_recv().is_ok() {}
        let Some(engine) = engine.upgrade() else { return };
        if engine.compactions.schedule.is_stopped() {
            return;
        }
        let now = engine.disk.clock().now();
        if now >= tables_due {
            tables_due = now + TABLES_LOOK;
            engine.consider_all();
        }
        if now - backlog_looked >= BACKLOG_LOOK {
            backlog_looked = now;
            engine.look_at_backlog();
        }
        engine.start_compactors();
        pause = if engine.keep_pace(now) { LATENCY_LOOK } else { BACKLOG_LOOK };
    }
}
