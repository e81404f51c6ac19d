//! `datapaths`.

use std::collections::BTreeMap;
use std::path::Path;

use halcyon_model::hex;

use super::arguments::Call;
use super::failure::Result;
use super::format::{Datum, Format, as_map};
use super::node::Node;

/// An unknown name has no paths, as in Cassandra.
pub(super) async fn print(call: &Call, node: &mut Node, out: &mut String) -> Result<()> {
    let format = Format::of(call, "yaml and json")?;
    let directories = "SELECT directory, purpose FROM halcyon_views.io_modes";
    let rows = node.rows(directories).await?;
    let mut directories: Vec<String> = rows
        .iter()
        .filter(|row| row.text("purpose") == "user_read")
        .map(|row| row.text("directory"))
        .collect();
    directories.sort();
    directories.dedup();
    let known = node.tables().await?;
    let tables =
        node.rows("SELECT keyspace_name, table_name, id FROM system_schema.tables").await?;
    let views = node.rows("SELECT keyspace_name, view_name, id FROM system_schema.views").await?;
    let mut ids = BTreeMap::new();
    for (rows, column) in [(&tables, "table_name"), (&views, "view_name")] {
        for row in rows.iter() {
            let id = row.bytes("id").map(hex::encode).unwrap_or_default();
            ids.insert((row.text("keyspace_name"), row.text(column)), id);
        }
    }
    let is_wanted = |keyspace: &str, table: &str| {
        let names = |name: &String| {
            name == keyspace || name.split_once('.').is_some_and(|of| of == (keyspace, table))
        };
        call.arguments.is_empty() || call.arguments.iter().any(names)
    };
    let mut keyspaces: BTreeMap<String, Vec<(String, Vec<String>)>> = BTreeMap::new();
    for (keyspace, table) in known.iter().filter(|(keyspace, table)| is_wanted(keyspace, table)) {
        let Some(id) = ids.get(&(keyspace.clone(), table.clone())) else { continue };
        let folder = format!("{table}-{id}");
        let path = |of: &String| Path::new(of).join(keyspace).join(&folder).display().to_string();
        let paths = directories.iter().map(path).collect();
        keyspaces.entry(keyspace.clone()).or_default().push((table.clone(), paths));
    }
    if format != Format::Text {
        let of_keyspace = |(keyspace, tables): (String, Vec<(String, Vec<String>)>)| {
            let tables = tables.into_iter().map(|(table, paths)| (table, Datum::List(paths)));
            (keyspace, Datum::Map(tables.collect()))
        };
        as_map(&keyspaces.into_iter().map(of_keyspace).collect(), format, out);
        return Ok(());
    }
    for (keyspace, tables) in keyspaces {
        out.push_str(&format!("Keyspace: {keyspace}\n"));
        for (table, paths) in tables {
            let paths: String = paths.iter().map(|path| format!("\t\t{path}\n")).collect();
            out.push_str(&format!("\tTable: {table}\n\tPaths:\n{paths}\n"));
        }
    }
    Ok(())
}
