//! `snapshot`, `clearsnapshot`, `listsnapshots`.

use halcyon_model::value::timestamp_iso_string;

use super::arguments::Call;
use super::failure::{Failure, Result};
use super::node::Node;
use super::text::{file_size, row, table};
use crate::session::Row;

pub(super) async fn take(call: &Call, node: &mut Node, out: &mut String) -> Result<()> {
    call.refuse(&["--ttl"])?;
    let skip_flush = call.has("-sf");
    let now = || (halcyon_io::clock::unix_micros() / 1000).to_string();
    let name = call.option("-t").map_or_else(now, str::to_owned);
    if name.contains('/') {
        return Failure::failed("Snapshot name cannot contain /");
    }
    let list = call.option("-kt").map(|list| list.replace(' ', ""));
    let table = call.option("-cf");
    if list.is_some() && (table.is_some() || !call.arguments.is_empty()) {
        return Failure::failed(
            "When specifying the Keyspace table list (using -kt,--kt-list,-kc,--kc.list), you must not also specify keyspaces to snapshot",
        );
    }
    let what = match (&list, call.arguments.is_empty()) {
        (Some(list), _) => list.clone(),
        (None, true) => "all keyspaces".to_owned(),
        (None, false) => call.arguments.join(", "),
    };
    out.push_str(&format!(
        "Requested creating snapshot(s) for [{what}] with snapshot name [{name}] and options {{skipFlush={skip_flush}}}\n"
    ));
    let targets = targets(call, node, list.as_deref(), table).await?;
    let argument = if skip_flush { format!("skip-flush {name}") } else { name.clone() };
    for (keyspace, table) in &targets {
        node.command("snapshot", (keyspace, table), &argument).await?;
    }
    out.push_str(&format!("Snapshot directory: {name}\n"));
    Ok(())
}

/// Keyspaces with tables; an empty name stands for all.
async fn targets(
    call: &Call,
    node: &mut Node,
    list: Option<&str>,
    table: Option<&str>,
) -> Result<Vec<(String, String)>> {
    let mut targets = Vec::new();
    if let Some(list) = list {
        let tables = node.tables().await?;
        for named in list.split(',') {
            let Some((keyspace, table)) = named.split_once('.') else {
                return Failure::usage(
                    "Cannot take a snapshot on secondary index or invalid column family name. You must supply a \
                     column family name in the form of keyspace.columnfamily",
                );
            };
            check_keyspaces(node, &[keyspace.to_owned()]).await?;
            let target = (keyspace.to_owned(), table.to_owned());
            if !tables.contains(&target) {
                return Failure::usage(format!("Unknown keyspace/cf pair ({keyspace}.{table})"));
            }
            targets.push(target);
        }
        return Ok(targets);
    }
    match (table, call.arguments.as_slice()) {
        (Some(table), [keyspace]) => targets.push((keyspace.clone(), table.to_owned())),
        (Some(_), _) => {
            return Failure::failed(
                "When specifying the table for a snapshot, you must specify one and only one keyspace",
            );
        }
        (None, []) => targets.push((String::new(), String::new())),
        (None, keyspaces) => {
            check_keyspaces(node, keyspaces).await?;
            targets.extend(keyspaces.iter().map(|keyspace| (keyspace.clone(), String::new())));
        }
    }
    Ok(targets)
}

async fn check_keyspaces(node: &mut Node, named: &[String]) -> Result<()> {
    let all = node.keyspaces().await?;
    match named.iter().find(|keyspace| !all.contains(keyspace)) {
        Some(missing) => Failure::usage(format!("Keyspace {missing} does not exist")),
        None => Ok(()),
    }
}

pub(super) async fn clear(call: &Call, node: &mut Node, out: &mut String) -> Result<()> {
    let name = call.option("-t").unwrap_or_default();
    match (name.is_empty(), call.has("--all")) {
        (true, false) => return Failure::usage("Specify snapshot name or --all"),
        (false, true) => return Failure::usage("Specify only one of snapshot name or --all"),
        _ => call.refuse(&["--older-than", "--older-than-timestamp"])?,
    }
    let keyspaces = match call.arguments.is_empty() {
        true => "all keyspaces".to_owned(),
        false => call.arguments.join(", "),
    };
    let what = match name {
        "" => "[all snapshots]".to_owned(),
        name => format!("snapshot name [{name}]"),
    };
    out.push_str(&format!("Requested clearing snapshot(s) for [{keyspaces}] with {what}\n"));
    if call.arguments.is_empty() {
        return node.command("clearsnapshot", ("", ""), name).await;
    }
    // As in Cassandra a keyspace that is not there has no snapshots, which is no error.
    let known = node.keyspaces().await?;
    for keyspace in call.arguments.iter().filter(|keyspace| known.contains(keyspace)) {
        node.command("clearsnapshot", (keyspace, ""), name).await?;
    }
    Ok(())
}

pub(super) async fn list(call: &Call, node: &mut Node, out: &mut String) -> Result<()> {
    let with_ephemeral = call.has("-e");
    let rows = node.rows("SELECT * FROM system_views.snapshots").await?;
    out.push_str("Snapshot Details: \n");
    let shown = |of: &Row<'_>| {
        (with_ephemeral || !of.is_true("ephemeral"))
            && !(call.has("-nt") && of.bytes("expires_at").is_some())
    };
    let found: Vec<Row<'_>> = rows.iter().filter(shown).collect();
    if found.is_empty() {
        out.push_str("There are no snapshots\n");
        return Ok(());
    }
    let mut lines = vec![row([
        "Snapshot name",
        "Keyspace name",
        "Column family name",
        "True size",
        "Size on disk",
        "Creation time",
        "Expiration time",
    ])];
    let time = |of: &Row<'_>, column: &str| match of.bytes(column) {
        Some(_) => timestamp_iso_string(i64::try_from(of.count(column)).unwrap_or(i64::MAX)),
        None => String::new(),
    };
    for of in &found {
        lines.push(vec![
            of.text("name"),
            of.text("keyspace_name"),
            of.text("table_name"),
            file_size(of.count("true_size")),
            file_size(of.count("size_on_disk")),
            time(of, "created_at"),
            time(of, "expires_at"),
        ]);
    }
    if with_ephemeral {
        let told = |of: &Row<'_>| of.is_true("ephemeral").to_string();
        let column = std::iter::once("Ephemeral".to_owned()).chain(found.iter().map(told));
        lines.iter_mut().zip(column).for_each(|(line, cell)| line.push(cell));
    }
    out.push_str(&table(&lines, " "));
    let total: u64 = found.iter().map(|of| of.count("true_size")).sum();
    out.push_str(&format!("\nTotal TrueDiskSpaceUsed: {}\n\n", file_size(total)));
    Ok(())
}
