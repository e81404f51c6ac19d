//! The parts of each slow request.

use crate::virtual_tables::rows::{Rows, Timestamp, micros};
use crate::virtual_tables::table::{Node, VirtualTable};

pub(in crate::virtual_tables) const TABLE: VirtualTable = VirtualTable::computed(CQL, fill);

const CQL: &str = "CREATE TABLE halcyon_views.slow_requests (
    number bigint PRIMARY KEY,
    client inet,
    device_reads bigint,
    device_us bigint,
    ended timestamp,
    executed_us bigint,
    keyspace_name text,
    log_us bigint,
    query text,
    shard int,
    sstables bigint,
    table_name text,
    waited_us bigint
) WITH ID = be6909a8-a773-3954-884d-8206bf8eb0a2
    AND comment = 'the last requests that took longer than slow_query_log_timeout, 0 is the newest: how long each waited for its core, how long it was executed, and of this for the commit log and the device';";

fn fill(node: &Node, rows: &mut Rows<'_>) {
    let mut rows = rows.with([
        "number",
        "client",
        "device_reads",
        "device_us",
        "ended",
        "executed_us",
        "keyspace_name",
        "log_us",
        "query",
        "shard",
        "sstables",
        "table_name",
        "waited_us",
    ]);
    for (number, request) in (0_u64..).zip(node.facts.slow_queries.requests().into_iter().rev()) {
        rows.push([
            number.into(),
            request.client.into(),
            request.parts.waits.device_reads.into(),
            micros(request.parts.waits.device).into(),
            Timestamp(request.ended_ms).into(),
            micros(request.parts.executed).into(),
            request.keyspace.into(),
            micros(request.parts.waits.log).into(),
            request.text.into(),
            i32::try_from(request.shard).unwrap_or(i32::MAX).into(),
            request.parts.waits.sstables.into(),
            request.table.into(),
            micros(request.parts.waited).into(),
        ]);
    }
}
