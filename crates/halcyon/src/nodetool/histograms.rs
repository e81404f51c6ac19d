//! `tpstats`, `tablehistograms`, `proxyhistograms`.

use halcyon_client::{Row, Rows};

use super::arguments::{Call, keyspace_and_name};
use super::failure::{Failure, Result};
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

/// Titles of lines, and columns of `halcyon_views.histograms`.
const OF_LINES: [(&str, &str); 7] = [
    ("50%", "p50th"),
    ("75%", "p75th"),
    ("95%", "p95th"),
    ("98%", "p98th"),
    ("99%", "p99th"),
    ("Min", "min"),
    ("Max", "max"),
];

/// A column: its title, its unit, and what it shows; `None`: Halcyon does not count it.
type Column = (&'static str, &'static str, Option<&'static str>);

const OF_TABLE: [Column; 5] = [
    ("Read Latency", "(micros)", Some("read_ns")),
    ("Write Latency", "(micros)", Some("write_ns")),
    ("SSTables", "", Some("sstables")),
    ("Partition Size", "(bytes)", Some("partition_bytes")),
    ("Cell Count", "", Some("partition_cells")),
];
const OF_NODE: [Column; 6] = [
    ("Read Latency", "(micros)", Some("read_ns")),
    ("Write Latency", "(micros)", Some("write_ns")),
    ("Range Latency", "(micros)", Some("range_ns")),
    ("CAS Read Latency", "(micros)", Some("cas_read_ns")),
    ("CAS Write Latency", "(micros)", Some("cas_write_ns")),
    ("View Write Latency", "(micros)", None),
];

const HISTOGRAMS: &str = "SELECT * FROM halcyon_views.histograms";

/// The columns of one table, or of the node (empty names), each `width` wide.
fn lines(rows: &Rows, names: (&str, &str), columns: &[Column], width: usize, out: &mut String) {
    let is_it =
        |row: &Row<'_>| row.text("keyspace_name") == names.0 && row.text("table_name") == names.1;
    let of: Vec<Row<'_>> = rows.iter().filter(is_it).collect();
    let mut line = |title: &str, cells: &mut dyn Iterator<Item = String>| {
        let cells: String = cells.map(|cell| format!("{cell:>width$}")).collect();
        out.push_str(&format!("{title:<10}{cells}\n"));
    };
    line("Percentile", &mut columns.iter().map(|(title, ..)| (*title).to_owned()));
    line("", &mut columns.iter().map(|(_, unit, _)| (*unit).to_owned()));
    for (title, column) in OF_LINES {
        let cell = |(_, _, measure): &Column| {
            let found = measure.and_then(|name| of.iter().find(|row| row.text("measure") == name));
            let value = found.map(|row| row.count(column));
            match (measure, value) {
                (Some(name), Some(value)) if name.ends_with("_ns") => {
                    format!("{:.2}", value as f64 / 1000.0)
                }
                (Some("sstables"), Some(value)) => format!("{:.2}", value as f64),
                (_, Some(value)) => value.to_string(),
                (_, None) => "NaN".to_owned(),
            }
        };
        line(title, &mut columns.iter().map(cell));
    }
    out.push('\n');
}

pub(super) async fn of_node(node: &mut Node, out: &mut String) -> Result<()> {
    let rows = node.rows(HISTOGRAMS).await?;
    out.push_str("proxy histograms\n");
    lines(&rows, ("", ""), &OF_NODE, 19, out);
    Ok(())
}

/// Without a name, of all tables.
pub(super) async fn of_tables(call: &Call, node: &mut Node, out: &mut String) -> Result<()> {
    let named = keyspace_and_name(&call.arguments);
    if named.is_none() && !call.arguments.is_empty() {
        return Failure::usage(match call.arguments.len() {
            1 => "tablehistograms requires keyspace and table name arguments",
            _ => "tablehistograms requires <keyspace> <table> or <keyspace.table> format argument.",
        });
    }
    let known = node.tables().await?;
    let tables = match named {
        None => known,
        Some(named) if known.contains(&named) => vec![named],
        Some((keyspace, table)) => {
            return Failure::usage(format!("Unknown table {keyspace}.{table}"));
        }
    };
    let rows = node.rows(HISTOGRAMS).await?;
    for (keyspace, table) in tables {
        out.push_str(&format!("{keyspace}/{table} histograms\n"));
        lines(&rows, (&keyspace, &table), &OF_TABLE, 18, out);
    }
    Ok(())
}
