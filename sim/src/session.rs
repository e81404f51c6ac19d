//! A client's connection over the simulated network: requests of native protocol v5, several in flight at once.

use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use futures_util::future::{Either, select};
use halcyon_client::{Cause, Connection, Credentials, Error};
use halcyon_io::{Random, clock};
use halcyon_model::request::{BatchKind, Consistency, Value};
use halcyon_protocol::client::{Answer, Client, Page};
use halcyon_protocol::{BatchQuery, Compression, QueryParameters, Values, Version};

use crate::world::World;

/// The error code of an id that the node does not know, or no longer.
const UNPREPARED: i32 = 0x2500;
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
}

impl Reply {
    pub(crate) fn is_done(&self) -> bool {
        !matches!(self, Reply::Lost | Reply::NotSent | Reply::Answer(Answer::Error { .. }))
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
    open: Option<Connection>,
}

impl Session {
    pub(crate) fn new(world: &Rc<World>, name: &str, address: SocketAddr) -> Session {
        let random = world.random();
        Session { world: world.clone(), name: name.to_owned(), address, random, open: None }
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
                Either::Left((connected, _)) => Some(connected),
                Either::Right(_) => None,
            }
        };
        if answered.is_none() {
            self.world.fail(format!("no answer within {PATIENCE:?} to one of {requests:?}"));
        }
        let missing = || if answered == Some(false) { Reply::NotSent } else { Reply::Lost };
        let replies: Vec<Reply> =
            replies.into_iter().map(|reply| reply.unwrap_or_else(missing)).collect();
        self.check(requests, &replies);
        replies
    }

    /// A node with a healthy disk answers without errors.
    fn check(&self, requests: &[Request], replies: &[Reply]) {
        for (request, reply) in requests.iter().zip(replies) {
            match reply {
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
                Reply::Lost | Reply::NotSent => {
                    self.world.note(format_args!("{} < {reply:?}", self.name));
                    self.world.count("unanswered");
                }
            }
        }
    }

    /// `false` if nothing was sent. Answers are put into their requests' places.
    async fn exchange(&mut self, requests: &[Request], replies: &mut [Option<Reply>]) -> bool {
        if self.open.is_none() {
            self.open = self.connect().await;
        }
        let now = self.world.seconds();
        let Some(mut connection) = self.open.take() else { return false };
        if self.prepare(requests, &mut connection).await.is_none() {
            return false;
        }
        for (stream, request) in requests.iter().enumerate() {
            self.append(&mut connection.client, stream as i16, request, now);
        }
        if connection.send().await.is_err() {
            return true;
        }
        while replies.iter().any(Option::is_none) {
            let Ok((stream, answer)) = connection.next().await else {
                return true;
            };
            let Some((request, place @ None)) =
                requests.get(stream as usize).zip(replies.get_mut(stream as usize))
            else {
                self.world.fail(format!("an answer to no request: {stream} {answer:?}"));
                return true;
            };
            if matches!(answer, Answer::Error { code: UNPREPARED, .. }) {
                // Nothing was executed; as text it needs no preparation.
                self.world.count("statements found unprepared");
                for at in 0..request.statements.len() {
                    self.forget_prepared(request, at);
                }
                self.append(&mut connection.client, stream, request, now);
                if connection.send().await.is_err() {
                    return true;
                }
                continue;
            }
            *place = Some(Reply::Answer(answer));
        }
        self.open = Some(connection);
        true
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

    async fn connect(&mut self) -> Option<Connection> {
        let compression = match self.random.chance(1, 2) {
            true => Compression::Lz4,
            false => Compression::None,
        };
        let connected = Connection::connect(self.address, Version::V5, compression).await;
        let mut connection = connected.ok()?;
        match connection.start(&Credentials::default()).await {
            Ok(()) => Some(connection),
            Err(Error {
                cause: Cause::Network(_) | Cause::Closed | Cause::Malformed(_), ..
            }) => None,
            Err(other) => {
                self.world.fail(format!("STARTUP was answered with {other:?}"));
                None
            }
        }
    }
}

fn values(bound: &Option<[u8; 4]>) -> Vec<Value<'_>> {
    bound.iter().map(|bytes| Value::Bytes(bytes)).collect()
}
