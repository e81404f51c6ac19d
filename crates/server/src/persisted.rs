//! `system.prepared_statements`: keeps prepared statements across restarts.
//!
//! 1. A new statement is written there before its PREPARE is answered.
//! 2. An evicted statement, or one that the schema has invalidated, is deleted there.
//! 3. At the start all are prepared again under their ids, so that clients need not prepare them again. Invalid ones are deleted.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use halcyon_io::{clock, spawn};
use halcyon_model::Cursor;
use halcyon_model::request::Value;
use halcyon_query::{Error, Invalidated, Outcome, Result, password, prepare_in_time};

use crate::internal;
use crate::prepared::{Entry, Put, StatementId};
use crate::shard::ShardServer;

const INSERT: &str = "INSERT INTO system.prepared_statements (logged_keyspace, prepared_id, query_string) VALUES (?, ?, ?)";
const DELETE: &str = "DELETE FROM system.prepared_statements WHERE prepared_id = ?";
const SELECT: &str =
    "SELECT prepared_id, logged_keyspace, query_string FROM system.prepared_statements";

/// How often evictions are logged.
const EVICTIONS_LOGGED: Duration = Duration::from_secs(60);

/// Puts a statement into the store. Evicted statements are deleted in the background.
pub(crate) fn keep(shard: &Rc<ShardServer>, id: StatementId, entry: Entry) -> Put {
    let put = shard.shared.prepared.put(id, entry);
    put.evicted.iter().for_each(|gone| forget(shard, *gone));
    put
}

/// Writes a new statement.
pub(crate) async fn write(shard: &ShardServer, id: &StatementId, entry: &Entry) {
    let statement = &entry.statement;
    if password::hidden(&statement.text) != statement.text {
        // The table is readable by every client: such a statement is prepared again after a restart.
        return;
    }
    let keyspace = statement.keyspace.as_ref();
    let keyspace = keyspace.map_or(Value::Null, |name| Value::Bytes(name.as_bytes()));
    let values = [keyspace, Value::Bytes(id), Value::Bytes(statement.text.as_bytes())];
    // If the write fails, clients must prepare it again after a restart.
    let _ = internal::execute(&shard.coordinator, INSERT, &values).await;
}

/// Deletes a statement that is no longer in the store.
pub(crate) fn forget(shard: &Rc<ShardServer>, id: StatementId) {
    let shard = shard.clone();
    spawn(async move {
        // If the deletion fails, the next start prepares or deletes the statement.
        let _ = internal::execute(&shard.coordinator, DELETE, &[Value::Bytes(&id)]).await;
    })
    .detach();
}

/// Forgets what a change of the schema has made invalid, before the change is answered.
pub(crate) async fn invalidate(shard: &ShardServer, invalidated: &Invalidated) {
    if invalidated.is_nothing() {
        return;
    }
    let gone = shard.shared.prepared.invalidate(invalidated);
    let rows: Vec<_> = gone.iter().map(|id| vec![Value::Bytes(id)]).collect();
    // If a deletion fails, the next start prepares or deletes the statement.
    let _ = internal::execute_all(&shard.coordinator, DELETE, &rows).await;
}

/// Prepares the statements of earlier starts.
pub(crate) async fn load(shard: Rc<ShardServer>) -> Result<()> {
    let Outcome::Rows(rows) = internal::execute(&shard.coordinator, SELECT, &[]).await? else {
        return Ok(());
    };
    let mut cursor = Cursor::new(&rows.content);
    let (mut loaded, mut removed) = (0, 0);
    for _ in 0..rows.count {
        let [id, keyspace, text] = internal::row(&mut cursor)
            .map_err(|_| Error::Server("system.prepared_statements is damaged".to_owned()))?;
        let (Some(id), Some(text)) = (id.and_then(|id| id.try_into().ok()), text) else { continue };
        let text = String::from_utf8_lossy(text);
        let keyspace = keyspace.map(|name| String::from_utf8_lossy(name).into_owned());
        match prepare_in_time(&shard.coordinator, &text, keyspace.as_deref()).await {
            Ok(statement) => {
                keep(&shard, id, Entry::new(Arc::new(statement)));
                loaded += 1;
            }
            Err(_) => {
                removed += 1;
                forget(&shard, id);
            }
        }
    }
    if removed > 0 {
        let log = &shard.shared.log;
        log.say(format_args!("removed {removed} stale prepared statements"));
    }
    if loaded > 0 {
        shard.shared.log.say(format_args!("preloaded {loaded} prepared statements"));
    }
    Ok(())
}

/// Logs evictions while the shard serves: many mean that a client prepares statements with literal values.
pub(crate) async fn tell_evictions(shard: Rc<ShardServer>) {
    let mut told = 0;
    loop {
        clock::sleep(EVICTIONS_LOGGED).await;
        let metrics = shard.shared.prepared.metrics();
        if metrics.evictions > told {
            shard.shared.log.warning(format_args!(
                "{} prepared statements discarded in the last minute because cache limit reached ({} MiB)",
                metrics.evictions - told,
                metrics.capacity >> 20
            ));
        }
        told = metrics.evictions;
    }
}
