//! Reads the live rows of `system_schema` at the start, before there are shards.

use std::collections::BTreeMap;
use std::sync::Arc;

use halcyon_model::clustering::ClusteringValue;
use halcyon_model::token::split_key;
use halcyon_schema::rows::{SchemaRow, SchemaRows};
use halcyon_sstable::read::ReadCaches;
use halcyon_stream::{Fragment, FragmentStream, Row, TableId};

use crate::Result;
use crate::current::Current;
use crate::memtable::Memtable;
use crate::read::ReadStream;
use crate::tables::store::Store;

/// Reads all of `system_schema`, from SSTables and the commit log.
pub(crate) async fn schema_rows<'a>(
    stores: impl Iterator<Item = &'a Arc<Store>>,
    mut replayed: BTreeMap<TableId, Memtable>,
    caches: &ReadCaches,
    now: u32,
) -> Result<SchemaRows> {
    let mut rows = SchemaRows::new();
    for store in stores {
        let table = store.table();
        if table.schema.keyspace == "system_schema" {
            let memtable = replayed.remove(&table.id).map(Arc::new);
            let live = live_rows(store, memtable, caches, now).await?;
            rows.insert(table.schema.name.clone(), live);
        }
    }
    Ok(rows)
}

async fn live_rows(
    store: &Arc<Store>,
    memtable: Option<Arc<Memtable>>,
    caches: &ReadCaches,
    now: u32,
) -> Result<Vec<SchemaRow>> {
    let current = Current::of(store.common(), None);
    let table = &current.definition.table;
    let mut stream = ReadStream::of_all(current.clone(), memtable, caches).await?;
    let mut key: Vec<Vec<u8>> = Vec::new();
    let mut rows = Vec::new();
    while stream.advance().await? {
        match stream.fragment() {
            Fragment::Start(start) => {
                let parts = split_key(&start.key.bytes, table.schema.partition_key.len());
                key = parts.unwrap_or_default().into_iter().map(<[u8]>::to_vec).collect();
            }
            Fragment::Row(row) if is_live(row, now) => {
                let mut out = SchemaRow::new();
                for (column, value) in table.schema.partition_key.iter().zip(&key) {
                    out.insert(column.name.clone(), Some(value.clone()));
                }
                let clustering = &table.schema.clustering;
                let values = table.layout.clusterings.values(row.clustering, clustering.len());
                for (column, value) in clustering.iter().zip(values) {
                    let value = match value {
                        ClusteringValue::Bytes(bytes) => Some(bytes.to_vec()),
                        ClusteringValue::Null => None,
                    };
                    out.insert(column.name.clone(), value);
                }
                for (at, column) in table.schema.regulars.iter().enumerate() {
                    let of_column = |c: &&halcyon_stream::Cell| usize::from(c.column) == at;
                    let cell = row.cells.iter().find(of_column).filter(|cell| cell.is_live(now));
                    let value = cell.map(|cell| cell.value.of(row.bytes).to_vec());
                    out.insert(column.name.clone(), value);
                }
                rows.push(out);
            }
            _ => {}
        }
    }
    Ok(rows)
}

fn is_live(row: Row<'_>, now: u32) -> bool {
    let liveness = row.liveness;
    let is_alive =
        !liveness.is_empty() && (!liveness.is_expiring() || now < liveness.local_expiration_time);
    is_alive || row.cells.iter().any(|cell| cell.is_live(now))
}
