//! Cassandra 6's table of what the slow query log has reported, and of the slowest request where its time went.

use std::time::Duration;

use crate::slow_queries::Parts;
use crate::virtual_tables::rows::{Rows, Timestamp, micros};
use crate::virtual_tables::table::{Node, VirtualTable};

pub(in crate::virtual_tables) const TABLE: VirtualTable = VirtualTable::computed(CQL, fill);

const CQL: &str = "CREATE TABLE system_views.slow_queries (
    keyspace_name text,
    table_name text,
    timestamp timestamp,
    query text,
    avg_ms bigint,
    cross_node boolean,
    device_reads bigint,
    device_us bigint,
    executed_us bigint,
    log_us bigint,
    max_ms bigint,
    min_ms bigint,
    sstables bigint,
    times_reported int,
    waited_us bigint,
    PRIMARY KEY (keyspace_name, table_name, timestamp, query)
) WITH CLUSTERING ORDER BY (table_name ASC, timestamp ASC, query ASC)
    AND ID = 696f6b52-a9cd-3ce5-80e8-2f204f9c89a3
    AND comment = 'Slow queries; of the slowest request of each, how long it waited for its core, how long it was executed, and of this for the commit log and the device';";

fn fill(node: &Node, rows: &mut Rows<'_>) {
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let mut rows = rows.with([
        "keyspace_name",
        "table_name",
        "timestamp",
        "query",
        "avg_ms",
        "cross_node",
        "device_reads",
        "device_us",
        "executed_us",
        "log_us",
        "max_ms",
        "min_ms",
        "sstables",
        "times_reported",
        "waited_us",
    ]);
    for query in node.facts.slow_queries.queries() {
        let (average, max) = (millis(query.average()), millis(query.max()));
        let Parts { waited, executed, waits } = query.slowest;
        rows.push([
            query.keyspace.into(),
            query.table.into(),
            Timestamp(query.at_ms).into(),
            query.text.into(),
            average.into(),
            false.into(),
            waits.device_reads.into(),
            micros(waits.device).into(),
            micros(executed).into(),
            micros(waits.log).into(),
            max.into(),
            millis(query.min).into(),
            waits.sstables.into(),
            query.times.into(),
            micros(waited).into(),
        ]);
    }
}
