//! The composition of a node's storage: which services there are, and what each of them needs.
//!
//! ```text
//!  Engine                      opens, wires and closes them (`start/`), and has no other work
//!    Schema                    the schema lock; changes, truncations, SSTables from elsewhere
//!      Snapshots               hard links, taken, listed, expired
//!      Indexes                 builds what SSTables lack
//!      Compactor               picks, pace, backlog, removal
//!    Shard  (one per core)     memtables, commit log, caches; reads and writes
//!      Flusher                 the threads that write memtables, and the writes that wait for them
//!      Tables                  catalog, stores, versions: read by all
//!        Schedule              what compaction threads are to do: a queue that needs no service
//!        Memory                what the caches of all shards share
//!    Reporter                  events, health, warn-once; needs nothing
//!    Storage                   disk, options, the version that is written: never changed
//! ```
//! 1. A service holds what it needs of the lines below it, and nothing above it. So a service can be read with those alone.
//! 2. What would be an arrow up is data that a lower one keeps: a flush and an edit queue a table in the schedule, and the control thread
//!    (`control.rs`), which is above all services, has the compactor or the indexes take it from there.
//! 3. Three files are the exception, and import each other: `shard.rs`, `tables/` and `flush/`. Every shard
//!    takes the new version after an edit of a table, and a shard has its memtables written by the flusher, which makes such an edit.

use std::sync::Arc;

use halcyon_io::{Disk, Inbox, Mutex, Thread};

use crate::caches::SavedCaches;
use crate::compact::Compactor;
use crate::flush::Flusher;
use crate::index::Indexes;
use crate::metrics::shards::ShardMetrics;
use crate::reporter::Reporter;
use crate::schema::Schema;
use crate::shard::Shard;
use crate::snapshots::Snapshots;
use crate::tables::Tables;
use crate::{Error, Options, Result};

pub struct Engine {
    pub(crate) tables: Arc<Tables>,
    pub(crate) flusher: Arc<Flusher>,
    pub(crate) compactor: Arc<Compactor>,
    pub(crate) indexes: Arc<Indexes>,
    pub(crate) snapshots: Arc<Snapshots>,
    pub(crate) schema: Arc<Schema>,
    pub(crate) metrics: Arc<ShardMetrics>,
    pub(crate) unopened: Unopened,
    pub(crate) control: Mutex<Option<Thread<()>>>,
}

/// What the shards are opened with.
pub(crate) struct Unopened {
    /// Until the shards take them.
    pub(crate) inboxes: Mutex<Vec<Option<Inbox<Shard>>>>,
    /// Of the logs that shards open.
    pub(crate) first_segment: u64,
}

impl Unopened {
    pub(crate) fn take_inbox(&self, index: usize) -> Result<Inbox<Shard>> {
        let mut inboxes = self.inboxes.lock();
        let inbox = inboxes.get_mut(index).and_then(Option::take);
        inbox.ok_or_else(|| Error::CannotStart(format!("shard {index} is open already")))
    }
}

impl Engine {
    pub fn disk(&self) -> &Disk {
        &self.tables.storage.disk
    }

    pub fn options(&self) -> &Options {
        &self.tables.storage.options
    }

    pub fn tables(&self) -> &Arc<Tables> {
        &self.tables
    }

    pub fn reporter(&self) -> &Reporter {
        &self.tables.reporter
    }

    pub fn flusher(&self) -> &Flusher {
        &self.flusher
    }

    pub fn compactor(&self) -> &Compactor {
        &self.compactor
    }

    pub fn indexes(&self) -> &Indexes {
        &self.indexes
    }

    pub fn snapshots(&self) -> &Snapshots {
        &self.snapshots
    }

    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    pub fn saved_caches(&self) -> SavedCaches<'_> {
        SavedCaches::of(&self.tables)
    }

    pub fn shard_metrics(&self) -> &ShardMetrics {
        &self.metrics
    }
}
