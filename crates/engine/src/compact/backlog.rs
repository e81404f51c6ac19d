//! How far compaction is behind, of each table and of all of them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use halcyon_compaction::strategy::{Debt, PickContext, debt};
use halcyon_io::clock::Instant;
use halcyon_io::hurry_idle_threads;

use super::Compactor;
use super::pick::{candidates, groups, strategy_of};
use super::pressure::{CALM, URGENT, pressure, write_wait};
use crate::Event;
use crate::tables::store::Store;
use crate::version::Version;

/// The debt of a table; `halcyon_views.compaction_backlog` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableBacklog {
    pub keyspace: String,
    pub table: String,
    pub sstables: usize,
    pub debt: Debt,
    pub write_wait: Duration,
}

impl Compactor {
    /// The debt of every table at the last measurement.
    pub fn backlog(&self) -> Vec<TableBacklog> {
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
        self.tables.stores.load().values().map(of).collect()
    }

    fn debt_of(&self, store: &Arc<Store>) -> Debt {
        let (version, definition) = (store.version.load_full(), store.definition.load_full());
        let now = self.disk().clock().now();
        store.debt.of(&version, &definition, now, || self.compute_debt(store, &version, now))
    }

    fn compute_debt(&self, store: &Arc<Store>, version: &Version, now: Instant) -> Debt {
        let strategy = strategy_of(store);
        let now_micros = self.storage.disk.clock().unix_micros();
        let gc_before = self.gc_before(store, now_micros);
        let moment = PickContext {
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
    pub(crate) fn look_at_backlog(&self) {
        let mut worst = 0;
        for store in self.tables.stores.load().values() {
            let count = store.version.load().len();
            // Where there are few SSTables, few can be too many.
            let excess = if count <= CALM as usize { 0 } else { self.debt_of(store).excess };
            worst = worst.max(excess);
            self.set_write_wait(store, excess);
        }
        let before = self.pace.is_urgent();
        let pressure = pressure(worst);
        self.pace.set_pressure(pressure);
        if pressure.urgent != before {
            hurry_idle_threads(pressure.urgent);
            self.reporter.report(match pressure.urgent {
                true => Event::CompactionBehind { excess: worst, calm: URGENT as usize },
                false => Event::CompactionCaughtUp,
            });
        }
    }

    fn set_write_wait(&self, store: &Store, excess: usize) {
        let wait = write_wait(excess);
        let micros = u32::try_from(wait.as_micros()).unwrap_or(u32::MAX);
        let before = store.write_wait_us.swap(micros, Relaxed);
        let table = store.table().full_name();
        if before == 0 && micros > 0 {
            self.reporter.report(Event::WritesSlowed { table, excess });
        } else if before > 0 && micros == 0 {
            self.reporter.report(Event::WritesNotSlowed { table });
        }
    }
}
