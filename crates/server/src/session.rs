//! From a request of the protocol to calls of `query`, and from the outcome to the response.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

use halcyon_cql::plan::Variables;
use halcyon_guardrails::{Guard, Said};
use halcyon_io::clock::Instant;
use halcyon_io::{drop_apart, spent};
use halcyon_model::hex;
use halcyon_model::request::{BatchKind, ColumnSpec, Value};
use halcyon_protocol::{
    BatchQuery, Body, Envelope, Error, ErrorKind, Notes, Prepared, PreparedMetadata,
    QueryParameters, ReplyTo, Request, Response, Rows, RowsMetadata, Version, statement_id,
};
use halcyon_query::{
    self as query, BatchEntry, Error as QueryError, Outcome, PreparedStatement, QueryOptions,
    Result, weight,
};
use halcyon_scan::SMALL;

use crate::admission::Permit;
use crate::client_state::ClientState;
use crate::connection::Connection;
use crate::prepared::{Entry, StatementId};
use crate::request_log::Watched;
use crate::shard::ShardServer;
use crate::slow_queries::noting as slow;
use crate::trace::Trace;
use crate::trace::spans::Spans;
use crate::{answer, persisted, supported};

/// OPTIONS, REGISTER: nothing is awaited.
pub(crate) fn answer_at_once(shard: &ShardServer, connection: &Connection, envelope: &Envelope) {
    let to = envelope.reply_to();
    let body = match Request::decode(envelope) {
        Ok(body) => body,
        Err(error) => return connection.answer_error(to, error.error),
    };
    match body.request {
        Request::Options => {
            let options = supported::options(&shard.shared, shard.index);
            connection.answer(to, &Response::Supported(&options), &Notes::default());
        }
        Request::Register(events) if !events.iter().all(|event| event.is_in(to.version)) => {
            let message =
                format!("Event TRACE_COMPLETE not valid for protocol version {}", to.version);
            connection.answer_error(to, Error::new(ErrorKind::Protocol, message));
        }
        Request::Register(events) => {
            let mut registered = connection.events.borrow_mut();
            for event in events {
                if !registered.contains(&event) {
                    registered.push(event);
                }
            }
            drop(registered);
            connection.answer(to, &Response::Ready, &Notes::default());
        }
        // No authentication was requested, so every answer is accepted.
        Request::AuthResponse(_) => {
            connection.answer(to, &Response::AuthSuccess(None), &Notes::default());
        }
        _ => {
            let message = format!("Unexpected message {}", envelope.opcode);
            connection.answer_error(to, Error::new(ErrorKind::Protocol, message));
        }
    }
}

/// The client, in the keyspace that a v5 message names, which must be there whether or not the statement needs it.
fn asking(
    shard: &ShardServer,
    connection: &Connection,
    keyspace: Option<&str>,
) -> Result<Rc<ClientState>> {
    if let Some(keyspace) = keyspace {
        shard.coordinator.check_keyspace(keyspace)?;
    }
    Ok(client_in(connection, keyspace))
}

/// The client of a statement that has no other keyspace than this.
fn client_of(connection: &Connection, keyspace: Option<&str>) -> Rc<ClientState> {
    let client = connection.state();
    match client.keyspace.as_deref() == keyspace {
        true => client,
        false => Rc::new(ClientState {
            principal: client.principal.clone(),
            keyspace: keyspace.map(str::to_owned),
        }),
    }
}

fn client_in(connection: &Connection, keyspace: Option<&str>) -> Rc<ClientState> {
    let client = connection.state();
    match keyspace {
        None => client,
        Some(keyspace) => Rc::new(client.in_keyspace(keyspace)),
    }
}

/// Prepares a text of a client.
async fn prepared(
    shard: &ShardServer,
    text: &str,
    client: &ClientState,
    guard: &Guard,
) -> Result<PreparedStatement> {
    let (coordinator, keyspace) = (&shard.coordinator, client.keyspace.as_deref());
    match guard.is_on() {
        true => query::prepare_guarded(coordinator, text, keyspace, guard).await,
        false => query::prepare_in_time(coordinator, text, keyspace).await,
    }
}

/// A prepared statement, and whether this client was the first to prepare it.
struct Found {
    id: StatementId,
    entry: Arc<Entry>,
    is_new: bool,
}

/// Prepares a statement, or finds it prepared. A text that names its keyspaces means the same everywhere, so it has one id.
async fn prepare(
    shard: &Rc<ShardServer>,
    text: &str,
    client: &ClientState,
    guard: &Guard,
) -> Result<Found> {
    let principal = client.principal.clone();
    let everywhere = ClientState { keyspace: None, principal };
    let tried = guard.fresh();
    match prepare_in(shard, text, (&everywhere, client.keyspace.is_some()), &tried).await {
        Err(_) if client.keyspace.is_some() => {
            prepare_in(shard, text, (client, false), guard).await
        }
        outcome => {
            guard.say(tried.take_said());
            outcome
        }
    }
}

/// `has_other`: the session has a keyspace, which a change of the schema that names none means.
async fn prepare_in(
    shard: &Rc<ShardServer>,
    text: &str,
    (client, has_other): (&ClientState, bool),
    guard: &Guard,
) -> Result<Found> {
    let store = &shard.shared.prepared;
    let coordinator = &shard.coordinator;
    let keyspace = client.keyspace.as_deref();
    let id = statement_id(text, keyspace);
    let known = store.get(&id);
    let means_other = |statement: &PreparedStatement| has_other && statement.changes_schema();
    let is_usable = |of: &Arc<Entry>| {
        of.statement.is_current(coordinator.shard().tables()) && !means_other(&of.statement)
    };
    if let Some(entry) = known.filter(is_usable) {
        query::validate(coordinator, &entry.statement, keyspace, &client.principal).await?;
        return Ok(Found { id, entry, is_new: false });
    }
    let mut statement = prepared(shard, text, client, guard).await?;
    if means_other(&statement) {
        return Err(QueryError::Invalid("the statement means the session's keyspace".to_owned()));
    }
    query::validate(coordinator, &statement, keyspace, &client.principal).await?;
    query::check_prepared(coordinator, &mut statement, keyspace, guard)?;
    let entry = Entry::new(Arc::new(statement));
    store.check_size(&entry).map_err(QueryError::Invalid)?;
    let put = persisted::keep(shard, id, entry);
    if put.is_new {
        persisted::write(shard, &id, &put.entry).await;
    }
    Ok(Found { id, entry: put.entry, is_new: put.is_new })
}

async fn prepare_asked(
    shard: &Rc<ShardServer>,
    connection: &Connection,
    to: ReplyTo,
    (text, keyspace): (&str, Option<&str>),
    (trace, watched): (Option<Trace>, Option<Box<Watched>>),
    mut notes: Notes,
) {
    let request = Request::Prepare { text, keyspace };
    let mut guard = Guard::default();
    let (outcome, keyspace) = match asking(shard, connection, keyspace) {
        Ok(client) => {
            guard = query::guard_of(&shard.coordinator, &client.principal).await;
            (prepare(shard, text, &client, &guard).await, client.keyspace.clone())
        }
        Err(error) => (Err(error), None),
    };
    if let Some(trace) = trace {
        trace.write(shard, &outcome).await;
    }
    if let Some(mut watched) = watched {
        if let Ok(found) = &outcome {
            watched.prepared(&found.entry.statement);
        }
        let of = (&request, to.version, connection.peer);
        let error = outcome.as_ref().err();
        shard.shared.request_logs.executed(&shard.coordinator, of, &watched, error).await;
    }
    note_said(shard, guard.take_said(), &mut notes);
    match outcome {
        Ok(found) => {
            // Without a keyspace, Cassandra prepares it again for each connection.
            let is_new = found.is_new || keyspace.is_none();
            let depends_on_use = is_new && found.entry.statement.depends_on_use();
            if depends_on_use && !connection.warned_of_use.replace(true) {
                notes.warnings.push(use_warning(text, keyspace.as_deref()));
            }
            answer_prepared(connection, to, &found.id, &found.entry, notes);
        }
        Err(error) => connection.answer(to, &Response::Error(answer::error(error)), &notes),
    }
}

/// RecentLines once to each connection (`ClientState.warnAboutUseWithPreparedStatements`).
fn use_warning(text: &str, keyspace: Option<&str>) -> String {
    let id = hex::encode(&statement_id(text, keyspace));
    let keyspace = keyspace.unwrap_or("null");
    format!(
        "`USE <keyspace>` with prepared statements is considered to be an anti-pattern due to ambiguity in non-qualified table names. \
         Please consider removing instances of `Session#setKeyspace(<keyspace>)`, `Session#execute(\"USE <keyspace>\")` and \
         `cluster.newSession(<keyspace>)` from your code, and always use fully qualified table names (e.g. <keyspace>.<table>). \
         Keyspace used: {keyspace}, statement keyspace: {keyspace}, statement id: {id}"
    )
}

fn answer_prepared(
    connection: &Connection,
    to: ReplyTo,
    id: &StatementId,
    entry: &Entry,
    mut notes: Notes,
) {
    let statement = &entry.statement;
    let prepared = Prepared {
        id,
        result_metadata_id: entry.result_metadata_id,
        variables: PreparedMetadata {
            columns: &statement.variables.specs,
            partition_key: &statement.variables.partition_key,
        },
        columns: statement.columns.as_deref().unwrap_or_default(),
    };
    notes.warnings.splice(0..0, statement.warnings.iter().cloned());
    connection.answer(to, &Response::Prepared(prepared), &notes);
}

/// PREPARE, QUERY, EXECUTE, BATCH.
pub(crate) async fn execute(
    shard: &Rc<ShardServer>,
    connection: &Connection,
    (envelope, mut permit): (&Envelope, Permit),
    warnings: Vec<String>,
    (arrived, began): (Instant, Instant),
) {
    let to = envelope.reply_to();
    let Body { request, tracing, .. } = match Request::decode(envelope) {
        Ok(body) => body,
        Err(error) => return connection.answer_error(to, error.error),
    };
    if !permit.keep_more(memory_of_texts(&request)) {
        let error = Error::new(ErrorKind::Overloaded, permit.memory().refusal());
        return connection.answer_error(to, error);
    }
    let is_stored = tracing || shard.shared.trace_probability.chooses();
    let is_sent = shard.shared.spans.as_ref().is_some_and(Spans::chooses);
    let begin = || {
        let trace = Trace::begin(shard.coordinator.uuids(), connection.peer, &request, arrived);
        trace.kept(is_stored, is_sent)
    };
    let trace = (is_stored || is_sent).then(begin);
    // Only a request for a trace gets its id.
    let tracing_id = trace.as_ref().filter(|_| tracing).map(|trace| trace.id);
    let watched = shard.shared.request_logs.watch(|| connection.state());
    if let Request::Prepare { text, keyspace } = request {
        let notes = Notes { warnings, tracing_id, ..Notes::default() };
        let (asked, seen) = ((text, keyspace), (trace, watched));
        return Box::pin(prepare_asked(shard, connection, to, asked, seen, notes)).await;
    }
    let mut asked = Asked { watched, ..Asked::default() };
    let answer = run(shard, connection, envelope.version, &request, (&mut asked, &mut permit));
    let (outcome, waits) = spent::measured(answer).await;
    let ended = shard.shared.requests.last_ended(shard.index);
    if shard.shared.slow_queries.is_slow(arrived, ended) {
        slow::note(shard, connection, &request, (arrived, began, ended), waits);
    }
    let mut notes = Notes { warnings: asked.warnings, tracing_id, ..Notes::default() };
    note_said(shard, asked.guard.take_said(), &mut notes);
    if let Err(error) = &outcome {
        let said = |text: &String| Said { text: text.clone(), is_failure: false };
        note_said(shard, error.warnings().iter().map(said).collect(), &mut notes);
    }
    notes.warnings.extend(warnings);
    if let Some(detail) = outcome.as_ref().err().and_then(QueryError::detail) {
        shard.shared.log.error(format_args!("a request of {} failed: {detail}", connection.peer));
    }
    if let Some(trace) = trace {
        Box::pin(trace.write(shard, &outcome)).await;
    }
    if let Some(watched) = asked.watched.take() {
        let of = (&request, to.version, connection.peer);
        let error = outcome.as_ref().err();
        let logs = &shard.shared.request_logs;
        Box::pin(logs.executed(&shard.coordinator, of, &watched, error)).await;
    }
    match outcome {
        Ok(outcome) => tell(shard, connection, to, outcome, asked.metadata, notes).await,
        Err(error) => connection.answer(to, &Response::Error(answer::error(error)), &notes),
    }
    if asked.reads_partitions {
        connection.count_read(shard.coordinator.shard(), arrived);
    }
}

/// What guardrails say is for the client, and for the log.
fn note_said(shard: &ShardServer, said: Vec<Said>, notes: &mut Notes) {
    for Said { text, is_failure } in said {
        if shard.shared.told.is_new(&text) {
            match is_failure {
                true => shard.shared.log.error(format_args!("{text}")),
                false => shard.shared.log.warning(format_args!("{text}")),
            }
        }
        notes.warnings.push(text);
    }
}

/// Memory that the statements of a request take while they are parsed and executed. Short ones are part of what every request is
/// counted with.
fn memory_of_texts(request: &Request<'_>) -> u64 {
    const SHORT: usize = 256;
    let of = |text: &str| if text.len() > SHORT { weight::parsing(text) } else { 0 };
    match request {
        Request::Query { text, .. } | Request::Prepare { text, .. } => of(text),
        Request::Batch { entries, .. } => {
            let texts = entries.iter().filter_map(|(query, _)| match query {
                BatchQuery::Text(text) => Some(weight::parsing(text)),
                BatchQuery::Prepared(_) => None,
            });
            texts.fold(0, u64::saturating_add)
        }
        _ => 0,
    }
}

/// Counts what values become that have very many parts: elements of collections, members of JSON.
fn keep_values(permit: &mut Permit, variables: &Variables, values: &[Value<'_>]) -> Result<()> {
    let specs = variables.specs.iter().zip(&variables.receivers).zip(values);
    let weigh = |((spec, receiver), value): ((&ColumnSpec, &String), &Value<'_>)| match value {
        Value::Bytes(bytes) => weight::value(&spec.cql_type, receiver, bytes.len()),
        Value::Null | Value::Unset => 0,
    };
    let bytes = specs.map(weigh).fold(0, u64::saturating_add);
    match bytes <= SMALL || permit.keep_more(bytes) {
        true => Ok(()),
        false => Err(QueryError::Overloaded(permit.memory().refusal())),
    }
}

/// What of a request decides the form of its response, and what logs have of it.
#[derive(Default)]
struct Asked {
    warnings: Vec<String>,
    guard: Guard,
    metadata: Metadata,
    reads_partitions: bool,
    watched: Option<Box<Watched>>,
}

impl Asked {
    /// Notes the statement for the logs; the timestamp that they have chosen for it.
    #[inline]
    fn watch(&mut self, shard: &ShardServer, statement: &Arc<PreparedStatement>) -> Option<i64> {
        let watched = self.watched.as_mut()?;
        watched.prepared(statement);
        watched.timestamp(&shard.coordinator)
    }
}

/// Whether the client needs the columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Metadata {
    #[default]
    Send,
    Skip,
    /// v5: it knows others.
    Changed([u8; 16]),
}

/// A statement of this many bytes has too many parts to be dropped at once.
const LARGE_TEXT: usize = 64 << 10;

async fn run(
    shard: &Rc<ShardServer>,
    connection: &Connection,
    version: Version,
    request: &Request<'_>,
    (asked, permit): (&mut Asked, &mut Permit),
) -> Result<Outcome> {
    match request {
        Request::Query { text, parameters } => {
            shard.metrics().regular_executed.up();
            let client = asking(shard, connection, parameters.keyspace)?;
            if parameters.page_size == Some(0) {
                return Err(QueryError::Protocol("The page size cannot be 0".to_owned()));
            }
            asked.guard = query::guard_of(&shard.coordinator, &client.principal).await;
            let statement = Arc::new(prepared(shard, text, &client, &asked.guard).await?);
            asked.warnings.clone_from(&statement.warnings);
            asked.reads_partitions = statement.reads_partitions();
            if parameters.skip_metadata {
                asked.metadata = Metadata::Skip;
            }
            let chosen = asked.watch(shard, &statement);
            let values = values(parameters, &statement.variables);
            let options = options(parameters, &values, (&client, &asked.guard), (version, chosen));
            if options.values.len() != statement.variables.specs.len() {
                return Err(QueryError::Invalid("Invalid amount of bind variables".to_owned()));
            }
            keep_values(permit, &statement.variables, &values)?;
            let outcome =
                query::execute(&shard.coordinator, &statement, &options, &client.principal).await;
            if text.len() > LARGE_TEXT {
                drop_apart(statement);
            }
            outcome
        }
        Request::Execute { id, result_metadata_id, parameters } => {
            shard.metrics().prepared_executed.up();
            let entry = find(shard, id).await?;
            let statement = &entry.statement;
            asked.warnings.clone_from(&statement.warnings);
            asked.reads_partitions = statement.reads_partitions();
            asked.metadata = metadata(&entry, *result_metadata_id, parameters, version);
            let chosen = asked.watch(shard, statement);
            let values = values(parameters, &statement.variables);
            keep_values(permit, &statement.variables, &values)?;
            let client = match statement.changes_schema() {
                true => client_of(connection, statement.keyspace.as_deref()),
                false => client_in(connection, statement.keyspace.as_deref()),
            };
            asked.guard = query::guard_of(&shard.coordinator, &client.principal).await;
            let options = options(parameters, &values, (&client, &asked.guard), (version, chosen));
            query::execute(&shard.coordinator, statement, &options, &client.principal).await
        }
        Request::Batch { kind, entries, parameters } => {
            let client = asking(shard, connection, parameters.keyspace)?;
            let guard = query::guard_of(&shard.coordinator, &client.principal).await;
            asked.guard = guard;
            let state = (asked, permit);
            Box::pin(batch(shard, &client, (*kind, entries), parameters, version, state)).await
        }
        _ => Err(QueryError::Protocol("Unsupported message".to_owned())),
    }
}

fn metadata(
    entry: &Entry,
    known: Option<&[u8]>,
    parameters: &QueryParameters<'_>,
    version: Version,
) -> Metadata {
    // The rows of a conditional statement have columns that depend on its outcome.
    if entry.statement.columns.is_none() {
        return Metadata::Send;
    }
    match known {
        Some(known) if version >= Version::V5 && known != entry.result_metadata_id => {
            Metadata::Changed(entry.result_metadata_id)
        }
        _ if parameters.skip_metadata => Metadata::Skip,
        _ => Metadata::Send,
    }
}

/// This shard's copy of a prepared statement, prepared again if its part of the schema has changed meanwhile.
async fn find(shard: &Rc<ShardServer>, id: &[u8]) -> Result<Rc<Entry>> {
    let unprepared = || QueryError::Unprepared(id.to_vec());
    let key: StatementId = id.try_into().map_err(|_| unprepared())?;
    let store = &shard.shared.prepared;
    let owner = shard.coordinator.shard();
    let own = shard.statements.get(store, &key);
    if let Some(own) = own.filter(|own| own.statement.is_current(owner.tables())) {
        return Ok(own);
    }
    let entry = store.get(&key).ok_or_else(unprepared)?;
    if entry.statement.is_current(owner.tables()) {
        return Ok(shard.statements.put(key, entry.for_shard(owner)));
    }
    let before = &entry.statement;
    let keyspace = before.keyspace.as_deref();
    match query::prepare_in_time(&shard.coordinator, &before.text, keyspace).await {
        Ok(now) if now.columns == before.columns && now.variables == before.variables => {
            let entry = persisted::keep(shard, key, Entry::new(Arc::new(now))).entry;
            Ok(shard.statements.put(key, entry.for_shard(owner)))
        }
        _ => {
            store.remove(&key);
            persisted::forget(shard, key);
            Err(unprepared())
        }
    }
}

async fn batch(
    shard: &Rc<ShardServer>,
    client: &ClientState,
    (kind, queries): (BatchKind, &[(BatchQuery<'_>, Vec<Value<'_>>)]),
    parameters: &QueryParameters<'_>,
    version: Version,
    (asked, permit): (&mut Asked, &mut Permit),
) -> Result<Outcome> {
    let mut entries = Vec::with_capacity(queries.len());
    let mut chosen = None;
    for (query, values) in queries {
        let statement: Arc<PreparedStatement> = match query {
            BatchQuery::Text(text) => {
                let mut statement = prepared(shard, text, client, &asked.guard).await?;
                let (of, keyspace) = (&shard.coordinator, client.keyspace.as_deref());
                query::check_prepared(of, &mut statement, keyspace, &asked.guard)?;
                Arc::new(statement)
            }
            BatchQuery::Prepared(id) => find(shard, id).await?.statement.clone(),
        };
        let markers = statement.variables.specs.len();
        if markers != values.len() {
            return Err(QueryError::Invalid(format!(
                "There were {markers} markers(?) in CQL but {} bound variables",
                values.len()
            )));
        }
        keep_values(permit, &statement.variables, values)?;
        chosen = asked.watch(shard, &statement);
        entries.push(BatchEntry { statement, values });
    }
    let options = options(parameters, &[], (client, &asked.guard), (version, chosen));
    query::batch(&shard.coordinator, kind, &entries, &options, &client.principal).await
}

/// The values for the markers of a statement, in their order.
fn values<'a>(parameters: &'a QueryParameters<'a>, variables: &Variables) -> Cow<'a, [Value<'a>]> {
    parameters.values.in_order(variables.specs.iter().map(|spec| spec.name.as_str()))
}

fn options<'a>(
    parameters: &QueryParameters<'a>,
    values: &'a [Value<'a>],
    (client, guard): (&'a ClientState, &'a Guard),
    (version, chosen): (Version, Option<i64>),
) -> QueryOptions<'a> {
    QueryOptions {
        consistency: parameters.consistency,
        serial_consistency: parameters.serial_consistency,
        values,
        page_size: parameters.page_size.filter(|size| *size > 0),
        paging_state: parameters.paging_state,
        keyspace: client.keyspace.as_deref(),
        timestamp: parameters.timestamp.or(chosen),
        now_in_seconds: parameters.now_in_seconds,
        protocol_version: version.number(),
        guard: Some(guard).filter(|guard| guard.is_on()),
    }
}

async fn tell(
    shard: &Rc<ShardServer>,
    connection: &Connection,
    to: ReplyTo,
    outcome: Outcome,
    metadata: Metadata,
    mut notes: Notes,
) {
    match outcome {
        Outcome::Void => connection.answer(to, &Response::Void, &notes),
        Outcome::Warned(mut warnings) => {
            notes.warnings.append(&mut warnings);
            connection.answer(to, &Response::Void, &notes);
        }
        Outcome::Rows(mut rows) => {
            notes.warnings.append(&mut rows.warnings);
            let response = Response::Rows(Rows {
                metadata: RowsMetadata {
                    columns: &rows.columns,
                    paging_state: rows.paging_state.as_deref(),
                    skip: metadata == Metadata::Skip,
                    changed: match metadata {
                        Metadata::Changed(id) => Some(id),
                        _ => None,
                    },
                },
                count: rows.count,
                content: &rows.content,
            });
            connection.answer(to, &response, &notes);
        }
        Outcome::SetKeyspace(keyspace) => {
            connection.use_keyspace(&keyspace);
            connection.answer(to, &Response::SetKeyspace(&keyspace), &notes);
        }
        Outcome::SchemaChange { change, invalidated, mut warnings } => {
            notes.warnings.append(&mut warnings);
            Box::pin(persisted::invalidate(shard, &invalidated)).await;
            Box::pin(shard.announce_everywhere(&change)).await;
            connection.answer(to, &Response::SchemaChange(&change), &notes);
        }
    }
}
