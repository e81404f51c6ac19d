//! Major compactions of Halcyon, as any client asks for them.

use std::thread::sleep;
use std::time::{Duration, Instant};

use halcyon_oracle::Result;

use crate::connection;

const VIEW: &str = "halcyon_views.major_compactions";
const WITHIN: Duration = Duration::from_secs(900);

/// Begins one, and does not wait for it.
pub(crate) fn begin(port: u16, keyspace: &str, table: &str) -> Result<()> {
    let insert =
        format!("INSERT INTO {VIEW} (keyspace_name, table_name) VALUES ('{keyspace}', '{table}')");
    connection::open(port)?.query(&insert)?;
    Ok(())
}

/// Ends the one that runs, if one does.
pub(crate) fn stop(port: u16, keyspace: &str, table: &str) -> Result<()> {
    let delete = format!("DELETE FROM {VIEW} WHERE {}", key(keyspace, table));
    connection::open(port)?.query(&delete)?;
    Ok(())
}

/// One from its begin to its end.
pub(crate) fn run(port: u16, keyspace: &str, table: &str) -> Result<()> {
    begin(port, keyspace, table)?;
    let mut connection = connection::open(port)?;
    let state = format!("SELECT state, failure FROM {VIEW} WHERE {}", key(keyspace, table));
    let began = Instant::now();
    while began.elapsed() < WITHIN {
        let page = connection.page(&state)?;
        let row = page.rows.first().ok_or("the compaction is not listed")?;
        let word = |at: usize| {
            let bytes = row.get(at).cloned().flatten().unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        match word(0).as_str() {
            "running" => sleep(Duration::from_millis(20)),
            "done" | "stopped" => return Ok(()),
            state => return Err(format!("the compaction {state}: {}", word(1)).into()),
        }
    }
    Err(format!("not compacted in {WITHIN:?}").into())
}

fn key(keyspace: &str, table: &str) -> String {
    format!("keyspace_name = '{keyspace}' AND table_name = '{table}'")
}
