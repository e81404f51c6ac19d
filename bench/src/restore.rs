//! A set of SSTables, and nothing else, as the content of a table: of a running node of Cassandra, of a Halcyon that is stopped.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use halcyon_oracle::Result;

use super::dataset::{DataSet, KEYSPACE};
use super::jmx::Jmx;
use super::machine::files_below;
use super::server::Server;
use crate::connection::{self, create_keyspace};

const STORAGE: &str = "org.apache.cassandra.db:type=StorageService";
/// A busy machine takes its time, for files that are to go and for nodes that are to meet.
const WITHIN: Duration = Duration::from_secs(180);

/// The set's table, without content.
pub(super) fn create(port: u16, set: &DataSet) -> Result<()> {
    let mut connection = connection::open(port)?;
    create_keyspace(&mut connection, KEYSPACE)?;
    connection.query(&set.schema())?;
    Ok(())
}

/// Puts the set in the place of what the table had in the directory of a Halcyon.
pub(super) fn replace(directory: &Path, set: &DataSet) -> Result<()> {
    let folder = table_folder(&directory.join("data").join(KEYSPACE), &set.table())?;
    for file in files_below(&folder) {
        fs::remove_file(file)?;
    }
    set.link_into(&folder, None)
}

/// Empties the set's table, and fills it.
pub(super) fn restore(
    node: &Server,
    jmx: &mut Jmx,
    set: &DataSet,
    sstables: Option<u32>,
) -> Result<PathBuf> {
    empty(node, set)?;
    fill(node, jmx, set, sstables)
}

/// Empties the set's table, on all nodes of a ring.
pub(super) fn empty(node: &Server, set: &DataSet) -> Result<()> {
    let truncate = format!("TRUNCATE {KEYSPACE}.{}", set.table());
    connection::to(node.address())?.query(&truncate)?;
    Ok(())
}

/// Once the set's table is empty, links its files (of its first SSTables only, if a number is given) into the folder, and lets the node
/// open them, which it does not compact of itself. Answers with the folder.
pub(super) fn fill(
    node: &Server,
    jmx: &mut Jmx,
    set: &DataSet,
    sstables: Option<u32>,
) -> Result<PathBuf> {
    let table = set.table();
    let folder = table_folder(&node.dir.join("data/data").join(KEYSPACE), &table)?;
    wait_until("truncated files are deleted", || sstables_in(&folder).is_empty())?;
    set.link_into(&folder, sstables)?;
    jmx.ask(&["call", STORAGE, "loadNewSSTables", KEYSPACE, &table])?;
    jmx.ask(&["no-autocompaction", KEYSPACE, &table])?;
    Ok(folder)
}

/// The folder of a table in the folder of its keyspace.
pub(super) fn table_folder(keyspace: &Path, table: &str) -> Result<PathBuf> {
    let prefix = format!("{table}-");
    let mut entries = fs::read_dir(keyspace)?.flatten();
    let found = entries.find(|e| e.file_name().to_string_lossy().starts_with(&prefix));
    Ok(found.ok_or_else(|| format!("{}: no folder of {table}", keyspace.display()))?.path())
}

/// `oa-1-big`, of a file that belongs to an SSTable.
pub(super) fn sstable_of(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let format = ["-big-", "-bti-"].into_iter().find_map(|format| name.find(format))?;
    name.get(..format + 4).map(str::to_owned)
}

/// SSTables of which any file is left: Cassandra deletes in the background, Data.db first.
pub(super) fn sstables_in(folder: &Path) -> BTreeSet<String> {
    files_below(folder).iter().filter_map(|path| sstable_of(path)).collect()
}

pub(super) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) -> Result<()> {
    let began = Instant::now();
    while !is_so() {
        if began.elapsed() > WITHIN {
            return Err(format!("timed out waiting until {what}").into());
        }
        sleep(Duration::from_millis(50));
    }
    Ok(())
}
