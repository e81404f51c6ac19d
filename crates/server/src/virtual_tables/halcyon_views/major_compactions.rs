//! Major compactions: INSERT starts one, DELETE stops it, and rows say what became of them.

use halcyon_engine::MajorState;
use halcyon_query::{Error, Result};
use halcyon_schema::catalog::TableKind;

use crate::virtual_tables::rows::{Rows, Timestamp};
use crate::virtual_tables::table::{Node, VirtualTable};
use crate::virtual_tables::write::Write;

pub(in crate::virtual_tables) const TABLE: VirtualTable = VirtualTable::writable(CQL, fill, apply);

const CQL: &str = "CREATE TABLE halcyon_views.major_compactions (
    keyspace_name text,
    table_name text,
    bytes_in bigint,
    bytes_out bigint,
    ended_at timestamp,
    failure text,
    sstables_in int,
    sstables_out int,
    started_at timestamp,
    state text,
    PRIMARY KEY ((keyspace_name, table_name))
) WITH ID = 49c93a91-1096-3e4d-8f3b-6d262c0e2c1f
    AND comment = 'INSERT a table to compact it as a whole, DELETE it to stop that';";

fn fill(node: &Node, rows: &mut Rows<'_>) {
    let mut rows = rows.with([
        "keyspace_name",
        "table_name",
        "state",
        "failure",
        "started_at",
        "ended_at",
        "sstables_in",
        "sstables_out",
        "bytes_in",
        "bytes_out",
    ]);
    for major in node.engine.major_compactions() {
        let (state, failure) = match &major.state {
            MajorState::Running => ("running", None),
            MajorState::Done => ("done", None),
            MajorState::Stopped => ("stopped", None),
            MajorState::Failed(why) => ("failed", Some(why.as_str())),
        };
        let done = major.state == MajorState::Done;
        let count = |n: usize| done.then(|| i32::try_from(n).unwrap_or(i32::MAX));
        rows.push([
            major.keyspace.as_str().into(),
            major.table.as_str().into(),
            state.into(),
            failure.into(),
            Timestamp(major.started_ms).into(),
            major.ended_ms.map(Timestamp).into(),
            count(major.sstables_in).into(),
            count(major.sstables_out).into(),
            done.then_some(major.bytes_in).into(),
            done.then_some(major.bytes_out).into(),
        ]);
    }
}

fn apply(node: &Node, write: &Write<'_>) -> Result<()> {
    let key = write.key()?;
    let [keyspace, name] = key.as_slice() else {
        return Err(write.not_supported());
    };
    let catalog = node.engine.catalog();
    if catalog.keyspace(keyspace).is_none() {
        return Err(Error::Invalid(format!("keyspace {keyspace} does not exist")));
    }
    let found = catalog.table(keyspace, name).filter(|t| t.kind != TableKind::Virtual);
    let table =
        found.ok_or_else(|| Error::Invalid(format!("table {keyspace}.{name} does not exist")))?;
    if write.deletes_partition() {
        node.engine.stop_major_compaction(table.id);
        return Ok(());
    }
    if write.sets_something() {
        let what =
            "only keyspace_name and table_name can be written; the others tell what became of it";
        return Err(Error::Invalid(what.to_owned()));
    }
    node.engine.begin_major_compaction(table.id)?;
    Ok(())
}
