//! What is seen of the tables while messages come and go: bytes on disk, tombstones per read.

use std::path::Path;
use std::time::Duration;

use halcyon_client::blocking::Connection;
use halcyon_oracle::Result;
use serde::{Deserialize, Serialize};

use crate::connection::bigint;
use crate::machine::files_below;

/// The heading of what was seen on disk.
pub(super) const DISK: &str = "on disk";

/// What was seen at a time.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
pub(super) struct Look {
    pub(super) seconds: f64,
    pub(super) messages_bytes: u64,
    pub(super) log_bytes: u64,
    /// Tombstones that reads of the messages passed: median and p99 since the start, where the server says.
    pub(super) tombstones: Option<(f64, f64)>,
}

/// Of the messages on disk: most in the last third by most in the middle one.
pub(super) fn growth(looks: &[Look], seconds: f64) -> f64 {
    let most = |from: f64, until: f64| {
        let inside = looks.iter().filter(|look| {
            let at = look.seconds / seconds;
            from <= at && at < until
        });
        inside.map(|look| look.messages_bytes).max().unwrap_or(0) as f64
    };
    // The least that is there at all: an SSTable's small components.
    most(0.67, 1.1) / most(0.33, 0.67).max(65_536.0)
}

/// `keyspace` is the folder of the tables.
pub(super) fn look(at: Duration, keyspace: &Path, connection: &mut Connection) -> Result<Look> {
    let bytes = |table: &str| -> u64 {
        let files = files_below(keyspace).into_iter();
        let of_table = files.filter(|path| {
            let folder = path.strip_prefix(keyspace).ok().and_then(|path| path.iter().next());
            folder.is_some_and(|folder| folder.to_string_lossy().starts_with(&format!("{table}-")))
        });
        of_table.filter_map(|path| path.metadata().ok()).map(|about| about.len()).sum()
    };
    let page = connection.page(
        "SELECT p50th, p99th FROM system_views.tombstones_per_read WHERE keyspace_name = 'bench' AND table_name = 'messages'",
    )?;
    let number = |cell: Option<&Option<Vec<u8>>>| bigint(cell?.as_ref()).map(f64::from_bits);
    let row = page.rows.first();
    let tombstones = row.and_then(|row| Some((number(row.first())?, number(row.get(1))?)));
    Ok(Look {
        seconds: at.as_secs_f64(),
        messages_bytes: bytes("messages"),
        log_bytes: bytes("log"),
        tombstones: tombstones.filter(|(p50, _)| p50.is_finite()),
    })
}
