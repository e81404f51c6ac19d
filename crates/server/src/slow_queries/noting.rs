//! The shard's side: from a request that was slow to what is kept of it, and the regular report. What a request asked is read from its
//! message again, so that a fast one pays nothing.

use std::borrow::Cow;
use std::rc::Rc;
use std::time::Duration;

use halcyon_io::clock::{self, Instant, now, unix_micros};
use halcyon_io::spent::Spent;
use halcyon_protocol::{BatchQuery, Request};
use halcyon_query::{PreparedStatement, password, prepare};

use super::{Parts, SlowRequest};
use crate::connection::Connection;
use crate::prepared::StatementId;
use crate::shard::ShardServer;

/// Of a batch: more of them make a text no clearer.
const STATEMENTS_MAX: usize = 20;

/// Keeps a request that arrived, began and ended at these times.
#[cold]
pub(crate) fn note(
    shard: &Rc<ShardServer>,
    connection: &Connection,
    request: &Request<'_>,
    (arrived, began, ended): (Instant, Instant, u64),
    waits: Spent,
) {
    let Some(asked) = Asked::of(shard, connection, request) else { return };
    shard.shared.slow_queries.note(SlowRequest {
        keyspace: asked.keyspace,
        table: asked.table,
        text: asked.text,
        client: connection.peer.ip(),
        shard: shard.index,
        ended_ms: unix_micros() / 1000,
        parts: Parts {
            waited: began - arrived,
            executed: Duration::from_nanos(ended.saturating_sub(began.as_nanos())),
            waits,
        },
    });
}

/// Reports while the shard serves.
pub(crate) async fn report(server: Rc<ShardServer>, interval: Duration) {
    let mut last = now();
    while !server.is_draining() {
        clock::sleep(interval).await;
        let (shared, time) = (&server.shared, now());
        shared.slow_queries.report(&shared.log, &shared.told, time - last);
        last = time;
    }
}

/// What a request asked, and of which table.
struct Asked {
    keyspace: String,
    table: String,
    text: String,
}

impl Asked {
    /// `None`: it was forgotten meanwhile, or its table dropped.
    fn of(
        shard: &Rc<ShardServer>,
        connection: &Connection,
        request: &Request<'_>,
    ) -> Option<Asked> {
        let of_text = |text: &str| {
            let client = connection.state();
            let statement = prepare(&shard.coordinator, text, client.keyspace.as_deref()).ok()?;
            Asked::of_statement(&statement)
        };
        match request {
            Request::Query { text, .. } => of_text(text),
            Request::Execute { id, .. } => of_id(shard, id),
            Request::Batch { entries, .. } => {
                let queries = entries.iter().take(STATEMENTS_MAX).map(|(query, _)| query);
                let mut asked = queries.filter_map(|query| match query {
                    BatchQuery::Text(text) => of_text(text),
                    BatchQuery::Prepared(id) => of_id(shard, id),
                });
                let Asked { keyspace, table, mut text } = asked.next()?;
                for asked in asked {
                    text.push_str("; ");
                    text.push_str(&asked.text);
                }
                let others = entries.len().saturating_sub(STATEMENTS_MAX);
                let others =
                    if others == 0 { String::new() } else { format!("; ... ({others} others)") };
                let text = format!("BEGIN BATCH {text}{others}; APPLY BATCH");
                Some(Asked { keyspace, table, text })
            }
            _ => None,
        }
    }

    fn of_statement(statement: &PreparedStatement) -> Option<Asked> {
        let (keyspace, table) = statement.table()?;
        let text: Cow<'_, str> = password::hidden(&statement.text);
        let (keyspace, table) = (keyspace.to_owned(), table.to_owned());
        Some(Asked { keyspace, table, text: text.into_owned() })
    }
}

fn of_id(shard: &Rc<ShardServer>, id: &[u8]) -> Option<Asked> {
    let key: StatementId = id.try_into().ok()?;
    let entry = shard.statements.get(&shard.shared.prepared, &key)?;
    Asked::of_statement(&entry.statement)
}
