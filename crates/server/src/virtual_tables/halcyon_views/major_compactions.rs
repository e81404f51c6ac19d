//! Major compactions: INSERT starts one, DELETE stops it, and rows say what became of them.
//!
//! The column `argument` limits it, in the words of `nodetool compact`: `split-output`, `token-range=START,END`, `partition=KEY` (the
//! key as Cassandra's tools spell it), `user-defined=FILE,FILE…`, `rewrite=all|other-version|other-compression`. Without it the whole
//! table is compacted.

use std::path::PathBuf;

use halcyon_engine::{MajorState, Rewrite, Selection};
use halcyon_query::{Error, Result};
use halcyon_schema::catalog::{Table, TableKind};

use super::partition_key::partition_key;
use crate::virtual_tables::rows::{Rows, Timestamp};
use crate::virtual_tables::table::{Node, VirtualTable};
use crate::virtual_tables::write::{Assigned, Write};

pub(in crate::virtual_tables) const TABLE: VirtualTable =
    VirtualTable::computed(CQL, fill).writable(apply);

const CQL: &str = "CREATE TABLE halcyon_views.major_compactions (
    keyspace_name text,
    table_name text,
    argument text,
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
        "argument",
        "state",
        "failure",
        "started_at",
        "ended_at",
        "sstables_in",
        "sstables_out",
        "bytes_in",
        "bytes_out",
    ]);
    for major in node.engine.compactor().majors() {
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
            major.argument.as_deref().into(),
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
    let catalog = node.engine.tables().catalog();
    if catalog.keyspace(keyspace).is_none() {
        return Err(Error::Invalid(format!("keyspace {keyspace} does not exist")));
    }
    let found = catalog.table(keyspace, name).filter(|t| t.kind != TableKind::Virtual);
    let table =
        found.ok_or_else(|| Error::Invalid(format!("table {keyspace}.{name} does not exist")))?;
    if write.deletes_partition() {
        node.engine.compactor().stop_major(table.id);
        return Ok(());
    }
    let (selection, argument) = match write.text("argument") {
        Assigned::Text("") | Assigned::Null => (WHOLE, None),
        Assigned::Text(argument) => (selection(table, argument)?, Some(argument.to_owned())),
        Assigned::Nothing if write.sets_something() => {
            let what = "only keyspace_name, table_name and argument can be written; the other columns show its outcome";
            return Err(Error::Invalid(what.to_owned()));
        }
        Assigned::Nothing => (WHOLE, None),
    };
    node.engine.compactor().begin_major(table.id, selection, argument)?;
    Ok(())
}

const WHOLE: Selection = Selection::Whole { split_output: false };

/// Reads an argument, in Cassandra's words where it is wrong.
fn selection(table: &Table, argument: &str) -> Result<Selection> {
    match argument.split_once('=') {
        None if argument == "split-output" => Ok(Selection::Whole { split_output: true }),
        Some(("token-range", range)) => {
            let (start, end) = range.split_once(',').unwrap_or((range, ""));
            Ok(Selection::Tokens { start: token(start)?, end: token(end)? })
        }
        Some(("partition", text)) => {
            let key = partition_key(table, text)?;
            Ok(Selection::Key(key))
        }
        Some(("rewrite", "all")) => Ok(Selection::Rewrite(Rewrite::All)),
        Some(("rewrite", "other-version")) => Ok(Selection::Rewrite(Rewrite::OtherVersion)),
        Some(("rewrite", "other-compression")) => Ok(Selection::Rewrite(Rewrite::OtherCompression)),
        Some(("user-defined", files)) => {
            Ok(Selection::Files(files.split(',').map(|file| PathBuf::from(file.trim())).collect()))
        }
        _ => Err(Error::Invalid(format!(
            "{argument} is not an argument of a compaction; there are: split-output, token-range=START,END, partition=KEY, user-defined=FILES, rewrite=all|other-version|other-compression"
        ))),
    }
}

fn token(text: &str) -> Result<i64> {
    text.parse().map_err(|_| {
        Error::Invalid(format!(
            "Invalid token for Murmur3Partitioner. Got {text} but expected a long value (unsigned 8 bytes integer)."
        ))
    })
}
