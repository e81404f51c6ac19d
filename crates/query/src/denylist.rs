//! Partitions that clients may not read or write (`PartitionDenylist`): an operator takes one that harms the node out of service.
//!
//! 1. The keys are rows of `system_distributed.partition_denylist`. The lists of all tables are loaded at the start, that of another table
//!    when it is first asked for, and each again when it is older than `denylist_refresh`; until then the old one holds.
//! 2. A shard keeps its own map of the lists, so that a request takes no lock; it forgets them when one is replaced.
//! 3. The rows are read by a [`Source`], which the server implements: a read of them is a statement like any other.
//!
//! Without a denylist a request pays one branch.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use halcyon_cql::plan::restrictions::{BoundKeys, TokenBounds};
use halcyon_cql::plan::select::BoundSelect;
use halcyon_io::Mutex;
use halcyon_io::clock::{Instant, now};
use halcyon_model::hex;
use halcyon_model::request::Consistency;
use halcyon_scan::PagingState;
use halcyon_schema::catalog::{Table, TableKind};
use halcyon_stream::{PartitionKey, TableId};

use crate::{Error, Result};

/// The settings, under their names without `denylist_`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DenylistOptions {
    pub writes_enabled: bool,
    pub reads_enabled: bool,
    pub range_reads_enabled: bool,
    pub refresh: Duration,
    pub initial_load_retry: Duration,
    pub max_keys_per_table: usize,
    pub max_keys_total: usize,
    pub consistency_level: Consistency,
}

/// The denied keys of one table.
#[derive(Debug)]
pub struct List {
    keys: HashSet<Vec<u8>>,
    tokens: BTreeSet<i64>,
    loaded: Instant,
    is_reloading: AtomicBool,
}

impl List {
    /// As it is now.
    pub fn of(keys: impl IntoIterator<Item = Vec<u8>>) -> List {
        let keys: HashSet<Vec<u8>> = keys.into_iter().collect();
        let tokens = keys.iter().map(|key| PartitionKey::of(key).token).collect();
        List { keys, tokens, loaded: now(), is_reloading: false.into() }
    }

    pub fn len(&self) -> usize {
        self.keys.len()
    }

    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Keys between two tokens, which are both excluded or included as their bounds say.
    fn count(&self, start: Bound<i64>, end: Bound<i64>) -> usize {
        let token = |bound| match bound {
            Bound::Included(token) | Bound::Excluded(token) => Some(token),
            Bound::Unbounded => None,
        };
        let excludes = [start, end].iter().any(|bound| matches!(bound, Bound::Excluded(_)));
        match token(start).zip(token(end)) {
            // A range of nothing, which a tree refuses.
            Some((first, last)) if first > last || first == last && excludes => 0,
            _ => self.tokens.range((start, end)).count(),
        }
    }
}

/// Reads the rows of the denylist.
pub trait Source {
    /// The list of a table; an empty one if it cannot be read, which is logged.
    fn list<'a>(&'a self, table: &'a Table) -> LocalBoxFuture<'a, List>;

    /// Replaces the list of a table later.
    fn reload(&self, table: TableId);
}

/// What has been refused since the start (`DenylistMetrics`), and how often lists were loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DenylistCounts {
    pub writes_rejected: u64,
    pub reads_rejected: u64,
    pub range_reads_rejected: u64,
    pub load_attempts: u64,
    pub load_successes: u64,
    pub keys: u64,
}

/// The denylist of a node, which all shards share.
#[derive(Debug)]
pub struct Denylist {
    pub options: DenylistOptions,
    lists: Mutex<HashMap<TableId, Arc<List>>>,
    /// Grows when a list is replaced.
    generation: AtomicU64,
    writes_rejected: AtomicU64,
    reads_rejected: AtomicU64,
    range_reads_rejected: AtomicU64,
    load_attempts: AtomicU64,
    load_successes: AtomicU64,
}

impl Denylist {
    pub fn new(options: DenylistOptions) -> Denylist {
        Denylist {
            options,
            lists: Mutex::default(),
            generation: AtomicU64::new(0),
            writes_rejected: AtomicU64::new(0),
            reads_rejected: AtomicU64::new(0),
            range_reads_rejected: AtomicU64::new(0),
            load_attempts: AtomicU64::new(0),
            load_successes: AtomicU64::new(0),
        }
    }

    pub fn attempted(&self) {
        self.load_attempts.fetch_add(1, Relaxed);
    }

    /// Replaces all lists.
    pub fn loaded(&self, lists: HashMap<TableId, List>) {
        let lists = lists.into_iter().map(|(table, list)| (table, Arc::new(list)));
        *self.lists.lock() = lists.collect();
        self.load_successes.fetch_add(1, Relaxed);
        self.generation.fetch_add(1, Relaxed);
    }

    /// Replaces the list of one table.
    pub fn put(&self, table: TableId, list: List) -> Arc<List> {
        let list = Arc::new(list);
        self.lists.lock().insert(table, list.clone());
        self.generation.fetch_add(1, Relaxed);
        list
    }

    pub fn counts(&self) -> DenylistCounts {
        DenylistCounts {
            writes_rejected: self.writes_rejected.load(Relaxed),
            reads_rejected: self.reads_rejected.load(Relaxed),
            range_reads_rejected: self.range_reads_rejected.load(Relaxed),
            load_attempts: self.load_attempts.load(Relaxed),
            load_successes: self.load_successes.load(Relaxed),
            keys: self.lists.lock().values().map(|list| list.len() as u64).sum(),
        }
    }
}

/// The keyspaces whose partitions cannot be denied (`canDenylistKeyspace`); virtual tables neither.
const EXEMPT: [&str; 6] = [
    "system_distributed",
    "system",
    "system_traces",
    "system_virtual_schema",
    "system_views",
    "system_auth",
];

/// One shard's view of the denylist.
pub struct LocalDenylist {
    shared: Arc<Denylist>,
    source: OnceCell<Box<dyn Source>>,
    generation: Cell<u64>,
    lists: RefCell<HashMap<TableId, Arc<List>>>,
}

impl LocalDenylist {
    pub fn of(shared: Arc<Denylist>) -> LocalDenylist {
        LocalDenylist {
            shared,
            source: OnceCell::new(),
            generation: Cell::new(0),
            lists: RefCell::default(),
        }
    }

    /// Nothing is denied before.
    pub fn read_from(&self, source: Box<dyn Source>) {
        // A shard sets it once.
        let _ = self.source.set(source);
    }

    /// The table's list, which is loaded if it is not there.
    async fn list(&self, table: &Table) -> Option<Arc<List>> {
        let exempt = EXEMPT.contains(&table.schema.keyspace.as_str());
        if exempt || table.kind == TableKind::Virtual {
            return None;
        }
        let source = self.source.get()?;
        let generation = self.shared.generation.load(Relaxed);
        if self.generation.replace(generation) != generation {
            self.lists.borrow_mut().clear();
        }
        let own = self.lists.borrow().get(&table.id).cloned();
        let list = match own.or_else(|| self.shared.lists.lock().get(&table.id).cloned()) {
            Some(list) => list,
            None => {
                let loaded = source.list(table).await;
                self.shared.put(table.id, loaded)
            }
        };
        let is_old = now() - list.loaded > self.shared.options.refresh;
        if is_old && !list.is_reloading.swap(true, Relaxed) {
            source.reload(table.id);
        }
        self.lists.borrow_mut().insert(table.id, list.clone());
        Some(list)
    }

    /// The first of the keys that is denied.
    async fn denied<'k>(
        &self,
        table: &Table,
        mut keys: impl Iterator<Item = &'k PartitionKey>,
    ) -> Option<&'k PartitionKey> {
        let list = self.list(table).await.filter(|list| !list.is_empty())?;
        keys.find(|key| list.keys.contains(&key.bytes))
    }

    /// Asked before the read has its turn: a list that is not there is read in a turn of its own. `state`: where the page starts.
    pub(crate) async fn permit_select(
        &self,
        select: &BoundSelect,
        state: Option<&PagingState>,
    ) -> Result<()> {
        let options = &self.shared.options;
        let table = &select.plan.table;
        match &select.keys {
            Some(BoundKeys::Partitions(keys)) => self.permit_reads(table, keys.iter()).await,
            Some(BoundKeys::Range(bounds)) if options.range_reads_enabled => {
                self.permit_range(table, *bounds, state).await
            }
            _ => Ok(()),
        }
    }

    async fn permit_range(
        &self,
        table: &Table,
        bounds: TokenBounds,
        state: Option<&PagingState>,
    ) -> Result<()> {
        let Some(list) = self.list(table).await.filter(|list| !list.is_empty()) else {
            return Ok(());
        };
        let bound = |bound: Option<(i64, bool)>| match bound {
            None | Some((i64::MIN, _)) => Bound::Unbounded,
            Some((token, true)) => Bound::Included(token),
            Some((token, false)) => Bound::Excluded(token),
        };
        let last = state.map(|state| PartitionKey::of(&state.key).token);
        // A page that begins behind a row reads the rest of that partition.
        let within = state.is_some_and(|state| state.clustering.is_some());
        let after = if within { Bound::Included } else { Bound::Excluded };
        let start = last.map_or(bound(bounds.start), after);
        let count = list.count(start, bound(bounds.end));
        if count == 0 {
            return Ok(());
        }
        self.shared.range_reads_rejected.fetch_add(1, Relaxed);
        let token = |bound: Option<(i64, bool)>| bound.map_or(i64::MIN, |(token, _)| token);
        // Cassandra has the whole ring without its ends.
        let end = if bounds == TokenBounds::default() { ')' } else { ']' };
        let (left, right) = (last.unwrap_or_else(|| token(bounds.start)), token(bounds.end));
        let (keyspace, name) = (&table.schema.keyspace, &table.schema.name);
        Err(Error::Invalid(format!(
            "Attempted to read a range containing {count} denylisted keys in {keyspace}/{name}. Range read: token range: ({left}, {right}{end}"
        )))
    }

    /// Of partitions whose stored rows a statement needs: Cassandra's coordinator reads them first.
    pub(crate) async fn permit_reads<'k>(
        &self,
        table: &Table,
        keys: impl Iterator<Item = &'k PartitionKey>,
    ) -> Result<()> {
        if !self.shared.options.reads_enabled {
            return Ok(());
        }
        let Some(key) = self.denied(table, keys).await else { return Ok(()) };
        self.shared.reads_rejected.fetch_add(1, Relaxed);
        refuse("read", key, table)
    }

    pub(crate) async fn permit_write<'k>(
        &self,
        table: &Table,
        keys: impl Iterator<Item = &'k PartitionKey>,
    ) -> Result<()> {
        self.permit_writing("write to", table, keys).await
    }

    /// Of a conditional statement.
    pub(crate) async fn permit_proposal(&self, table: &Table, key: &PartitionKey) -> Result<()> {
        self.permit_writing("CAS write to", table, std::iter::once(key)).await
    }

    async fn permit_writing<'k>(
        &self,
        what: &str,
        table: &Table,
        keys: impl Iterator<Item = &'k PartitionKey>,
    ) -> Result<()> {
        if !self.shared.options.writes_enabled {
            return Ok(());
        }
        let Some(key) = self.denied(table, keys).await else { return Ok(()) };
        self.shared.writes_rejected.fetch_add(1, Relaxed);
        refuse(what, key, table)
    }
}

/// The key as `DecoratedKey.toString` has it.
fn refuse(what: &str, key: &PartitionKey, table: &Table) -> Result<()> {
    let (token, bytes) = (key.token, hex::encode(&key.bytes));
    let (keyspace, name) = (&table.schema.keyspace, &table.schema.name);
    Err(Error::Invalid(format!(
        "Unable to {what} denylisted partition [0xDecoratedKey({token}, {bytes})] in {keyspace}/{name}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves which tokens a range has, at its bounds and where it is empty.
    #[test]
    fn ranges_count_tokens() {
        let list = List::of([vec![0, 0, 0, 1], vec![0, 0, 0, 2]]);
        let mut tokens = list.tokens.iter().copied();
        let (low, high) = (tokens.next().unwrap(), tokens.next().unwrap());
        let all = [
            (Bound::Unbounded, Bound::Unbounded, 2),
            (Bound::Included(low), Bound::Included(high), 2),
            (Bound::Excluded(low), Bound::Included(high), 1),
            (Bound::Excluded(low), Bound::Excluded(high), 0),
            (Bound::Included(low), Bound::Included(low), 1),
            (Bound::Excluded(low), Bound::Excluded(low), 0),
            (Bound::Included(high), Bound::Included(low), 0),
        ];
        for (start, end, count) in all {
            assert_eq!(list.count(start, end), count, "{start:?} {end:?}");
        }
    }
}
