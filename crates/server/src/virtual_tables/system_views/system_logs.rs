//! The last lines of the log. Cassandra fills it if logback has the appender `CQLLOG`; here it always has the last ones.

use crate::virtual_tables::rows::{Rows, Timestamp};
use crate::virtual_tables::table::{Node, VirtualTable};

pub(in crate::virtual_tables) const TABLE: VirtualTable = VirtualTable::computed(CQL, fill);

const CQL: &str = "CREATE TABLE system_views.system_logs (
    timestamp timestamp,
    order_in_millisecond int,
    level text,
    logger text,
    message text,
    PRIMARY KEY (timestamp, order_in_millisecond)
) WITH ID = 95df5040-98b5-3cdd-907f-17bd96651f58
    AND comment = 'Cassandra logs';";

fn fill(node: &Node, rows: &mut Rows<'_>) {
    let mut rows = rows.with(["timestamp", "order_in_millisecond", "level", "logger", "message"]);
    let mut last = (0, 0);
    for said in node.facts.log.last_lines() {
        last = (said.at_ms, if said.at_ms == last.0 { last.1 + 1 } else { 0 });
        rows.push([
            Timestamp(said.at_ms).into(),
            last.1.into(),
            said.level.name().into(),
            said.logger.as_ref().into(),
            said.text.as_str().into(),
        ]);
    }
}
