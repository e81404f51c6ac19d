//! The compactions and index builds that run: `nodetool compactionstats`.

use crate::virtual_tables::rows::{Rows, TimeUuid};
use crate::virtual_tables::table::{Node, VirtualTable};

pub(in crate::virtual_tables) const TABLE: VirtualTable = VirtualTable::computed(CQL, fill);

const CQL: &str = "CREATE TABLE system_views.sstable_tasks (
    keyspace_name text,
    table_name text,
    task_id timeuuid,
    completion_ratio double,
    kind text,
    progress bigint,
    sstables int,
    target_directory text,
    total bigint,
    total_compressed bigint,
    unit text,
    PRIMARY KEY (keyspace_name, table_name, task_id)
) WITH ID = af0d66c3-9b39-3d91-acd7-31a4e117f571
    AND comment = 'current sstable tasks';";

fn fill(node: &Node, rows: &mut Rows<'_>) {
    let mut rows = rows.with([
        "keyspace_name",
        "table_name",
        "task_id",
        "completion_ratio",
        "kind",
        "progress",
        "sstables",
        "target_directory",
        "total",
        "total_compressed",
        "unit",
    ]);
    for task in node.engine.compactor().tasks() {
        let (done, total) = (task.progress.data_read, task.progress.data_total);
        let ratio = if total == 0 { 1.0 } else { done as f64 / total as f64 };
        rows.push([
            task.keyspace.as_str().into(),
            task.table.as_str().into(),
            TimeUuid(task.id).into(),
            ratio.into(),
            task.kind.name().to_lowercase().into(),
            done.into(),
            i32::try_from(task.sstables).unwrap_or(i32::MAX).into(),
            task.directory.as_str().into(),
            total.into(),
            task.bytes.into(),
            "bytes".into(),
        ]);
    }
    for build in node.engine.indexes().builds() {
        let ratio = if build.total == 0 { 1.0 } else { build.done as f64 / build.total as f64 };
        rows.push([
            build.keyspace.as_str().into(),
            build.table.as_str().into(),
            TimeUuid(build.id).into(),
            ratio.into(),
            "secondary index build".into(),
            build.done.into(),
            i32::try_from(build.sstables).unwrap_or(i32::MAX).into(),
            build.directory.as_str().into(),
            build.total.into(),
            build.total.into(),
            "bytes".into(),
        ]);
    }
}
