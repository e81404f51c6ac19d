//! Logs of what clients ask: the audit log and the full query log.
//!
//! ```text
//!  session ─ one load: is a log on? ─ no ─► nothing more
//!                                   └ yes ─► Watched: statements, client, time ─► executed ─► entries, a record ─► binlog
//! ```
//!
//! 1. Entries are those of Cassandra's listeners (`QueryEvents`, `AuthEvents`): after the execution, before the answer.
//! 2. A log is replaced as a whole when it is enabled, disabled or gets other filters; a request keeps the one with which it ends.
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

    /// Logs a login, before it is answered. An error: why it was refused. A node that asks for no login has no such entries.
    pub(crate) async fn login(&self, peer: SocketAddr, outcome: Result<&Principal, &str>) {
        let Some(audit) = self.audit.load_full() else { return };
        let principal = outcome.map_or(Principal::Anonymous, Principal::clone);
        let client = Rc::new(ClientState { principal, keyspace: None });
        audit.login((peer, &self.host), &client, outcome.map(drop)).await;
    }
}

#[cfg(test)]
mod tests {
    use halcyon_io::block_on;

    use super::*;
    use crate::settings::{Machine, Overrides, Settings};

    /// Proves that logins and refused logins are entries of the category AUTH, with Cassandra's words, and that only what is filtered out
    /// is missing.
    #[test]
    fn logins_are_logged() {
        let folder = std::env::temp_dir().join(format!("halcyon-logins-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let text = format!(
            "audit_logging_options:\n  enabled: true\n  logger: FileAuditLogger\n  audit_logs_dir: {}\n  excluded_users: quiet\n",
            folder.display()
        );
        let machine = Machine { memory: 1 << 30, cores: 1 };
        let settings = Settings::load(Some(&text), &Overrides::default(), machine).unwrap();
        let host = "/127.0.0.1:7000".to_owned();
        let logs = RequestLogs::start(settings.request_logs, host, &Log::new(|_| ())).unwrap();
        let peer = "127.0.0.2:5".parse().unwrap();
        let role =
            |name: &str| Principal::Role { name: name.to_owned(), address: [127, 0, 0, 1].into() };
        block_on(async {
            logs.login(peer, Ok(&role("loud"))).await;
            logs.login(peer, Ok(&role("quiet"))).await;
            logs.login(peer, Err("Provided username x and/or password are incorrect")).await;
            logs.stop().await;
        });
        let written = std::fs::read_to_string(folder.join("audit.log")).unwrap();
        let lines: Vec<&str> =
            written.lines().filter_map(|line| line.split(" - ").nth(1)).collect();
        assert_eq!(lines.len(), 2, "{written}");
        let starts = "|host:/127.0.0.1:7000|source:/127.0.0.2|port:5|timestamp:";
        assert!(lines[0].starts_with(&format!("user:loud{starts}")), "{written}");
        assert!(lines[0].ends_with("|type:LOGIN_SUCCESS|category:AUTH|operation:LOGIN SUCCESSFUL"));
        assert!(lines[1].starts_with(&format!("user:null{starts}")), "{written}");
        let ends = "|type:LOGIN_ERROR|category:AUTH|operation:LOGIN FAILURE; Provided username x and/or password *******";
        assert!(lines[1].ends_with(ends), "{written}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
