//! The audit log: which entries a request makes (`AuditLogManager`), and where they go.

use std::borrow::Cow;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use halcyon_binlog::{BinLog, Naming, Tell};
use halcyon_io::clock::unix_micros;
use halcyon_model::uuid;
use halcyon_protocol::{BatchQuery, Request};
use halcyon_query::{
    AuditContext, AuditType, Error as QueryError, PreparedStatement, password, refused_text,
};
use halcyon_schema::catalog::Catalog;

use super::entry::Entry;
use super::filter::Filter;
use super::options::{AuditLogger, AuditOptions};
use crate::client_state::ClientState;

/// What Cassandra says of a text that cannot be parsed and names a password.
pub(crate) const OBSCURED: &str = "Syntax Exception. Obscured for security reasons.";

/// An audit log that is on.
pub(super) struct AuditLog {
    pub(super) options: AuditOptions,
    filter: Filter,
    /// `None` of NoOpAuditLogger.
    log: Option<Arc<BinLog>>,
}

/// A request that was executed.
pub(super) struct Executed<'a> {
    pub(super) request: &'a Request<'a>,
    /// That were prepared: one, or as many of a batch as came before its failure.
    pub(super) statements: &'a [Arc<PreparedStatement>],
    /// When the statement began.
    pub(super) client: &'a ClientState,
    pub(super) peer: SocketAddr,
    pub(super) host: &'a str,
    /// Milliseconds since 1970.
    pub(super) began: i64,
    pub(super) catalog: &'a Catalog,
    pub(super) uuids: &'a uuid::Generator,
}

fn now_millis() -> i64 {
    unix_micros() / 1000
}

impl AuditLog {
    /// Blocks for the files' sake.
    pub(super) fn start(options: AuditOptions, tell: Tell) -> io::Result<AuditLog> {
        let naming = match options.logger {
            AuditLogger::Json => Some(Naming::Fixed("audit.json")),
            AuditLogger::File => Some(Naming::Fixed("audit.log")),
            AuditLogger::Bin | AuditLogger::Diagnostic | AuditLogger::NoOp => None,
        };
        let start = |naming| BinLog::start("audit-log", &options.log, naming, tell);
        let log = naming.map(start).transpose()?.map(Arc::new);
        Ok(AuditLog { filter: Filter::of(&options.lists), options, log })
    }

    /// The same log, with other lists.
    pub(super) fn filtered(&self, options: &AuditOptions) -> AuditLog {
        let filter = Filter::of(&options.lists);
        let options = AuditOptions { lists: options.lists.clone(), ..self.options.clone() };
        AuditLog { options, filter, log: self.log.clone() }
    }

    pub(super) fn filter(&self) -> &Filter {
        &self.filter
    }

    pub(super) fn log(&self) -> Option<&BinLog> {
        self.log.as_deref()
    }

    async fn put(&self, entry: &Entry<'_>) {
        let Some(log) = self.log.as_ref().filter(|_| self.filter.takes(entry)) else { return };
        log.put(match self.options.logger {
            AuditLogger::Json => entry.json(),
            _ => {
                let thread = std::thread::current();
                entry.line(thread.name().unwrap_or("main"), now_millis())
            }
        })
        .await;
    }

    /// `QueryEvents.Listener` of QUERY, EXECUTE, BATCH and PREPARE.
    pub(super) async fn executed(&self, of: &Executed<'_>, error: Option<&QueryError>) {
        let entries = match error {
            None => of.entries(),
            Some(error) => of.failure(error).into_iter().collect(),
        };
        for entry in &entries {
            self.put(entry).await;
        }
    }

    /// `AuthEvents.Listener`. An error: why the login was refused.
    pub(super) async fn login(
        &self,
        (peer, host): (SocketAddr, &str),
        client: &Rc<ClientState>,
        outcome: Result<(), &str>,
    ) {
        let (kind, user, operation) = match outcome {
            Ok(()) => {
                let user = Some(client.principal.name());
                (AuditType::LoginSuccess, user, Cow::Borrowed("LOGIN SUCCESSFUL"))
            }
            Err(why) => {
                let operation = format!("LOGIN FAILURE; {}", password::hidden(why));
                (AuditType::LoginError, None, operation.into())
            }
        };
        let entry = Entry {
            user,
            host,
            source: peer,
            timestamp: now_millis(),
            kind,
            batch: None,
            keyspace: client.keyspace.clone(),
            is_of_session: true,
            scope: None,
            operation,
        };
        self.put(&entry).await;
    }
}

impl<'a> Executed<'a> {
    /// An entry without a statement: its keyspace is the session's.
    fn entry(&self, kind: AuditType, timestamp: i64, operation: Cow<'a, str>) -> Entry<'a> {
        Entry {
            user: Some(self.client.principal.name()),
            host: self.host,
            source: self.peer,
            timestamp,
            kind,
            batch: None,
            keyspace: self.client.keyspace.clone(),
            is_of_session: true,
            scope: None,
            operation,
        }
    }

    fn of_statement(&self, statement: &'a PreparedStatement, timestamp: i64) -> Entry<'a> {
        let session = self.client.keyspace.as_deref();
        let AuditContext { kind, keyspace, scope } = statement.audit(self.catalog, session);
        let entry = self.entry(kind, timestamp, statement.text_without_password());
        let is_of_session = keyspace.is_none();
        Entry { keyspace: keyspace.or(entry.keyspace), is_of_session, scope, ..entry }
    }

    fn entries(&self) -> Vec<Entry<'a>> {
        match self.request {
            Request::Batch { entries, .. } => self.of_batch(entries.len()),
            Request::Prepare { .. } => {
                let Some(statement) = self.statements.first() else { return Vec::new() };
                let entry = self.of_statement(statement, now_millis());
                let context = statement.audit(self.catalog, self.client.keyspace.as_deref());
                let keyspace = context.keyspace;
                vec![Entry { kind: AuditType::PrepareStatement, keyspace, ..entry }]
            }
            _ => {
                let entries = self.statements.iter();
                entries.map(|statement| self.of_statement(statement, self.began)).collect()
            }
        }
    }

    fn of_batch(&self, count: usize) -> Vec<Entry<'a>> {
        let id = self.uuids.random();
        let operation = format!("BatchId:[{}] - BATCH of [{count}] statements", uuid::text(&id));
        let mut entries = vec![self.entry(AuditType::Batch, self.began, operation.into())];
        entries.extend(self.statements.iter().map(|of| self.of_statement(of, self.began)));
        entries.iter_mut().for_each(|entry| entry.batch = Some(id));
        entries
    }

    /// The entry of a request that failed; `None`: Cassandra makes none.
    fn failure(&self, error: &QueryError) -> Option<Entry<'a>> {
        let kind = match error {
            QueryError::Unauthorized(_) => AuditType::UnauthorizedAttempt,
            QueryError::BadCredentials(_) => AuditType::LoginError,
            _ => AuditType::RequestFailure,
        };
        let now = now_millis();
        let entry = match self.request {
            // Of a PREPARE Cassandra has no statement then.
            Request::Prepare { text, .. } => self.entry(kind, now, password::hidden(text)),
            Request::Query { text, .. } => {
                let operation = match self.statements.first() {
                    Some(statement) => statement.text_without_password(),
                    None => refused_text(text, matches!(error, QueryError::Unauthorized(_))),
                };
                self.entry(kind, now, operation)
            }
            Request::Execute { .. } => match self.statements.first() {
                Some(statement) => Entry { kind, ..self.of_statement(statement, now) },
                None if matches!(error, QueryError::Unprepared(_)) => {
                    self.entry(kind, now, "null".into())
                }
                None => return None,
            },
            Request::Batch { parameters, .. } => {
                let (count, level) = (self.statements.len(), parameters.consistency);
                let operation = format!("BATCH of {count} statements at consistency {level}");
                self.entry(kind, now, operation.into())
            }
            _ => return None,
        };
        let why = self.obscured(error);
        let operation = match (entry.operation.is_empty(), why.trim().is_empty()) {
            (_, true) => entry.operation,
            (true, _) => why.into(),
            _ => format!("{}; {why}", entry.operation).into(),
        };
        Some(Entry { operation, ..entry })
    }

    /// The text of an error. One of a syntax error quotes the statement.
    fn obscured(&self, error: &QueryError) -> String {
        if matches!(error, QueryError::Syntax(_)) && mentions_password(self.request) {
            return OBSCURED.to_owned();
        }
        password::hidden(&error.to_string()).into_owned()
    }
}

/// Whether a text of the request names a password.
pub(crate) fn mentions_password(request: &Request<'_>) -> bool {
    match request {
        Request::Query { text, .. } | Request::Prepare { text, .. } => password::is_mentioned(text),
        Request::Batch { entries, .. } => entries.iter().any(|(query, _)| match query {
            BatchQuery::Text(text) => password::is_mentioned(text),
            BatchQuery::Prepared(_) => false,
        }),
        _ => false,
    }
}
