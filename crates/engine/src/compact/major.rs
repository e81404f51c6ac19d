//! Major compactions (`nodetool compact`): everything of a table into one SSTable for each repair state, because somebody asked.
//!
//! The last one of each table is remembered until the node stops, so that whoever asked can see what became of it.

use std::sync::{Arc, MutexGuard, PoisonError};

use halcyon_compaction::{Error::Cancelled, Outcome, group_inputs};
use halcyon_sstable::SSTable;
use halcyon_stream::TableId;

use super::Shape;
use crate::engine::Engine;
use crate::store::Store;
use crate::{Error, Result};

/// A major compaction and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MajorCompaction {
    pub keyspace: String,
    pub table: String,
    pub state: MajorState,
    /// Milliseconds since 1970.
    pub started_ms: i64,
    pub ended_ms: Option<i64>,
    pub sstables_in: usize,
    pub sstables_out: usize,
    /// As stored.
    pub bytes_in: u64,
    pub bytes_out: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MajorState {
    /// Or waiting for its turn.
    Running,
    Done,
    /// Somebody wanted it to end; the SSTables are as they were.
    Stopped,
    Failed(String),
}

impl MajorCompaction {
    fn begin(store: &Store, now_ms: i64) -> MajorCompaction {
        let table = store.table();
        MajorCompaction {
            keyspace: table.schema.keyspace.clone(),
            table: table.schema.name.clone(),
            state: MajorState::Running,
            started_ms: now_ms,
            ended_ms: None,
            sstables_in: 0,
            sstables_out: 0,
            bytes_in: 0,
            bytes_out: 0,
        }
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

impl Engine {
    fn majors(&self) -> MutexGuard<'_, Vec<(TableId, MajorCompaction)>> {
        self.compactions.majors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_ms(&self) -> i64 {
        self.disk.clock().unix_micros() / 1000
    }

    /// The last major compaction of each table.
    pub fn major_compactions(&self) -> Vec<MajorCompaction> {
        self.majors().iter().map(|(_, major)| major.clone()).collect()
    }

    /// Has a table compacted as a whole, in the background.
    pub fn begin_major_compaction(self: &Arc<Engine>, table: TableId) -> Result<()> {
        let store = self.store_of(table)?;
        let begun = MajorCompaction::begin(&store, self.now_ms());
        {
            let mut majors = self.majors();
            let running = |(id, major): &(_, MajorCompaction)| {
                *id == table && major.state == MajorState::Running
            };
            if majors.iter().any(running) {
                let name = store.table().full_name();
                return Err(Error::Invalid(format!(
                    "{name} is being compacted as a whole already"
                )));
            }
            majors.retain(|(id, _)| *id != table);
            majors.push((table, begun));
        }
        let engine = self.clone();
        self.compactions.threads.later(move || async move {
            let outcome = engine.compact_whole(&store).await;
            let now_ms = engine.now_ms();
            if let Some((_, major)) = engine.majors().iter_mut().find(|(id, _)| *id == table) {
                major.end(&outcome, now_ms);
            }
            engine.compactions.note_failure(&store, outcome.err());
        });
        Ok(())
    }

    /// Ends a table's major compaction, if one runs: at the next partition, with its SSTables as they were.
    pub fn stop_major_compaction(&self, table: TableId) {
        let running = |(id, major): &(TableId, MajorCompaction)| {
            *id == table && major.state == MajorState::Running
        };
        if self.majors().iter().any(running) {
            self.compactions.cancel(|store| store.id == table);
        }
    }

    /// A major compaction, until its end.
    pub async fn compact(self: &Arc<Engine>, table: TableId) -> Result<Vec<Outcome>> {
        let store = self.store_of(table)?;
        let engine = self.clone();
        let job = move || async move { engine.compact_whole(&store).await };
        self.compactions.threads.run(job).await?
    }

    fn store_of(&self, table: TableId) -> Result<Arc<Store>> {
        let store = self.stores.load().get(&table).cloned();
        store.ok_or_else(|| Error::UnknownTable(crate::store::hex(&table)))
    }

    async fn compact_whole(&self, store: &Arc<Store>) -> Result<Vec<Outcome>> {
        let gate = store.gate.clone().lock_owned().await;
        let view = store.view.load_full();
        let inputs: Vec<Arc<SSTable>> =
            view.sstables.iter().map(|live| live.sstable().clone()).collect();
        let mut outcomes = Vec::new();
        for group in group_inputs(&inputs, &[]) {
            outcomes.push(self.compact_group(store, &gate, group, Shape::default()).await?);
        }
        Ok(outcomes)
    }
}
