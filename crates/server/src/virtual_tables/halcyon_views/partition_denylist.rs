use crate::virtual_tables::rows::Rows;
use crate::virtual_tables::table::{Node, VirtualTable};

pub(in crate::virtual_tables) const TABLE: VirtualTable = VirtualTable::computed(CQL, fill);

const CQL: &str = "CREATE TABLE halcyon_views.partition_denylist (
    name text PRIMARY KEY,
    keys bigint,
    load_attempts bigint,
    load_successes bigint,
    range_reads_rejected bigint,
    reads_rejected bigint,
    writes_rejected bigint
) WITH ID = ee2e3e82-a5ac-363f-ac37-e1731132aada
    AND comment = 'the partition denylist, if it is on: keys that are denied, and what was refused since the start';";

fn fill(node: &Node, rows: &mut Rows<'_>) {
    let columns = [
        "name",
        "keys",
        "load_attempts",
        "load_successes",
        "range_reads_rejected",
        "reads_rejected",
        "writes_rejected",
    ];
    let mut rows = rows.with(columns);
    let Some(denylist) = &node.facts.denylist else { return };
    let counts = denylist.counts();
    rows.push([
        "local".into(),
        counts.keys.into(),
        counts.load_attempts.into(),
        counts.load_successes.into(),
        counts.range_reads_rejected.into(),
        counts.reads_rejected.into(),
        counts.writes_rejected.into(),
    ]);
}
