//! Reads a table's schema from the `system_schema` SSTables of its data directory.
//!
//! ```text
//!  data/system_schema/{keyspaces,tables,views,columns,dropped_columns,types}-<id>/*-Data.db
//!       │ all live SSTables of a table, merged, deletions applied
//!       ▼
//!  partition = keyspace; rows by table, then column ─► SchemaRows ─► TableSchema (`halcyon_schema::rows`)
//! ```
//!
//! Records that are only in a commit log are not read; a running Cassandra flushes these tables at every schema change.

use std::path::{Path, PathBuf};

use halcyon_io::{AccessMode, Disk};
use halcyon_model::DeletionTime;
use halcyon_model::clustering::ClusteringValue;
use halcyon_model::schema::TableSchema;
use halcyon_schema::rows::{self, SchemaRow, SchemaRows};
use halcyon_schema::system_tables;
use halcyon_sstable::{OpenOptions, SSTable, ScanOptions};
use halcyon_stream::{Fragment, FragmentStream, Layout, Marker, Merge, Row};

use crate::error::{Error, Result};
use crate::paths;

/// The schema of a table or view; `None` if the data directory has no schema, or its schema lacks the table.
pub(super) async fn read(
    disk: &Disk,
    data_directory: &Path,
    keyspace: &str,
    table: &str,
) -> Result<Option<TableSchema>> {
    let source = SystemSchema { disk, directory: data_directory.join("system_schema"), keyspace };
    if !disk.exists(&source.directory).await? {
        return Ok(None);
    }
    let mut rows = SchemaRows::new();
    for of in ["tables", "views", "columns", "dropped_columns", "types"] {
        rows.insert(of.to_owned(), source.rows(of).await?);
    }
    rows::table(&rows, keyspace, table).map_err(|e| {
        Error::Problem(format!(
            "{}: {e}; give the schema with --schema",
            source.directory.display()
        ))
    })
}

struct SystemSchema<'a> {
    disk: &'a Disk,
    directory: PathBuf,
    keyspace: &'a str,
}

impl SystemSchema<'_> {
    /// The keyspace's live rows of one schema table.
    async fn rows(&self, table: &str) -> Result<Vec<SchemaRow>> {
        let mut directories = Vec::new();
        for entry in self.disk.list(&self.directory).await? {
            let is_table = entry.name.rsplit_once('-').is_some_and(|(name, _)| name == table);
            if entry.is_dir && is_table {
                directories.push(self.directory.join(&entry.name));
            }
        }
        let mut sstables = Vec::new();
        for directory in directories {
            let folders = match paths::find(self.disk, &[directory]).await {
                Ok(folders) => folders,
                // The table was never flushed.
                Err(Error::Unreadable(_)) => continue,
                Err(other) => return Err(other),
            };
            for listed in folders.iter().flat_map(|folder| &folder.sstables) {
                sstables
                    .push(SSTable::open_listed(self.disk, listed, OpenOptions::default()).await?);
            }
        }
        if sstables.is_empty() {
            return Ok(Vec::new());
        }
        let layout = Layout::union(sstables.iter().map(SSTable::layout))
            .map_err(|e| Error::Problem(format!("{}: {e}", self.directory.display())))?;
        let mut scanners = Vec::new();
        for sstable in &sstables {
            // The files are small, and `Standard` needs no probing.
            let options = ScanOptions {
                layout: Some(layout.clone()),
                mode: AccessMode::Standard,
                ..ScanOptions::default()
            };
            scanners.push(sstable.scan(self.disk, options).await?);
        }
        let now = u32::try_from(self.disk.clock().unix_seconds()).unwrap_or(u32::MAX);
        let names = clustering_names(table);
        collect(Merge::new(layout.clone(), scanners), &layout, self.keyspace, now, &names).await
    }
}

/// SSTables do not contain the names of key columns.
fn clustering_names(table: &str) -> Vec<String> {
    let system = system_tables();
    let known = system.table("system_schema", table);
    known.map_or(Vec::new(), |table| {
        table.schema.clustering.iter().map(|column| column.name.clone()).collect()
    })
}

async fn collect<S>(
    mut merge: S,
    layout: &Layout,
    keyspace: &str,
    now: u32,
    names: &[String],
) -> Result<Vec<SchemaRow>>
where
    S: FragmentStream,
    Error: From<S::Error>,
{
    let mut rows = Vec::new();
    let mut is_ours = false;
    let mut deleted = Deleted::nothing();
    while merge.advance().await? {
        match merge.fragment() {
            Fragment::Start(start) => {
                is_ours = start.key.bytes == keyspace.as_bytes();
                deleted = Deleted { partition: start.deletion, range: DeletionTime::LIVE };
            }
            Fragment::Marker(marker) => deleted.pass(&marker),
            Fragment::Row(row) if is_ours => {
                let Some(mut found) = live_row(row, layout, &deleted, now, names) else { continue };
                found.insert("keyspace_name".to_owned(), Some(keyspace.as_bytes().to_vec()));
                rows.push(found);
            }
            _ => {}
        }
    }
    Ok(rows)
}

/// The deletions that apply to a row.
struct Deleted {
    partition: DeletionTime,
    range: DeletionTime,
}

impl Deleted {
    fn nothing() -> Deleted {
        Deleted { partition: DeletionTime::LIVE, range: DeletionTime::LIVE }
    }

    fn pass(&mut self, marker: &Marker<'_>) {
        self.range = marker.open.unwrap_or(DeletionTime::LIVE);
    }
}

/// A row without deleted and expired cells; `None` if nothing remains.
fn live_row(
    row: Row<'_>,
    layout: &Layout,
    deleted: &Deleted,
    now: u32,
    names: &[String],
) -> Option<SchemaRow> {
    let deletion = deleted.partition.max(deleted.range).max(row.deletion.time);
    let mut found = SchemaRow::default();
    for cell in row.cells {
        if deletion.deletes(cell.timestamp) || !cell.is_live(now) {
            continue;
        }
        let column = layout.regulars.get(usize::from(cell.column))?;
        let name = String::from_utf8_lossy(&column.name).into_owned();
        found.insert(name, Some(cell.value.of(row.bytes).to_vec()));
    }
    let liveness = &row.liveness;
    let expired = liveness.is_expiring() && liveness.local_expiration_time <= now;
    let is_live = !liveness.is_empty() && !expired && !deletion.deletes(liveness.timestamp);
    if !is_live && found.is_empty() {
        return None;
    }
    let values = layout.clusterings.values(row.clustering, layout.clustering_types.len());
    for (name, value) in names.iter().zip(values) {
        let value = match value {
            ClusteringValue::Bytes(bytes) => Some(bytes.to_vec()),
            ClusteringValue::Null => None,
        };
        found.insert(name.clone(), value);
    }
    Some(found)
}
