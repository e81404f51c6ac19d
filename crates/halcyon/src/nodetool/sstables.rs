//! `getsstables`, `getendpoints`.

use halcyon_client::Rows;

use super::arguments::Call;
use super::failure::{Failure, Result};
use super::node::Node;

/// The SSTables that have a partition; the node checks the key.
async fn of_partition(node: &mut Node, words: [&str; 4]) -> Result<Rows> {
    let statement = "SELECT file, level FROM halcyon_views.sstables_of_partition \
                     WHERE keyspace_name = ? AND table_name = ? AND format = ? AND key = ?";
    node.ask(statement, &words).await
}

pub(super) async fn of_key(call: &Call, node: &mut Node, out: &mut String) -> Result<()> {
    let [keyspace, table, key] = call.arguments.as_slice() else {
        return Failure::usage("getsstables requires ks, cf and key args");
    };
    if !node.tables().await?.contains(&(keyspace.clone(), table.clone())) {
        return Failure::no_table(keyspace, table);
    }
    let format = if call.has("-hf") { "hex" } else { "text" };
    let rows = of_partition(node, [keyspace, table, format, key]).await?;
    let with_levels = call.has("-l") && has_levels(node, keyspace, table).await?;
    for row in rows.iter() {
        let file = row.text("file");
        out.push_str(&match with_levels {
            true => format!("{}: {file}\n", row.count("level")),
            false => format!("{file}\n"),
        });
    }
    Ok(())
}

async fn has_levels(node: &mut Node, keyspace: &str, table: &str) -> Result<bool> {
    let statement = "SELECT level_fanout FROM halcyon_views.table_statistics WHERE keyspace_name = ? AND table_name = ?";
    let rows = node.rows_of(statement, keyspace, table).await?;
    Ok(rows.iter().any(|row| row.count("level_fanout") > 0))
}

/// This node has all partitions; the key must be one.
pub(super) async fn endpoints(call: &Call, node: &mut Node, out: &mut String) -> Result<()> {
    let [keyspace, table, key] = call.arguments.as_slice() else {
        return Failure::usage("getendpoints requires keyspace, table and partition key arguments");
    };
    if !node.keyspaces().await?.contains(keyspace) {
        return Failure::usage(format!("Unknown keyspace '{keyspace}'"));
    }
    if !node.tables().await?.contains(&(keyspace.clone(), table.clone())) {
        return Failure::usage(format!("Unknown table '{table}' in keyspace '{keyspace}'"));
    }
    of_partition(node, [keyspace, table, "text", key]).await?;
    out.push_str(&format!("{}\n", node.address().await?));
    Ok(())
}
