//! Runs one compaction.
//!
//! ```text
//!   inputs ─ scan ─┐
//!   inputs ─ scan ─┼─▶ merge ─▶ purge ─▶ writer ─▶ output ( ─▶ next output at the split size )
//!   inputs ─ scan ─┘
//! ```
//! 1. Check the free space.
//! 2. Begin a transaction log; ADD each output to it before its first file exists.
//! 3. Write the stream. Between batches, throttle, report progress and check for cancellation.
//! 4. When all outputs are sealed and durable, the inputs are REMOVEd (unless they are kept). `write` ends here, because a node opens the
//!    outputs before it commits them.
//! 5. Commit the transaction; only then are inputs deleted. On any earlier error the outputs are deleted and the inputs are untouched.
//!
//! Memory: per input its read-ahead buffers and blocks of data, which shrink when there are many inputs; batches and buffers for the
//! output; the Bloom filter, index samples and chunk offsets of the output.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::LocalBoxFuture;
use halcyon_io::{AccessMode, Disk, Purpose, RateLimiter, StreamOptions};
use halcyon_model::options::Compression;
use halcyon_sstable::Error as SSTableError;
use halcyon_sstable::format::statistics::collector::Provenance;
use halcyon_sstable::verify::{Damage, Scrub, ScrubOptions};
use halcyon_sstable::{
    Carry, Descriptor, Effort, ExpirationOverflow, ReadAhead, SSTableId, SSTableScanner,
    SSTableWriter, ScanOptions, Version, Watch, WriterOptions, scan_ahead,
};
use halcyon_stream::{Distinct, Fragment, FragmentStream, Layout, Merge, Purge, PurgeStats};

use crate::expected::ExpectedKeys;
use crate::identity;
use crate::outputs::{Outputs, Own};
use crate::overlap::{PurgeBound, Purging};
use crate::progress::{Progress, Snapshot};
use crate::space::UsableSpace;
use crate::txn_log::{ReplacedFiles, Transaction};
use crate::{Error, Group, Result};

/// The settings for all groups of a table.
#[derive(Clone)]
pub struct Settings {
    /// The folder of the outputs; `None` for the first input's.
    pub output: Option<PathBuf>,
    /// Identifiers of outputs; `None`: of the kind that the inputs have, behind those in the folders. A server, which writes other
    /// SSTables at the same time, gives them out itself.
    pub ids: Option<Arc<dyn Fn() -> SSTableId + Send + Sync>>,
    /// Keep the inputs instead of replacing them.
    pub keep_inputs: bool,
    pub usable_space: UsableSpace,
    pub version: Version,
    pub expiration_overflow: ExpirationOverflow,
    /// `None`: uncompressed.
    pub compression: Option<Compression>,
    /// Spent on the compression.
    pub effort: Effort,
    pub bloom_filter_fp_chance: f64,
    pub min_index_interval: u32,
    pub column_index_size: Option<u64>,
    /// In seconds: tombstones from before can be purged. 0 purges nothing.
    pub gc_before: u32,
    /// In seconds: the time at which expiry is decided.
    pub now: u32,
    /// Materialized views.
    pub strict_liveness: bool,
    /// Bytes of Data.db after which the next partition starts another output.
    pub split_size: Option<u64>,
    /// Outputs get half of what the inputs have, a quarter, and so on; what is smaller than this goes into one.
    pub smallest_half: Option<u64>,
    /// The first tokens of further outputs, ascending.
    pub split_tokens: Vec<i64>,
    /// The level of the outputs; `None` for the lowest of the inputs.
    pub level: Option<i32>,
    /// Outputs fill the levels from `level` on; each level is larger than the previous one by this factor.
    pub level_fanout: Option<u32>,
    /// What outputs say of themselves, their level apart, instead of what they inherit from the inputs.
    pub provenance: Option<Provenance>,
    /// The purge bound beside `Group::elsewhere`: a node's live set and memtables.
    pub purge_bound: Option<Arc<dyn PurgeBound>>,
    pub read_mode: AccessMode,
    pub write_mode: AccessMode,
    pub read_ahead: StreamOptions,
    /// Bytes of all read-ahead buffers; the inputs share them.
    pub read_ahead_budget: usize,
    pub write_buffer: usize,
    /// What is hot of the outputs.
    pub carry: Option<Arc<dyn Carry>>,
    /// Sees what outputs have.
    pub watch: Option<Arc<dyn Watch>>,
    /// The ceiling of stored bytes read per second.
    pub limiter: RateLimiter,
    /// Compress and write on other threads.
    pub own_thread: bool,
    /// Compare what the device gives back of the data with what was written.
    pub read_back: bool,
    /// Keys of partitions whose tombstones go although they are not past gc grace.
    pub forced: BTreeSet<Vec<u8>>,
    /// Take what is sound of the inputs, instead of failing at what is not.
    pub scrub: Option<ScrubOptions>,
}

/// One compaction: what to merge, and what else the table has.
pub type Task = Group;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    pub inputs: usize,
    pub outputs: Vec<Descriptor>,
    /// Uncompressed.
    pub data_read: u64,
    pub data_written: u64,
    /// As stored.
    pub file_read: u64,
    pub file_written: u64,
    pub partitions_written: u64,
    /// `[n]`: partitions that were in exactly n inputs.
    pub merged_partitions: Vec<u64>,
    pub purged: PurgeStats,
    /// Rows of an input that were merged into the one before them.
    pub duplicate_rows: u64,
    /// What was not sound, if that was passed over.
    pub damage: Damage,
}

/// Runs the compaction. Its outputs are live when this returns, its inputs deleted.
pub fn run<'a>(
    disk: &'a Disk,
    task: &'a Task,
    settings: &'a Settings,
    progress: &'a Progress,
) -> LocalBoxFuture<'a, Result<Outcome>> {
    Box::pin(async move { write(disk, task, settings, progress).await?.publish().await })
}

/// Outputs that are complete and durable, in a transaction that is not committed: the caller can still give them up, and does if
/// it cannot open them.
#[must_use = "the outputs are deleted by the next start"]
pub struct Sealed {
    pub outcome: Outcome,
    /// `None`: there was nothing to do.
    transaction: Option<Transaction>,
}

impl Sealed {
    /// The outputs replace the inputs, whose files are the caller's to delete. After an error they do not, unless it is in doubt.
    pub fn commit(self) -> LocalBoxFuture<'static, Result<(Outcome, Option<ReplacedFiles>)>> {
        Box::pin(async move {
            let leftovers = match self.transaction {
                Some(transaction) => Some(transaction.commit().await?),
                None => None,
            };
            Ok((self.outcome, leftovers))
        })
    }

    /// Commits, and deletes the inputs' files.
    pub fn publish(self) -> LocalBoxFuture<'static, Result<Outcome>> {
        Box::pin(async move {
            let (outcome, leftovers) = self.commit().await?;
            if let Some(leftovers) = leftovers {
                leftovers.delete().await?;
            }
            Ok(outcome)
        })
    }

    /// Deletes the outputs; the inputs stay.
    pub fn abort(self) -> LocalBoxFuture<'static, Result<()>> {
        Box::pin(async move {
            match self.transaction {
                Some(transaction) => transaction.abort().await,
                None => Ok(()),
            }
        })
    }
}

/// Merges the inputs into outputs, up to the point of no return.
///
/// Inputs that have rows twice are merged again, with these rows as one: to look for them at first would cost a copy of every row.
pub fn write<'a>(
    disk: &'a Disk,
    task: &'a Task,
    settings: &'a Settings,
    progress: &'a Progress,
) -> LocalBoxFuture<'a, Result<Sealed>> {
    Box::pin(async move {
        match attempt(disk, task, settings, (progress, Rows::AreDistinct)).await {
            Err(Error::SSTable(SSTableError::DuplicateRow(_))) => {
                attempt(disk, task, settings, (progress, Rows::MayRepeat)).await
            }
            other => other,
        }
    })
}

/// Of the inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rows {
    AreDistinct,
    MayRepeat,
}

fn attempt<'a>(
    disk: &'a Disk,
    task: &'a Task,
    settings: &'a Settings,
    (progress, rows): (&'a Progress, Rows),
) -> LocalBoxFuture<'a, Result<Sealed>> {
    Box::pin(async move {
        let Some(first) = task.inputs.first() else {
            return Ok(Sealed { outcome: Outcome::default(), transaction: None });
        };
        let output =
            settings.output.clone().unwrap_or_else(|| first.descriptor().directory.clone());
        check_space(disk, task, &output, settings.usable_space).await?;
        let mut directories = vec![output.clone()];
        if !settings.keep_inputs {
            directories.extend(task.inputs.iter().map(|i| i.descriptor().directory.clone()));
        }
        let id = identity::transaction_id(disk);
        let transaction =
            Transaction::begin(disk, directories, "compaction", &id, settings.version).await?;
        let mut own = Own {
            disk,
            ids: settings.ids.as_deref(),
            version: settings.version,
            limiter: &settings.limiter,
            inputs: &task.inputs,
            directory: output,
            transaction,
        };
        let result = merge_into(disk, task, settings, (progress, rows), &mut own).await;
        let mut transaction = own.transaction;
        let replaced = match result {
            Ok(outcome) => replace(&mut transaction, task, settings).await.map(|()| outcome),
            Err(e) => Err(e),
        };
        match replaced {
            Ok(outcome) => Ok(Sealed { outcome, transaction: Some(transaction) }),
            Err(e) => {
                // If the abort fails too, the log remains, and recovery at the next start finishes the abort.
                let _ = transaction.abort().await;
                Err(e)
            }
        }
    })
}

/// Merges the inputs into outputs that are durable, but whose publishing, like the deletion of their files after an error, is the
/// caller's responsibility.
pub async fn write_into(
    disk: &Disk,
    task: &Task,
    settings: &Settings,
    progress: &Progress,
    outputs: &mut impl Outputs,
) -> Result<Outcome> {
    merge_into(disk, task, settings, (progress, Rows::AreDistinct), outputs).await
}

async fn merge_into(
    disk: &Disk,
    task: &Task,
    settings: &Settings,
    how: (&Progress, Rows),
    outputs: &mut impl Outputs,
) -> Result<Outcome> {
    let mut compaction = Compaction::new(disk, task, settings, how).await?;
    if settings.scrub.is_none() {
        let stream = compaction.stream(compaction.scanners()?).await?;
        return compaction.run(stream, outputs).await;
    }
    compaction.scrub(outputs).await
}

/// Records in the transaction log that the inputs are replaced.
async fn replace(transaction: &mut Transaction, task: &Task, settings: &Settings) -> Result<()> {
    if !settings.keep_inputs {
        for input in &task.inputs {
            transaction.remove(input.descriptor()).await?;
        }
    }
    Ok(())
}

/// Checks the free space: the outputs are at most as large as the inputs, apart from differences between compressors.
async fn check_space(
    disk: &Disk,
    task: &Task,
    output: &std::path::Path,
    usable: UsableSpace,
) -> Result<()> {
    let needed: u64 = task.inputs.iter().map(|i| i.file_length() + i.file_length() / 16).sum();
    let free = usable.of(disk.free_space(output).await?);
    if free < needed {
        return Err(Error::NoSpace { directory: output.to_path_buf(), needed, free });
    }
    Ok(())
}

struct Compaction<'a> {
    disk: &'a Disk,
    task: &'a Task,
    settings: &'a Settings,
    rows: Rows,
    progress: &'a Progress,
    base: Snapshot,
    layout: Arc<Layout>,
    expected: ExpectedKeys,
    outcome: Outcome,
    /// Stored bytes that the pace already counts.
    paced: u64,
    /// Boundaries passed so far.
    shard: usize,
    /// Full levels, and the bytes written when the last of them became full.
    full_levels: i32,
    written_before: u64,
}

/// An input as it is read.
trait Source: FragmentStream<Error = SSTableError> {
    /// How far its data has been read, and its length.
    fn progress(&self) -> (u64, u64);
}

impl Source for SSTableScanner<ReadAhead> {
    fn progress(&self) -> (u64, u64) {
        SSTableScanner::progress(self)
    }
}

impl Source for Scrub {
    fn progress(&self) -> (u64, u64) {
        Scrub::progress(self)
    }
}

type Stream<S> = Purge<Merge<Distinct<S>>, Purging>;

impl<'a> Compaction<'a> {
    async fn new(
        disk: &'a Disk,
        task: &'a Task,
        settings: &'a Settings,
        (progress, rows): (&'a Progress, Rows),
    ) -> Result<Compaction<'a>> {
        let layout = Layout::union(identity::oldest_first(&task.inputs).map(|i| i.layout()))?;
        let expected = ExpectedKeys::of(disk, &task.inputs, &layout, &settings.split_tokens).await;
        progress.add_total(task.inputs.iter().map(|i| i.data_length()).sum());
        Ok(Compaction {
            disk,
            task,
            settings,
            rows,
            progress,
            base: progress.snapshot(),
            expected,
            layout,
            outcome: Outcome { inputs: task.inputs.len(), ..Outcome::default() },
            paced: 0,
            shard: 0,
            full_levels: 0,
            written_before: 0,
        })
    }

    /// What is sound of the inputs; what is out of order there comes into outputs of its own.
    async fn scrub(&mut self, outputs: &mut impl Outputs) -> Result<Outcome> {
        /// Outputs of one input. More of them mean that its rows have no order at all.
        const ORDERS_MAX: usize = 100;
        let options = self.settings.scrub.unwrap_or_default();
        let mut scrubs = Vec::with_capacity(self.task.inputs.len());
        for input in identity::oldest_first(&self.task.inputs) {
            scrubs.push(Scrub::start(self.disk, input, self.scan(), options).await?);
        }
        let mut damage = Damage::default();
        for _ in 0..ORDERS_MAX {
            let mut stream = self.stream(scrubs).await?;
            self.fill(&mut stream, outputs).await?;
            scrubs = Vec::new();
            for source in stream.inner().sources() {
                damage.add(source.inner().damage());
                scrubs.extend(source.inner().apart().await?);
            }
            if scrubs.is_empty() {
                let outcome = self.end(&stream);
                return Ok(Outcome { damage, ..outcome });
            }
        }
        let what = format!("rows out of order in {ORDERS_MAX} places; restore the SSTable");
        Err(SSTableError::Invalid(what).into())
    }

    async fn run<S: Source>(
        &mut self,
        mut stream: Stream<S>,
        outputs: &mut impl Outputs,
    ) -> Result<Outcome> {
        self.fill(&mut stream, outputs).await?;
        Ok(self.end(&stream))
    }

    /// Writes the stream into outputs that are sealed.
    async fn fill<S: Source>(
        &mut self,
        stream: &mut Stream<S>,
        outputs: &mut impl Outputs,
    ) -> Result<()> {
        let mut writer: Option<SSTableWriter> = None;
        let written = self.pump(stream, &mut writer, outputs).await;
        match (written, writer) {
            (Ok(()), Some(writer)) => self.seal(writer).await?,
            (Ok(()), None) => {}
            (Err(e), writer) => {
                if let Some(writer) = writer {
                    writer.abandon().await;
                }
                return Err(e);
            }
        }
        Ok(())
    }

    fn end<S: Source>(&mut self, stream: &Stream<S>) -> Outcome {
        self.report(stream, None);
        let outcome = &mut self.outcome;
        outcome.data_read = self.task.inputs.iter().map(|i| i.data_length()).sum();
        outcome.file_read = self.task.inputs.iter().map(|i| i.file_length()).sum();
        outcome.merged_partitions = stream.inner().counts().to_vec();
        outcome.purged = stream.stats();
        let sources = stream.inner().sources().iter();
        outcome.duplicate_rows = sources.map(Distinct::duplicates).sum();
        std::mem::take(outcome)
    }

    fn scan(&self) -> ScanOptions {
        let Settings { read_ahead, read_ahead_budget, .. } = *self.settings;
        ScanOptions {
            mode: self.settings.read_mode,
            purpose: Purpose::CompactionRead,
            stream: read_ahead.within(read_ahead_budget, self.task.inputs.len()),
            layout: Some(self.layout.clone()),
            verify_checksums: true,
        }
    }

    fn scanners(&self) -> Result<Vec<SSTableScanner<ReadAhead>>> {
        let inputs = identity::oldest_first(&self.task.inputs);
        Ok(scan_ahead(self.disk, inputs, &self.scan())?)
    }

    async fn stream<S: Source>(&self, sources: Vec<S>) -> Result<Stream<S>> {
        let merges = self.rows == Rows::MayRepeat;
        let distinct = |source| Distinct::new(self.layout.clone(), source, merges);
        let merge = Merge::new(self.layout.clone(), sources.into_iter().map(distinct).collect());
        let settings = self.settings;
        let rule = Purging::load(
            self.disk,
            self.task,
            self.layout.clone(),
            (settings.gc_before, settings.now),
            (settings.strict_liveness, settings.forced.clone()),
            settings.purge_bound.clone(),
        )
        .await?;
        Ok(Purge::new(merge, rule))
    }

    /// Writes the stream into outputs.
    async fn pump<S: Source>(
        &mut self,
        stream: &mut Stream<S>,
        output: &mut Option<SSTableWriter>,
        outputs: &mut impl Outputs,
    ) -> Result<()> {
        /// Fragments after which to check for cancellation, even if nothing is written.
        const PATIENCE: u32 = 4096;
        let mut unattended = 0;
        loop {
            match stream.advance_within(PATIENCE).await? {
                Some(true) => {}
                Some(false) => return Ok(()),
                None => {
                    self.report(stream, output.as_ref());
                    self.pause(stream, outputs).await?;
                    continue;
                }
            }
            let fragment = stream.fragment();
            if let Fragment::Start(start) = fragment {
                let token = start.key.token;
                self.stop_if_cancelled()?;
                self.outcome.partitions_written += 1;
                let crossed = self.crosses(token);
                if (crossed || self.is_full(output.as_ref()))
                    && let Some(full) = output.take()
                {
                    self.seal(full).await?;
                    self.fill_level();
                }
                if output.is_none() {
                    *output = Some(self.create(token, outputs).await?);
                }
            }
            let Some(writer) = output.as_mut() else { continue };
            writer.append(fragment)?;
            unattended += 1;
            if writer.wants_drain() || unattended == PATIENCE {
                unattended = 0;
                writer.drain().await?;
                self.report(stream, output.as_ref());
                self.pause(stream, outputs).await?;
            }
        }
    }

    /// Whether the partition is past the next boundary.
    fn crosses(&mut self, first: i64) -> bool {
        let tokens = self.settings.split_tokens.get(self.shard..).unwrap_or_default();
        let passed = tokens.iter().take_while(|token| first >= **token).count();
        self.shard += passed;
        passed > 0
    }

    fn is_full(&self, writer: Option<&SSTableWriter>) -> bool {
        let size = writer.map_or(0, SSTableWriter::file_position);
        self.settings.split_size.is_some_and(|split| size >= split)
            || self.half().is_some_and(|half| size as f64 > half)
    }

    /// The size of the current output, if outputs are halves (`SplittingSizeTieredCompactionWriter`) and this is not the last.
    fn half(&self) -> Option<f64> {
        const HALVES_MAX: usize = 20;
        let smallest = self.settings.smallest_half?;
        let output = self.outcome.outputs.len();
        let total: u64 = self.task.inputs.iter().map(|input| input.file_length()).sum();
        let half = total as f64 / f64::from(1u32 << output.min(HALVES_MAX)) / 2.0;
        (output + 1 < HALVES_MAX && half >= smallest as f64).then_some(half)
    }

    /// Accounts for an output in its level, and goes to the next level if it is full (`MajorLeveledCompactionWriter`).
    fn fill_level(&mut self) {
        let Settings { level_fanout, split_size, level, .. } = *self.settings;
        let (Some(fanout), Some(size), Some(first)) = (level_fanout, split_size, level) else {
            return;
        };
        let written = self.outcome.file_written;
        let max = size as f64 * f64::from(fanout).powi(first + self.full_levels);
        if (written - self.written_before) as f64 > max {
            self.full_levels += 1;
            self.written_before = written;
        }
    }

    fn report<S: Source>(&self, stream: &Stream<S>, writer: Option<&SSTableWriter>) {
        let read = stream.inner().sources().iter().map(|s| s.inner().progress().0).sum();
        let run = Snapshot {
            data_read: read,
            data_total: 0,
            data_written: self.outcome.data_written
                + writer.map_or(0, SSTableWriter::data_position),
            file_written: self.outcome.file_written
                + writer.map_or(0, SSTableWriter::file_position),
            partitions: self.outcome.partitions_written,
        };
        self.progress.set(self.base, run);
    }

    fn stop_if_cancelled(&self) -> Result<()> {
        if self.progress.is_cancelled() { Err(Error::Cancelled) } else { Ok(()) }
    }

    /// Throttles; fails if the compaction was cancelled.
    async fn pause<S: Source>(
        &mut self,
        stream: &Stream<S>,
        outputs: &mut impl Outputs,
    ) -> Result<()> {
        self.stop_if_cancelled()?;
        let inputs = identity::oldest_first(&self.task.inputs);
        let stored = inputs.zip(stream.inner().sources()).map(|(input, scanner)| {
            let (read, all) = scanner.inner().progress();
            (u128::from(read) * u128::from(input.file_length()) / u128::from(all.max(1))) as u64
        });
        let stored: u64 = stored.sum();
        outputs.pace(stored.saturating_sub(self.paced)).await?;
        self.paced = self.paced.max(stored);
        Ok(())
    }

    async fn create(&self, first: i64, outputs: &mut impl Outputs) -> Result<SSTableWriter> {
        let inputs = &self.task.inputs;
        let descriptor = outputs.grant(first).await?;
        let expected: u64 = inputs.iter().map(|i| i.file_length()).sum();
        let options = WriterOptions {
            mode: self.settings.write_mode,
            purpose: Purpose::CompactionWrite,
            buffer_size: self.settings.write_buffer,
            expected_length: expected.min(self.settings.split_size.unwrap_or(u64::MAX)),
            compression: self.settings.compression.clone(),
            effort: self.settings.effort,
            estimated_keys: self.expected_keys(first),
            min_index_interval: self.settings.min_index_interval,
            column_index_size: self.settings.column_index_size,
            own_thread: self.settings.own_thread,
            read_back: self.settings.read_back,
            expiration_overflow: self.settings.expiration_overflow,
            provenance: self.provenance(),
        };
        let bases = identity::bases(inputs);
        let layout = self.layout.clone();
        let created =
            SSTableWriter::create(self.disk, descriptor.clone(), layout, bases, options).await;
        let mut created = created.inspect_err(|e| outputs.create_failed(&descriptor, e))?;
        created.carry(self.settings.carry.clone());
        created.watched_by(self.settings.watch.clone());
        Ok(created)
    }

    /// Of an output that begins at a token.
    fn expected_keys(&self, first: i64) -> u64 {
        let until = self.settings.split_tokens.get(self.shard).copied();
        let size = self.settings.split_size.map(|size| size as f64);
        // Outputs between boundaries end for two reasons, so their average is at most what one of the full size has.
        let outputs = self.outcome.outputs.len() as u64;
        let before = self.outcome.partitions_written.checked_div(outputs);
        self.expected.of_output(
            first,
            until,
            size.or(self.half()),
            before.filter(|_| size.is_some()),
        )
    }

    fn provenance(&self) -> Provenance {
        let mut provenance = match &self.settings.provenance {
            Some(given) => given.clone(),
            None => {
                let class = self.layout.partitioner.class_name();
                let mut own = Provenance::new(class, self.settings.bloom_filter_fp_chance);
                identity::inherit(&mut own, &self.task.inputs);
                own
            }
        };
        provenance.level = self.settings.level.unwrap_or(provenance.level) + self.full_levels;
        provenance
    }

    async fn seal(&mut self, writer: SSTableWriter) -> Result<()> {
        self.outcome.data_written += writer.data_position();
        let sealed = writer.seal().await?;
        self.outcome.file_written += sealed.file_length;
        self.outcome.outputs.push(sealed.descriptor);
        Ok(())
    }
}
