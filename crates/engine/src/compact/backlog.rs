//! How far compaction is behind, and what that calls for.
//!
//! Idle priority and a latency target must not mean that SSTables pile up until reads drown in them. What counts is by how many
//! SSTables a read may meet too many: those that tasks which are due would take out of its way.
//!
//! ```text
//!  excess    8                        64                      128
//!   ────────┼─────────────────────────┼───────────────────────┼──────────────────────────▶
//!   idle    │ the floor under the     │ no target any more,   │ writes to the table wait,
//!           │ latency target rises    │ threads not idle      │ longer the further it is
//! ```

use std::collections::BTreeSet;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use halcyon_compaction::strategy::{Debt, Moment, debt};
use halcyon_io::clock::Instant;
use halcyon_io::hurry_idle_threads;

use super::pick::{candidates, groups, strategy_of};
use crate::Event;
use crate::definition::Definition;
use crate::engine::Engine;
use crate::store::Store;
use crate::version::Version;

const CALM: f64 = 8.0;
const URGENT: f64 = 64.0;
const DROWNING: f64 = 128.0;
/// How long a write waits at twice the excess at which waiting begins; more is not waited.
const WAIT_MAX: Duration = Duration::from_millis(100);
const DEBT_AGE_MAX: Duration = Duration::from_secs(60);

/// The reaction to a backlog.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Pressure {
    /// For `LatencyController::set_floor`.
    pub(super) floor: f64,
    /// Compaction threads get their share of the processor.
    pub(super) urgent: bool,
}

/// The reaction to the worst table's excess of SSTables.
fn pressure(excess: usize) -> Pressure {
    let excess = excess as f64;
    let floor = ((excess - CALM) / (URGENT - CALM)).clamp(0.0, 1.0);
    Pressure { floor, urgent: excess >= URGENT }
}

/// How long each write to a table waits.
fn write_wait(excess: usize) -> Duration {
    let beyond = ((excess as f64 - DROWNING) / DROWNING).clamp(0.0, 1.0);
    WAIT_MAX.mul_f64(beyond * beyond)
}

/// The debt of a table; `halcyon_views.compaction_backlog` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableBacklog {
    pub keyspace: String,
    pub table: String,
    pub sstables: usize,
    pub debt: Debt,
    pub write_wait: Duration,
}

/// The debt of one version.
#[derive(Default)]
pub(crate) struct DebtCache(Mutex<Option<CachedDebt>>);

struct CachedDebt {
    /// Weak, so that files which are obsolete are deleted meanwhile; its address is not used again as long as this is held.
    version: Weak<Version>,
    definition: Weak<Definition>,
    at: Instant,
    debt: Debt,
}

impl CachedDebt {
    fn holds(&self, version: &Arc<Version>, definition: &Arc<Definition>, now: Instant) -> bool {
        std::ptr::eq(self.version.as_ptr(), Arc::as_ptr(version))
            && std::ptr::eq(self.definition.as_ptr(), Arc::as_ptr(definition))
            && now.saturating_since(self.at) < DEBT_AGE_MAX
    }
}

impl Engine {
    /// The debt of every table at the last measurement.
    pub fn compaction_backlog(&self) -> Vec<TableBacklog> {
        let of = |store: &Arc<Store>| {
            let table = store.table();
            TableBacklog {
                keyspace: table.schema.keyspace.clone(),
                table: table.schema.name.clone(),
                sstables: store.version.load().len(),
                debt: self.debt_of(store),
                write_wait: Duration::from_micros(u64::from(store.write_wait_us.load(Relaxed))),
            }
        };
        self.stores.load().values().map(of).collect()
    }

    /// The table's debt, computed again when its version or definition has changed, and once a minute: windows close by themselves.
    fn debt_of(&self, store: &Arc<Store>) -> Debt {
        let (version, definition) = (store.version.load_full(), store.definition.load_full());
        let now = self.disk.clock().now();
        let mut cached = store.debt.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cached) = cached.as_ref().filter(|c| c.holds(&version, &definition, now)) {
            return cached.debt;
        }
        let debt = self.compute_debt(store, &version, now);
        let (version, definition) = (Arc::downgrade(&version), Arc::downgrade(&definition));
        *cached = Some(CachedDebt { version, definition, at: now, debt });
        debt
    }

    fn compute_debt(&self, store: &Arc<Store>, version: &Version, now: Instant) -> Debt {
        let strategy = strategy_of(store);
        let now_micros = self.disk.clock().unix_micros();
        let gc_before = self.gc_before(store, now_micros);
        let moment = Moment {
            now_ms: now_micros / 1000,
            gc_before,
            compacting: &BTreeSet::new(),
            memtable_min_timestamp: None,
            flush_size: store.flush_size.load(Relaxed),
        };
        let mut sum = Debt::default();
        for lives in groups(version.sstables()) {
            sum.add(debt(&strategy, candidates(&lives, gc_before, now), &moment));
        }
        sum
    }

    /// Compares the debt with its thresholds, and raises or lowers the reaction.
    pub(super) fn look_at_backlog(&self) {
        let mut worst = 0;
        for store in self.stores.load().values() {
            let count = store.version.load().len();
            // Where there are few SSTables, few can be too many.
            let excess = if count <= CALM as usize { 0 } else { self.debt_of(store).excess };
            worst = worst.max(excess);
            self.set_write_wait(store, excess);
        }
        let before = self.compactions.pace.is_urgent();
        let pressure = pressure(worst);
        self.compactions.pace.set_pressure(pressure);
        if pressure.urgent != before {
            hurry_idle_threads(pressure.urgent);
            self.reporter.report(Event::info(if pressure.urgent {
                format!(
                    "compaction is behind: reads may meet {worst} SSTables too many; it goes at full speed and priority until that is \
                     less than {URGENT}, whatever compaction_latency_target says"
                )
            } else {
                "compaction has caught up: it is idle work again".to_owned()
            }));
        }
    }

    fn set_write_wait(&self, store: &Store, excess: usize) {
        let wait = write_wait(excess);
        let micros = u32::try_from(wait.as_micros()).unwrap_or(u32::MAX);
        let before = store.write_wait_us.swap(micros, Relaxed);
        let table = store.table().full_name();
        if before == 0 && micros > 0 {
            self.reporter.report(Event::warning(format!(
                "writes to {table} are slowed, for reads of it may meet {excess} SSTables too many; raise concurrent_compactors or \
                 compaction_throughput, or write less"
            )));
        } else if before > 0 && micros == 0 {
            self.reporter.report(Event::info(format!("writes to {table} are not slowed any more")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves the stages: nothing, a rising floor, urgency, waits that grow and end at their most.
    #[test]
    fn stages() {
        let cases = [
            (0, 0.0, false, 0),
            (8, 0.0, false, 0),
            (36, 0.5, false, 0),
            (64, 1.0, true, 0),
            (128, 1.0, true, 0),
            (192, 1.0, true, 25_000),
            (256, 1.0, true, 100_000),
            (10_000, 1.0, true, 100_000),
        ];
        for (excess, floor, urgent, wait_us) in cases {
            assert_eq!(pressure(excess), Pressure { floor, urgent }, "{excess}");
            assert_eq!(write_wait(excess).as_micros(), wait_us, "{excess}");
        }
    }
}
