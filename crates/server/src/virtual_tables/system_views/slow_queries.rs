//! Cassandra 6's table of what the slow query log has reported.

use std::time::Duration;

use crate::virtual_tables::rows::{Rows, Timestamp};
use crate::virtual_tables::table::{Node, VirtualTable};

pub(in crate::virtual_tables) const TABLE: VirtualTable = VirtualTable::computed(CQL, fill);

const CQL: &str = "CREATE TABLE system_views.slow_queries (
    keyspace_name text,
    table_name text,
    timestamp timestamp,
    query text,
    avg_ms bigint,
    cross_node boolean,
    max_ms bigint,
    min_ms bigint,
    times_reported int,
    PRIMARY KEY (keyspace_name, table_name, timestamp, query)
) WITH CLUSTERING ORDER BY (table_name ASC, timestamp ASC, query ASC)
    AND ID = 696f6b52-a9cd-3ce5-80e8-2f204f9c89a3
    AND comment = 'Slow queries';";

fn fill(node: &Node, rows: &mut Rows<'_>) {
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let mut rows = rows.with([
        "keyspace_name",
        "table_name",
        "timestamp",
        "query",
        "avg_ms",
        "cross_node",
        "max_ms",
        "min_ms",
        "times_reported",
    ]);
    for query in node.facts.slow_queries.queries() {
        let average = millis(query.average());
        rows.push([
            query.keyspace.into(),
            query.table.into(),
            Timestamp(query.at_ms).into(),
            query.text.into(),
            average.into(),
            false.into(),
            millis(query.max).into(),
            millis(query.min).into(),
            query.times.into(),
        ]);
    }
}
