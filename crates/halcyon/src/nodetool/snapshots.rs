//! `snapshot`, `clearsnapshot`, `listsnapshots`.

use halcyon_model::units::settings::{DurationBound, bounded_duration};
use halcyon_model::value::{parse_instant, timestamp_iso_string};
use halcyon_server::command::{ClearSnapshot, Command, Snapshot};

use super::arguments::Call;
use super::failure::{Failure, Result};
use super::node::Node;
use super::text::{file_size, row, table};
use halcyon_client::Row;

pub(super) async fn take(call: &Call, node: &mut Node, out: &mut String) -> Result<()> {
    let skip_flush = call.has("-sf");
    let ttl = call.option("--ttl").map(|ttl| bounded_duration(ttl, DurationBound::LongNanoseconds));
    let ttl = ttl.transpose().map_err(Failure::Usage)?;
    let now = || (halcyon_io::clock::unix_micros() / 1000).to_string();
    let name = call.option("-t").map_or_else(now, str::to_owned);
    if name.contains('/') {
        return Failure::failed("Snapshot name cannot contain /");
    }
    let list = call.option("-kt").filter(|list| !list.is_empty()).map(|list| list.replace(' ', ""));
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
    let called = match name.as_str() {
        "" => String::new(),
        name => format!(" with snapshot name [{name}]"),
    };
    let told = ttl.map_or(String::new(), |ttl| format!(", ttl={ttl}"));
    out.push_str(&format!(
        "Requested creating snapshot(s) for [{what}]{called} and options {{skipFlush={skip_flush}{told}}}\n"
    ));
    let targets = targets(call, node, list.as_deref(), table).await?;
    let seconds = match (ttl, call.option("--ttl")) {
        (Some(_), Some(text)) => {
            // The node counts seconds in an int.
            let ttl = bounded_duration(text, DurationBound::IntSeconds).map_err(Failure::Usage)?;
            Some(ttl.as_seconds())
        }
        _ => None,
    };
    let snapshot = Snapshot { name: name.clone(), skip_flush, ttl_seconds: seconds };
    let command = Command::Snapshot(snapshot);
    for (keyspace, table) in &targets {
        let taken = node.command(&command, (keyspace, table)).await;
        taken.map_err(|failure| match failure {
            Failure::Failed(why) if why.starts_with(IS_USAGE) => Failure::Usage(why),
            failure => failure,
        })?;
    }
    out.push_str(&format!("Snapshot directory: {name}\n"));
    Ok(())
}

/// What Cassandra tells as wrong use, although only the node knows it.
const IS_USAGE: &str = "ttl for snapshot must be";

/// Keyspaces with tables; an empty name stands for all.
async fn targets(
    call: &Call,
    node: &mut Node,
    list: Option<&str>,
    table: Option<&str>,
) -> Result<Vec<(String, String)>> {
    match (list, table, call.arguments.as_slice()) {
        (Some(list), ..) => {
            let names: Vec<String> = list.split(',').map(str::to_owned).collect();
            tables_or_keyspaces(node, &names).await
        }
        (None, Some(table), [keyspace]) => {
            tables_or_keyspaces(node, &[format!("{keyspace}.{table}")]).await
        }
        (None, Some(_), _) => Failure::failed(
            "When specifying the table for a snapshot, you must specify one and only one keyspace",
        ),
        (None, None, []) => Ok(vec![(String::new(), String::new())]),
        (None, None, names) => tables_or_keyspaces(node, names).await,
    }
}

/// Tables if the first name is one: `keyspace.table`.
async fn tables_or_keyspaces(node: &mut Node, names: &[String]) -> Result<Vec<(String, String)>> {
    if !names.first().is_some_and(|name| name.contains('.')) {
        check_keyspaces(node, names).await?;
        return Ok(names.iter().map(|keyspace| (keyspace.clone(), String::new())).collect());
    }
    let tables = node.tables().await?;
    let mut targets = Vec::new();
    for name in names {
        let parts: Vec<&str> = name.split('.').filter(|part| !part.is_empty()).collect();
        let [keyspace, table] = parts.as_slice() else {
            return Failure::usage(
                "Cannot take a snapshot on secondary index or invalid column family name. You must supply a \
                 column family name in the form of keyspace.columnfamily",
            );
        };
        let target = ((*keyspace).to_owned(), (*table).to_owned());
        check_keyspaces(node, std::slice::from_ref(&target.0)).await?;
        if !tables.contains(&target) {
            return Failure::usage(format!("Unknown keyspace/cf pair ({keyspace}.{table})"));
        }
        targets.push(target);
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
        _ => {}
    }
    let age = age_of(call, name)?;
    let keyspaces = match call.arguments.is_empty() {
        true => "all keyspaces".to_owned(),
        false => call.arguments.join(", "),
    };
    let what = match name {
        "" => "[all snapshots]".to_owned(),
        name => format!("snapshot name [{name}]"),
    };
    let told = match &age {
        Age::Any => String::new(),
        Age::Seconds(seconds) => format!(" older than {seconds} seconds."),
        Age::Since(instant) => format!(" older than timestamp {instant}"),
    };
    out.push_str(&format!("Requested clearing snapshot(s) for [{keyspaces}] with {what}{told}\n"));
    let name = Some(name.to_owned()).filter(|name| !name.is_empty());
    let (older_than_seconds, created_before_ms) = match age {
        Age::Any => (None, None),
        Age::Seconds(seconds) => (Some(seconds), None),
        Age::Since(instant) => (None, parse_instant(&instant)),
    };
    let command =
        Command::ClearSnapshot(ClearSnapshot { name, older_than_seconds, created_before_ms });
    if call.arguments.is_empty() {
        return node.command(&command, ("", "")).await;
    }
    // As in Cassandra a missing keyspace has no snapshots, without an error.
    let known = node.keyspaces().await?;
    for keyspace in call.arguments.iter().filter(|keyspace| known.contains(keyspace)) {
        node.command(&command, (keyspace, "")).await?;
    }
    Ok(())
}

/// How old a snapshot must be to be cleared.
enum Age {
    Any,
    Seconds(u64),
    /// An instant as it was given.
    Since(String),
}

fn age_of(call: &Call, name: &str) -> Result<Age> {
    let (age, instant) = (call.option("--older-than"), call.option("--older-than-timestamp"));
    let with_name = |option: &str| {
        Failure::usage(format!(
            "Specifying snapshot name together with {option} flag is not allowed"
        ))
    };
    match (age, instant) {
        (Some(_), Some(_)) => {
            Failure::usage("Specify only one of --older-than or --older-than-timestamp")
        }
        (Some(_), None) if !name.is_empty() => with_name("--older-than"),
        (None, Some(_)) if !name.is_empty() => with_name("--older-than-timestamp"),
        (Some(age), None) => {
            let age = bounded_duration(age, DurationBound::LongSeconds).map_err(Failure::Usage)?;
            Ok(Age::Seconds(age.as_seconds()))
        }
        (None, Some(instant)) if parse_instant(instant).is_none() => Failure::usage(
            "Parameter --older-than-timestamp has to be a valid instant in ISO format.",
        ),
        (None, Some(instant)) => Ok(Age::Since(instant.to_owned())),
        (None, None) => Ok(Age::Any),
    }
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
