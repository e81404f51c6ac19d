//! The write path.
//!
//! 1. Refuse the write if the engine has stopped; delay it while memtables wait for the disk.
//! 2. Pin the memtables and reserve the record's position in the log, in one step. So a memtable frozen at a later position has every
//!    write below it, or a pin for it.
//! 3. Wait until the record is durable, as `commitlog_sync` promises.
//! 4. Apply the mutations to the pinned memtables in one step: no read sees a part of them. If that step would hold the shard
//!    for long, this is true of each mutation alone (`large.rs`).

use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use halcyon_commitlog::{Append, Hold, Oldest, SyncMode};
use halcyon_io::{drop_apart, panic_point, spent};
use halcyon_stream::{EMPTY_PARTITION, Mutation, TableId};

use super::large::{self, Turns};
use super::spanning::Parts;
use crate::current::Current;
use crate::memtable::Pin;
use crate::metrics::samplers::{Sampler, Samplers};
use crate::metrics::table::Measure;
use crate::shard::{Shard, ShardTable};
use crate::{Error, Result};

/// A mutation and the memtable that it pins.
pub(super) struct Pinned {
    pub(super) table: Rc<ShardTable>,
    pin: Pin,
    mutation: Mutation,
    /// Whether it is logged (`durable_writes` of the keyspace).
    durable: bool,
}

impl Shard {
    /// Applies mutations of partitions that this shard owns, all of them or none after a crash; returns when they are
    /// durable (as `commitlog_sync` promises) and visible.
    pub async fn apply(&self, mutations: Vec<Mutation>) -> Result<()> {
        self.reporter().check()?;
        self.wait_for_space().await?;
        self.wait_for_compaction(&mutations).await;
        let (mut mutations, mut record) = (mutations, None);
        mutations.retain(|mutation| !mutation.is_empty());
        if large::are_large(&mutations) {
            let (encoded, bytes) = self.encode_apart(mutations).await?;
            (mutations, record) = (encoded, Some(bytes));
        }
        let pinned = self.pin(mutations)?;
        match self.log_record(&pinned, record.as_deref()) {
            Ok(Some(append)) => self.until_durable(append).await?,
            Ok(None) => {}
            Err(error) => {
                if record.is_some() {
                    drop_apart(
                        pinned.into_iter().map(|pinned| pinned.mutation).collect::<Vec<_>>(),
                    );
                }
                return Err(error);
            }
        }
        self.apply_pinned(pinned, None).await
    }

    /// Pins the memtables of mutations that are to be applied.
    pub(super) fn pin(&self, mutations: Vec<Mutation>) -> Result<Vec<Pinned>> {
        let mut pinned: Vec<Pinned> = Vec::with_capacity(mutations.len());
        let mut last: Option<(Rc<ShardTable>, Rc<Current>)> = None;
        for mut mutation in mutations {
            let known = last.take().filter(|(table, _)| table.store.id == mutation.table);
            let (table, current) = match known {
                Some(known) => known,
                None => {
                    let unknown =
                        || Error::UnknownTable(halcyon_model::hex::encode(&mutation.table));
                    let table = self.table_by_id(mutation.table).ok_or_else(unknown)?;
                    let current = table.current();
                    (table, current)
                }
            };
            current.adopt(&mut mutation);
            let durable = current.definition.durable;
            let pin = table.active().pin();
            pinned.push(Pinned { table: table.clone(), pin, mutation, durable });
            last = Some((table, current));
        }
        Ok(pinned)
    }

    /// Applies mutations whose record is durable. `hold`: of that record, if another shard has logged it.
    pub(super) async fn apply_pinned(
        &self,
        pinned: Vec<Pinned>,
        hold: Option<&Hold>,
    ) -> Result<()> {
        let _changing = self.reporter().changing("memtables");
        let mut turns = Turns::default();
        let mut began = self.now();
        let mut pinned = pinned.into_iter().peekable();
        while let Some(Pinned { table, pin, mutation, .. }) = pinned.next() {
            turns.count(&mutation).await;
            if let Some(hold) = hold {
                pin.hold(hold);
            }
            sample(&table.metrics().samplers, &mutation);
            let by = if large::is_large(&mutation) || pin.is_slow(&mutation) {
                let of = (mutation.table, mutation.key.clone());
                let is_next =
                    |next: &Pinned| next.mutation.key == of.1 && next.mutation.table == of.0;
                let mut mutations = vec![mutation];
                mutations.extend(std::iter::from_fn(|| Some(pinned.next_if(is_next)?.mutation)));
                Box::pin(self.apply_apart(&pin, of, mutations)).await?
            } else {
                let _turn = self.wait_for_large(&mutation).await;
                self.rows.forget(mutation.table, &mutation.key);
                panic_point("an apply");
                pin.apply(mutation)?
            };
            let metrics = table.metrics();
            let now = self.now();
            metrics.record_time(Measure::LocalWrite, began, now);
            began = now;
            metrics.memtable_bytes.add(by.max(0) as u64);
            let (oldest, partitions) = pin
                .slot()
                .with(|memtable| (memtable.min_timestamp(), memtable.partition_count() as u64));
            metrics.lower_min_timestamp(oldest);
            // A write that finds its memtable frozen counts it as the active one until the next write or flush.
            metrics.active_partitions.set(partitions);
            self.note_growth(&table, by);
        }
        Ok(())
    }

    /// Whether writes are acknowledged before a power failure cannot take them any more.
    pub fn syncs_later(&self) -> bool {
        matches!(self.options().commitlog.sync, SyncMode::Periodic { .. })
    }

    /// Makes durable what this shard has logged.
    pub async fn sync_log(&self) -> Result<()> {
        self.log.sync().await.map_err(|e| self.log_failed(e))
    }

    /// Writes to a table whose compaction is too far behind are slowed.
    pub(super) async fn wait_for_compaction(&self, mutations: &[Mutation]) {
        let wait = |mutation: &Mutation| {
            let table = self.table_by_id(mutation.table)?;
            Some(table.store.write_wait_us.load(Relaxed)).filter(|micros| *micros > 0)
        };
        let of_tables = mutations.chunk_by(|a, b| a.table == b.table);
        if let Some(micros) = of_tables.filter_map(|of_table| wait(of_table.first()?)).max() {
            let wait = Duration::from_micros(u64::from(micros));
            self.disk().clock().sleep(wait).await;
        }
    }

    /// Waits for the group of a record.
    pub(super) async fn until_durable(&self, append: Append) -> Result<()> {
        let began = self.now();
        let durable = append.durable().await;
        spent::log(self.now() - began);
        durable.map_err(|e| self.log_failed(e))
    }

    /// Applies the policy to a failed log; a log that lacks space continues once there is some.
    pub(super) fn log_failed(&self, error: halcyon_commitlog::Error) -> Error {
        match error {
            halcyon_commitlog::Error::Failed(_) => self.reporter().log_failed(error.to_string()),
            halcyon_commitlog::Error::Broken => {
                self.reporter().broken("the commit log's positions")
            }
            halcyon_commitlog::Error::NoSpace(_) => self.reporter().log_is_full(error.to_string()),
            _ => {}
        }
        error.into()
    }

    /// Appends the mutations to the log, or what they were encoded to already; `None` if none is logged.
    fn log_record(&self, pinned: &[Pinned], encoded: Option<&[u8]>) -> Result<Option<Append>> {
        let logged = || logged(pinned);
        let tables = tables(logged());
        if tables.is_empty() {
            return Ok(None);
        }
        let mut writer = self.record.borrow_mut();
        let record = encoded.unwrap_or_else(|| writer.mutations(logged().count(), logged()));
        self.check_size(record, logged())?;
        self.log.append(record, &tables).map(Some).map_err(|e| self.log_failed(e))
    }

    /// Appends the record of several shards, of which these mutations are this shard's.
    pub(super) fn log_spanning(
        &self,
        (record, parts): (&[u8], &Parts),
        pinned: &[Pinned],
        oldest_writes: &Oldest,
    ) -> Result<(Append, Hold)> {
        let own = tables(logged(pinned));
        let others = parts.iter().flat_map(|(_, part)| part);
        self.check_size(record, pinned.iter().map(|pinned| &pinned.mutation).chain(others))?;
        self.log.append_spanning(record, &own, oldest_writes).map_err(|e| self.log_failed(e))
    }

    /// `MutationExceededMaxSizeException`.
    fn check_size<'m>(
        &self,
        record: &[u8],
        mutations: impl Iterator<Item = &'m Mutation>,
    ) -> Result<()> {
        let (size, most) = (record.len(), self.options().commitlog.segment_size as usize / 2);
        if size <= most {
            return Ok(());
        }
        let (mut keyspace, mut keys) = (String::new(), Vec::new());
        for mutation in mutations.take(16) {
            let Some(table) = self.table_by_id(mutation.table) else { continue };
            let table = table.store.table();
            let key = halcyon_model::hex::encode(&mutation.key.bytes);
            keys.push(format!("{}.{key}", table.schema.name));
            keyspace.clone_from(&table.schema.keyspace);
        }
        Err(Error::Invalid(format!(
            "Rejected an oversized mutation ({size}/{most}) for keyspace: {keyspace}. Top keys are: {}",
            keys.join(",")
        )))
    }
}

fn sample(samplers: &Samplers, mutation: &Mutation) {
    if samplers.are_on() {
        let key = &mutation.key.bytes;
        samplers.add(Sampler::Writes, key, 1);
        let size = EMPTY_PARTITION + mutation.data_size();
        samplers.add(Sampler::WriteSize, key, size as u64);
    }
}

/// What is logged.
fn logged(pinned: &[Pinned]) -> impl Iterator<Item = &Mutation> + Clone {
    pinned.iter().filter(|pinned| pinned.durable).map(|pinned| &pinned.mutation)
}

fn tables<'m>(mutations: impl Iterator<Item = &'m Mutation>) -> Vec<TableId> {
    let mut tables = Vec::new();
    for mutation in mutations {
        if !tables.contains(&mutation.table) {
            tables.push(mutation.table);
        }
    }
    tables
}
