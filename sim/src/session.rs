//! A client's connection over the simulated network: requests of native protocol v5, several in flight at once.

use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use futures_util::future::{Either, select};
use halcyon_client::{Cause, Connection, Credentials};
use halcyon_io::{Random, clock};
use halcyon_model::request::{BatchKind, Consistency, Value};
use halcyon_protocol::client::{Answer, Client, Page};
use halcyon_protocol::{BatchQuery, Compression, QueryParameters, Values, Version};

use crate::world::World;

/// The error code of an id that the node does not know, or no longer.
const UNPREPARED: i32 = 0x2500;
/// That of a login that is refused.
const BAD_CREDENTIALS: i32 = 0x0100;
/// The role that a node without roles makes, and its password.
const SUPERUSER: &str = "cassandra";
/// Between two attempts to log in.
const LOGIN_PAUSE: Duration = Duration::from_millis(5);
/// Longer than every time-out of the node.
const PATIENCE: Duration = Duration::from_secs(600);

#[derive(Debug, Clone, Default)]
pub(crate) struct Request {
    /// Several are a batch.
    pub(crate) statements: Vec<String>,
    /// Of each statement that is executed by its id: what is bound to `pk`.
    pub(crate) bound: Vec<Option<i32>>,
    pub(crate) batch: Option<BatchKind>,
    /// Microseconds; `None`: the node's.
    pub(crate) timestamp: Option<i64>,
    pub(crate) page_size: Option<i32>,
    pub(crate) paging_state: Option<Vec<u8>>,
}

impl Request {
    pub(crate) fn statement(text: String) -> Request {
        Request { statements: vec![text], ..Request::default() }
    }

    pub(crate) fn batch(kind: BatchKind, statements: Vec<String>) -> Request {
        Request { statements, batch: Some(kind), ..Request::default() }
    }

    /// Prepared before, if `wished`, with these partition keys bound.
    pub(crate) fn prepared(mut self, keys: Vec<Option<i32>>, wished: bool) -> Request {
        if wished {
            self.bound = keys;
        }
        self
    }

    /// What is prepared of a statement: its text with a marker, and the value of that.
    fn marked(&self, at: usize) -> Option<(String, Option<[u8; 4]>)> {
        let (text, key) = self.statements.get(at).zip(self.bound.get(at))?;
        let Some(key) = key else { return Some((text.clone(), None)) };
        let (equals, values) = (format!("pk = {key}"), format!("VALUES ({key},"));
        let marked = match text.contains(&equals) {
            true => text.replacen(&equals, "pk = ?", 1),
            false => text.replacen(&values, "VALUES (?,", 1),
        };
        Some((marked, Some(key.to_be_bytes())))
    }

    fn text(&self) -> String {
        let kind = self.batch.map(|kind| format!("{kind:?} batch: ")).unwrap_or_default();
        let paged = if self.paging_state.is_some() { " (next page)" } else { "" };
        let at = self.timestamp.map(|at| format!(" (timestamp {at})")).unwrap_or_default();
        format!("{kind}{}{at}{paged}", self.statements.join("; "))
    }
}

#[derive(Debug)]
pub(crate) enum Reply {
    Answer(Answer),
    /// The connection broke after the request was sent.
    Lost,
    NotSent,
    /// Nothing was sent: the login is refused.
    Refused,
}

impl Reply {
    pub(crate) fn is_done(&self) -> bool {
        matches!(self, Reply::Answer(answer) if !matches!(answer, Answer::Error { .. }))
    }

    /// The page, or `None` after an error that a disturbed node may answer.
    pub(crate) fn into_page(self) -> Option<Page> {
        match self {
            Reply::Answer(Answer::Rows(page)) => Some(page),
            _ => None,
        }
    }
}

/// Connects when needed, again after a connection was lost.
pub(crate) struct Session {
    world: Rc<World>,
    name: String,
    address: SocketAddr,
    random: Random,
    credentials: Credentials,
    /// The codes of errors that the requests may be answered with on a healthy disk.
    expected: &'static [i32],
    open: Option<Connection>,
}

/// The reason why a connection failed.
enum Unconnected {
    Broken,
    /// The role may not log in, or its password is another one.
    Refused,
}

impl Session {
    pub(crate) fn new(world: &Rc<World>, name: &str, address: SocketAddr) -> Session {
        let random = world.random();
        let (world, name) = (world.clone(), name.to_owned());
        let session = Session {
            world,
            name,
            address,
            random,
            credentials: Credentials::default(),
            expected: &[],
            open: None,
        };
        session.of(SUPERUSER, SUPERUSER)
    }

    /// Logs in as this role instead.
    pub(crate) fn of(mut self, role: &str, password: &str) -> Session {
        self.credentials.username = Some(role.to_owned());
        self.credentials.password = Some(password.to_owned());
        self
    }

    /// The same; its caller checks these errors, and whether the login is refused.
    pub(crate) fn expecting(mut self, codes: &'static [i32]) -> Session {
        self.expected = codes;
        self
    }

    /// Whether the node lets it in within a while: the default superuser is made after the start.
    pub(crate) async fn logs_in(&mut self) -> bool {
        let until = self.world.now() + PATIENCE;
        while self.world.now() < until {
            match self.connect().await {
                Ok(connection) => {
                    self.open = Some(connection);
                    return true;
                }
                Err(Unconnected::Broken | Unconnected::Refused) => clock::sleep(LOGIN_PAUSE).await,
            }
        }
        false
    }

    pub(crate) fn world(&self) -> &Rc<World> {
        &self.world
    }

    pub(crate) async fn ask(&mut self, request: Request) -> Reply {
        self.ask_all(&[request]).await.pop().unwrap_or(Reply::NotSent)
    }

    /// Sends all requests and waits for all answers.
    pub(crate) async fn ask_all(&mut self, requests: &[Request]) -> Vec<Reply> {
        for request in requests {
            self.world.note(format_args!("{} > {}", self.name, request.text()));
            self.world.count("operations");
        }
        let mut replies: Vec<Option<Reply>> = requests.iter().map(|_| None).collect();
        let answered = {
            let exchange = pin!(self.exchange(requests, &mut replies));
            match select(exchange, pin!(clock::sleep(PATIENCE))).await {
                Either::Left((sent, _)) => Some(sent),
                Either::Right(_) => None,
            }
        };
        if answered.is_none() {
            self.world.fail(format!("no answer within {PATIENCE:?} to one of {requests:?}"));
        }
        let missing = || match answered {
            Some(Err(Unconnected::Broken)) => Reply::NotSent,
            Some(Err(Unconnected::Refused)) => Reply::Refused,
            Some(Ok(())) | None => Reply::Lost,
        };
        let replies: Vec<Reply> =
            replies.into_iter().map(|reply| reply.unwrap_or_else(missing)).collect();
        self.check(requests, &replies);
        replies
    }

    /// A node with a healthy disk answers without errors.
    fn check(&self, requests: &[Request], replies: &[Reply]) {
        for (request, reply) in requests.iter().zip(replies) {
            match reply {
                Reply::Answer(Answer::Error { code, message, .. })
                    if self.expected.contains(code) =>
                {
                    self.world.note(format_args!("{} < {message}", self.name));
                }
                Reply::Answer(Answer::Error { code, message, .. }) => {
                    self.world.note(format_args!("{} < error {code:#06x} {message}", self.name));
                    self.world.count("unanswered");
                    if !self.world.is_disturbed() {
                        let text = request.text();
                        self.world.fail(format!("error {code:#06x} {message}\n  to: {text}"));
                    }
                }
                Reply::Answer(Answer::Rows(page)) => {
                    let more = if page.paging_state.is_some() { ", more" } else { "" };
                    self.world.note(format_args!("{} < {} rows{more}", self.name, page.rows.len()));
                }
                Reply::Answer(answer) => {
                    self.world.note(format_args!("{} < {answer:?}", self.name))
                }
                Reply::Lost | Reply::NotSent | Reply::Refused => {
                    self.world.note(format_args!("{} < {reply:?}", self.name));
                    self.world.count("unanswered");
                }
            }
        }
    }

    /// An error if nothing was sent. Answers are put into their requests' places.
    async fn exchange(
        &mut self,
        requests: &[Request],
        replies: &mut [Option<Reply>],
    ) -> Result<(), Unconnected> {
        let mut connection = match self.open.take() {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        let now = self.world.seconds();
        if self.prepare(requests, &mut connection).await.is_none() {
            return Err(Unconnected::Broken);
        }
        for (stream, request) in requests.iter().enumerate() {
            self.append(&mut connection.client, stream as i16, request, now);
        }
        if connection.send().await.is_err() {
            return Ok(());
        }
        while replies.iter().any(Option::is_none) {
            let Ok((stream, answer)) = connection.next().await else {
                return Ok(());
            };
            let Some((request, place @ None)) =
                requests.get(stream as usize).zip(replies.get_mut(stream as usize))
            else {
                self.world.fail(format!("an answer to no request: {stream} {answer:?}"));
                return Ok(());
            };
            if matches!(answer, Answer::Error { code: UNPREPARED, .. }) {
                // Nothing was executed; as text it needs no preparation.
                self.world.count("statements found unprepared");
                for at in 0..request.statements.len() {
                    self.forget_prepared(request, at);
                }
                self.append(&mut connection.client, stream, request, now);
                if connection.send().await.is_err() {
                    return Ok(());
                }
                continue;
            }
            *place = Some(Reply::Answer(answer));
        }
        self.open = Some(connection);
        Ok(())
    }

    fn forget_prepared(&self, request: &Request, at: usize) {
        if let Some((text, _)) = request.marked(at) {
            self.world.prepared.borrow_mut().remove(&text);
        }
    }

    /// Prepares what no session has prepared; ids hold on all connections, and over restarts. `None`: the connection is lost.
    async fn prepare(&self, requests: &[Request], connection: &mut Connection) -> Option<()> {
        for request in requests {
            for at in 0..request.statements.len() {
                let Some((text, _)) = request.marked(at) else { continue };
                if self.world.prepared.borrow().contains_key(&text) {
                    continue;
                }
                connection.client.prepare(0, &text);
                // After an error it is sent as a text, and that is checked.
                if let (_, Answer::Prepared { id, result_metadata_id }) =
                    connection.ask().await.ok()?
                {
                    self.world.count("statements prepared");
                    let ids = (id, result_metadata_id.unwrap_or_default());
                    self.world.prepared.borrow_mut().insert(text, ids);
                }
            }
        }
        Some(())
    }

    fn append(&self, client: &mut Client, stream: i16, request: &Request, now: i64) {
        let prepared = self.world.prepared.borrow();
        let known = |at: usize| {
            let (text, value) = request.marked(at)?;
            Some((prepared.get(&text)?, value))
        };
        let parameters = QueryParameters {
            page_size: request.page_size,
            paging_state: request.paging_state.as_deref(),
            timestamp: request.timestamp,
            now_in_seconds: u32::try_from(now).ok(),
            ..QueryParameters::new(Consistency::One)
        };
        let statements = request.statements.as_slice();
        match (request.batch, statements, known(0)) {
            (Some(kind), ..) => {
                let known: Vec<_> = (0..statements.len()).map(&known).collect();
                let entries: Vec<_> = statements
                    .iter()
                    .zip(&known)
                    .map(|(text, known)| match known {
                        Some(((id, _), value)) => (BatchQuery::Prepared(id), values(value)),
                        None => (BatchQuery::Text(text), Vec::new()),
                    })
                    .collect();
                client.batch(stream, kind, &entries, &parameters);
            }
            (None, _, Some(((id, metadata), value))) => {
                self.world.count("statements executed by id");
                let values = Values::Positional(values(&value));
                let parameters = QueryParameters { values, ..parameters };
                client.execute(stream, id, metadata, &parameters);
            }
            (None, statements, None) => client.query(stream, &statements.join(" "), &parameters),
        }
    }

    async fn connect(&mut self) -> Result<Connection, Unconnected> {
        let compression = match self.random.chance(1, 2) {
            true => Compression::Lz4,
            false => Compression::None,
        };
        let connected = Connection::connect(self.address, Version::V5, compression).await;
        let mut connection = connected.map_err(|_| Unconnected::Broken)?;
        match connection.start(&self.credentials).await.map_err(|error| error.cause) {
            Ok(()) => Ok(connection),
            Err(Cause::Network(_) | Cause::Closed | Cause::Malformed(_)) => {
                Err(Unconnected::Broken)
            }
            Err(Cause::Refused { code: BAD_CREDENTIALS, message }) => {
                self.world.note(format_args!("{} < {message}", self.name));
                Err(Unconnected::Refused)
            }
            Err(other) => {
                if !self.world.is_disturbed() {
                    self.world.fail(format!("STARTUP was answered with {other:?}"));
                }
                Err(Unconnected::Broken)
            }
        }
    }
}

fn values(bound: &Option<[u8; 4]>) -> Vec<Value<'_>> {
    bound.iter().map(|bytes| Value::Bytes(bytes)).collect()
}
