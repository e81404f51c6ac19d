//! The data directories as they are found: whose they are, and which tables have folders.
//!
//! Nothing is changed here. What cannot be taken over is refused before anything is touched:
//! - a commit log of Cassandra that still has writes in it: only Cassandra can replay it;
//! - the metadata log of Cassandra 6.0, which says more than `system_schema`.

use std::path::{Path, PathBuf};

use halcyon_io::{AccessMode, Disk, Purpose, StreamOptions};
use halcyon_model::Cursor;
use halcyon_stream::TableId;

use crate::{Error, Options, Result};

/// A folder `<data>/<keyspace>/<table>-<id>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableFolder {
    pub(crate) id: TableId,
    pub(crate) path: PathBuf,
}

/// The tables' folders, in all data directories.
pub(crate) async fn table_folders(disk: &Disk, options: &Options) -> Result<Vec<TableFolder>> {
    let mut found = Vec::new();
    for data in &options.data_directories {
        for keyspace in folders_in(disk, data).await? {
            for path in folders_in(disk, &keyspace).await? {
                let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                if let Some(id) = name.rsplit_once('-').and_then(|(_, id)| parse_id(id)) {
                    found.push(TableFolder { id, path });
                }
            }
        }
    }
    Ok(found)
}

async fn folders_in(disk: &Disk, directory: &Path) -> Result<Vec<PathBuf>> {
    let entries = disk.list(directory).await?;
    let folders = entries.iter().filter(|entry| entry.is_dir && !entry.name.starts_with('.'));
    Ok(folders.map(|entry| directory.join(&entry.name)).collect())
}

fn parse_id(text: &str) -> Option<TableId> {
    halcyon_model::uuid::parse_digits(text)
}

/// Refuses what cannot be taken over. Returns segments of Cassandra's commit log that it has emptied.
pub(crate) async fn refuse_foreign(disk: &Disk, options: &Options) -> Result<Vec<PathBuf>> {
    for data in &options.data_directories {
        let log = data.join("system_cluster_metadata");
        if disk.exists(&log).await? {
            return Err(Error::CannotStart(format!(
                "{} is the metadata log of Apache Cassandra 6.0: directories of Cassandra 5.0 and older are taken over. \
                 Export the tables with `halcyon sstable`, or copy their SSTables into tables made here",
                log.display()
            )));
        }
    }
    let directory = &options.commitlog.directory;
    if !disk.exists(directory).await? {
        return Ok(Vec::new());
    }
    let entries = disk.list(directory).await?;
    let ids = entries.iter().filter_map(|entry| cassandra_segment(&entry.name));
    let newest = ids.filter(|id| *id >= CASSANDRA_ID_MIN).max();
    let mut emptied = Vec::new();
    for entry in entries {
        let Some(id) = cassandra_segment(&entry.name) else { continue };
        let path = directory.join(&entry.name);
        match segment_of_cassandra(disk, &path, id).await? {
            Segment::Ours => {}
            Segment::Empty => emptied.push(path),
            Segment::Zeros if id < CASSANDRA_ID_MIN => {}
            Segment::Zeros if Some(id) == newest => emptied.push(path),
            Segment::Zeros => {
                return Err(Error::CannotStart(format!(
                    "{} is by its name a commit log of Apache Cassandra, but nothing is in it, although Cassandra used a later one: \
                     its writes are lost, and Cassandra refuses it too. Restore it from a copy and drain that Cassandra, or move it \
                     away to start without them; no file has been changed",
                    path.display()
                )));
            }
            Segment::HasWrites => {
                return Err(Error::CannotStart(format!(
                    "{} is a commit log of Apache Cassandra with writes that are not in its SSTables yet. Start that \
                     Cassandra once more, run `nodetool drain`, stop it, and start again; nothing has been touched",
                    path.display()
                )));
            }
        }
    }
    Ok(emptied)
}

/// Cassandra's ids are milliseconds since 1970 when it started; this is in 2001. Ours count from 1.
const CASSANDRA_ID_MIN: u64 = 1_000_000_000_000;

/// `CommitLog-<version>-<id>.log`
fn cassandra_segment(name: &str) -> Option<u64> {
    let (_, id) = name.strip_prefix("CommitLog-")?.strip_suffix(".log")?.split_once('-')?;
    id.parse().ok()
}

enum Segment {
    Ours,
    /// No write in it.
    Empty,
    /// Whose it is, only its name tells. Cassandra tolerates that in its newest segment: it had not been used yet.
    Zeros,
    HasWrites,
}

/// What stands in front of a segment of Cassandra: version, id, length of its parameters, these, CRC32; then a marker with the
/// offset of the next one. A drained segment has one marker that ends right behind itself.
async fn segment_of_cassandra(disk: &Disk, path: &Path, id: u64) -> Result<Segment> {
    const FRONT: usize = 64 << 10;
    const NEWEST: u32 = 99;
    let read = StreamOptions { buffer_size: FRONT, depth: 1 };
    let mut reader =
        disk.open_sequential(path, AccessMode::Standard, Purpose::CommitLog, read).await?;
    let mut bytes = Vec::new();
    while bytes.len() < FRONT {
        let got = reader.fill(1).await?;
        if got.is_empty() {
            break;
        }
        bytes.extend_from_slice(got);
        let count = got.len();
        reader.consume(count);
    }
    if bytes.iter().all(|byte| *byte == 0) {
        return Ok(Segment::Zeros);
    }
    let mut cursor = Cursor::new(&bytes);
    let head = cursor.u32().and_then(|version| Ok((version, cursor.u64()?)));
    let is_cassandras = head.is_ok_and(|(version, stored)| version <= NEWEST && stored == id);
    if !is_cassandras {
        return Ok(Segment::Ours);
    }
    let parameters = cursor.u16().and_then(|length| cursor.take(usize::from(length)));
    let marker = parameters.and_then(|_| cursor.u32()).and_then(|_| {
        let at = cursor.index();
        Ok((at, cursor.u32()? as usize, cursor.u32()?))
    });
    Ok(match marker {
        Ok((_, 0, 0)) => Segment::Empty,
        Ok((at, next, _)) if next == at + 8 => {
            let rest = bytes.get(next..).unwrap_or_default();
            if rest.iter().all(|b| *b == 0) { Segment::Empty } else { Segment::HasWrites }
        }
        _ => Segment::HasWrites,
    })
}
