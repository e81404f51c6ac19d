//! `flush`, `import`, `refresh`, `rebuild_index`.

use halcyon_server::command::{Command, Import, RebuildIndex};

use super::arguments::Call;
use super::failure::{Failure, Result};
use super::node::Node;

pub(super) async fn flush(call: &Call, node: &mut Node) -> Result<()> {
    node.on_tables(&Command::Flush, &call.arguments).await
}

/// The node reads the directories. Each is imported as a whole, or named in the answer.
pub(super) async fn import(call: &Call, node: &mut Node, out: &mut String) -> Result<()> {
    let [keyspace, table, directories @ ..] = call.arguments.as_slice() else {
        return Failure::usage("import requires keyspace, table name and directories");
    };
    if directories.is_empty() {
        return Failure::usage("import requires keyspace, table name and directories");
    }
    let quick = call.has("-q");
    if quick {
        out.push_str(
            "Doing a quick import - skipping sstable verification and row cache invalidation\n",
        );
    }
    if !node.tables().await?.contains(&(keyspace.clone(), table.clone())) {
        return Failure::no_table(keyspace, table);
    }
    let command = Command::Import(Import {
        directories: directories.to_vec(),
        keep_level: call.has("-l"),
        keep_repaired: call.has("-r"),
        no_verify: quick || call.has("-v"),
        extended_verify: call.has("-e") && !quick,
        no_invalidate_caches: quick || call.has("-c"),
        copy_data: call.has("-cd"),
        require_index_components: call.has("-ri"),
    });
    match node.command(&command, (keyspace, table)).await {
        Err(Failure::Failed(answer)) if answer.starts_with(Import::FAILED) => {
            eprintln!("{answer}");
            Err(Failure::Told)
        }
        done => done,
    }
}

pub(super) async fn refresh(call: &Call, node: &mut Node, out: &mut String) -> Result<()> {
    out.push_str("nodetool refresh is deprecated, use nodetool import instead\n");
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

/// Of the keyspaces that are replicated, each in the order of tokens.
pub(super) async fn sampled_tokens(node: &mut Node, out: &mut String) -> Result<()> {
    out.push_str("RangeKeySample: \n");
    let statement = "SELECT token_value FROM halcyon_views.sampled_tokens WHERE keyspace_name = ? AND table_name = ?";
    let mut samples = Vec::new();
    for (keyspace, table) in node.tables().await? {
        if matches!(keyspace.as_str(), "system" | "system_schema") {
            continue;
        }
        for row in node.rows_of(statement, &keyspace, &table).await?.iter() {
            let token = row.bytes("token_value").and_then(|bytes| bytes.try_into().ok());
            samples.extend(token.map(|token| (keyspace.clone(), i64::from_be_bytes(token))));
        }
    }
    samples.sort();
    for (_, token) in samples {
        out.push_str(&format!("\t{token}\n"));
    }
    Ok(())
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
