//! What a start finds and cannot use. It is set apart, so that everything else is served.
//!
//! | what | `stop` (the default) | `best_effort`, `ignore` | `stop_paranoid`, `die` |
//! |---|---|---|---|
//! | a damaged SSTable | reads of its table fail | its table is read without it, with a warning | no start |
//! | an SSTable in another partitioner's order | reads of its table fail | its table is read without it, with a warning | no start |
//! | files `….db` of no name that can be read | reads of their table fail | their table is read without them, with a warning | no start |
//! | an SSTable that the device fails to read | no start | its table is read without it, with a warning | no start |
//! | a table whose schema is unusable | its statements fail | its statements fail | its statements fail |
//!
//! 1. Cassandra ends at its start under `stop` too, and reads without the SSTable, and without a word, under the others. Beside a name that
//!    it cannot read it starts under none, and an SSTable of another partitioner it leaves out, with a line in the log. A node that is up
//!    can say what is wrong, and serves its other tables.
//! 2. No tombstone of a table with such an SSTable is purged, because it may shadow what the SSTable has; and the table is not truncated.
//! 3. The commit log is kept while it has writes to a table that is set apart: the start that can use the table replays them.
//! 4. No file is touched. A repaired or replaced file is used by the next start.

use std::sync::Arc;

use halcyon_model::Partitioner;
use halcyon_model::options::{CompressorKind, Entries};
use halcyon_model::schema::TableSchema;
use halcyon_schema::catalog::{self, Catalog, Table};
use halcyon_sstable::{Component, Error as SSTableError};

use crate::tables::store::Store;
use crate::version::LiveSSTable;
use crate::{DiskFailurePolicy, Error, Result};

/// Whether an SSTable that could not be opened is set apart; else there is no start.
pub(super) fn tolerated(policy: DiskFailurePolicy, error: &Error) -> bool {
    let of_disk = matches!(error, Error::Disk(_) | Error::SSTable(SSTableError::Io(_)));
    let damaged = !of_disk || error.is_of_one_file();
    match policy {
        DiskFailurePolicy::BestEffort | DiskFailurePolicy::Ignore => true,
        DiskFailurePolicy::Stop => damaged,
        DiskFailurePolicy::StopParanoid | DiskFailurePolicy::Die => false,
    }
}

/// There is no start, and what helps.
pub(super) fn refusal(error: &Error) -> Error {
    let restore = match error {
        Error::SSTable(SSTableError::Unsupported { .. }) => "Or",
        _ => "Restore the files of this SSTable from a backup, or",
    };
    Error::CannotStart(format!(
        "{error}. {restore} start with disk_failure_policy best_effort to serve everything else"
    ))
}

/// An SSTable in the order of the node's partitioner; some of Cassandra's own tables have another, and are not judged.
pub(crate) fn in_order(live: Arc<LiveSSTable>, schema: &TableSchema) -> Result<Arc<LiveSSTable>> {
    let partitioner = &live.sstable().layout().partitioner;
    if *partitioner == Partitioner::Murmur3
        || schema.keyspace == "system" && matches!(partitioner, Partitioner::Local(_))
    {
        return Ok(live);
    }
    let class = partitioner.class_name();
    let class = class.rsplit('.').next().unwrap_or_default();
    let what = format!(
        "its keys are in the order of {class}, and this node's, as Cassandra's by default, in that of Murmur3Partitioner: in a Cassandra \
         with {class} read them, or load them into this cluster with sstableloader"
    );
    let path = live.descriptor().component_path(Component::Data);
    Err(SSTableError::Unsupported { path, what }.into())
}

/// Without all of the schema, tables would be missing, and their writes in the commit log lost.
pub(super) fn refuse_partial_schema<'a>(
    stores: impl Iterator<Item = &'a Arc<Store>>,
) -> Result<()> {
    let mut damaged = stores.flat_map(|store| store.apart());
    match damaged.next() {
        None => Ok(()),
        Some(found) => Err(Error::CannotStart(format!(
            "{}: the schema is incomplete without it. Restore its files from a backup or a snapshot of {}.{}, and start again",
            found.why, found.keyspace, found.table
        ))),
    }
}

/// Sets tables apart that have data which cannot be read, or would be written otherwise than asked.
pub(super) fn unusable_options(catalog: &mut Catalog) {
    let unusable = |table: &Arc<Table>| Some((table.clone(), check_options(table).err()?));
    let found: Vec<_> = catalog.tables().filter_map(unusable).collect();
    for (table, why) in found {
        let (keyspace, name) = (&table.schema.keyspace, &table.schema.name);
        if let Some(keyspace) = catalog.keyspaces.get_mut(keyspace) {
            Arc::make_mut(keyspace).tables.remove(name);
        }
        let apart = catalog::SetApart { id: Some(table.id), why };
        let all = Arc::make_mut(&mut catalog.set_apart);
        all.insert((keyspace.clone(), name.clone()), apart);
    }
}

fn check_options(table: &Table) -> Result<(), String> {
    let Some(option) = &table.schema.options.compression else { return Ok(()) };
    let class = option.entries().get("class").map_or("", String::as_str);
    if class.contains("Encrypt") {
        return Err(format!(
            "it is encrypted ({class}): in its Cassandra, set its compression to LZ4Compressor and rewrite it with `nodetool upgradesstables -a`"
        ));
    }
    match CompressorKind::from_class(class, &Entries::new()) {
        Err(what) if !class.is_empty() => Err(format!(
            "{what}: in its Cassandra, change its compression with ALTER TABLE and rewrite it with `nodetool upgradesstables -a`"
        )),
        _ => Ok(()),
    }
}
