//! A connection on a blocking socket, for threads that wait for nothing else: generators of load, tests.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use halcyon_protocol::client::{Answer, Client, Page};
use halcyon_protocol::{Compression, Consistency, QueryParameters, Version};

use crate::error::{Cause, Error, Result};
use crate::handshake::{Credentials, Handshake};

/// Bytes of one read.
const BUFFER: usize = 64 << 10;

/// A connection to one server.
pub struct Connection {
    /// Requests that are appended here are sent by [`Connection::send`].
    pub client: Client,
    /// For time-outs, a second thread that sends, and bytes that no client sends.
    pub stream: TcpStream,
    server: String,
    buffer: Vec<u8>,
}

impl Connection {
    /// A connection on which nothing has been sent, and whose answers come within `patience`.
    pub fn connect(
        address: SocketAddr,
        version: Version,
        compression: Compression,
        patience: Duration,
    ) -> Result<Connection> {
        let connected = TcpStream::connect(address).and_then(|stream| {
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(patience))?;
            Ok(stream)
        });
        let stream = connected.map_err(|e| Cause::from(e).at(&address.to_string()))?;
        Ok(Connection::over(stream, version, compression))
    }

    /// A connection over a stream on which nothing has been sent.
    pub fn over(stream: TcpStream, version: Version, compression: Compression) -> Connection {
        let server = stream.peer_addr().map_or_else(|e| e.to_string(), |peer| peer.to_string());
        let client = Client::new(version, compression);
        Connection { client, stream, server, buffer: vec![0; BUFFER] }
    }

    /// Makes it ready for requests, of a server that asks for no credentials.
    pub fn start(&mut self) -> Result<()> {
        self.start_as(&Credentials::default())
    }

    /// Makes it ready for requests. This kind of connection is not encrypted, whatever the credentials say.
    pub fn start_as(&mut self, credentials: &Credentials) -> Result<()> {
        let mut handshake = Handshake::begin(&mut self.client, credentials);
        loop {
            self.send()?;
            let (_, answer) = self.next_answer()?;
            let outcome = handshake.advance(&mut self.client, answer);
            if outcome.map_err(|cause| self.failed(cause))? {
                return Ok(());
            }
        }
    }

    fn failed(&self, cause: impl Into<Cause>) -> Error {
        cause.into().at(&self.server)
    }

    /// Sends the requests that the client has.
    pub fn send(&mut self) -> Result<()> {
        let bytes = self.client.take();
        self.stream.write_all(&bytes).map_err(|e| self.failed(e))
    }

    /// Waits for bytes and gives them to the client; 0 if the server has closed the connection. A read that a stopped process
    /// interrupted is repeated.
    pub fn receive(&mut self) -> io::Result<usize> {
        let length = loop {
            match self.stream.read(&mut self.buffer) {
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                done => break done?,
            }
        };
        self.client.feed(self.buffer.get(..length).unwrap_or_default());
        Ok(length)
    }

    /// The next answer and its stream.
    pub fn next_answer(&mut self) -> Result<(i16, Answer)> {
        loop {
            if let Some(answer) = self.client.next_answer().map_err(|e| self.failed(e))? {
                return Ok(answer);
            }
            if self.receive().map_err(|e| self.failed(e))? == 0 {
                return Err(self.failed(Cause::Closed));
            }
        }
    }

    /// Sends the requests that the client has, and waits for one answer. ERROR is an error.
    pub fn ask(&mut self) -> Result<Answer> {
        self.send()?;
        match self.next_answer()?.1 {
            error @ Answer::Error { .. } => Err(self.failed(Cause::of(error))),
            answer => Ok(answer),
        }
    }

    pub fn query(&mut self, statement: &str) -> Result<Answer> {
        self.client.query(0, statement, &QueryParameters::new(Consistency::One));
        self.ask()
    }

    /// The first page of a statement's rows.
    pub fn page(&mut self, statement: &str) -> Result<Page> {
        match self.query(statement)? {
            Answer::Rows(page) => Ok(page),
            other => Err(self.failed(Cause::of(other))),
        }
    }

    /// The statement's id, and that of its result's metadata, which is empty before version 5.
    pub fn prepare(&mut self, statement: &str) -> Result<(Vec<u8>, Vec<u8>)> {
        self.client.prepare(0, statement);
        match self.ask()? {
            Answer::Prepared { id, result_metadata_id } => {
                Ok((id, result_metadata_id.unwrap_or_default()))
            }
            other => Err(self.failed(Cause::of(other))),
        }
    }

    /// The first value of an option in SUPPORTED.
    pub fn supported(&mut self, name: &str) -> Result<Option<String>> {
        self.client.options(0);
        let Answer::Supported(options) = self.ask()? else { return Ok(None) };
        let found = options.into_iter().find(|(option, _)| option == name);
        Ok(found.and_then(|(_, values)| values.into_iter().next()))
    }
}
