//! The node itself: what `nodetool info` and `status` show beside `system.local`.

use halcyon_io::clock::now;
use halcyon_io::resources;

use crate::virtual_tables::rows::{Rows, micros};
use crate::virtual_tables::table::{Node, VirtualTable};

pub(in crate::virtual_tables) const TABLE: VirtualTable = VirtualTable::computed(CQL, fill);

const CQL: &str = "CREATE TABLE halcyon_views.node (
    name text PRIMARY KEY,
    load bigint,
    log_level text,
    memory bigint,
    memory_max bigint,
    mode text,
    native_transport_active boolean,
    processors_withheld_us bigint,
    trace_probability double,
    uptime_seconds bigint
) WITH ID = 6210e376-2594-3594-be10-8814da1c3d6f
    AND comment = 'the node: bytes of its SSTables, memory of the process, whether it takes writes';";

fn fill(node: &Node, rows: &mut Rows<'_>) {
    let load: u64 = node.engine.tables().stats().iter().map(|table| table.disk_space).sum();
    let mode = if node.engine.reporter().failure().is_some() { "DRAINED" } else { "NORMAL" };
    let mut rows = rows.with([
        "name",
        "load",
        "log_level",
        "memory",
        "memory_max",
        "mode",
        "native_transport_active",
        "processors_withheld_us",
        "trace_probability",
        "uptime_seconds",
    ]);
    rows.push([
        "local".into(),
        load.into(),
        node.facts.log.levels().root().name().into(),
        resources::resident_memory().into(),
        resources::available_memory().into(),
        mode.into(),
        node.servers.has_native_transport().into(),
        micros(node.engine.disk().runtime().processors_withheld()).into(),
        node.facts.trace_probability.get().into(),
        (now() - node.facts.began).as_secs().into(),
    ]);
}
