//! The source of a table's schema: the first of these that has it.
//!
//! 1. `--schema FILE.cql`: the statements in it.
//! 2. Else the `system_schema` tables of the data directory (`system_tables`), if they have the table with the id of the folder's
//!    name. A table that was dropped, or dropped and created again, leaves a folder with another id: the table that now has its
//!    name may have other columns, so its schema is never used for that folder.
//! 3. Else `schema.cql` in the folder, which Cassandra writes into each snapshot.
//! 4. Else the SSTable's own header: types without names of key columns, which get those that Cassandra's
//!    offline tools give (`PartitionKey`, `clustering`, `clustering1`, …).

mod system_tables;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use halcyon_io::Disk;
use halcyon_model::options::TableOptions;
use halcyon_model::schema::{ColumnDef, TableSchema};
use halcyon_model::token::key_component_types;
use halcyon_schema::Schema;
use halcyon_sstable::format::statistics::Statistics;
use halcyon_sstable::format::statistics::header::HeaderColumn;

use crate::error::{Error, Result};
use crate::notices::Notices;
use crate::paths::{Folder, TableName};

/// Far larger than any real schema.
const MAX_SCHEMA_FILE: u64 = 64 << 20;

/// What is said about the source.
#[derive(Debug, Default)]
pub struct SchemaSource {
    /// CREATE statements.
    pub file: Option<PathBuf>,
    /// `[KEYSPACE.]TABLE`, if the folder's name does not say which.
    pub table: Option<String>,
}

impl SchemaSource {
    /// The table that the folder's path or `--table` names.
    fn wanted(&self, folder: &TableName) -> TableName {
        let Some(given) = &self.table else { return folder.clone() };
        let (keyspace, table) = match given.split_once('.') {
            Some((keyspace, table)) => (Some(keyspace.to_owned()), table),
            None => (None, given.as_str()),
        };
        TableName {
            keyspace: keyspace.or_else(|| folder.keyspace.clone()),
            table: Some(table.to_owned()),
            id: None,
            ..folder.clone()
        }
    }
}

/// The schema of the table in a folder; `None` if nothing but its SSTables' headers tells it.
pub async fn of_folder(
    disk: &Disk,
    source: &SchemaSource,
    folder: &Folder,
    notices: &dyn Notices,
) -> Result<Option<Arc<TableSchema>>> {
    if folder.table.index.is_some() {
        // No schema contains the tables of indexes.
        return Ok(None);
    }
    let wanted = source.wanted(&folder.table);
    if let Some(path) = &source.file {
        return from_file(disk, path, &wanted, notices).await.map(Some);
    }
    let known = match from_system_schema(disk, &wanted, notices).await? {
        Some(schema) => Some(schema),
        None => from_snapshot(disk, &folder.directory, &wanted, notices).await?,
    };
    if known.is_none() {
        notices.detail(format_args!(
            "{}: no schema of this table, and no --schema: key columns get neutral names",
            folder.directory.display()
        ));
    }
    Ok(known)
}

async fn from_system_schema(
    disk: &Disk,
    wanted: &TableName,
    notices: &dyn Notices,
) -> Result<Option<Arc<TableSchema>>> {
    let TableName {
        keyspace: Some(keyspace), table: Some(table), data_directory: Some(data), ..
    } = wanted
    else {
        return Ok(None);
    };
    let source = format!("the system_schema tables in {}", data.display());
    match system_tables::read(disk, data, keyspace, table).await? {
        Some(schema) if has_id(&schema, wanted) => {
            notices.detail(format_args!("schema of {wanted}: from {source}"));
            Ok(Some(Arc::new(schema)))
        }
        Some(_) => {
            notices.detail(format_args!(
                "{wanted}: {source} have another table of this name, created after this one was dropped"
            ));
            Ok(None)
        }
        None => {
            notices.detail(format_args!("{wanted}: not in {source}"));
            Ok(None)
        }
    }
}

/// Whether the ids agree, as far as both are known.
fn has_id(schema: &TableSchema, wanted: &TableName) -> bool {
    schema.id.is_none() || wanted.id.is_none() || schema.id == wanted.id
}

/// The schema of a snapshot only helps: an unusable one does not refuse the SSTables.
async fn from_snapshot(
    disk: &Disk,
    directory: &Path,
    wanted: &TableName,
    notices: &dyn Notices,
) -> Result<Option<Arc<TableSchema>>> {
    let path = directory.join("schema.cql");
    if !disk.exists(&path).await? {
        return Ok(None);
    }
    match from_file(disk, &path, wanted, notices).await {
        Ok(schema) if has_id(&schema, wanted) => {
            notices.detail(format_args!("schema of {wanted}: from {}", path.display()));
            Ok(Some(schema))
        }
        Ok(_) => {
            notices.warn(format_args!("{}: not used, it is of another table", path.display()));
            Ok(None)
        }
        Err(failure) => {
            notices.warn(format_args!("not used: {failure}"));
            Ok(None)
        }
    }
}

async fn from_file(
    disk: &Disk,
    path: &Path,
    table: &TableName,
    notices: &dyn Notices,
) -> Result<Arc<TableSchema>> {
    let bytes = disk.read(path, MAX_SCHEMA_FILE).await?;
    let text = String::from_utf8(bytes)
        .map_err(|_| Error::usage(format!("{}: not UTF-8 text", path.display())))?;
    let keyspace = table.keyspace.as_deref().unwrap_or("keyspace");
    let schema = Schema::parse(&text, keyspace)
        .map_err(|e| Error::usage(format!("{}: {e}", path.display())))?;
    for note in &schema.notes {
        notices.detail(format_args!("{}: {note}", path.display()));
    }
    choose(&schema, table).map_err(|what| Error::usage(format!("{}: {what}", path.display())))
}

/// The table of the schema that the folder's path names; if the path names none, the only table of the script.
fn choose(schema: &Schema, wanted: &TableName) -> std::result::Result<Arc<TableSchema>, String> {
    let all: Vec<&TableSchema> = schema.tables().collect();
    let names =
        || all.iter().map(|t| format!("{}.{}", t.keyspace, t.name)).collect::<Vec<_>>().join(", ");
    let by_id = wanted.id.and_then(|id| all.iter().find(|t| t.id == Some(id)));
    let by_name = || {
        let table = wanted.table.as_deref()?;
        let same = |t: &&&TableSchema| {
            t.name == table
                && wanted.keyspace.as_ref().is_none_or(|keyspace| t.keyspace == *keyspace)
        };
        all.iter().find(same)
    };
    if let Some(found) = by_id.or_else(by_name) {
        return Ok(Arc::new((**found).clone()));
    }
    match (all.as_slice(), &wanted.table) {
        ([], _) => Err("no CREATE TABLE in it".to_owned()),
        ([only], None) => Ok(Arc::new((*only).clone())),
        (_, None) => Err(format!(
            "it has several tables ({}), and the folder's name does not say which one the SSTables are of; say it \
             with --table",
            names()
        )),
        (_, Some(_)) => Err(format!("it has no table {wanted}; it has {}", names())),
    }
}

/// A schema from an SSTable's header, with the names that Cassandra's offline tools use.
pub fn neutral(statistics: &Statistics, table: &TableName) -> TableSchema {
    let header = &statistics.header;
    let numbered = |name: &str, i: usize| match i {
        0 => name.to_owned(),
        i => format!("{name}{i}"),
    };
    let key = key_component_types(header.key_type.cql());
    let columns = |list: &[HeaderColumn]| -> Vec<ColumnDef> {
        list.iter()
            .map(|c| ColumnDef {
                name: String::from_utf8_lossy(&c.name).into_owned(),
                cql_type: c.column_type.cql().clone(),
            })
            .collect()
    };
    let named = |i: usize, name: &str, cql_type: &halcyon_model::CqlType| ColumnDef {
        name: numbered(name, i),
        cql_type: cql_type.clone(),
    };
    TableSchema {
        keyspace: table.keyspace.clone().unwrap_or_else(|| "keyspace".to_owned()),
        name: table.table.clone().unwrap_or_else(|| "table".to_owned()),
        id: table.id,
        partition_key: key.iter().enumerate().map(|(i, t)| named(i, "PartitionKey", t)).collect(),
        clustering: header
            .clustering_types
            .iter()
            .enumerate()
            .map(|(i, t)| named(i, "clustering", t.cql()))
            .collect(),
        statics: columns(&header.static_columns),
        regulars: columns(&header.regular_columns),
        dropped: Vec::new(),
        options: TableOptions::default(),
        strict_liveness: false,
    }
}
