//! A table's schema out of the `system_schema` SSTables of its data directory.
//!
//! ```text
//!  data/system_schema/{keyspaces,tables,views,columns,dropped_columns,types}-<id>/*-Data.db
//!       │ all live SSTables of a table, merged, deletions applied
//!       ▼
//!  partition = keyspace; rows by table, then column ─► TableDraft ─► TableSchema
//! ```
//!
//! A running Cassandra flushes these tables at every schema change; what is only in its commit log is not seen.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use halcyon_cql::schema::{ColumnDraft, DroppedDraft, FieldTexts, TableDraft, UserTypeCatalog};
use halcyon_io::Disk;
use halcyon_model::clustering::ClusteringValue;
use halcyon_model::schema::{ColumnKind, TableOptions, TableSchema};
use halcyon_model::{Cursor, DeletionTime};
use halcyon_sstable::{OpenOptions, SSTable, ScanOptions};
use halcyon_stream::{Fragment, FragmentStream, Layout, Marker, Merge, Row};

use crate::failure::{Failure, Result};
use crate::paths;

/// One row: the text of its clustering, and its cells by column name.
#[derive(Debug, Default)]
struct SchemaRow {
    clustering: Vec<String>,
    cells: BTreeMap<String, Vec<u8>>,
}

impl SchemaRow {
    fn text(&self, column: &str) -> Option<String> {
        self.cells.get(column).map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    fn int(&self, column: &str) -> Option<i32> {
        Some(i32::from_be_bytes(self.cells.get(column)?.as_slice().try_into().ok()?))
    }

    fn unsigned(&self, column: &str) -> Option<u32> {
        self.int(column).and_then(|value| u32::try_from(value).ok())
    }

    fn double(&self, column: &str) -> Option<f64> {
        Some(f64::from_be_bytes(self.cells.get(column)?.as_slice().try_into().ok()?))
    }

    /// A frozen list of texts, or a frozen map of them as alternating keys and values.
    fn texts(&self, column: &str, per_entry: usize) -> Option<Vec<String>> {
        let mut cursor = Cursor::new(self.cells.get(column)?);
        let entries = usize::try_from(cursor.i32().ok()?).ok()?;
        let mut texts = Vec::new();
        for _ in 0..entries.checked_mul(per_entry)? {
            let length = u64::try_from(cursor.i32().ok()?).ok()?;
            let bytes = cursor.take_u64(length).ok()?;
            texts.push(String::from_utf8_lossy(bytes).into_owned());
        }
        Some(texts)
    }

    fn map(&self, column: &str) -> Option<BTreeMap<String, String>> {
        let texts = self.texts(column, 2)?;
        let (pairs, _) = texts.as_chunks::<2>();
        Some(pairs.iter().map(|[key, value]| (key.clone(), value.clone())).collect())
    }
}

/// The schema of a table or view; `None` if the data directory has no schema, or the schema no such table.
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
    let of_table = |row: &&SchemaRow| row.clustering.first().is_some_and(|name| name == table);
    let tables = source.rows("tables").await?;
    let views = source.rows("views").await?;
    let (row, is_view) = match tables.iter().find(of_table) {
        Some(row) => (row, false),
        None => match views.iter().find(of_table) {
            Some(row) => (row, true),
            None => return Ok(None),
        },
    };
    let mut draft = TableDraft::new(keyspace, table);
    draft.is_view = is_view;
    draft.id = row.cells.get("id").and_then(|bytes| bytes.as_slice().try_into().ok());
    draft.options = options(row);
    for row in source.rows("columns").await?.iter().filter(of_table) {
        add_column(&mut draft, row).ok_or_else(|| source.unreadable("columns", row))?;
    }
    for row in source.rows("dropped_columns").await?.iter().filter(of_table) {
        add_dropped(&mut draft, row).ok_or_else(|| source.unreadable("dropped_columns", row))?;
    }
    let mut types: BTreeMap<String, FieldTexts> = BTreeMap::new();
    for row in source.rows("types").await? {
        let fields = row.texts("field_names", 1).zip(row.texts("field_types", 1));
        let (names, texts) = fields.ok_or_else(|| source.unreadable("types", &row))?;
        let name = row.clustering.first().cloned().unwrap_or_default();
        types.insert(name, names.into_iter().zip(texts).collect());
    }
    let catalog = UserTypeCatalog::resolve(keyspace, &types);
    let finished = draft.finish(&catalog);
    finished.map(Some).map_err(|e| {
        Failure::Problem(format!(
            "{}: {}; give the schema with --schema",
            source.directory.display(),
            e.what
        ))
    })
}

struct SystemSchema<'a> {
    disk: &'a Disk,
    directory: PathBuf,
    keyspace: &'a str,
}

impl SystemSchema<'_> {
    fn unreadable(&self, table: &str, row: &SchemaRow) -> Failure {
        Failure::Problem(format!(
            "{}: the row of {} in {table} cannot be understood; give the schema with --schema",
            self.directory.display(),
            row.clustering.join(".")
        ))
    }

    /// The live rows that one of the schema tables has for the keyspace.
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
                // Nothing was ever flushed to it.
                Err(Failure::Unreadable(_)) => continue,
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
            .map_err(|e| Failure::Problem(format!("{}: {e}", self.directory.display())))?;
        let mut scanners = Vec::new();
        for sstable in &sstables {
            let options = ScanOptions { layout: Some(layout.clone()), ..ScanOptions::default() };
            scanners.push(sstable.scan(self.disk, options).await?);
        }
        let now = u32::try_from(self.disk.clock().unix_seconds()).unwrap_or(u32::MAX);
        collect(Merge::new(layout.clone(), scanners), &layout, self.keyspace, now).await
    }
}

async fn collect<S>(
    mut merge: S,
    layout: &Layout,
    keyspace: &str,
    now: u32,
) -> Result<Vec<SchemaRow>>
where
    S: FragmentStream,
    Failure: From<S::Error>,
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
            Fragment::Row(row) if is_ours => rows.extend(live_row(row, layout, &deleted, now)),
            _ => {}
        }
    }
    Ok(rows)
}

/// The deletions in force at a place of a partition.
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

/// A row without what is deleted or expired; `None` if nothing is left of it.
fn live_row(row: Row<'_>, layout: &Layout, deleted: &Deleted, now: u32) -> Option<SchemaRow> {
    let deletion = deleted.partition.max(deleted.range).max(row.deletion.time);
    let mut found = SchemaRow::default();
    for cell in row.cells {
        if deletion.deletes(cell.timestamp) || !cell.is_live(now) {
            continue;
        }
        let column = layout.regulars.get(usize::from(cell.column))?;
        let name = String::from_utf8_lossy(&column.name).into_owned();
        found.cells.insert(name, cell.value.of(row.bytes).to_vec());
    }
    let liveness = &row.liveness;
    let expired = liveness.is_expiring() && liveness.local_expiration_time <= now;
    let is_live = !liveness.is_empty() && !expired && !deletion.deletes(liveness.timestamp);
    if !is_live && found.cells.is_empty() {
        return None;
    }
    let values = layout.clusterings.values(row.clustering, layout.clustering_types.len());
    found.clustering = values
        .map(|value| match value {
            ClusteringValue::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            ClusteringValue::Null => String::new(),
        })
        .collect();
    Some(found)
}

fn column_kind(text: &str) -> Option<ColumnKind> {
    Some(match text {
        "partition_key" => ColumnKind::PartitionKey,
        "clustering" => ColumnKind::Clustering,
        "static" => ColumnKind::Static,
        "regular" => ColumnKind::Regular,
        _ => return None,
    })
}

fn add_column(draft: &mut TableDraft, row: &SchemaRow) -> Option<()> {
    let column = ColumnDraft {
        type_text: row.text("type")?,
        kind: column_kind(&row.text("kind")?)?,
        // −1 where columns have no order but that of their names.
        position: row.int("position").and_then(|p| usize::try_from(p).ok()).unwrap_or(0),
        descending: row.text("clustering_order").is_some_and(|o| o.eq_ignore_ascii_case("desc")),
        place: None,
    };
    draft.columns.insert(row.clustering.get(1)?.clone(), column);
    Some(())
}

fn add_dropped(draft: &mut TableDraft, row: &SchemaRow) -> Option<()> {
    // Milliseconds here, microseconds where cells are compared with it.
    let millis = i64::from_be_bytes(row.cells.get("dropped_time")?.as_slice().try_into().ok()?);
    draft.dropped.push(DroppedDraft {
        name: row.clustering.get(1)?.clone(),
        type_text: row.text("type")?,
        kind: row.text("kind").and_then(|kind| column_kind(&kind)).unwrap_or(ColumnKind::Regular),
        place: None,
        dropped_time: millis.saturating_mul(1000),
    });
    Some(())
}

fn options(row: &SchemaRow) -> TableOptions {
    let mut options = TableOptions {
        comment: row.text("comment").unwrap_or_default(),
        gc_grace_seconds: row.unsigned("gc_grace_seconds"),
        default_time_to_live: row.unsigned("default_time_to_live").unwrap_or(0),
        bloom_filter_fp_chance: row.double("bloom_filter_fp_chance"),
        crc_check_chance: row.double("crc_check_chance"),
        min_index_interval: row.unsigned("min_index_interval"),
        max_index_interval: row.unsigned("max_index_interval"),
        compression: row.map("compression"),
        compaction: row.map("compaction"),
        caching: row.map("caching"),
        ..TableOptions::default()
    };
    for name in ["speculative_retry", "additional_write_policy", "memtable", "read_repair"] {
        if let Some(text) = row.text(name) {
            options.other.insert(name.to_owned(), text);
        }
    }
    options
}
