//! Loads the denied partitions from `system_distributed.partition_denylist`; `halcyon_query::Denylist` keeps and enforces them.
//!
//! The first load precedes the first client. One that fails is tried again until it succeeds; an operator can load at any time.

use std::collections::HashMap;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use halcyon_io::clock::{self, now};
use halcyon_io::spawn;
use halcyon_model::Cursor;
use halcyon_model::request::{Consistency, Value};
use halcyon_query::{Denylist, Error, List, Outcome, Result, Source};
use halcyon_schema::catalog::{Catalog, Table};
use halcyon_stream::TableId;

use crate::internal;
use crate::shard::{ShardServer, Shared};

const TABLES: &str =
    "SELECT DISTINCT ks_name, table_name FROM system_distributed.partition_denylist";
const KEYS: &str = "SELECT key FROM system_distributed.partition_denylist WHERE ks_name = ? AND table_name = ? LIMIT ?";

/// At least this long passes before a load is tried again: a setting of zero would load without end.
const RETRY_MIN: Duration = Duration::from_millis(100);

/// One shard's way to the rows.
pub(crate) struct Rows(Weak<ShardServer>);

impl Rows {
    pub(crate) fn of(shard: &Rc<ShardServer>) -> Rows {
        Rows(Rc::downgrade(shard))
    }
}

impl Source for Rows {
    fn list<'a>(&'a self, table: &'a Table) -> LocalBoxFuture<'a, List> {
        Box::pin(async move {
            match self.0.upgrade().zip(self.0.upgrade().and_then(|of| denylist(&of))) {
                Some((shard, denylist)) => {
                    let most = denylist.options.max_keys_per_table;
                    of_table(&shard, &denylist, table, most).await
                }
                None => List::of([]),
            }
        })
    }

    fn reload(&self, id: TableId) {
        let Some(shard) = self.0.upgrade() else { return };
        spawn(async move {
            let catalog = shard.coordinator.shard().tables().catalog();
            let table = catalog.tables().find(|table| table.id == id).cloned();
            if let Some((table, denylist)) = table.zip(denylist(&shard)) {
                let most = denylist.options.max_keys_per_table;
                denylist.put(id, of_table(&shard, &denylist, &table, most).await);
            }
        })
        .detach();
    }
}

fn denylist(shard: &ShardServer) -> Option<Arc<Denylist>> {
    shard.shared.denylist.clone()
}

/// The keys of a table; none if they cannot be read.
async fn of_table(shard: &ShardServer, denylist: &Denylist, table: &Table, most: usize) -> List {
    let (keyspace, name) = (&table.schema.keyspace, &table.schema.name);
    match keys(shard, denylist, (keyspace, name), most).await {
        Ok(list) => list,
        Err(why) => {
            shard.shared.log.error(format_args!(
                "Error reading partition_denylist table for {keyspace}/{name}. Returning empty denylist. {why}"
            ));
            List::of([])
        }
    }
}

async fn keys(
    shard: &ShardServer,
    denylist: &Denylist,
    (keyspace, name): (&str, &str),
    most: usize,
) -> Result<List> {
    let limit = i32::try_from(most.saturating_add(1)).unwrap_or(i32::MAX).to_be_bytes();
    let values = [keyspace.as_bytes(), name.as_bytes(), &limit].map(Value::Bytes);
    let rows = ask::<1>(shard, denylist.options.consistency_level, KEYS, &values).await?;
    let options = &denylist.options;
    if rows.len() > most {
        let (kind, allowed) = match most == options.max_keys_per_table {
            true => ("per-table", most),
            false => ("global", options.max_keys_total),
        };
        shard.shared.log.error(format_args!(
            "Partition denylist for {keyspace}/{name} has exceeded the {kind} allowance of ({allowed}). Remaining keys were ignored; please reduce the total number of keys denied or increase the denylist_max_keys_per_table param in cassandra.yaml to avoid inconsistency in denied partitions across nodes."
        ));
    }
    Ok(List::of(rows.into_iter().take(most).map(|[key]| key)))
}

async fn ask<const COLUMNS: usize>(
    shard: &ShardServer,
    consistency: Consistency,
    text: &str,
    values: &[Value<'_>],
) -> Result<Vec<[Vec<u8>; COLUMNS]>> {
    let outcome = internal::execute_at(&shard.coordinator, consistency, text, values).await?;
    let Outcome::Rows(rows) = outcome else { return Ok(Vec::new()) };
    let mut cursor = Cursor::new(&rows.content);
    let mut read = Vec::new();
    for _ in 0..rows.count {
        let row: [Option<&[u8]>; COLUMNS] = internal::row(&mut cursor).map_err(|_| {
            Error::Server("system_distributed.partition_denylist is damaged".to_owned())
        })?;
        read.push(row.map(|value| value.unwrap_or_default().to_vec()));
    }
    Ok(read)
}

fn found(catalog: &Catalog, keyspace: &[u8], name: &[u8]) -> Option<Arc<Table>> {
    let (keyspace, name) = (std::str::from_utf8(keyspace).ok()?, std::str::from_utf8(name).ok()?);
    catalog.table(keyspace, name).cloned()
}

/// Replaces all lists (`StorageProxyMBean.loadPartitionDenylist`).
pub(crate) async fn load(shard: &ShardServer) -> Result<()> {
    let Some(denylist) = denylist(shard) else {
        return Err(Error::Invalid(
            "the partition denylist is off: set partition_denylist_enabled in the file".to_owned(),
        ));
    };
    let began = now();
    let options = &denylist.options;
    let tables = ask::<2>(shard, options.consistency_level, TABLES, &[]).await?;
    let catalog = shard.coordinator.shard().tables().catalog();
    let (mut lists, mut total) = (HashMap::new(), 0);
    for [keyspace, name] in tables {
        let Some(table) = found(&catalog, &keyspace, &name) else { continue };
        let left = options.max_keys_total.saturating_sub(total);
        let list = if left == 0 {
            let (keyspace, name) = (&table.schema.keyspace, &table.schema.name);
            shard.shared.log.error(format_args!(
                "Hit limit on allowable denylisted keys in total. Processed {total} total entries. Not adding all entries to denylist for {keyspace}/{name}. Remove denylist entries in system_distributed.partition_denylist or increase your denylist_max_keys_total param in cassandra.yaml."
            ));
            List::of([])
        } else {
            of_table(shard, &denylist, &table, left.min(options.max_keys_per_table)).await
        };
        total += list.len();
        lists.insert(table.id, list);
    }
    denylist.loaded(lists);
    let millis = (now() - began).as_millis();
    shard.shared.log.say(format_args!("Loaded partition denylist cache in {millis}ms"));
    Ok(())
}

/// Before the first client, if partitions can be denied.
pub(crate) async fn load_before_clients(shared: &Shared) -> Result<(), String> {
    match shared.denylist {
        None => Ok(()),
        Some(_) => shared.mesh.on(0, load_first).await.map_err(|gone| gone.to_string()),
    }
}

/// Loads once; if that fails, again and again.
async fn load_first(shard: Rc<ShardServer>) {
    let Some(denylist) = denylist(&shard) else { return };
    if attempt(&shard, &denylist).await {
        return;
    }
    spawn(async move {
        loop {
            clock::sleep(denylist.options.initial_load_retry.max(RETRY_MIN)).await;
            if shard.is_draining() || attempt(&shard, &denylist).await {
                return;
            }
        }
    })
    .detach();
}

async fn attempt(shard: &ShardServer, denylist: &Denylist) -> bool {
    denylist.attempted();
    let Err(why) = load(shard).await else { return true };
    let seconds = denylist.options.initial_load_retry.as_secs();
    let log = &shard.shared.log;
    if denylist.counts().load_attempts == 1 {
        let level = denylist.options.consistency_level;
        log.error(format_args!(
            "Failed to load partition denylist: {why}; until it is loaded NO PARTITION IS DENIED. If {level} of the replicas of system_distributed cannot be \
             had, set denylist_consistency_level, or ALTER KEYSPACE system_distributed to the replicas that there are"
        ));
    }
    log.say(format_args!(
        "Exception while loading partition denylist cache. Scheduled retry in {seconds} seconds."
    ));
    false
}
