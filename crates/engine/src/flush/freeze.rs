//! The shards' side of a flush: when a memtable is frozen, and which writes wait for it.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use halcyon_io::clock::nanos;
use halcyon_io::spawn;

use super::Flusher;
use super::pace::FlushPace;
use crate::background::JobKind;
use crate::memtable::{Memtable, Slot};
use crate::options::DiskFailurePolicy;
use crate::shard::{Shard, ShardTable};
use crate::tables::store::Store;
use crate::{Error, Event, Result};

/// After which a flush that failed is tried again, where the disk failure policy says so.
const RETRY: Duration = Duration::from_secs(5);

/// A memtable that is written in less time than its files take to become durable.
const BRIEF_MAX: usize = 256 << 10;

/// A shard's least share of the memtables' space: a few partitions.
const BUDGET_MIN: usize = 64 << 10;

impl Shard {
    fn budget(&self) -> usize {
        let share = self.options().memtable_space / self.tables().shard_count() as u64;
        usize::try_from(share).unwrap_or(usize::MAX).max(BUDGET_MIN)
    }

    /// Waits while frozen memtables leave no room for more; refuses while flushes fail, since that wait would have no bound.
    pub(crate) async fn wait_for_space(&self) -> Result<()> {
        let mut began = None;
        while self.frozen_bytes.get() > 0
            && self.filling.bytes() + self.frozen_bytes.get() >= self.budget()
        {
            began.get_or_insert_with(|| self.now());
            let _hurry = self.flusher.waits.hurry();
            if let Some(why) = self.flush_failure() {
                return Err(Error::Stopped(format!(
                    "memtables are full, and a flush of {why}; writes resume after the next successful flush"
                )));
            }
            self.space.notified().await;
            self.reporter().check()?;
        }
        if let (Some(began), Some(metrics)) = (began, self.metrics.of(self.index())) {
            let now = self.now();
            metrics.memtable_waits.record(nanos(now.saturating_since(began)), now);
        }
        Ok(())
    }

    /// Of which table the last flush failed, and why.
    fn flush_failure(&self) -> Option<String> {
        let failure = |table: &Rc<ShardTable>| {
            let why = table.failed.borrow();
            Some(format!("{} failed: {}", table.store.table().full_name(), why.as_ref()?))
        };
        self.opened.borrow().values().find_map(failure)
    }

    /// Counts new bytes, and freezes the largest memtable when all together have reached their half of the budget.
    pub(crate) fn note_growth(&self, table: &ShardTable, grown: isize) {
        if let Some((active, frozen)) = table.counted.get() {
            self.count(table, (active.saturating_add_signed(grown), frozen));
        }
        if self.filling.bytes() >= self.budget() / 2 && self.frozen_bytes.get() == 0 {
            let largest = self.opened.borrow().values().max_by_key(|t| size(t)).cloned();
            if let Some(largest) = largest {
                self.freeze(&largest);
            }
        }
    }

    /// Counts a table's bytes again: writes that were on their way to a memtable when it was frozen grew it afterwards.
    pub(crate) fn recount(&self, table: &ShardTable) {
        let slots = table.frozen.borrow();
        let frozen = slots.iter().map(|(slot, _)| slot.with(Memtable::bytes)).sum();
        self.count(table, (size(table), frozen));
    }

    /// A table is closed, and is not counted any more: writes that were on their way to it still grow it.
    pub(crate) fn discount(&self, table: &ShardTable) {
        self.count(table, (0, 0));
        table.counted.set(None);
    }

    /// Counts a table as having `bytes`, in the memtable that takes writes and in those that are being flushed.
    fn count(&self, table: &ShardTable, (active, frozen): (usize, usize)) {
        let Some(before) = table.counted.get() else { return };
        table.counted.set(Some((active, frozen)));
        self.filling.set(self.filling.bytes() + active - before.0);
        self.frozen_bytes.set(self.frozen_bytes.get() + frozen - before.1);
    }

    /// Begins to flush a table's memtable; `None` if there is nothing in it.
    pub(crate) fn freeze(&self, table: &Rc<ShardTable>) -> Option<Rc<Slot>> {
        if table.held.get() {
            return None;
        }
        let position = self.log.position();
        if table.active().is_idle() {
            let current = table.current();
            let is_current =
                |memtable: &Memtable| Arc::ptr_eq(memtable.table(), &current.definition.table);
            if !table.active().with(is_current) {
                // The table was altered: an empty memtable of the old definition would not take the cells of new columns.
                table.replace_active(self.now());
            }
            if table.frozen.borrow().is_empty() {
                self.log.discard_below(table.store.id, position);
            }
            return None;
        }
        let slot = table.replace_active(self.now());
        table.metrics().pending_flushes.up();
        {
            let mut frozen = table.frozen.borrow_mut();
            let last = frozen.last().map(|(_, before)| *before);
            debug_assert!(
                last <= Some(position),
                "the commit log has gone back: {last:?} {position:?}"
            );
            frozen.push((slot.clone(), position));
        }
        table.note_memtables();
        self.recount(table);
        self.flush_frozen(table);
        Some(slot)
    }

    /// Writes a table's frozen memtables, unless that is being done.
    fn flush_frozen(&self, table: &Rc<ShardTable>) {
        let Some(shard) = self.handle().filter(|_| !table.flushing.replace(true)) else { return };
        let table = table.clone();
        let flushing = async move {
            let outcome = shard.flush_all_frozen(&table).await;
            table.flushing.set(false);
            let failed = outcome.is_err();
            if let Err(e) = &outcome {
                shard.flusher.failed(&table.store, e);
            }
            table.failed.replace(outcome.err().map(|e| e.to_string()));
            table.flushed.notify_all();
            shard.space.notify_all();
            if failed && shard.reporter().failure().is_none() {
                shard.disk().clock().sleep(RETRY).await;
                shard.flush_frozen(&table);
            }
        };
        spawn(flushing).detach();
    }

    async fn flush_all_frozen(&self, table: &Rc<ShardTable>) -> Result<()> {
        loop {
            let oldest = table.frozen.borrow().first().cloned();
            let Some((slot, position)) = oldest else { return Ok(()) };
            self.reporter().check_whole()?;
            let memtable = slot.seal().await;
            self.sync_records(&memtable).await;
            let (flusher, store) = (self.flusher.clone(), table.store.clone());
            let oldest = memtable.min_timestamp();
            let brief = memtable.bytes() <= BRIEF_MAX;
            let kind = if brief { JobKind::Brief } else { JobKind::Long };
            let (filling, until) = (self.filling.clone(), self.budget() / 2);
            let write = move || async move {
                let bytes = (memtable.bytes(), until);
                let clock = flusher.storage.disk.clock();
                let pace = FlushPace::begin(clock, &flusher.waits, filling, bytes);
                flusher.write_memtable(&store, memtable, &pace).await
            };
            let flushed = self.flusher.background.run(kind, write).await??;
            let (written, _) = table.frozen.borrow_mut().remove(0);
            debug_assert!(Rc::ptr_eq(&written, &slot), "another memtable was flushed meanwhile");
            self.note_flushed(table, position, oldest);
            table.note_memtables();
            self.log.discard_below(table.store.id, position);
            self.recount(table);
            table.metrics().pending_flushes.down();
            table.metrics().flushes.up();
            table.metrics().bytes_flushed.add(flushed.map_or(0, |live| live.bytes_on_disk));
            table.flushed.notify_all();
            self.space.notify_all();
        }
    }

    /// Flushes what this shard has of a table, and waits for it.
    pub(crate) async fn flush_table(&self, table: &Rc<ShardTable>) -> Result<()> {
        let frozen = self.freeze(table);
        let last = frozen.or_else(|| table.frozen.borrow().last().map(|(slot, _)| slot.clone()));
        let Some(last) = last else { return Ok(()) };
        self.flush_frozen(table);
        let _hurry = self.flusher.waits.hurry();
        loop {
            if !table.frozen.borrow().iter().any(|(slot, _)| Rc::ptr_eq(slot, &last)) {
                return Ok(());
            }
            if !table.flushing.get() {
                let why = table.failed.borrow().clone().unwrap_or_default();
                return Err(Error::Stopped(format!(
                    "flush of {} failed: {why}",
                    table.store.table().full_name()
                )));
            }
            table.flushed.notified().await;
        }
    }
}

fn size(table: &ShardTable) -> usize {
    table.active().with(Memtable::bytes)
}

impl Flusher {
    fn failed(&self, store: &Store, error: &Error) {
        let table = store.table().full_name();
        let tolerant = matches!(
            self.storage.options.disk_failure_policy,
            DiskFailurePolicy::BestEffort | DiskFailurePolicy::Ignore
        );
        let again = |kind| {
            let (table, why) = (table.clone(), error.to_string());
            self.reporter.report(Event::FlushFailed { table, why, kind });
        };
        if self.reporter.check_whole().is_err() {
            return;
        }
        if let Some(key) = error.spares_device() {
            return again(key);
        }
        if tolerant {
            return again("disk");
        }
        self.reporter.disk_failed(format!(
            "writes are refused since a flush of {table} failed ({error}); nothing acknowledged is lost, the commit log has \
             it. Free space or repair the disk, then restart"
        ));
    }
}
