//! A major compaction of the tables that paths name, while no node has them open.
//!
//! 1. [`claim`] the output folders, and clean them up after interrupted compactions.
//! 2. [`prepare`] resolves folders to tables. Each table is compacted separately, and so are its repaired and unrepaired SSTables.
//!    Settings that the request omits are taken from the schema, then from the inputs (`settings`).
//! 3. [`run`] compacts on the calling thread; another thread may draw the progress.

mod request;
mod settings;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use halcyon_compaction::{Claim, Error as OfCompaction, Outcome, Progress, Settings, group_inputs};
use halcyon_io::Disk;
use halcyon_io::startup::{self, Severity};
use halcyon_model::path_component;
use halcyon_model::schema::TableSchema;
use halcyon_sstable::format::listing::ListedSSTable;
use halcyon_sstable::{Component, OpenOptions, SSTable};

use crate::error::{Error, Result};
use crate::notices::Notices;
use crate::paths::{self, Folder};
use crate::schema_source;
pub use request::Request;

/// Claims the output folders, cleans up after interrupted compactions there, and checks the machine.
pub async fn claim(disk: &Disk, request: &Request, notices: &dyn Notices) -> Result<Claim> {
    let folders = match &request.output {
        Some(output) => {
            disk.create_dir_all(output).await?;
            vec![output.clone()]
        }
        None => paths::find(disk, &request.paths).await?.into_iter().map(|f| f.directory).collect(),
    };
    let places: Vec<&Path> = folders.iter().map(PathBuf::as_path).collect();
    for finding in startup::check(disk, &places) {
        match finding.severity {
            Severity::Refusal => return Err(Error::Unreadable(finding.to_string())),
            Severity::Warning | Severity::Note => notices.detail(format_args!("{finding}")),
        }
    }
    let claim = halcyon_compaction::claim(disk, &folders).await.map_err(unattributed)?;
    for process in &claim.unseen {
        notices.warn(format_args!(
            "{process} belongs to another user: whether it works in these folders cannot be seen. Stop it if it does"
        ));
    }
    for prefix in &claim.recovered {
        notices.warn(format_args!("{prefix}*: deleted, left by a transaction that was cut short"));
    }
    Ok(claim)
}

/// A table to compact.
pub struct Table {
    pub folder: Folder,
    pub inputs: Vec<Arc<SSTable>>,
    elsewhere: Vec<Arc<SSTable>>,
    pub settings: Settings,
    /// The reasons for settings, for the user.
    pub reasons: Vec<String>,
}

/// Finds the tables, opens their SSTables and chooses the settings. Changes nothing.
pub async fn prepare(disk: &Disk, request: &Request, notices: &dyn Notices) -> Result<Vec<Table>> {
    let folders = paths::find(disk, &request.paths).await?;
    let several = folders.len() > 1;
    let mut tables = Vec::new();
    for mut folder in folders {
        folder.warn_of_left_out(notices);
        if let Some(dead) = folder.not_live.first() {
            return Err(Error::usage(format!(
                "{dead}: a transaction log says that it is not live; compacting it would bring back what was replaced"
            )));
        }
        if folder.sstables.is_empty() {
            continue;
        }
        let schema = schema_source::of_folder(disk, &request.schema, &folder, notices).await?;
        if let Some(schema) = &schema {
            // If the path does not name the table, take the schema's.
            folder.table.keyspace.get_or_insert_with(|| schema.keyspace.clone());
            folder.table.table.get_or_insert_with(|| schema.name.clone());
        }
        let inputs = open_all(disk, &folder.sstables, schema.as_ref()).await?;
        let (elsewhere, unknown) = open_neighbours(disk, &folder, schema.as_ref()).await;
        warn_of_extras(&folder, notices);
        let chosen = settings::choose(request, disk, &inputs, schema.as_deref())?;
        let (mut settings, mut reasons) = chosen;
        if let Some(why) = unknown.first() {
            notices.warn(format_args!(
                "{}: nothing is purged, because tombstones may delete what is in an SSTable that cannot be opened: {why}",
                folder.table
            ));
            settings.gc_before = 0;
            reasons.push("nothing is purged: a neighbour cannot be opened".to_owned());
        }
        reasons
            .iter()
            .for_each(|reason| notices.detail(format_args!("{}: {reason}", folder.table)));
        if let Some(output) = &request.output {
            settings.output = Some(output_folder(output, &folder, several)?);
        }
        tables.push(Table { folder, inputs, elsewhere, settings, reasons });
    }
    Ok(tables)
}

fn output_folder(output: &Path, folder: &Folder, several: bool) -> Result<PathBuf> {
    if !several {
        return Ok(output.to_path_buf());
    }
    let keyspace = folder.table.keyspace.as_deref().unwrap_or("keyspace");
    let keyspace = path_component(keyspace).map_err(Error::Usage)?;
    let table = folder.directory.file_name().unwrap_or_default();
    Ok(output.join(keyspace).join(table))
}

async fn open_all(
    disk: &Disk,
    listed: &[ListedSSTable],
    schema: Option<&Arc<TableSchema>>,
) -> Result<Vec<Arc<SSTable>>> {
    let mut opened = Vec::with_capacity(listed.len());
    for one in listed {
        let options = OpenOptions { schema: schema.cloned() };
        opened.push(Arc::new(SSTable::open_listed(disk, one, options).await?));
    }
    Ok(opened)
}

/// The other SSTables of the folder, and what of it cannot be opened: the command did not name it, so it stops nothing.
async fn open_neighbours(
    disk: &Disk,
    folder: &Folder,
    schema: Option<&Arc<TableSchema>>,
) -> (Vec<Arc<SSTable>>, Vec<String>) {
    let mut opened = Vec::new();
    let mut unknown: Vec<String> = folder.unreadable.clone();
    for one in &folder.elsewhere {
        let options = OpenOptions { schema: schema.cloned() };
        let sstable = SSTable::open_listed(disk, one, options).await;
        match sstable {
            Ok(sstable) => opened.push(Arc::new(sstable)),
            Err(e) => unknown.push(e.to_string()),
        }
    }
    (opened, unknown)
}

fn warn_of_extras(folder: &Folder, notices: &dyn Notices) {
    let extra = folder.sstables.iter().flat_map(|s| &s.extra).next();
    if let Some(extra) = extra {
        notices.warn(format_args!(
            "{}: has index files ({extra} …); the outputs have none, and Cassandra rebuilds its index when it opens them",
            folder.table
        ));
    }
}

/// A table's name with the outcomes of its groups.
pub type Compacted = (String, Vec<Outcome>);

/// Compacts the tables one after the other.
pub async fn run(
    disk: &Disk,
    claim: &Claim,
    tables: &[Table],
    progress: &Progress,
) -> Result<Vec<Compacted>> {
    let mut all = Vec::new();
    for table in tables {
        match (&table.settings.output, table.inputs.first()) {
            (Some(output), _) => disk.create_dir_all(output).await?,
            (None, Some(first)) => {
                disk.create_like(&first.descriptor().component_path(Component::Data)).await?;
            }
            (None, None) => {}
        }
        let mut outcomes = Vec::new();
        for task in group_inputs(&table.inputs, &table.elsewhere) {
            let sealed = halcyon_compaction::write(disk, &task, &table.settings, progress).await;
            let sealed = sealed.map_err(|e| failure(&table.folder, e))?;
            // A Cassandra may have started meanwhile: it sees no locks.
            if let Err(e) = claim.check(disk).await {
                // If this fails too, the log remains, and a later start finishes it.
                let _ = sealed.abort().await;
                return Err(unattributed(e));
            }
            outcomes.push(sealed.publish().await.map_err(|e| failure(&table.folder, e))?);
        }
        all.push((table.folder.table.to_string(), outcomes));
    }
    Ok(all)
}

fn failure(folder: &Folder, error: OfCompaction) -> Error {
    match error {
        OfCompaction::Invalid(what) => Error::usage(format!("{}: {what}", folder.table)),
        other => unattributed(other),
    }
}

fn unattributed(error: OfCompaction) -> Error {
    match error {
        OfCompaction::SSTable(error) => Error::from(error),
        OfCompaction::Io(error) => Error::from(error),
        other => Error::Unreadable(other.to_string()),
    }
}
