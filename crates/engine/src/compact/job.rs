//! One compaction, from inputs that its caller has claimed to the next version.
//!
//! ```text
//!  write ──► open ──► commit ──► install ──► record
//!    │         │         │
//!    ▼         ▼         ▼
//!  an error of these steps leaves the inputs live; a COMMIT in doubt leaves the choice to the next start
//! ```
//! 1. **Write**: the inputs are merged into outputs, in a transaction.
//! 2. **Open**: the outputs are opened and get their indexes before the commit: one that cannot be opened is deleted, and the inputs stay.
//!    What is hot of them goes into the shards' caches.
//! 3. **Commit**: from here on nothing fails any more that could leave the live set without what the disk has. The inputs' files are
//!    deleted after their last reader.
//! 4. **Install**: an edit of the version replaces the inputs by the outputs.
//! 5. **Record**: a line of the log and a row of `system.compaction_history`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use halcyon_compaction::strategy::{Output, shard_boundaries};
use halcyon_compaction::{Group, Outcome, Progress, Sealed, Settings, write};
use halcyon_io::StreamOptions;
use halcyon_sstable::verify::ScrubOptions;
use halcyon_sstable::{Carry, Effort, ExpirationOverflow, Version};

use super::task::{CompactionKind, Running};
use super::{Compactor, history};
use crate::caches::carried::Carrier;
use crate::guardrails::Watched;
use crate::tables::store::Store;
use crate::version::{Edit, LiveSSTable, LiveSetBound, replaced};
use crate::{Event, Result};

/// Read-ahead of one compaction, all its inputs together. Beside it the output has its buffers in three eighths of the default
/// `io_buffer_budget`; with more, streams wait for each other's.
const READ_AHEAD: usize = 20 << 20;

/// What outputs look like.
#[derive(Debug, Clone, Default)]
pub(super) struct Shape {
    pub(super) kind: CompactionKind,
    /// Spent on the compression.
    pub(super) effort: Effort,
    level: Option<i32>,
    split_size: Option<u64>,
    split_tokens: Vec<i64>,
    level_fanout: Option<u32>,
    smallest_half: Option<u64>,
    /// Keys of partitions whose tombstones go without gc grace.
    pub(super) forced: BTreeSet<Vec<u8>>,
    /// What is sound is copied as it is: nothing is purged.
    pub(super) scrub: Option<ScrubOptions>,
}

impl Shape {
    pub(super) fn of(kind: CompactionKind, output: Output) -> Shape {
        let level = |level| i32::try_from(level).ok();
        let shape = Shape { kind, ..Shape::default() };
        match output {
            Output::Single { level: of } | Output::Relevel { level: of } => {
                Shape { level: level(of), ..shape }
            }
            Output::Sized { level: of, max_size } => {
                Shape { level: level(of), split_size: Some(max_size), ..shape }
            }
            Output::Levels { max_size, fanout } => Shape {
                level: Some(1),
                split_size: Some(max_size),
                level_fanout: Some(fanout),
                ..shape
            },
            Output::Halves { smallest } => {
                Shape { level: Some(0), smallest_half: Some(smallest), ..shape }
            }
            Output::Sharded { shards } => Shape { split_tokens: shard_boundaries(shards), ..shape },
        }
    }
}

/// Takes a compaction off the list of those that run.
struct Listed<'a>(&'a Compactor, u64);

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        let mut running = self.0.running();
        let Some(at) = running.iter().position(|running| running.number == self.1) else { return };
        let ended = running.swap_remove(at);
        self.0.ended.add_shared(1);
        self.0.ended_bytes.add_shared(ended.progress.snapshot().data_total);
    }
}

pub(super) struct CompactionJob<'a> {
    compactor: &'a Compactor,
    store: &'a Arc<Store>,
    inputs: &'a [Arc<LiveSSTable>],
    running: Running,
    /// Carries what is hot of the inputs over; `None`: nothing of the table is.
    carrier: Option<Arc<Carrier>>,
}

impl<'a> CompactionJob<'a> {
    /// Runs a compaction on the caller's thread.
    pub(super) async fn run(
        compactor: &'a Compactor,
        store: &'a Arc<Store>,
        inputs: &'a [Arc<LiveSSTable>],
        shape: Shape,
    ) -> Result<Outcome> {
        let running = begin(compactor, store, inputs, &shape);
        let listed = Listed(compactor, running.number);
        // What is hot of a damaged SSTable may not be readable.
        let carrier = match shape.scrub {
            None => compactor.tables.memory.carrier(store, true),
            Some(_) => None,
        };
        let is_scrub = shape.scrub.is_some();
        let job = CompactionJob { compactor, store, inputs, running, carrier };
        let (sealed, outputs) = job.open(job.write(shape).await?).await?;
        let outcome = job.commit(sealed, &outputs).await?;
        job.install(outputs).await;
        store.compaction_bytes_written.add_shared(outcome.file_written);
        drop(listed);
        history::record(compactor, &job.running, &outcome).await;
        if is_scrub {
            job.report_scrub(&outcome);
        }
        Ok(outcome)
    }

    async fn write(&self, shape: Shape) -> Result<Sealed> {
        let inputs = self.inputs.iter().map(|live| live.sstable().clone()).collect();
        let group = Group { inputs, elsewhere: Vec::new() };
        let settings = self.settings(shape);
        Ok(write(self.compactor.disk(), &group, &settings, self.progress()).await?)
    }

    /// Opens the outputs, and hands what is hot of them over to the caches. The transaction is undone if that fails.
    async fn open(&self, sealed: Sealed) -> Result<(Sealed, Vec<Arc<LiveSSTable>>)> {
        match self.open_outputs(&sealed.outcome).await {
            Ok(opened) => {
                for live in &opened {
                    let carrier = self.carrier.as_ref();
                    self.compactor.tables.hand_over(self.store, live, carrier).await;
                }
                Ok((sealed, opened))
            }
            Err(e) => {
                // Where even the cleaning fails, the log stays and the next start finishes it.
                let _ = sealed.abort().await;
                Err(e)
            }
        }
    }

    async fn open_outputs(&self, outcome: &Outcome) -> Result<Vec<Arc<LiveSSTable>>> {
        let storage = &self.compactor.storage;
        let definition = self.store.definition.load_full();
        let mut opened = Vec::with_capacity(outcome.outputs.len());
        for output in &outcome.outputs {
            let mode = storage.options.read_mode;
            let live = LiveSSTable::open(&storage.disk, output, &definition.schema, mode).await?;
            let continues = |_| !self.progress().is_cancelled();
            storage.build_indexes(&live, &definition.indexes, continues).await?;
            opened.push(live);
        }
        Ok(opened)
    }

    async fn commit(&self, sealed: Sealed, outputs: &[Arc<LiveSSTable>]) -> Result<Outcome> {
        let tables = &self.compactor.tables;
        let (outcome, leftovers) = match sealed.commit().await {
            Ok(committed) => committed,
            Err(e) => {
                if matches!(e, halcyon_compaction::Error::InDoubt(_)) {
                    // Until the next start the inputs stay as they are, or what they hold could be purged and come back with the outputs.
                    self.inputs.iter().for_each(|live| live.suspect());
                    self.store.doubt();
                }
                tables.forget(outputs, self.carrier.clone())().await;
                return Err(e.into());
            }
        };
        if let Some(leftovers) = leftovers {
            let forget = tables.forget(self.inputs, self.carrier.clone());
            replaced(self.inputs, leftovers, forget, self.compactor.background.clone());
        }
        Ok(outcome)
    }

    async fn install(&self, outputs: Vec<Arc<LiveSSTable>>) {
        let edit = |outputs| Edit::replace(self.inputs, outputs);
        self.compactor.tables.admit(self.store, outputs, edit).await;
    }

    fn report_scrub(&self, outcome: &Outcome) {
        let input = self.inputs.first().map(|input| input.descriptor().to_string());
        self.compactor.reporter.report(Event::Scrubbed {
            sstable: input.unwrap_or_default(),
            partitions: outcome.partitions_written,
            damage: Box::new(outcome.damage.clone()),
        });
    }

    fn progress(&self) -> &Progress {
        &self.running.progress
    }

    /// The version of the outputs. What was written in a version with late expirations stays in one.
    fn output_version(&self) -> Version {
        let inputs: Vec<_> = self.inputs.iter().map(|live| live.sstable().clone()).collect();
        let late = inputs.iter().any(|input| input.descriptor().version.has_uint_deletion_time());
        halcyon_compaction::version_holding(self.compactor.storage.version, &inputs, late)
    }

    fn settings(&self, shape: Shape) -> Settings {
        let (store, storage) = (self.store, &self.compactor.storage);
        let definition = store.definition.load_full();
        let (options, own) = (&definition.schema.options, &storage.options);
        let now = u32::try_from(storage.disk.clock().unix_seconds()).unwrap_or(u32::MAX);
        let ids = {
            let (store, storage) = (store.clone(), storage.clone());
            move || store.fresh_id(&storage.disk, &storage.options)
        };
        let serials = self.inputs.iter().map(|live| live.serial()).collect();
        let bound = LiveSetBound::new(store.clone(), serials);
        let purges = shape.scrub.is_none();
        Settings {
            output: None,
            ids: Some(Arc::new(ids)),
            keep_inputs: false,
            usable_space: own.compaction_space,
            version: self.output_version(),
            expiration_overflow: ExpirationOverflow::Cap,
            compression: options.compression(),
            effort: shape.effort,
            bloom_filter_fp_chance: options.bloom_filter_fp_chance(),
            min_index_interval: options.min_index_interval(),
            column_index_size: own.index_distance(),
            gc_before: if purges { now.saturating_sub(options.gc_grace_seconds()) } else { 0 },
            now: if purges { now } else { 0 },
            strict_liveness: purges && definition.schema.strict_liveness,
            split_size: shape.split_size,
            smallest_half: shape.smallest_half,
            split_tokens: shape.split_tokens,
            level: shape.level,
            level_fanout: shape.level_fanout,
            provenance: None,
            purge_bound: Some(Arc::new(bound)),
            read_mode: own.background_read_mode,
            write_mode: own.background_write_mode,
            read_ahead: StreamOptions::default(),
            read_ahead_budget: READ_AHEAD,
            write_buffer: own.direct_write_buffer_size,
            carry: self.carrier.clone().map(|carrier| carrier as Arc<dyn Carry>),
            watch: Watched::of(&self.store.table(), own, &self.compactor.reporter),
            limiter: self.compactor.pace.limiter.clone(),
            own_thread: true,
            read_back: false,
            forced: shape.forced,
            scrub: shape.scrub,
        }
    }
}

/// Puts a compaction on the list of those that run.
fn begin(
    compactor: &Compactor,
    store: &Arc<Store>,
    inputs: &[Arc<LiveSSTable>],
    shape: &Shape,
) -> Running {
    let table = store.table();
    let stats = |live: &Arc<LiveSSTable>| live.sstable().statistics().stats.level;
    let level = inputs.iter().map(stats).min().unwrap_or(0);
    let directory = inputs.first().map(|i| i.descriptor().directory.display().to_string());
    let running = Running {
        number: compactor.next.fetch_add(1, Relaxed),
        id: compactor.storage.fresh_timeuuid(),
        store: store.clone(),
        keyspace: table.schema.keyspace.clone(),
        table: table.schema.name.clone(),
        kind: shape.kind,
        effort: shape.effort,
        level: shape.level.unwrap_or(level),
        sstables: inputs.len(),
        bytes: inputs.iter().map(|i| i.sstable().file_length()).sum(),
        directory: directory.unwrap_or_default(),
        began: compactor.disk().clock().now(),
        progress: Progress::default(),
    };
    compactor.running().push(running.clone());
    if compactor.schedule.is_stopped() {
        running.progress.cancel();
    }
    running
}
