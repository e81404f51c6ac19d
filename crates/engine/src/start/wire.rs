//! Makes the services, each with what it needs, and starts the control thread.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use halcyon_io::{Mesh, Mutex};
use halcyon_schema::catalog::Catalog;
use halcyon_stream::TableId;

use crate::caches::memory::Memory;
use crate::compact::{Compactor, Schedule};
use crate::control;
use crate::engine::{Engine, Unopened};
use crate::flush::Flusher;
use crate::index::Indexes;
use crate::metrics::shards::ShardMetrics;
use crate::reporter::Reporter;
use crate::schema::Schema;
use crate::snapshots::Snapshots;
use crate::storage::Storage;
use crate::tables::Tables;
use crate::tables::store::Store;
use crate::tables::times::WriteTimes;

/// Jobs that may wait for a shard, from each other thread one more.
const INBOX: usize = 1024;

/// `first_segment`: of the logs that shards open.
pub(super) fn wire(
    storage: Storage,
    catalog: Arc<Catalog>,
    stores: BTreeMap<TableId, Arc<Store>>,
    first_segment: u64,
) -> Arc<Engine> {
    let (mesh, inboxes) = Mesh::new(storage.options.shards, INBOX);
    let (schedule, woken) = Schedule::new(storage.options.concurrent_compactors.max(1));
    let metrics = Arc::new(ShardMetrics::new(storage.options.shards));
    let memory = Memory::new(&storage.disk, &storage.options);
    memory.share(&stores);
    let walked = stores.values().flat_map(|store| store.version.load().sstables().to_vec());
    walked.for_each(|live| memory.walk_index(&live));
    let tables = Arc::new(Tables {
        reporter: Reporter::new(storage.disk.clock().clone(), &storage.options),
        memory,
        schedule,
        mesh,
        catalog: ArcSwap::new(catalog),
        stores: ArcSwap::from_pointee(stores),
        times: WriteTimes::default(),
        backups: AtomicBool::new(storage.options.incremental_backups),
        samplings: Mutex::default(),
        samples: AtomicBool::new(false),
        host_id: OnceLock::new(),
        storage: Arc::new(storage),
    });
    let flusher = Flusher::new(&tables);
    let compactor = Compactor::new(&tables, &metrics, &flusher.background);
    let indexes = Indexes::new(&flusher);
    let snapshots = Snapshots::new(&flusher);
    let engine = Arc::new(Engine {
        schema: Schema::new(&flusher, &compactor, &indexes, &snapshots),
        tables,
        flusher,
        compactor,
        indexes,
        snapshots,
        metrics,
        unopened: Unopened {
            inboxes: Mutex::new(inboxes.into_iter().map(Some).collect()),
            first_segment,
        },
        control: Mutex::default(),
    });
    let control = control::start(&engine, woken);
    *engine.control.lock() = Some(control);
    engine
}
