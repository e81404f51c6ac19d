//! Compaction by itself: after each flush and each compaction the table's strategy is asked what is next.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;

use futures_util::lock::OwnedMutexGuard;
use halcyon_compaction::strategy::{Candidate, Moment, Output, Strategy, Task, shard_boundaries};
use halcyon_compaction::{Group, group_inputs};
use halcyon_io::Purpose;
use halcyon_sstable::Component;
use halcyon_sstable::components::statistics::mutation::{Mutation, mutate};

use super::{DEFAULT_GC_GRACE, Shape};
use crate::engine::Engine;
use crate::store::Store;
use crate::view::{Live, swap};
use crate::{Error, Result};

const DEFAULT_STRATEGY: &str = "org.apache.cassandra.db.compaction.SizeTieredCompactionStrategy";
const MAX_STATISTICS: u64 = 256 << 20;

impl Engine {
    /// Has a table looked at: its SSTables have changed.
    pub(crate) fn consider(&self, store: &Arc<Store>) {
        if self.compactions.is_stopping() || store.considered.swap(true, Relaxed) {
            return;
        }
        let Some(engine) = self.this.upgrade() else { return };
        let store = store.clone();
        self.compactions.threads.later(move || async move {
            let gate = store.gate.clone().lock_owned().await;
            store.considered.store(false, Relaxed);
            let outcome = engine.compact_while_there_is_something(&store, &gate).await;
            engine.compactions.note_failure(&store, outcome.err());
        });
    }

    async fn compact_while_there_is_something(
        &self,
        store: &Arc<Store>,
        gate: &OwnedMutexGuard<()>,
    ) -> Result<()> {
        while !self.compactions.is_stopping() && self.health.check().is_ok() {
            let Some((task, lives, elsewhere)) = self.pick(store)? else { return Ok(()) };
            self.execute(store, gate, task, lives, elsewhere).await?;
        }
        Ok(())
    }

    /// The strategy's choice: a task, the SSTables that it numbers, and those of other kinds.
    fn pick(&self, store: &Arc<Store>) -> Result<Option<Choice>> {
        let definition = store.definition.load_full();
        let default = || BTreeMap::from([("class".to_owned(), DEFAULT_STRATEGY.to_owned())]);
        let options = definition.schema.options.compaction.clone().filter(|map| !map.is_empty());
        let strategy = Strategy::parse(&options.unwrap_or_else(default)).map_err(Error::Invalid)?;
        let view = store.view.load_full();
        let now_micros = self.disk.clock().unix_micros();
        let grace = definition.schema.options.gc_grace_seconds.unwrap_or(DEFAULT_GC_GRACE);
        let gc_before = (now_micros / 1_000_000).saturating_sub(i64::from(grace));
        let moment = Moment {
            now_ms: now_micros / 1000,
            gc_before,
            compacting: &BTreeSet::new(),
            memtable_min_timestamp: Some(store.oldest_unflushed()).filter(|at| *at != i64::MAX),
            flush_size: store.flush_size.load(Relaxed),
        };
        let all: Vec<_> = view.sstables.iter().map(|live| live.sstable().clone()).collect();
        for group in group_inputs(&all, &[]) {
            let of_group = |live: &&Arc<Live>| {
                group.inputs.iter().any(|input| input.descriptor() == live.descriptor())
            };
            let (lives, elsewhere): (Vec<_>, Vec<_>) =
                view.sstables.iter().partition(|live| of_group(live));
            let numbered = lives.iter().enumerate();
            let candidates: Vec<Candidate> =
                numbered.map(|(id, live)| candidate(id as u64, live, gc_before)).collect();
            let mut history = store.history.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(task) = strategy.pick(&candidates, &moment, &mut history) {
                let cloned = |all: Vec<&Arc<Live>>| all.into_iter().cloned().collect();
                return Ok(Some((task, cloned(lives), cloned(elsewhere))));
            }
        }
        Ok(None)
    }

    async fn execute(
        &self,
        store: &Arc<Store>,
        gate: &OwnedMutexGuard<()>,
        task: Task,
        lives: Vec<Arc<Live>>,
        mut elsewhere: Vec<Arc<Live>>,
    ) -> Result<()> {
        let (mut inputs, mut expired) = (Vec::new(), Vec::new());
        for (id, live) in lives.into_iter().enumerate() {
            let id = id as u64;
            if task.expired.contains(&id) {
                expired.push(live);
            } else if task.inputs.contains(&id) {
                inputs.push(live);
            } else {
                elsewhere.push(live);
            }
        }
        if !expired.is_empty() {
            self.remove(store, &expired).await?;
        }
        let shape = match (task.output, inputs.as_slice()) {
            (_, []) => return Ok(()),
            (Output::Relevel { level }, [only]) => return self.relevel(store, only, level).await,
            (Output::Single { level } | Output::Relevel { level }, _) => {
                Shape { level: as_level(level), ..Shape::default() }
            }
            (Output::Sized { level, max_size }, _) => {
                Shape { level: as_level(level), split_size: Some(max_size), ..Shape::default() }
            }
            (Output::Sharded { shards }, _) => {
                Shape { split_tokens: shard_boundaries(shards), ..Shape::default() }
            }
        };
        let sstables = |lives: &[Arc<Live>]| lives.iter().map(|l| l.sstable().clone()).collect();
        let group = Group { inputs: sstables(&inputs), elsewhere: sstables(&elsewhere) };
        self.compact_group(store, gate, group, shape).await.map(drop)
    }

    /// Gives an SSTable another level: only its statistics change.
    async fn relevel(&self, store: &Arc<Store>, live: &Arc<Live>, level: u32) -> Result<()> {
        let descriptor = live.descriptor();
        let path = descriptor.component_path(Component::Statistics);
        let old = self.disk.read(&path, MAX_STATISTICS).await?;
        let mutation = Mutation { level: as_level(level), repair: None };
        let new = mutate(&old, descriptor.version, mutation)
            .map_err(|e| halcyon_sstable::Error::corrupt(path.clone(), Component::Statistics, e))?;
        let temporary = descriptor.path_of("Statistics.db.tmp");
        self.disk.write_new(&temporary, &new, Purpose::CompactionWrite).await?;
        self.disk.rename(&temporary, &path).await?;
        self.disk.sync_dir(&descriptor.directory).await?;
        let schema = store.definition.load().schema.clone();
        let again = Live::open(&self.disk, descriptor, &schema, self.options.read_mode).await?;
        swap(&store.view, std::slice::from_ref(live), &[again]);
        Ok(())
    }
}

type Choice = (Task, Vec<Arc<Live>>, Vec<Arc<Live>>);

fn as_level(level: u32) -> Option<i32> {
    i32::try_from(level).ok()
}

fn candidate(id: u64, live: &Arc<Live>, gc_before: i64) -> Candidate {
    let stats = &live.sstable().statistics().stats;
    let until = u32::try_from(gc_before.max(0)).unwrap_or(u32::MAX);
    let cells = stats.cells_per_partition.mean() * stats.cells_per_partition.count() as f64;
    let droppable = stats.tombstone_drop_times.sum(until);
    Candidate {
        id,
        level: u32::try_from(stats.level).unwrap_or(0),
        size: live.sstable().file_length(),
        first: live.table.first_key().token,
        last: live.table.last_key().token,
        min_timestamp: stats.min_timestamp,
        max_timestamp: stats.max_timestamp,
        max_local_deletion_time: match stats.max_local_deletion_time {
            u32::MAX => i64::MAX,
            time => i64::from(time),
        },
        droppable_ratio: if cells > 0.0 { droppable / cells } else { 0.0 },
        created_ms: live.created_ms,
        hotness: 0.0,
        token_space_coverage: if stats.token_space_coverage.is_nan() {
            0.0
        } else {
            stats.token_space_coverage
        },
    }
}
