use crate::request_log::Shown;
use crate::virtual_tables::rows::Rows;
use crate::virtual_tables::table::{Node, VirtualTable};

pub(in crate::virtual_tables) const TABLE: VirtualTable = VirtualTable::computed(CQL, fill);

const CQL: &str = "CREATE TABLE halcyon_views.request_logs (
    name text PRIMARY KEY,
    dropped bigint,
    enabled boolean,
    failed bigint,
    options frozen<map<text, text>>,
    queued_bytes bigint,
    written bigint
) WITH ID = e0b1f8a0-e0c8-32fa-9b98-de72c7d38305
    AND comment = 'audit log and full query log: options, and records written, dropped at a full queue, lost to a full device';";

fn fill(node: &Node, rows: &mut Rows<'_>) {
    let columns = ["name", "dropped", "enabled", "failed", "options", "queued_bytes", "written"];
    let mut rows = rows.with(columns);
    for Shown { name, enabled, counts, options } in node.facts.request_logs.shown() {
        rows.push([
            name.into(),
            counts.dropped.into(),
            enabled.into(),
            counts.failed.into(),
            options.as_slice().into(),
            counts.queued.into(),
            counts.written.into(),
        ]);
    }
}
