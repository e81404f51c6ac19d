//! Settings as the node runs with them. UPDATE changes those that can change while it runs.

use halcyon_query::{Error, Result};

use crate::virtual_tables::rows::Rows;
use crate::virtual_tables::table::{Node, VirtualTable};
use crate::virtual_tables::write::{Assigned, Write};

pub(in crate::virtual_tables) const TABLE: VirtualTable =
    VirtualTable::computed(CQL, fill).writable(apply);

const CQL: &str = "CREATE TABLE system_views.settings (
    name text PRIMARY KEY,
    value text
) WITH ID = 5adfcadb-4407-3c1f-b97e-322735089073
    AND comment = 'current settings';";

fn fill(node: &Node, rows: &mut Rows<'_>) {
    let mut rows = rows.with(["name", "value"]);
    for (name, value) in node.facts.settings.all() {
        rows.push([name.into(), value.into()]);
    }
}

fn apply(node: &Node, write: &Write<'_>) -> Result<()> {
    let name = write.key()?.concat();
    let value = match write.text("value") {
        Assigned::Text(value) => Some(value),
        Assigned::Null => None,
        Assigned::Nothing => return Err(write.not_supported()),
    };
    let changed = node.facts.settings.change(&node.engine, &name, value);
    changed.map_err(|e| Error::Invalid(e.to_string()))?;
    let value = value.unwrap_or("null");
    node.facts.log.say(format_args!("{name} is {value} from now on: a client has changed it"));
    Ok(())
}
