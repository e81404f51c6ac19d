//! `flush`, `refresh`, `rebuild_index`.

use halcyon_server::command::{Command, RebuildIndex};

use super::arguments::Call;
use super::failure::{Failure, Result};
use super::node::Node;

pub(super) async fn flush(call: &Call, node: &mut Node) -> Result<()> {
    node.on_tables(&Command::Flush, &call.arguments).await
}

/// Cassandra calls it deprecated, in favour of `import`, which is not there.
pub(super) async fn refresh(call: &Call, node: &mut Node) -> Result<()> {
    let [keyspace, table] = call.arguments.as_slice() else {
        return Failure::usage("refresh requires ks and cf args");
    };
    if !node.keyspaces().await?.contains(keyspace) {
        return Failure::usage(format!("Keyspace {keyspace} does not exist"));
    }
    if !node.tables().await?.contains(&(keyspace.clone(), table.clone())) {
        return Failure::usage(format!("Unknown keyspace/cf pair ({keyspace}.{table})"));
    }
    node.command(&Command::Refresh, (keyspace, table)).await
}

pub(super) async fn rebuild_index(call: &Call, node: &mut Node) -> Result<()> {
    let [keyspace, table, indexes @ ..] = call.arguments.as_slice() else {
        return Failure::usage("rebuild_index requires ks, cf and idx args");
    };
    if indexes.is_empty() {
        return Failure::usage("rebuild_index requires ks, cf and idx args");
    }
    for index in indexes {
        let index = RebuildIndex { index: index.clone() };
        node.command(&Command::RebuildIndex(index), (keyspace, table)).await?;
    }
    Ok(())
}

pub(super) async fn refresh_size_estimates(node: &mut Node) -> Result<()> {
    node.command(&Command::RefreshSizeEstimates, ("", "")).await
}

/// The schema in memory is that of its tables after each change, and batches that a crash left were replayed by the start.
pub(super) async fn in_force() -> Result<()> {
    Ok(())
}
