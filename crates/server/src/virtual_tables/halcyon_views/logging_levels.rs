//! The loggers that have a level of their own; `nodetool setlogginglevel` changes them.

use crate::virtual_tables::rows::Rows;
use crate::virtual_tables::table::{Node, VirtualTable};

pub(in crate::virtual_tables) const TABLE: VirtualTable = VirtualTable::computed(CQL, fill);

const CQL: &str = "CREATE TABLE halcyon_views.logging_levels (
    logger text PRIMARY KEY,
    level text
) WITH ID = 6de6ae9a-c9b3-3b55-bfc8-f5e66c79d0f8
    AND comment = 'levels of loggers; one that is not listed has the level of the name above it, at last of ROOT';";

fn fill(node: &Node, rows: &mut Rows<'_>) {
    let mut rows = rows.with(["logger", "level"]);
    for (logger, level) in node.facts.log.levels().all() {
        rows.push([logger.into(), level.name().into()]);
    }
}
