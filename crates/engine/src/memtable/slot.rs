//! The life of a memtable: open, then frozen while pinned writes are applied, then sealed.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use halcyon_commitlog::Hold;
use halcyon_io::clock::Instant;
use halcyon_io::{Notify, drop_apart};
use halcyon_schema::catalog::Table;
use halcyon_sstable::attached::Held;
use halcyon_stream::{MergeError, Mutation, PartitionKey, PrimaryKey};

use super::{Apart, Memtable, Merged, Partition, RingBound};

enum Stage {
    Open(Memtable),
    Sealed(Arc<Memtable>),
}

pub(crate) struct Slot {
    state: RefCell<Stage>,
    pins: Cell<usize>,
    unpinned: Notify,
    made: Instant,
}

/// Keeps a frozen memtable from being sealed until a logged write is applied.
pub(crate) struct Pin(Rc<Slot>);

impl Slot {
    pub(crate) fn new(table: Arc<Table>, made: Instant) -> Rc<Slot> {
        Rc::new(Slot {
            state: RefCell::new(Stage::Open(Memtable::new(table))),
            pins: Cell::new(0),
            unpinned: Notify::default(),
            made,
        })
    }

    pub(crate) fn made(&self) -> Instant {
        self.made
    }

    pub(crate) fn pin(self: &Rc<Slot>) -> Pin {
        self.pins.set(self.pins.get() + 1);
        Pin(self.clone())
    }

    /// Empty and not pinned.
    pub(crate) fn is_idle(&self) -> bool {
        self.pins.get() == 0 && self.with(Memtable::is_empty)
    }

    pub(crate) fn with<T>(&self, look: impl FnOnce(&Memtable) -> T) -> T {
        match &*self.state.borrow() {
            Stage::Open(memtable) => look(memtable),
            Stage::Sealed(memtable) => look(memtable),
        }
    }

    pub(crate) fn partition(&self, key: &PartitionKey) -> Option<Partition> {
        self.with(|memtable| memtable.partition(key).cloned())
    }

    /// A clone of the first partition after a bound.
    pub(crate) fn first_behind(&self, edge: &RingBound) -> Option<(PartitionKey, Partition)> {
        self.with(|memtable| {
            let (key, partition) = memtable.first_behind(edge)?;
            Some((key.clone(), partition.clone()))
        })
    }

    /// Waits for the last pin, then seals the memtable. The slot must not be pinned afterwards.
    pub(crate) async fn seal(&self) -> Arc<Memtable> {
        while self.pins.get() > 0 {
            self.unpinned.notified().await;
        }
        let mut state = self.state.borrow_mut();
        if let Stage::Open(memtable) = &mut *state {
            let empty = Memtable::new(memtable.table().clone());
            *state = Stage::Sealed(Arc::new(std::mem::replace(memtable, empty)));
        }
        match &*state {
            Stage::Sealed(memtable) => memtable.clone(),
            Stage::Open(_) => unreachable!("it was just sealed"),
        }
    }
}

impl Pin {
    /// Applies a mutation; returns the growth in bytes.
    pub(crate) fn apply(&self, mutation: Mutation) -> Result<isize, MergeError> {
        let (applied, grown) = self.change(|memtable| memtable.apply(mutation));
        applied.map(|()| grown)
    }

    /// Keeps the record of a mutation until the memtable is flushed.
    pub(crate) fn hold(&self, hold: &Hold) {
        self.change(|memtable| memtable.hold(hold));
    }

    /// Whether the mutation is to be merged apart: it changes a row of very many parts, or its values are long to index.
    pub(crate) fn is_slow(&self, mutation: &Mutation) -> bool {
        self.0.with(|memtable| memtable.is_wide(mutation) || memtable.indexes_much(mutation))
    }

    /// What another thread needs to apply mutations of a partition.
    pub(crate) fn apart(&self, key: PartitionKey, mutations: Vec<Mutation>) -> Apart {
        self.0.with(|memtable| memtable.apart(key, mutations))
    }

    /// Takes up to `most` terms of those that one of the memtable's indexes is to have; returns the growth in bytes.
    pub(crate) fn add_indexed(
        &self,
        index: usize,
        indexed: &mut impl Iterator<Item = (PrimaryKey, Held)>,
        most: usize,
    ) -> isize {
        self.change(|memtable| memtable.add_indexed(index, indexed, most)).1
    }

    /// Puts a merged partition in its place; returns what was there, and the growth in bytes.
    pub(crate) fn put(&self, merged: Merged) -> (Option<Partition>, isize) {
        self.change(|memtable| memtable.put(merged))
    }

    fn change<T>(&self, change: impl FnOnce(&mut Memtable) -> T) -> (T, isize) {
        match &mut *self.0.state.borrow_mut() {
            Stage::Open(memtable) => {
                let before = memtable.bytes();
                let changed = change(memtable);
                (changed, memtable.bytes() as isize - before as isize)
            }
            Stage::Sealed(_) => unreachable!("a pinned slot is not sealed"),
        }
    }

    pub(crate) fn slot(&self) -> &Rc<Slot> {
        &self.0
    }
}

impl Drop for Slot {
    /// To free millions of rows would hold the shard.
    fn drop(&mut self) {
        const SMALL: usize = 64 << 10;
        if self.with(Memtable::bytes) > SMALL {
            let empty = Memtable::new(self.with(|memtable| memtable.table().clone()));
            drop_apart(self.state.replace(Stage::Open(empty)));
        }
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        self.0.pins.set(self.0.pins.get() - 1);
        if self.0.pins.get() == 0 {
            self.0.unpinned.notify_all();
        }
    }
}
