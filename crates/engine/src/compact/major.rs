//! Compactions on request (`nodetool compact`): of all SSTables of a table, or of some (`selection`), into the strategy's form (one
//! SSTable, levels or shards), separately for each repair state.
//!
//! The result of the last one of each table is kept until the node stops, for `halcyon_views.major_compactions`.

use std::sync::{Arc, MutexGuard};

use futures_channel::oneshot;
use futures_util::future::LocalBoxFuture;
use halcyon_compaction::strategy::{Candidate, Output, Reason, Task, major, user_defined};
use halcyon_compaction::{Error::Cancelled, Outcome};
use halcyon_io::{JobLost, contained, panic_point};
use halcyon_stream::TableId;

use super::Compactor;
use super::job::{CompactionJob, Shape};
use super::pick::{ResolvedTask, candidates, groups, strategy_of};
use super::schedule::Request;
use super::selection::Selection;
use super::task::{CompactionKind, Running};
use crate::tables::store::Store;
use crate::version::LiveSSTable;
use crate::{Error, Result};

/// A major compaction and its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MajorCompaction {
    pub keyspace: String,
    pub table: String,
    /// What limits it, as it was asked for.
    pub argument: Option<String>,
    pub state: MajorState,
    /// Milliseconds since 1970.
    pub started_ms: i64,
    pub ended_ms: Option<i64>,
    pub sstables_in: usize,
    pub sstables_out: usize,
    /// Stored bytes.
    pub bytes_in: u64,
    pub bytes_out: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MajorState {
    /// Running, or waiting for its turn.
    Running,
    Done,
    /// Stopped on request; the SSTables are unchanged.
    Stopped,
    Failed(String),
}

impl MajorCompaction {
    fn begin(store: &Store, argument: Option<String>, now_ms: i64) -> MajorCompaction {
        let table = store.table();
        MajorCompaction {
            keyspace: table.schema.keyspace.clone(),
            table: table.schema.name.clone(),
            argument,
            state: MajorState::Running,
            started_ms: now_ms,
            ended_ms: None,
            sstables_in: 0,
            sstables_out: 0,
            bytes_in: 0,
            bytes_out: 0,
        }
    }

    fn runs(&self) -> bool {
        self.state == MajorState::Running
    }

    fn end(&mut self, outcome: &Result<Vec<Outcome>>, now_ms: i64) {
        self.ended_ms = Some(now_ms);
        match outcome {
            Ok(outcomes) => {
                self.state = MajorState::Done;
                self.sstables_in = outcomes.iter().map(|o| o.inputs).sum();
                self.sstables_out = outcomes.iter().map(|o| o.outputs.len()).sum();
                self.bytes_in = outcomes.iter().map(|o| o.file_read).sum();
                self.bytes_out = outcomes.iter().map(|o| o.file_written).sum();
            }
            Err(Error::Compaction(Cancelled)) => self.state = MajorState::Stopped,
            Err(e) => self.state = MajorState::Failed(e.to_string()),
        }
    }
}

fn alone(table: &Candidate) -> Task {
    let output = Output::Single { level: table.level };
    let (inputs, expired) = (vec![table.id], Vec::new());
    Task { inputs, expired, reason: Reason::Compaction, output }
}

impl Compactor {
    fn lock_majors(&self) -> MutexGuard<'_, Vec<(TableId, MajorCompaction)>> {
        self.majors.lock()
    }

    /// The last major compaction of each table.
    pub fn majors(&self) -> Vec<MajorCompaction> {
        self.lock_majors().iter().map(|(_, major)| major.clone()).collect()
    }

    /// Starts a major compaction of a table in the background, or one of some of its SSTables.
    pub fn begin_major(
        &self,
        table: TableId,
        selection: Selection,
        argument: Option<String>,
    ) -> Result<()> {
        let store = self.tables.store_of(table)?;
        let begun = MajorCompaction::begin(&store, argument, self.storage.now_ms());
        {
            let mut majors = self.lock_majors();
            let running = |(id, major): &(_, MajorCompaction)| *id == table && major.runs();
            if majors.iter().any(running) {
                let name = store.table().full_name();
                return Err(Error::Invalid(format!(
                    "{name} is being compacted as a whole already"
                )));
            }
            majors.retain(|(id, _)| *id != table);
            majors.push((table, begun));
        }
        self.schedule.request(Request { store, selection, answer: None });
        Ok(())
    }

    /// Runs what was requested, on the caller's thread.
    pub(crate) async fn run_request(&self, request: Request) {
        let Request { store, selection, answer } = request;
        if let Some(answer) = answer {
            // The caller can have gone away; the compaction was done anyway.
            let _ = answer.send(self.compact_selected(&store, &selection).await);
            return;
        }
        // It can have been stopped before its turn.
        let wanted = |(id, major): &(TableId, MajorCompaction)| *id == store.id && major.runs();
        if !self.lock_majors().iter().any(wanted) {
            return;
        }
        let outcome = self.compact_selected(&store, &selection).await;
        let now_ms = self.storage.now_ms();
        if let Some((_, major)) = self.lock_majors().iter_mut().find(|(id, _)| *id == store.id) {
            major.end(&outcome, now_ms);
        }
    }

    /// Stops a running or waiting major compaction at the next partition; the SSTables remain unchanged.
    pub fn stop_major(&self, table: TableId) {
        let is_major =
            |running: &Running| running.store.id == table && running.kind == CompactionKind::Major;
        let begun = self.running().iter().any(is_major);
        let now_ms = self.storage.now_ms();
        for (_, major) in self.lock_majors().iter_mut().filter(|(id, m)| *id == table && m.runs()) {
            if begun {
                self.cancel(|store| store.id == table);
            } else {
                major.end(&Err(Error::Compaction(Cancelled)), now_ms);
            }
        }
    }

    /// Runs a major compaction to its end.
    pub fn compact(&self, table: TableId) -> LocalBoxFuture<'_, Result<Vec<Outcome>>> {
        self.run_selected(table, Selection::Whole { split_output: false })
    }

    /// Compacts what is selected, to the end.
    pub fn run_selected(
        &self,
        table: TableId,
        selection: Selection,
    ) -> LocalBoxFuture<'_, Result<Vec<Outcome>>> {
        Box::pin(async move {
            let store = self.tables.store_of(table)?;
            let (answer, answered) = oneshot::channel();
            self.schedule.request(Request { store, selection, answer: Some(answer) });
            answered.await.map_err(|_| JobLost)?
        })
    }

    /// Stops running compactions of the table if their inputs are needed.
    async fn compact_selected(
        &self,
        store: &Arc<Store>,
        selection: &Selection,
    ) -> Result<Vec<Outcome>> {
        let (claim, selected) = self.claim_selected(store, selection).await?;
        let outcome = contained(self.compact_groups(store, selection, &selected)).await;
        let outcome = outcome.unwrap_or(Err(Error::JobLost(JobLost)));
        drop(claim);
        if let Err(e) = &outcome {
            self.failed(store, &selected, e);
        }
        self.schedule.consider(store);
        outcome
    }

    /// Compacts each group in the strategy's form.
    async fn compact_groups(
        &self,
        store: &Arc<Store>,
        selection: &Selection,
        selected: &[Arc<LiveSSTable>],
    ) -> Result<Vec<Outcome>> {
        panic_point("a major compaction");
        let strategy = strategy_of(store);
        let gc_before = self.gc_before(store, self.storage.disk.clock().unix_micros());
        let now = self.storage.disk.clock().now();
        let mut outcomes = Vec::new();
        let groups = match selection {
            // Those that could not be read are what it is for; each is written alone.
            Selection::Scrub(_) if !store.is_in_doubt() => vec![selected.to_vec()],
            _ => groups(selected),
        };
        for lives in groups {
            let tables = candidates(&lives, gc_before, now);
            let tasks = match selection {
                Selection::Whole { split_output } => major(&strategy, &tables, *split_output),
                // Each alone: levels and shards stay as they are.
                Selection::Rewrite(_) | Selection::Scrub(_) => tables.iter().map(alone).collect(),
                _ => user_defined(&strategy, &tables).into_iter().collect(),
            };
            for task in tasks {
                let choice = ResolvedTask::of(task, &lives);
                let mut shape = Shape::of(CompactionKind::Major, choice.task.output);
                if let Selection::Scrub(how) = selection {
                    (shape.kind, shape.scrub) = (CompactionKind::Scrub, Some(*how));
                }
                if let Selection::Forced(keys) = selection {
                    shape.forced = keys.iter().cloned().collect();
                }
                outcomes.push(CompactionJob::run(self, store, choice.inputs(), shape).await?);
            }
        }
        Ok(outcomes)
    }
}
