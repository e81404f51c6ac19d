//! `system.batches` of a directory that Cassandra has left.
//!
//! Its SSTables are in an order of their own (`LocalPartitioner`), and the batches in them are messages between nodes: nothing here reads
//! them, and they stay as they are. After a drain all of them are finished ones. One that is not finished may have been applied in
//! part: only Cassandra can finish it, so such a directory is refused.

use std::collections::BTreeMap;
use std::sync::Arc;

use halcyon_io::Disk;
use halcyon_model::schema::TableSchema;
use halcyon_schema::catalog::Table;
use halcyon_sstable::ScanOptions;
use halcyon_stream::{Fragment, FragmentStream};

use crate::version::LiveSSTable;
use crate::{Error, Result};

/// What is known of one batch: when it was last written, and when it was deleted.
#[derive(Default)]
struct Batch {
    written: Option<i64>,
    deleted: Option<i64>,
}

pub(crate) fn has_batches(table: &TableSchema) -> bool {
    (table.keyspace.as_str(), table.name.as_str()) == ("system", "batches")
}

/// Refuses SSTables of a table in Cassandra's own order that say more than "deleted".
pub(crate) async fn refuse_unfinished(
    disk: &Disk,
    table: &Table,
    sstables: &[Arc<LiveSSTable>],
) -> Result<()> {
    let mut batches: BTreeMap<Vec<u8>, Batch> = BTreeMap::new();
    for live in sstables {
        let mut scanner = live.sstable().scan(disk, ScanOptions::default()).await?;
        let mut key = Vec::new();
        while scanner.advance().await? {
            match scanner.fragment() {
                Fragment::Start(start) => {
                    key = start.key.bytes.clone();
                    if !start.deletion.is_live() {
                        let batch = batches.entry(key.clone()).or_default();
                        batch.deleted =
                            batch.deleted.max(Some(start.deletion.marked_for_delete_at));
                    }
                }
                Fragment::Row(row) => {
                    let batch = batches.entry(key.clone()).or_default();
                    batch.written = batch.written.max(Some(row.liveness.timestamp));
                }
                _ => {}
            }
        }
    }
    let unfinished = batches.values().filter(|batch| batch.written > batch.deleted).count();
    if unfinished == 0 {
        return Ok(());
    }
    Err(Error::CannotStart(format!(
        "{} has {unfinished} logged batches that Apache Cassandra has not finished. Start that Cassandra once more, wait until it \
         has replayed them (`SELECT count(*) FROM system.batches` is 0), run `nodetool drain`, stop it, and start again",
        table.full_name()
    )))
}
