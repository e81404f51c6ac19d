//! Automatic flushes: when the commit log is short of space, and by `memtable_flush_period_in_ms`.

use std::rc::Rc;
use std::time::Duration;

use halcyon_io::{kept, panic_point, spawn, yield_now};
use halcyon_stream::TableId;

use crate::shard::{Shard, ShardTable};

/// The ages of memtables are checked at least this often.
const PERIOD_CHECK: Duration = Duration::from_secs(1);

/// After flushes that did not help.
const PAUSE: Duration = Duration::from_millis(10);

impl Shard {
    /// Flushes the tables that keep the log's oldest segment whenever space is short.
    pub(crate) fn watch_log(&self) {
        let (log, this) = (self.log.clone(), self.handle().map(|shard| Rc::downgrade(&shard)));
        let Some(this) = this else { return };
        let watching = move || {
            let (log, this) = (log.clone(), this.clone());
            async move {
                loop {
                    log.short_of_space().await;
                    let Some(shard) = this.upgrade() else { return };
                    shard.make_space().await;
                }
            }
        };
        spawn(kept(watching)).detach();
    }

    /// Flushes what keeps the log's oldest segment.
    async fn make_space(&self) {
        panic_point("the watch of the commit log");
        let oldest = self.log.oldest_dirty();
        let mut failed = oldest.is_none();
        for id in oldest.iter().flat_map(|dirty| &dirty.tables) {
            match self.table_by_id(*id) {
                Some(table) => failed |= self.flush_table(&table).await.is_err(),
                None => self.forget_log(*id),
            }
        }
        for id in oldest.iter().flat_map(|dirty| &dirty.held) {
            failed |= self.flusher.flush(Some(*id)).await.is_err();
        }
        self.release_spanning();
        if failed {
            // Retrying before another flush has ended would be useless.
            self.space.notified().await;
        } else if self.log.oldest_dirty() == oldest {
            // A table that is being truncated is not flushed. Without a pause nothing else would run here, the truncation neither.
            self.disk().clock().sleep(PAUSE).await;
        }
    }

    /// Flushes tables whose memtable has grown older than `memtable_flush_period_in_ms` allows, for as long as the shard lives. The caches
    /// get what they may have as often.
    pub(crate) fn watch_periods(&self) {
        let (clock, this) = (self.disk().clock().clone(), self.handle());
        let Some(this) = this else { return };
        let this = Rc::downgrade(&this);
        let watching = move || {
            let (clock, this) = (clock.clone(), this.clone());
            async move {
                let mut pause = PERIOD_CHECK;
                loop {
                    clock.sleep(pause).await;
                    panic_point("the watch of periods");
                    let Some(shard) = this.upgrade() else { return };
                    let shortest = shard.flush_expired().await;
                    shard.release_spanning();
                    shard.caches.fit_chunks(shard.tables().memory.chunks_of_shard()).await;
                    pause = shortest.map_or(PERIOD_CHECK, |period| period.min(PERIOD_CHECK));
                }
            }
        };
        spawn(kept(watching)).detach();
    }

    /// Flushes the memtables that are too old; returns the shortest period of any table. The period of an empty memtable restarts. A
    /// memtable waits for the flush of its predecessor: otherwise they would pile up if the period is shorter than a flush.
    async fn flush_expired(&self) -> Option<Duration> {
        let (mut shortest, mut after) = (None, None);
        loop {
            let tables = self.some_tables(after);
            let Some(last) = tables.last() else { return shortest };
            after = Some(last.store.id);
            for table in tables {
                let Some(period) = table.store.definition.load().flush_period else { continue };
                shortest = Some(shortest.map_or(period, |shortest: Duration| shortest.min(period)));
                self.flush_if_older(&table, period);
            }
            yield_now().await;
        }
    }

    fn flush_if_older(&self, table: &Rc<ShardTable>, period: Duration) {
        let (slot, now) = (table.active(), self.now());
        let waits = table.held.get() || !table.frozen.borrow().is_empty();
        if now - slot.made() < period || waits {
            return;
        }
        if slot.is_idle() {
            drop(table.replace_active(now));
        } else {
            self.freeze(table);
        }
    }

    /// Tells the log that a dropped table needs no records.
    pub(crate) fn forget_log(&self, table: TableId) {
        self.log.discard_below(table, self.log.position());
    }
}
