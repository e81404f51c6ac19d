//! A connection on the runtime's sockets.

use std::net::SocketAddr;

use halcyon_io::Socket;
use halcyon_model::request::Value;
use halcyon_protocol::client::{Answer, Client};
use halcyon_protocol::{Compression, Consistency, QueryParameters, Values, Version};

use crate::address::{name, resolve};
use crate::encrypted::Stream;
use crate::error::{Cause, Error, Result};
use crate::handshake::{Credentials, Handshake};
use crate::rows::Rows;

/// Bytes of one read. Chosen: a page of a thousand short rows.
const BUFFER: usize = 64 << 10;
/// Rows per page; all pages are fetched. Chosen: ten times as many could exceed what a server sends at once.
const PAGE: i32 = 1000;

/// A statement without values that the server knows by its id.
#[derive(Debug, Clone)]
pub struct Prepared(Vec<u8>);

/// A connection to one server.
pub struct Connection {
    /// Requests that are appended here are sent by [`Connection::send`].
    pub client: Client,
    stream: Stream,
    server: String,
    buffer: Vec<u8>,
}

impl Connection {
    /// A connection in the current version of the protocol that is ready for requests, to the first address of `host` that accepts one.
    /// `host` can include a port.
    pub async fn open(host: &str, credentials: &Credentials) -> Result<Connection> {
        let unreachable = |why: String| Cause::Unreachable(why).at(host);
        let mut last = "no address of that name".to_owned();
        for address in resolve(host).map_err(|e| unreachable(e.to_string()))? {
            match Connection::connect(address, Version::CURRENT, Compression::None).await {
                Ok(mut connection) => {
                    if let Some(encryption) = &credentials.encryption {
                        let encrypted = connection.stream.encrypt(encryption, name(host)).await;
                        encrypted.map_err(|cause| cause.at(host))?;
                    }
                    connection.start(credentials).await?;
                    return Ok(connection);
                }
                Err(error) => last = error.cause.to_string(),
            }
        }
        Err(unreachable(last))
    }

    /// A connection on which nothing has been sent.
    pub async fn connect(
        address: SocketAddr,
        version: Version,
        compression: Compression,
    ) -> Result<Connection> {
        let server = address.to_string();
        let socket = Socket::connect(address).await.map_err(|e| Cause::from(e).at(&server))?;
        let client = Client::new(version, compression);
        Ok(Connection { client, stream: Stream::new(socket), server, buffer: Vec::new() })
    }

    /// Makes it ready for requests.
    pub async fn start(&mut self, credentials: &Credentials) -> Result<()> {
        let mut handshake = Handshake::begin(&mut self.client, credentials);
        loop {
            let (_, answer) = self.ask().await?;
            let outcome = handshake.advance(&mut self.client, answer);
            if outcome.map_err(|cause| self.failed(cause))? {
                return Ok(());
            }
        }
    }

    /// Address and port.
    pub fn server(&self) -> &str {
        &self.server
    }

    fn failed(&self, cause: impl Into<Cause>) -> Error {
        cause.into().at(&self.server)
    }

    /// Sends the requests that the client has.
    pub async fn send(&mut self) -> Result<()> {
        let bytes = self.client.take();
        self.stream.write(bytes).await.map_err(|e| self.failed(e))
    }

    /// The next answer and its stream.
    pub async fn next(&mut self) -> Result<(i16, Answer)> {
        loop {
            if let Some(answer) = self.client.next_answer().map_err(|e| self.failed(e))? {
                return Ok(answer);
            }
            let mut buffer = std::mem::take(&mut self.buffer);
            buffer.clear();
            buffer.reserve(BUFFER);
            let (outcome, buffer) = self.stream.read(buffer).await;
            if outcome.map_err(|e| self.failed(e))? == 0 {
                return Err(self.failed(Cause::Closed));
            }
            self.client.feed(&buffer);
            self.buffer = buffer;
        }
    }

    /// Sends the requests that the client has, and waits for one answer.
    pub async fn ask(&mut self) -> Result<(i16, Answer)> {
        self.send().await?;
        self.next().await
    }

    /// All rows of a statement with values of text.
    pub async fn query(&mut self, statement: &str, values: &[&str]) -> Result<Rows> {
        let mut rows = Rows::default();
        let mut state: Option<Vec<u8>> = None;
        loop {
            let mut parameters = QueryParameters::new(Consistency::One);
            parameters.page_size = Some(PAGE);
            parameters.values = Values::Positional(
                values.iter().map(|text| Value::Bytes(text.as_bytes())).collect(),
            );
            parameters.paging_state = state.as_deref();
            self.client.query(0, statement, &parameters);
            match self.ask().await?.1 {
                Answer::Rows(page) => state = rows.append(page),
                Answer::Void => {}
                other => return Err(self.failed(Cause::of(other))),
            }
            if state.is_none() {
                return Ok(rows);
            }
        }
    }

    pub async fn prepare(&mut self, statement: &str) -> Result<Prepared> {
        self.client.prepare(0, statement);
        match self.ask().await?.1 {
            Answer::Prepared { id, .. } => Ok(Prepared(id)),
            other => Err(self.failed(Cause::of(other))),
        }
    }

    /// All rows of several statements, which are in flight together. After an error other answers may follow, so the connection is of
    /// no more use.
    pub async fn execute_all(&mut self, statements: &[Prepared]) -> Result<Vec<Rows>> {
        let mut all: Vec<Rows> = statements.iter().map(|_| Rows::default()).collect();
        for (stream, statement) in (0..).zip(statements) {
            self.execute(stream, statement, None);
        }
        self.send().await?;
        let mut left = statements.len();
        while left > 0 {
            let (stream, answer) = self.next().await?;
            let at = usize::try_from(stream).unwrap_or(usize::MAX);
            match (answer, all.get_mut(at), statements.get(at)) {
                (Answer::Rows(page), Some(rows), Some(statement)) => match rows.append(page) {
                    None => left -= 1,
                    state => {
                        self.execute(stream, statement, state.as_deref());
                        self.send().await?;
                    }
                },
                (other, ..) => return Err(self.failed(Cause::of(other))),
            }
        }
        Ok(all)
    }

    fn execute(&mut self, stream: i16, statement: &Prepared, state: Option<&[u8]>) {
        let mut parameters = QueryParameters::new(Consistency::One);
        parameters.page_size = Some(PAGE);
        parameters.paging_state = state;
        self.client.execute(stream, &statement.0, &[], &parameters);
    }
}
