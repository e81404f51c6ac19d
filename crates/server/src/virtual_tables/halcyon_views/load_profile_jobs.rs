//! The jobs of `nodetool profileload --interval`.

use crate::virtual_tables::rows::Rows;
use crate::virtual_tables::table::{Node, VirtualTable};

pub(in crate::virtual_tables) const TABLE: VirtualTable = VirtualTable::computed(CQL, fill);

const CQL: &str = "CREATE TABLE halcyon_views.load_profile_jobs (
    keyspace_name text,
    table_name text,
    is_stopping boolean,
    PRIMARY KEY (keyspace_name, table_name)
) WITH ID = 90fd5fef-17d3-310f-acc6-9251a889f8fb
    AND comment = 'jobs that sample tables at intervals; *: all';";

fn fill(node: &Node, rows: &mut Rows<'_>) {
    let mut rows = rows.with(["keyspace_name", "table_name", "is_stopping"]);
    let name = |name: Option<String>| name.unwrap_or_else(|| "*".to_owned());
    for (job, is_stopping) in node.facts.profiles.jobs() {
        rows.push([name(job.keyspace).into(), name(job.table).into(), is_stopping.into()]);
    }
}
