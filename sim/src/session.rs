//! A client's connection over the simulated network: requests of native protocol v5, several in flight at once.

use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use futures_util::future::{Either, select};
use halcyon_io::{Random, Socket, clock};
use halcyon_model::request::{BatchKind, Consistency};
use halcyon_protocol::client::{Answer, Client, Page};
use halcyon_protocol::{BatchQuery, Compression, QueryParameters, Version};

use crate::world::World;

/// Longer than every time-out of the node.
const PATIENCE: Duration = Duration::from_secs(600);

#[derive(Debug, Clone, Default)]
pub(crate) struct Request {
    /// Several are a batch.
    pub(crate) statements: Vec<String>,
    pub(crate) batch: Option<BatchKind>,
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

    fn text(&self) -> String {
        let kind = self.batch.map(|kind| format!("{kind:?} batch: ")).unwrap_or_default();
        let paged = if self.paging_state.is_some() { " (next page)" } else { "" };
        format!("{kind}{}{paged}", self.statements.join("; "))
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
    open: Option<(Socket, Client)>,
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
        }
        let count = requests.len() as u64;
        self.world.count(|counts| counts.operations += count);
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
                    self.world.count(|counts| counts.unanswered += 1);
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
                    self.world.count(|counts| counts.unanswered += 1);
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
        let Some((socket, mut client)) = self.open.take() else { return false };
        for (stream, request) in requests.iter().enumerate() {
            send(&mut client, stream as i16, request, now);
        }
        if socket.write(client.take()).await.0.is_err() {
            return true;
        }
        while replies.iter().any(Option::is_none) {
            match next_answer(&socket, &mut client).await {
                Some((stream, answer)) => match replies.get_mut(stream as usize) {
                    Some(place @ None) => *place = Some(Reply::Answer(answer)),
                    _ => self.world.fail(format!("an answer to no request: {stream} {answer:?}")),
                },
                None => return true,
            }
        }
        self.open = Some((socket, client));
        true
    }

    async fn connect(&mut self) -> Option<(Socket, Client)> {
        let socket = Socket::connect(self.address).await.ok()?;
        let compression =
            if self.random.chance(1, 2) { Compression::Lz4 } else { Compression::None };
        let mut client = Client::new(Version::V5, compression);
        client.startup(0);
        socket.write(client.take()).await.0.ok()?;
        match next_answer(&socket, &mut client).await? {
            (0, Answer::Ready) => client.started(),
            other => {
                self.world.fail(format!("STARTUP was answered with {other:?}"));
                return None;
            }
        }
        Some((socket, client))
    }
}

fn send(client: &mut Client, stream: i16, request: &Request, now: i64) {
    let parameters = QueryParameters {
        page_size: request.page_size,
        paging_state: request.paging_state.as_deref(),
        now_in_seconds: i32::try_from(now).ok(),
        ..QueryParameters::new(Consistency::One)
    };
    match (request.batch, request.statements.as_slice()) {
        (Some(kind), statements) => {
            let entries: Vec<_> =
                statements.iter().map(|text| (BatchQuery::Text(text), Vec::new())).collect();
            client.batch(stream, kind, &entries, &parameters);
        }
        (None, [text]) => client.query(stream, text, &parameters),
        (None, statements) => client.query(stream, &statements.join(" "), &parameters),
    }
}

async fn next_answer(socket: &Socket, client: &mut Client) -> Option<(i16, Answer)> {
    loop {
        match client.next_answer() {
            Ok(Some(answer)) => return Some(answer),
            Ok(None) => {}
            Err(_) => return None,
        }
        let (outcome, bytes) = socket.read(Vec::with_capacity(16 << 10)).await;
        if !matches!(outcome, Ok(1..)) {
            return None;
        }
        client.feed(&bytes);
    }
}
