//! What the doctor finds: a read examines the node, if that was not done in the last minutes.

use std::sync::Arc;

use crate::virtual_tables::rows::Rows;
use crate::virtual_tables::table::{Filled, Node, VirtualTable};

pub(in crate::virtual_tables) const TABLE: VirtualTable = VirtualTable::gathered(CQL, fill);

const CQL: &str = "CREATE TABLE halcyon_views.findings (
    position int PRIMARY KEY,
    cost text,
    cure text,
    evidence text,
    finding text,
    kind text,
    severity text,
    subject text
) WITH ID = 927be6a6-49f3-3932-9be6-24a06e748698
    AND comment = 'what the doctor finds, the worst first; examined when it is read, at most every ten minutes';";

fn fill<'a>(node: &'a Node, rows: &'a mut Rows<'_>) -> Filled<'a> {
    Box::pin(async move {
        let directories = node.engine.options().data_directories.clone();
        let (facts, servers) = (&node.facts, Arc::clone(&node.servers));
        let found = facts.findings.of(&facts.disk, directories, (servers, &facts.log)).await;
        let found = match found {
            Ok(found) => found,
            Err(why) => return rows.fail(why),
        };
        let mut rows = rows.with([
            "position", "severity", "kind", "subject", "finding", "evidence", "cost", "cure",
        ]);
        for (position, of) in (1_i32..).zip(found.iter()) {
            rows.push([
                position.into(),
                of.severity.name().into(),
                of.kind.into(),
                of.of.as_str().into(),
                of.what.as_str().into(),
                of.evidence.join("\n").into(),
                of.cost.as_str().into(),
                of.cure.join("\n").into(),
            ]);
        }
    })
}
