//! Automatic compaction: after each flush and each compaction, and once a minute, the table's strategy picks the next task.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use halcyon_compaction::Kind;
use halcyon_compaction::strategy::{
    Candidate, Output, PickContext, Reason, Task, is_soon_rewritten, pick,
};
use halcyon_io::clock::Instant;
use halcyon_io::{Disk, JobLost, Purpose, contained, panic_point};
use halcyon_model::options::{Compaction, Strategy};
use halcyon_sstable::format::replace::replace;
use halcyon_sstable::format::statistics::mutation::{Mutation, mutate};
use halcyon_sstable::{Component, Descriptor, Version};

use halcyon_stream::TableId;

use super::Compactor;
use super::claims::Claim;
use super::job::{CompactionJob, Shape};
use super::task::CompactionKind;
use crate::tables::store::Store;
use crate::version::{Edit, LiveSSTable};
use crate::{Error, Result};

const MAX_STATISTICS: u64 = 256 << 20;

/// A task with the SSTables that it refers to.
pub(super) struct ResolvedTask {
    pub(super) task: Task,
    is_soon_rewritten: bool,
    inputs: Vec<Arc<LiveSSTable>>,
    expired: Vec<Arc<LiveSSTable>>,
}

impl ResolvedTask {
    /// `lives` are the strategy's candidates, numbered by their positions.
    pub(super) fn of(task: Task, lives: &[Arc<LiveSSTable>]) -> ResolvedTask {
        let expired_ids: HashSet<u64> = task.expired.iter().copied().collect();
        let mut ids = task.inputs.clone();
        ids.sort_unstable();
        let (mut inputs, mut expired) = (Vec::new(), Vec::new());
        for id in ids {
            let Some(live) = usize::try_from(id).ok().and_then(|at| lives.get(at)) else {
                continue;
            };
            let of_kind = if expired_ids.contains(&id) { &mut expired } else { &mut inputs };
            of_kind.push(live.clone());
        }
        ResolvedTask { task, is_soon_rewritten: false, inputs, expired }
    }

    pub(super) fn inputs(&self) -> &[Arc<LiveSSTable>] {
        &self.inputs
    }

    fn serials(&self) -> Vec<u64> {
        self.inputs.iter().chain(&self.expired).map(|live| live.serial()).collect()
    }
}

/// SSTables that may be merged with each other, by kind: repaired and unrepaired data never mix. Suspects are excluded.
pub(crate) fn groups(sstables: &[Arc<LiveSSTable>]) -> Vec<Vec<Arc<LiveSSTable>>> {
    let mut groups: BTreeMap<Kind, Vec<Arc<LiveSSTable>>> = BTreeMap::new();
    for live in sstables.iter().filter(|live| !live.is_suspect()) {
        groups.entry(live.kind).or_default().push(live.clone());
    }
    groups.into_values().collect()
}

/// As a strategy sees them, numbered by their positions.
pub(crate) fn candidates(
    lives: &[Arc<LiveSSTable>],
    gc_before: i64,
    now: Instant,
) -> Vec<Candidate> {
    (0..).zip(lives).map(|(id, live)| candidate(id, live, gc_before, now)).collect()
}

/// The strategy of a table, by its options, and by what an operator has said of it.
pub(crate) fn strategy_of(store: &Store) -> Compaction {
    let definition = store.definition.load_full();
    let mut strategy = definition.schema.options.compaction();
    strategy.enabled = store.automatic_compaction().unwrap_or(strategy.enabled);
    if let (Some((min, max)), Some(thresholds)) = (store.thresholds(), thresholds(&mut strategy)) {
        (*thresholds.0, *thresholds.1) = (min, max);
    }
    strategy
}

/// `None`: the strategy has none.
fn thresholds(strategy: &mut Compaction) -> Option<(&mut usize, &mut usize)> {
    let of = match &mut strategy.strategy {
        Strategy::SizeTiered(options) => &mut options.thresholds,
        Strategy::Leveled(options) => &mut options.thresholds,
        Strategy::TimeWindow(options) => &mut options.thresholds,
        Strategy::Unified(_) => return None,
    };
    Some((&mut of.min, &mut of.max))
}

impl Compactor {
    /// `nodetool enableautocompaction`, `disableautocompaction`: until the node stops.
    pub fn set_automatic(&self, table: TableId, enabled: bool) -> Result<()> {
        let store = self.tables.store_of(table)?;
        store.set_automatic_compaction(enabled);
        self.schedule.consider(&store);
        Ok(())
    }

    /// `nodetool setcompactionthreshold`: until the node stops.
    pub fn set_thresholds(&self, table: TableId, min: usize, max: usize) -> Result<()> {
        let refusal = match (min, max) {
            (0 | 1, _) => "Min threshold must be at least 2",
            (min, max) if min > max => "Min threshold cannot be greater than max.",
            _ => {
                let store = self.tables.store_of(table)?;
                store.set_thresholds((min, max));
                self.schedule.consider(&store);
                return Ok(());
            }
        };
        Err(Error::Invalid(refusal.to_owned()))
    }

    /// `nodetool getcompactionthreshold`; `None`: the strategy has none.
    pub fn thresholds(&self, table: TableId) -> Result<Option<(usize, usize)>> {
        let store = self.tables.store_of(table)?;
        let mut strategy = strategy_of(&store);
        Ok(thresholds(&mut strategy).map(|(min, max)| (*min, *max)))
    }

    /// Schedules a pick for every table.
    pub(crate) fn consider_all(&self) {
        self.tables.stores.load().values().for_each(|store| self.schedule.consider(store));
    }

    /// Runs the next task of a table's strategy. Another thread may run another task of the table at the same time.
    pub(crate) async fn pick_and_run(&self, store: &Arc<Store>) {
        let backing_off = store.backoff.is_active(self.storage.disk.clock().now());
        if backing_off || self.reporter.check().is_err() {
            return;
        }
        let (claim, choice) = match self.claim_next(store) {
            Ok(Some(claimed)) => claimed,
            Ok(None) => return,
            Err(e) => return self.failed(store, &[], &e),
        };
        self.schedule.consider(store);
        let inputs = [choice.inputs.as_slice(), &choice.expired].concat();
        let outcome = contained(self.execute(store, claim, choice)).await;
        let outcome = outcome.unwrap_or(Err(Error::JobLost(JobLost)));
        match outcome {
            Ok(()) => {
                store.backoff.end();
                self.schedule.consider(store);
            }
            Err(e) => self.failed(store, &inputs, &e),
        }
    }

    fn claim_next(&self, store: &Arc<Store>) -> Result<Option<(Claim, ResolvedTask)>> {
        let strategy = strategy_of(store);
        Ok(store.claims.claim(|taken| {
            let choice = self.pick(store, &strategy, taken)?;
            Some((choice.serials(), choice))
        }))
    }

    fn pick(
        &self,
        store: &Arc<Store>,
        strategy: &Compaction,
        taken: &HashSet<u64>,
    ) -> Option<ResolvedTask> {
        // The memtables are read first: data that is flushed between the two reads is then in the version.
        let unflushed = store.oldest_unflushed();
        let version = store.version.load_full();
        let now_micros = self.storage.disk.clock().unix_micros();
        let gc_before = self.gc_before(store, now_micros);
        for lives in groups(version.sstables()) {
            let compacting: BTreeSet<u64> = (0..)
                .zip(&lives)
                .filter(|(_, live)| taken.contains(&live.serial()))
                .map(|(id, _)| id)
                .collect();
            let moment = PickContext {
                now_ms: now_micros / 1000,
                gc_before,
                compacting: &compacting,
                memtable_min_timestamp: Some(unflushed).filter(|at| *at != i64::MAX),
                flush_size: store.flush_size.load(Relaxed),
            };
            let candidates = candidates(&lives, gc_before, self.storage.disk.clock().now());
            let mut history = store.history.lock();
            if let Some(task) = pick(strategy, &candidates, &moment, &mut history) {
                let is_soon_rewritten = is_soon_rewritten(strategy, &candidates, &task);
                let task = ResolvedTask::of(task, &lives);
                return Some(ResolvedTask { is_soon_rewritten, ..task });
            }
        }
        None
    }

    pub(super) fn gc_before(&self, store: &Store, now_micros: i64) -> i64 {
        let definition = store.definition.load();
        let grace = definition.schema.options.gc_grace_seconds();
        (now_micros / 1_000_000).saturating_sub(i64::from(grace))
    }

    async fn execute(&self, store: &Arc<Store>, _claim: Claim, choice: ResolvedTask) -> Result<()> {
        let ResolvedTask { task, is_soon_rewritten, inputs, expired } = choice;
        panic_point("a compaction");
        if !expired.is_empty() {
            self.remove(store, &expired).await?;
        }
        match (task.output, inputs.as_slice()) {
            (_, []) => return Ok(()),
            (Output::Relevel { level }, [only]) => return self.relevel(store, only, level).await,
            _ => {}
        }
        let kind = match task.reason {
            Reason::TombstoneCompaction => CompactionKind::Tombstone,
            Reason::Compaction | Reason::Expired => CompactionKind::Background,
        };
        let mut shape = Shape::of(kind, task.output);
        if is_soon_rewritten {
            shape.effort = self.storage.options.short_lived_compression;
        }
        CompactionJob::run(self, store, &inputs, shape).await.map(drop)
    }

    /// Gives an SSTable another level: only its statistics change.
    async fn relevel(&self, store: &Arc<Store>, live: &Arc<LiveSSTable>, level: u32) -> Result<()> {
        write_level(&self.storage.disk, live.descriptor(), level).await?;
        let schema = store.definition.load().schema.clone();
        let again = live.reopen(&self.storage.disk, &schema).await?;
        self.tables.admit(store, vec![again], Edit::reopen).await;
        Ok(())
    }
}

/// Writes a level into the statistics of an SSTable.
pub(crate) async fn write_level(disk: &Disk, descriptor: &Descriptor, level: u32) -> Result<()> {
    let path = descriptor.component_path(Component::Statistics);
    let mutation = Mutation { level: i32::try_from(level).ok(), repair: None };
    let new = mutated_statistics(disk, &path, descriptor.version, mutation).await?;
    let purpose = Purpose::CompactionWrite;
    Ok(replace(disk, descriptor, Component::Statistics, &new, purpose).await?)
}

/// The content of a Statistics.db after a change.
pub(crate) async fn mutated_statistics(
    disk: &Disk,
    path: &Path,
    version: Version,
    mutation: Mutation,
) -> Result<Vec<u8>> {
    let old = disk.read(path, MAX_STATISTICS).await?;
    Ok(mutate(&old, version, mutation).map_err(|e| {
        halcyon_sstable::Error::corrupt(path.to_path_buf(), Component::Statistics, e)
    })?)
}

fn candidate(id: u64, live: &Arc<LiveSSTable>, gc_before: i64, now: Instant) -> Candidate {
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
        hotness: live.identity.hotness.rate(now) / live.sstable().estimated_keys().max(1) as f64,
        token_space_coverage: if stats.token_space_coverage.is_nan() {
            0.0
        } else {
            stats.token_space_coverage
        },
    }
}
