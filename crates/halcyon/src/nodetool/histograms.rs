//! `tpstats`.

use super::arguments::Call;
use super::failure::Result;
use super::format::{Datum, Format, as_map};
use super::node::Node;
use super::text::{row, table};

/// Titles, keys of JSON, and columns of `system_views.thread_pools`.
const OF_POOLS: [(&str, &str, &str); 5] = [
    ("Active", "ActiveTasks", "active_tasks"),
    ("Pending", "PendingTasks", "pending_tasks"),
    ("Completed", "CompletedTasks", "completed_tasks"),
    ("Blocked", "CurrentlyBlockedTasks", "blocked_tasks"),
    ("All time blocked", "TotalBlockedTasks", "blocked_tasks_all_time"),
];

/// Nodes exchange no messages, so none is dropped.
pub(super) async fn pools(call: &Call, node: &mut Node, out: &mut String) -> Result<()> {
    let format = Format::of(call, "json,yaml")?;
    let rows = node.rows("SELECT * FROM system_views.thread_pools").await?;
    if format != Format::Text {
        let fields = OF_POOLS.map(|(_, key, column)| (key, column));
        let mut pools = Vec::new();
        for of in rows.iter() {
            let counts =
                fields.map(|(key, column)| (key.to_owned(), Datum::Count(of.count(column))));
            pools.push((of.text("name"), Datum::Map(counts.to_vec())));
        }
        let tree = vec![
            ("ThreadPools".to_owned(), Datum::Map(pools)),
            ("WaitLatencies".to_owned(), Datum::EmptyMap),
            ("DroppedMessage".to_owned(), Datum::EmptyMap),
        ];
        as_map(&tree, format, out);
        return Ok(());
    }
    let mut lines = vec![row(["Pool Name"])];
    if let Some(header) = lines.first_mut() {
        header.extend(OF_POOLS.map(|(title, ..)| title.to_owned()));
    }
    for of in rows.iter() {
        let mut line = vec![of.text("name")];
        line.extend(OF_POOLS.map(|(_, _, column)| of.count(column).to_string()));
        lines.push(line);
    }
    out.push_str(&table(&lines, " "));
    out.push_str("\nLatencies waiting in queue (micros) per dropped message types\n");
    out.push_str("Message type                      Dropped     50%      95%      99%      Max\n");
    Ok(())
}
