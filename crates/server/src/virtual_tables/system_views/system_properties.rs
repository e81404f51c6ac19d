use crate::supported::CQL_VERSION;
use crate::virtual_tables::rows::Rows;
use crate::virtual_tables::table::{Node, VirtualTable};

pub(in crate::virtual_tables) const TABLE: VirtualTable = VirtualTable::computed(CQL, fill);

const CQL: &str = "CREATE TABLE system_views.system_properties (
    name text PRIMARY KEY,
    value text
) WITH ID = f3e4b9bf-ad78-34a2-98ff-bfde82880573
    AND comment = 'Cassandra relevant system properties';";

fn fill(node: &Node, rows: &mut Rows<'_>) {
    let mut rows = rows.with(["name", "value"]);
    for (name, value) in [
        ("halcyon.version", env!("CARGO_PKG_VERSION").to_owned()),
        ("halcyon.data_dir", node.facts.data_dir.display().to_string()),
        ("halcyon.io_engine", node.facts.disk.backend().backend.to_string()),
        ("cql.version", CQL_VERSION.to_owned()),
        ("os.name", std::env::consts::OS.to_owned()),
        ("os.arch", std::env::consts::ARCH.to_owned()),
    ] {
        rows.push([name.into(), value.into()]);
    }
}
