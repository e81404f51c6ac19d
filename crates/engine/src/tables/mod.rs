//! The tables of a node as all shards and services see them: the catalog, and a store for each table that has storage.
//!
//! ```text
//!  catalog   what statements are prepared against       replaced by a schema change
//!  stores    table id ─► Store: definition, version     replaced by a schema change; a version by an edit (`admit.rs`)
//!  mesh      jobs for the shards                        they take a new version after an edit, and write the node's own rows
//! ```
//! Every service reads them. Only `schema/` replaces the catalog and the stores; only [`Tables::edit`] replaces a version.

mod admit;
mod backup;
mod built_views;
mod local;
mod own_rows;
pub(crate) mod read_samples;
pub(crate) mod samples;
pub(crate) mod set_apart;
pub(crate) mod store;
pub(crate) mod times;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use halcyon_io::{Mesh, Mutex};
use halcyon_schema::catalog::Catalog;
use halcyon_stream::TableId;

use crate::caches::memory::Memory;
use crate::compact::Schedule;
use crate::ownership;
use crate::reporter::Reporter;
use crate::shard::Shard;
use crate::storage::Storage;
use crate::{DiskFailurePolicy, Error, Result};
use set_apart::SetApart;
use store::Store;
use times::WriteTimes;

pub struct Tables {
    pub(crate) storage: Arc<Storage>,
    pub(crate) reporter: Arc<Reporter>,
    pub(crate) memory: Arc<Memory>,
    /// Gets the tables whose SSTables lack an index.
    pub(crate) schedule: Arc<Schedule>,
    pub(crate) mesh: Mesh<Shard>,
    pub(crate) catalog: ArcSwap<Catalog>,
    pub(crate) stores: ArcSwap<BTreeMap<TableId, Arc<Store>>>,
    pub(crate) times: WriteTimes,
    /// Whether incremental backups are made.
    pub(crate) backups: AtomicBool,
    /// How many samplings run, and whether there are any.
    pub(crate) samplings: Mutex<usize>,
    pub(crate) samples: AtomicBool,
    /// Since the node joined its ring.
    pub(crate) host_id: OnceLock<[u8; 16]>,
}

impl Tables {
    pub fn shard_count(&self) -> usize {
        self.storage.options.shards
    }

    /// The shard that owns a token.
    pub fn owner(&self, token: i64) -> usize {
        ownership::owner(token, self.shard_count())
    }

    /// First and last token of a shard.
    pub fn tokens(&self, shard: usize) -> (i64, i64) {
        ownership::tokens(shard, self.shard_count())
    }

    /// Jobs for other shards.
    pub fn mesh(&self) -> &Mesh<Shard> {
        &self.mesh
    }

    pub fn catalog(&self) -> Arc<Catalog> {
        self.catalog.load_full()
    }

    /// A look at the catalog that writes nothing other shards read: for what every request does.
    pub fn with_catalog<R>(&self, look: impl FnOnce(&Catalog) -> R) -> R {
        look(&self.catalog.load())
    }

    pub fn schema_version(&self) -> [u8; 16] {
        self.with_catalog(|catalog| catalog.version)
    }

    /// The last second at which something can expire, by the version of the SSTables that are written.
    pub fn latest_expiration(&self) -> u32 {
        self.storage.latest_expiration()
    }

    /// How often the table was truncated since the start; unlike the times, they tell what came first after the clock was set back too.
    pub fn truncations(&self, table: &TableId) -> u64 {
        self.stores.load().get(table).map_or(0, |store| store.truncations())
    }

    pub(crate) fn store_of(&self, table: TableId) -> Result<Arc<Store>> {
        let store = self.stores.load().get(&table).cloned();
        store.ok_or_else(|| Error::UnknownTable(halcyon_model::hex::encode(&table)))
    }

    /// Everything that is set apart.
    pub fn set_apart(&self) -> Vec<SetApart> {
        let stores = self.stores.load();
        let sstables = stores.values().flat_map(|store| store.apart().to_vec());
        set_apart::of_schema(&self.catalog()).chain(sstables).collect()
    }

    /// Refuses to read a table without all of its SSTables, unless `disk_failure_policy` says otherwise.
    pub(crate) fn check_readable(&self, store: &Store) -> Result<()> {
        match (store.apart(), self.storage.options.disk_failure_policy) {
            ([], _) | (_, DiskFailurePolicy::BestEffort | DiskFailurePolicy::Ignore) => Ok(()),
            ([first, ..], _) => Err(Error::SetApart(first.answer(store.apart().len()))),
        }
    }
}
