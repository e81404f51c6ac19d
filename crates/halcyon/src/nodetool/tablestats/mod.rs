//! `tablestats`: the lines that Cassandra prints, of what Halcyon counts.
//!
//! A table becomes a list of [`statistics::Field`]s in Cassandra's order; `order` sorts tables by one of them, `output` prints them as
//! text, JSON or YAML.

mod order;
mod output;
mod statistics;

use std::collections::BTreeMap;

use super::arguments::Call;
use super::failure::{Failure, Result};
use super::format::{Format, as_map};
use super::node::Node;
use halcyon_client::{Row, Rows};
use order::{SORT_KEYS, sorted};
use statistics::{Statistics, Window};

/// What is printed, and how.
struct Asked<'a> {
    format: Format,
    sort_key: &'a str,
    /// 0: all.
    top: usize,
}

impl Asked<'_> {
    fn of(call: &Call) -> Result<Asked<'_>> {
        let sort_key = call.option("-s").unwrap_or_default();
        let top = call.option("-t").unwrap_or("0");
        let Ok(top) = top.parse::<i32>() else {
            return Failure::usage(format!("top: can not convert \"{top}\" to a int"));
        };
        let format = Format::of(call, "json,yaml")?;
        if !sort_key.is_empty() && !SORT_KEYS.contains(&sort_key) {
            let all = SORT_KEYS.join(", ");
            return Failure::usage(format!("argument for sort must be one of: {all}"));
        }
        if top > 0 && sort_key.is_empty() {
            return Failure::usage("cannot filter top K tables without specifying a sort key.");
        }
        match usize::try_from(top) {
            Ok(top) => Ok(Asked { format, sort_key, top }),
            Err(_) => Failure::usage("argument for top must be a positive integer."),
        }
    }
}

pub(super) async fn print(call: &Call, node: &mut Node, out: &mut String) -> Result<()> {
    let asked = Asked::of(call)?;
    let rows = node.rows("SELECT * FROM halcyon_views.table_statistics").await?;
    let snapshots = node.rows("SELECT * FROM system_views.snapshots").await?;
    let schema =
        node.rows("SELECT keyspace_name, table_name, compaction FROM system_schema.tables");
    let schema = schema.await?;
    let keyspaces = node.keyspaces().await?;
    check(&call.arguments, &keyspaces, &rows)?;
    let ignores = call.has("-i");
    let mut tables: BTreeMap<String, Vec<Statistics<'_>>> = BTreeMap::new();
    for row in rows.iter().filter(|row| is_wanted(&call.arguments, ignores, row)) {
        let of_keyspace = tables.entry(row.text("keyspace_name")).or_default();
        of_keyspace.push(Statistics {
            snapshot_bytes: snapshot_bytes(&snapshots, &row),
            window: Window::of(&schema, &row),
            row,
            human: call.has("-H"),
            with_location: call.has("-l"),
        });
    }
    let count = tables.values().map(Vec::len).sum();
    if asked.sort_key.is_empty() {
        match asked.format {
            Format::Text => output::text(&tables, count, out),
            format => as_map(&output::by_keyspace(&tables, count), format, out),
        }
        return Ok(());
    }
    if asked.sort_key == "dropped_mutations" && count > 1 {
        return Failure::usage("Unsupported sort key: dropped_mutations");
    }
    let mut chosen = sorted(tables.values().flatten().collect(), asked.sort_key);
    if asked.top > 0 {
        chosen.truncate(asked.top);
    }
    match asked.format {
        Format::Text => {
            output::sorted_text(&chosen, count, (asked.sort_key, asked.top), out);
        }
        format => as_map(&output::by_table(&chosen, count), format, out),
    }
    Ok(())
}

/// Whether a table is among the names. The name of a keyspace means all of its tables, unless a table of it is named, too.
fn is_wanted(names: &[String], ignores: bool, of: &Row<'_>) -> bool {
    if names.is_empty() {
        return !ignores;
    }
    let (keyspace, table) = (of.text("keyspace_name"), of.text("table_name"));
    let of_keyspace: Vec<Option<&str>> = names
        .iter()
        .map(|name| name.split_once('.').map_or((name.as_str(), None), |(k, t)| (k, Some(t))))
        .filter(|(named, _)| *named == keyspace)
        .map(|(_, table)| table)
        .collect();
    let tables: Vec<&str> = of_keyspace.iter().flatten().copied().collect();
    match (of_keyspace.is_empty(), tables.is_empty()) {
        (true, _) => ignores,
        (false, true) => !ignores,
        (false, false) => ignores != tables.contains(&table.as_str()),
    }
}

/// Every name is there: a keyspace, or a table behind its keyspace.
fn check(names: &[String], keyspaces: &[String], rows: &Rows) -> Result<()> {
    for name in names {
        let (keyspace, table) = name.split_once('.').unwrap_or((name, ""));
        if !keyspaces.iter().any(|known| known == keyspace) {
            return Failure::usage(format!("Unknown keyspace: {keyspace}"));
        }
        let is_it =
            |row: Row<'_>| row.text("keyspace_name") == keyspace && row.text("table_name") == table;
        if !table.is_empty() && !rows.iter().any(is_it) {
            return Failure::usage(format!("Unknown tables: [{table}] in keyspace: {keyspace}"));
        }
    }
    Ok(())
}

/// What the removal of the table's snapshots would free.
fn snapshot_bytes(snapshots: &Rows, of: &Row<'_>) -> u64 {
    let name = |row: &Row<'_>| (row.text("keyspace_name"), row.text("table_name"));
    snapshots.iter().filter(|row| name(row) == name(of)).map(|row| row.count("true_size")).sum()
}
