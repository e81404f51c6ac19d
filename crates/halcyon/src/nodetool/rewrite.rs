//! What checks or rewrites the SSTables of tables: `verify`, `upgradesstables`, `recompress_sstables`, `garbagecollect`, `scrub`,
//! `forcecompact`, and what is done already on a node that owns all tokens: `cleanup`, `relocatesstables`.

use halcyon_server::command::{Command, ForceCompact, Scrub, Verify};

use super::arguments::Call;
use super::compaction::{compact_table, tables_to_compact};
use super::failure::{Failure, Result};
use super::node::Node;

/// Each table, one after the other, in the words of `halcyon_views.major_compactions`.
async fn each_table(call: &Call, node: &mut Node, argument: &str) -> Result<()> {
    for (keyspace, table) in tables_to_compact(call, node).await? {
        compact_table(node, &keyspace, &table, argument).await?;
    }
    Ok(())
}

pub(super) async fn upgrade(call: &Call, node: &mut Node) -> Result<()> {
    call.refuse(&["-t"])?;
    let argument = if call.has("-a") { "rewrite=all" } else { "rewrite=other-version" };
    each_table(call, node, argument).await
}

pub(super) async fn recompress(call: &Call, node: &mut Node) -> Result<()> {
    each_table(call, node, "rewrite=other-compression").await
}

/// A compaction of the whole table removes what was deleted or overwritten anywhere in it, cells too.
pub(super) async fn garbage(call: &Call, node: &mut Node) -> Result<()> {
    match call.option("-g") {
        None | Some("ROW" | "CELL") => each_table(call, node, "").await,
        Some(other) => {
            Failure::failed(format!("unknown granularity '{other}'; expected one of ROW, CELL"))
        }
    }
}

pub(super) async fn scrub(call: &Call, node: &mut Node) -> Result<()> {
    let command = Command::Scrub(Scrub {
        no_snapshot: call.has("-ns"),
        no_validate: call.has("-n"),
        skip_corrupted: call.has("-s"),
        reinsert_overflowed_ttl: call.has("-r"),
    });
    let tables = match tables_to_compact(call, node).await {
        Err(Failure::Failed(why)) => return Failure::usage(why),
        tables => tables?,
    };
    for (keyspace, table) in tables {
        node.command(&command, (&keyspace, &table)).await?;
    }
    Ok(())
}

pub(super) async fn force_compact(call: &Call, node: &mut Node) -> Result<()> {
    let [keyspace, table, keys @ ..] = call.arguments.as_slice() else {
        return Failure::usage("forcecompact requires keyspace, table and keys args");
    };
    if keys.is_empty() {
        return Failure::usage("forcecompact requires keyspace, table and keys args");
    }
    if !node.keyspaces().await?.contains(keyspace) {
        return Failure::failed(format!("Keyspace {keyspace} does not exist"));
    }
    let command = Command::ForceCompact(ForceCompact { keys: keys.to_vec() });
    node.command(&command, (keyspace, table)).await
}

/// Nothing to do, for tables that are there.
pub(super) async fn done(call: &Call, node: &mut Node) -> Result<()> {
    tables_to_compact(call, node).await.map(drop)
}

pub(super) async fn verify(call: &Call, node: &mut Node, out: &mut String) -> Result<()> {
    if !call.has("-f") {
        out.push_str(
            "verify is disabled unless a [-f|--force] override flag is provided. See CASSANDRA-9947 and CASSANDRA-17017 for details.\n",
        );
        return Err(Failure::Told);
    }
    call.refuse(&["-c", "-d", "-q", "-r"])?;
    let command = Command::Verify(Verify { extended: call.has("-e") });
    for (keyspace, table) in tables_to_compact(call, node).await? {
        node.command(&command, (&keyspace, &table)).await?;
    }
    Ok(())
}
