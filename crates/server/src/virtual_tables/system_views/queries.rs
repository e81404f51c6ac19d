//! The requests that clients wait for. A thread of Cassandra's is a place among the tasks that a shard executes at once.

use crate::virtual_tables::rows::Rows;
use crate::virtual_tables::table::{Filled, Node, VirtualTable};

pub(in crate::virtual_tables) const TABLE: VirtualTable = VirtualTable::gathered(CQL, fill);

const CQL: &str = "CREATE TABLE system_views.queries (
    thread_id text PRIMARY KEY,
    queued_micros bigint,
    running_micros bigint,
    task text
) WITH ID = ca10cb3c-2140-3d3b-9d2c-7c723f0af0d2
    AND comment = 'Lists currently running queries';";

fn fill<'a>(node: &'a Node, rows: &'a mut Rows<'_>) -> Filled<'a> {
    Box::pin(async move {
        let shards = node.facts.metrics.len();
        let mut told = Vec::new();
        for (shard, shown) in node.servers.running().await.into_iter().enumerate() {
            match shown {
                Ok(shown) => told.extend(shown.into_iter().map(|task| (shard, task))),
                Err(gone) => return rows.fail(gone.to_string()),
            }
        }
        let mut rows = rows.with(["thread_id", "queued_micros", "running_micros", "task"]);
        let micros =
            |time: std::time::Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        for (shard, task) in told {
            rows.push([
                format!("Native-Transport-Requests-{}", task.place * shards + shard + 1).into(),
                micros(task.queued).into(),
                micros(task.running).into(),
                task.task.into(),
            ]);
        }
    })
}
