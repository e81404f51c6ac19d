//! Logs of what clients ask: the audit log and the full query log.
//!
//! ```text
//!  session ─ one load: is a log on? ─ no ─► nothing more
//!                                   └ yes ─► Watched: statements, client, time ─► executed ─► entries, a record ─► binlog
//! ```
//!
//! 1. Entries are those of Cassandra's listeners (`QueryEvents`, `AuthEvents`): after the execution, before the answer.
//! 2. A log is replaced as a whole when it is enabled, disabled or filtered anew; a request keeps the one with which it ends.
//! 3. Files are real ones also where the disk is simulated: nothing depends on what is in them.

mod audit;
mod control;
mod entry;
mod filter;
mod full_query_log;
pub(crate) mod options;

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use arc_swap::ArcSwapOption;
use halcyon_binlog::BinLog;
use halcyon_io::clock::unix_micros;
use halcyon_model::access::Principal;
use halcyon_protocol::{Request, Version};
use halcyon_query::{Coordinator, Error as QueryError, PreparedStatement};

use crate::client_state::ClientState;
use crate::log::Log;
use audit::{AuditLog, Executed};
use options::RequestLogOptions;

pub(crate) use audit::{OBSCURED, mentions_password};
pub(crate) use control::Shown;

/// Both logs of a node.
pub(crate) struct RequestLogs {
    /// Whether one of them is on: all that a request reads otherwise.
    on: AtomicBool,
    audit: ArcSwapOption<AuditLog>,
    full: ArcSwapOption<BinLog>,
    /// A change of a log is under way.
    changing: AtomicBool,
    /// Of the file.
    options: RequestLogOptions,
    /// As entries have the node.
    host: String,
    log: Log,
}

/// A request that a log wants to know of.
pub(crate) struct Watched {
    /// Milliseconds since 1970.
    began: i64,
    client: Rc<ClientState>,
    statements: Vec<Arc<PreparedStatement>>,
    /// The full query log wants the timestamp of a write.
    chooses_timestamp: bool,
    /// The one that the node has given it.
    timestamp: Option<i64>,
}

impl Watched {
    /// A statement of the request, once it is prepared.
    pub(crate) fn prepared(&mut self, statement: &Arc<PreparedStatement>) {
        self.statements.push(statement.clone());
    }

    /// The timestamp of a write that has none: it is chosen here, so that the log has what is stored. `None`: not here.
    pub(crate) fn timestamp(&mut self, coordinator: &Coordinator) -> Option<i64> {
        let is_write = self.statements.first().is_some_and(|statement| statement.writes());
        if self.chooses_timestamp && is_write {
            let timestamps = coordinator.shard().timestamps();
            self.timestamp = Some(timestamps.next(unix_micros()));
        }
        self.timestamp
    }
}

impl RequestLogs {
    /// What is noted of a request for the logs; `None`: none is on.
    #[inline]
    pub(crate) fn watch(&self, client: impl FnOnce() -> Rc<ClientState>) -> Option<Box<Watched>> {
        if self.on.load(Relaxed) { Some(self.watched(client())) } else { None }
    }

    #[cold]
    fn watched(&self, client: Rc<ClientState>) -> Box<Watched> {
        Box::new(Watched {
            began: unix_micros() / 1000,
            client,
            statements: Vec::new(),
            chooses_timestamp: self.full.load().is_some(),
            timestamp: None,
        })
    }

    /// Logs a request that was executed, or that failed. May wait for room in a log's queue, for `halcyon_binlog::BLOCKED_MAX` at most.
    pub(crate) async fn executed(
        &self,
        coordinator: &Coordinator,
        (request, version, peer): (&Request<'_>, Version, SocketAddr),
        watched: &Watched,
        error: Option<&QueryError>,
    ) {
        if let Some(audit) = self.audit.load_full() {
            let catalog = coordinator.shard().tables().catalog();
            let executed = Executed {
                request,
                statements: &watched.statements,
                client: &watched.client,
                peer,
                host: &self.host,
                began: watched.began,
                catalog: &catalog,
                uuids: coordinator.uuids(),
            };
            audit.executed(&executed, error).await;
        }
        if error.is_none()
            && let Some(full) = self.full.load_full()
            && let Some(record) = full_query_log::record(request, version, watched)
        {
            full.put(record).await;
        }
    }

    /// Logs a login, before it is answered. An error: why it was refused. Nobody logs in to a node that asks for no login.
    pub(crate) async fn login(&self, peer: SocketAddr, outcome: Result<&Principal, &str>) {
        let Some(audit) = self.audit.load_full() else { return };
        let principal = outcome.map_or(Principal::Anonymous, Principal::clone);
        let client = Rc::new(ClientState { principal, keyspace: None });
        audit.login((peer, &self.host), &client, outcome.map(drop)).await;
    }
}
