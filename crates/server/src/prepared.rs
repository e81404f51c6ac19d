//! Prepared statements: one store for all shards, and copies on each shard that executes them, so that an EXECUTE takes no lock and writes
//! no cache line of other shards.
//!
//! 1. PREPARE puts a statement into the store under Cassandra's id, the MD5 of keyspace and text.
//! 2. A shard looks into its own map first, then into the store, and keeps a copy of what it found.
//! 3. The store is bounded by `prepared_statements_cache_size`: the statements that were used least recently go, and all shards
//!    forget their copies (`generation`). The caller of an insertion gets the evicted ones, for `system.prepared_statements`.
//! 4. A change of the schema forgets the statements that Cassandra forgets then (`halcyon_query::Invalidated`): the client prepares them
//!    again, and learns the new columns.
//! 5. After other changes of its tables, or of types or functions, a statement is prepared again when it is next executed. If its columns
//!    or variables are others now, as while a change is being made, it is forgotten too.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use halcyon_engine::Shard;
use halcyon_io::Mutex;
use halcyon_metrics::Counter;
use halcyon_query::{Invalidated, PreparedStatement, weight};

pub(crate) type StatementId = [u8; 16];

#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) statement: Arc<PreparedStatement>,
    pub(crate) result_metadata_id: [u8; 16],
    /// Bytes, as `query` weighs them: what the allocator counts, or somewhat more.
    size: u64,
    /// Common to all copies; written when a statement is put in or looked up, which is rare, and by the first use after that.
    last_used: Arc<AtomicU64>,
}

impl Entry {
    pub(crate) fn new(statement: Arc<PreparedStatement>) -> Entry {
        let columns = statement.columns.iter().flat_map(|columns| columns.iter());
        let result_metadata_id = halcyon_protocol::result_metadata_id(columns);
        let specs =
            statement.variables.specs.len() + statement.columns.as_ref().map_or(0, |c| c.len());
        let size = weight::prepared(&statement.text, specs);
        Entry { statement, result_metadata_id, size, last_used: Arc::default() }
    }

    /// A shard's copy.
    pub(crate) fn for_shard(&self, shard: &Shard) -> Rc<Entry> {
        Rc::new(Entry {
            statement: Arc::new(self.statement.for_shard(shard)),
            result_metadata_id: self.result_metadata_id,
            size: self.size,
            last_used: self.last_used.clone(),
        })
    }

    fn used(&self, tick: u64) {
        if self.last_used.load(Relaxed) != tick {
            self.last_used.store(tick, Relaxed);
        }
    }
}

#[derive(Debug)]
pub(crate) struct PreparedStatements {
    capacity: u64,
    /// Grows when a copy may be stale.
    generation: AtomicU64,
    ticks: AtomicU64,
    /// Written under the lock of `state`.
    evictions: Counter,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    entries: HashMap<StatementId, Arc<Entry>>,
    size: u64,
}

/// What putting a statement in has done.
#[derive(Debug)]
pub(crate) struct Put {
    pub(crate) entry: Arc<Entry>,
    /// It was not there before.
    pub(crate) is_new: bool,
    pub(crate) evicted: Vec<StatementId>,
}

/// For `system_views.caches` and the registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PreparedMetrics {
    pub(crate) count: usize,
    pub(crate) size: u64,
    pub(crate) capacity: u64,
    pub(crate) evictions: u64,
}

impl PreparedStatements {
    pub(crate) fn new(capacity: u64) -> PreparedStatements {
        PreparedStatements {
            capacity,
            generation: AtomicU64::new(0),
            ticks: AtomicU64::new(1),
            evictions: Counter::default(),
            state: Mutex::default(),
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock()
    }

    pub(crate) fn get(&self, id: &StatementId) -> Option<Arc<Entry>> {
        let entry = self.state().entries.get(id).cloned()?;
        entry.last_used.store(self.ticks.fetch_add(1, Relaxed), Relaxed);
        Some(entry)
    }

    /// Puts a statement in, in the place of an older preparation; makes room if needed.
    pub(crate) fn put(&self, id: StatementId, entry: Entry) -> Put {
        let entry = Arc::new(entry);
        entry.last_used.store(self.ticks.fetch_add(1, Relaxed), Relaxed);
        let mut state = self.state();
        state.size += entry.size;
        let older = state.entries.insert(id, entry.clone());
        let is_new = older.is_none();
        if let Some(older) = older {
            // Copies of it may stay: they tell a shard themselves that they are out of date.
            state.size -= older.size;
        }
        let evicted = if state.size > self.capacity { self.evict(&mut state) } else { Vec::new() };
        Put { entry, is_new, evicted }
    }

    /// Down to seven eighths, so that not every PREPARE has to look at all of them.
    fn evict(&self, state: &mut State) -> Vec<StatementId> {
        let mut by_age: Vec<_> =
            state.entries.iter().map(|(id, e)| (e.last_used.load(Relaxed), *id)).collect();
        by_age.sort_unstable();
        // The newest stays.
        by_age.pop();
        let mut evicted = Vec::new();
        for (_, id) in by_age {
            if state.size <= self.capacity / 8 * 7 {
                break;
            }
            if let Some(gone) = state.entries.remove(&id) {
                state.size -= gone.size;
                evicted.push(id);
            }
        }
        self.evictions.add(evicted.len() as u64);
        self.generation.fetch_add(1, Relaxed);
        evicted
    }

    /// What would never fit is refused.
    pub(crate) fn check_size(&self, entry: &Entry) -> Result<(), String> {
        if entry.size <= self.capacity {
            return Ok(());
        }
        let beginning: String = entry.statement.text.chars().take(200).collect();
        Err(format!(
            "Prepared statement of size {} bytes is larger than allowed maximum of {} MB: {beginning}...",
            entry.size,
            self.capacity >> 20
        ))
    }

    /// Forgets what a change of the schema has made invalid.
    pub(crate) fn invalidate(&self, invalidated: &Invalidated) -> Vec<StatementId> {
        let mut state = self.state();
        let invalid = state.entries.iter().filter(|(_, e)| invalidated.concerns(&e.statement));
        let mut invalid: Vec<StatementId> = invalid.map(|(id, _)| *id).collect();
        // A map's order is another one in each run, and simulated runs repeat themselves.
        invalid.sort_unstable();
        for id in &invalid {
            if let Some(gone) = state.entries.remove(id) {
                state.size -= gone.size;
            }
        }
        if !invalid.is_empty() {
            self.generation.fetch_add(1, Relaxed);
        }
        invalid
    }

    pub(crate) fn remove(&self, id: &StatementId) {
        let mut state = self.state();
        if let Some(gone) = state.entries.remove(id) {
            state.size -= gone.size;
            self.generation.fetch_add(1, Relaxed);
        }
    }

    pub(crate) fn metrics(&self) -> PreparedMetrics {
        let state = self.state();
        PreparedMetrics {
            count: state.entries.len(),
            size: state.size,
            capacity: self.capacity,
            evictions: self.evictions.get(),
        }
    }
}

/// One shard's copies.
#[derive(Debug, Default)]
pub(crate) struct LocalStatements {
    generation: Cell<u64>,
    entries: RefCell<HashMap<StatementId, Rc<Entry>>>,
}

impl LocalStatements {
    pub(crate) fn get(&self, store: &PreparedStatements, id: &StatementId) -> Option<Rc<Entry>> {
        let generation = store.generation.load(Relaxed);
        if self.generation.replace(generation) != generation {
            self.entries.borrow_mut().clear();
        }
        let entry = self.entries.borrow().get(id).cloned()?;
        entry.used(store.ticks.load(Relaxed));
        Some(entry)
    }

    /// Replaces the copy of an older preparation.
    pub(crate) fn put(&self, id: StatementId, entry: Rc<Entry>) -> Rc<Entry> {
        self.entries.borrow_mut().insert(id, entry.clone());
        entry
    }
}
