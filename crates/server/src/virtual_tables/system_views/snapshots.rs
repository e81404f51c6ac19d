//! The snapshots in the data directories: `nodetool listsnapshots`.

use crate::virtual_tables::rows::{Rows, Timestamp};
use crate::virtual_tables::table::{Filled, Node, VirtualTable};

pub(in crate::virtual_tables) const TABLE: VirtualTable = VirtualTable::gathered(CQL, fill);

const CQL: &str = "CREATE TABLE system_views.snapshots (
    name text,
    keyspace_name text,
    table_name text,
    created_at timestamp,
    ephemeral boolean,
    expires_at timestamp,
    size_on_disk bigint,
    true_size bigint,
    PRIMARY KEY (name, keyspace_name, table_name)
) WITH ID = a9db71c6-05c7-3045-a6a0-f7d2bd112978
    AND comment = 'available snapshots';";

fn fill<'a>(node: &'a Node, rows: &'a mut Rows<'_>) -> Filled<'a> {
    Box::pin(async move {
        let snapshots = match node.engine.snapshots().all().await {
            Ok(snapshots) => snapshots,
            Err(e) => return rows.fail(e.to_string()),
        };
        let mut rows = rows.with([
            "name",
            "keyspace_name",
            "table_name",
            "created_at",
            "ephemeral",
            "expires_at",
            "size_on_disk",
            "true_size",
        ]);
        for snapshot in snapshots {
            rows.push([
                snapshot.name.into(),
                snapshot.keyspace.into(),
                snapshot.table.into(),
                Timestamp(snapshot.created_ms).into(),
                snapshot.ephemeral.into(),
                snapshot.expires_ms.map(Timestamp).into(),
                snapshot.size_on_disk.into(),
                snapshot.true_size.into(),
            ]);
        }
    })
}
