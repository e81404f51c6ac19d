use crate::virtual_tables::rows::{Rows, micros};
use crate::virtual_tables::table::{Node, VirtualTable};

pub(in crate::virtual_tables) const TABLE: VirtualTable = VirtualTable::computed(CQL, fill);

const CQL: &str = "CREATE TABLE halcyon_views.compaction_backlog (
    keyspace_name text,
    table_name text,
    excess_sstables int,
    pending_bytes bigint,
    pending_tasks int,
    sstables int,
    write_wait_us bigint,
    PRIMARY KEY ((keyspace_name, table_name))
) WITH ID = 7e79d0a7-5d19-3945-b334-9bc84194d425
    AND comment = 'what compaction has to do: tasks, bytes to read, SSTables that a read may meet too many, and how long each write waits for that';";

fn fill(node: &Node, rows: &mut Rows<'_>) {
    let mut rows = rows.with([
        "keyspace_name",
        "table_name",
        "sstables",
        "pending_tasks",
        "pending_bytes",
        "excess_sstables",
        "write_wait_us",
    ]);
    let count = |n: usize| i32::try_from(n).unwrap_or(i32::MAX);
    for backlog in node.engine.compactor().backlog() {
        rows.push([
            backlog.keyspace.as_str().into(),
            backlog.table.as_str().into(),
            count(backlog.sstables).into(),
            count(backlog.debt.tasks).into(),
            backlog.debt.bytes.into(),
            count(backlog.debt.excess).into(),
            micros(backlog.write_wait).into(),
        ]);
    }
}
