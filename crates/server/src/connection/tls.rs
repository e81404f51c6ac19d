//! TLS between a socket and the frames of the protocol.
//!
//! ```text
//!                 ┌ 5 bytes, not of a record ───► Plain
//!  Undecided ─────┤                                         (only where the port takes both)
//!                 └ a record ─► Shaking ─► Open ─► close_notify: reads end
//!                                  │  an error: alert, reads end
//! ```
//! 1. The first read does the handshake. Its computations, a millisecond with a key of RSA, are done on a pool of their own: no
//!    handshake holds the shard up, and many of them wait for each other only.
//! 2. Until the handshake is complete only the reader sends: no request has come that could have an answer. From then on only the writer
//!    does, so records leave in the order in which they were sealed.
//! 3. A handshake ends within [`HANDSHAKE_PATIENCE`]: the shard's watch closes the others. A client of the port that takes both is
//!    not late before it has sent its first byte.
//! 4. A read gives what is open before it asks the socket; at most one buffer of sealed bytes waits here.

use std::cell::{Cell, RefCell};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::select;
use halcyon_io::Socket;
use halcyon_io::clock::{self, Instant, now};
use halcyon_tls::{Failure, Policy, SNIFFED, Server, Session, is_tls};

use crate::clients::Entry;
use crate::encryption::Encryption;

/// Netty's, which Cassandra keeps (`SslHandler.handshakeTimeoutMillis`).
const HANDSHAKE_PATIENCE: Duration = Duration::from_secs(10);
/// How long a client may take to read the last record.
const CLOSE_PATIENCE: Duration = Duration::from_secs(1);
/// Sealed bytes of one read: a record at least.
const RECEIVED_MIN: usize = 16 << 10;
const RECEIVED_MAX: usize = 64 << 10;
/// Plain bytes that are sealed at once. Chosen: sealing them takes 50 µs; ten times as many would hold the shard up.
const SEALED: usize = 64 << 10;

pub(crate) struct Tls {
    socket: Socket,
    peer: SocketAddr,
    encryption: Arc<Encryption>,
    /// For `system_views.clients`.
    entry: Arc<Entry>,
    stage: RefCell<Stage>,
    /// Bytes of the socket that are not open yet, and how many of them are.
    received: RefCell<(Vec<u8>, usize)>,
    /// When the last of them arrived.
    arrived: Cell<Instant>,
    /// When the handshake could begin; `None`: it is complete, or there is none.
    shaking_since: Cell<Option<Instant>>,
    /// The client's certificates as DER, its own first.
    certificates: RefCell<Vec<Vec<u8>>>,
}

enum Stage {
    Undecided(Arc<Server>),
    /// The session is on another thread meanwhile.
    Shaking(Option<Box<Session>>),
    Open(Box<Session>),
    Plain,
}

impl Tls {
    pub(crate) fn new(
        socket: Socket,
        peer: SocketAddr,
        (encryption, policy): (&Arc<Encryption>, Policy),
        entry: &Arc<Entry>,
    ) -> Result<Tls, Failure> {
        let server = encryption.server();
        let (stage, since) = match policy {
            Policy::Optional => (Stage::Undecided(server), None),
            Policy::Unencrypted => (Stage::Plain, None),
            Policy::Encrypted => (
                Stage::Shaking(Some(Box::new(Session::server(&server, peer.ip().to_canonical())?))),
                Some(now()),
            ),
        };
        Ok(Tls {
            socket,
            peer,
            encryption: encryption.clone(),
            entry: entry.clone(),
            stage: RefCell::new(stage),
            received: RefCell::default(),
            arrived: Cell::new(now()),
            shaking_since: Cell::new(since),
            certificates: RefCell::default(),
        })
    }

    pub(super) fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Whether its handshake takes too long.
    pub(super) fn is_late(&self) -> bool {
        let late = |since: Instant| now() - since > HANDSHAKE_PATIENCE;
        let is_late = self.shaking_since.get().is_some_and(late);
        if is_late {
            self.shaking_since.set(None);
            self.report(&format!(
                "handshake timed out after {} ms",
                HANDSHAKE_PATIENCE.as_millis()
            ));
        }
        is_late
    }

    pub(super) fn certificates(&self) -> Vec<Vec<u8>> {
        self.certificates.borrow().clone()
    }

    fn report(&self, why: &str) {
        self.encryption.report(self.peer, why);
    }

    pub(super) async fn read_timed(
        &self,
        mut buffer: Vec<u8>,
    ) -> (io::Result<usize>, Vec<u8>, Duration) {
        let before = buffer.len();
        loop {
            let ended = match Box::pin(self.open(&mut buffer)).await {
                Ok(ended) => ended,
                Err(failure) => {
                    self.shaking_since.set(None);
                    self.report(&failure.to_string());
                    let error = io::Error::new(ErrorKind::InvalidData, failure.to_string());
                    return (Err(error), buffer, Duration::ZERO);
                }
            };
            if buffer.len() > before || ended {
                return (Ok(buffer.len() - before), buffer, now() - self.arrived.get());
            }
            if matches!(*self.stage.borrow(), Stage::Plain) {
                return self.socket.read_timed(buffer).await;
            }
            match self.fill(buffer.capacity()).await {
                Ok(1..) => {}
                Ok(_) => return (Ok(0), buffer, Duration::ZERO),
                Err(error) => return (Err(error), buffer, Duration::ZERO),
            }
        }
    }

    /// Reads sealed bytes behind those that wait.
    async fn fill(&self, wanted: usize) -> io::Result<usize> {
        let (mut bytes, opened) = self.received.take();
        bytes.drain(..opened);
        let room = wanted.clamp(RECEIVED_MIN, RECEIVED_MAX);
        if bytes.is_empty() && bytes.capacity() != room {
            bytes = Vec::with_capacity(room);
        }
        bytes.reserve(SNIFFED);
        let (outcome, bytes, waited) = self.socket.read_timed(bytes).await;
        self.received.replace((bytes, 0));
        self.arrived.set(now() - waited);
        outcome
    }

    /// Opens what has been received, as far as the buffer has room. Whether nothing follows.
    async fn open(&self, buffer: &mut Vec<u8>) -> Result<bool, Failure> {
        loop {
            let decided = match &*self.stage.borrow() {
                Stage::Plain => {
                    self.pour(buffer);
                    return Ok(false);
                }
                Stage::Undecided(server) => match self.decide(server)? {
                    None => return Ok(false),
                    Some(stage) => Some(stage),
                },
                Stage::Shaking(_) | Stage::Open(_) => None,
            };
            if let Some(stage) = decided {
                self.stage.replace(stage);
                continue;
            }
            if let Stage::Open(session) = &mut *self.stage.borrow_mut() {
                let mut received = self.received.borrow_mut();
                let (bytes, opened) = &mut *received;
                let sealed = bytes.get(*opened..).unwrap_or_default();
                *opened += session.receive(sealed, buffer)?;
                return Ok(session.has_ended());
            }
            if !self.shake(buffer).await? {
                return Ok(false);
            }
        }
    }

    /// The bytes of a client without TLS.
    fn pour(&self, buffer: &mut Vec<u8>) {
        let mut received = self.received.borrow_mut();
        let (bytes, given) = &mut *received;
        let rest = bytes.get(*given..).unwrap_or_default();
        let part = rest.get(..rest.len().min(buffer.capacity() - buffer.len()));
        let part = part.unwrap_or_default();
        buffer.extend_from_slice(part);
        *given += part.len();
        if *given == bytes.len() {
            *received = Default::default();
        }
    }

    /// What a client begins with, once enough of it is here.
    fn decide(&self, server: &Server) -> Result<Option<Stage>, Failure> {
        let received = self.received.borrow();
        if !received.0.is_empty() && self.shaking_since.get().is_none() {
            self.shaking_since.set(Some(now()));
        }
        let Some(header) = received.0.first_chunk::<SNIFFED>() else { return Ok(None) };
        if is_tls(*header) {
            return Ok(Some(Stage::Shaking(Some(Box::new(Session::server(
                server,
                self.peer.ip().to_canonical(),
            )?)))));
        }
        self.shaking_since.set(None);
        Ok(Some(Stage::Plain))
    }

    /// One step of the handshake, with what has been received. Whether the handshake is complete.
    async fn shake(&self, buffer: &mut Vec<u8>) -> Result<bool, Failure> {
        let session = match &mut *self.stage.borrow_mut() {
            Stage::Shaking(session) => session.take(),
            _ => None,
        };
        let Some(mut session) = session else { return Err(interrupted()) };
        let (mut bytes, opened) = self.received.take();
        bytes.drain(..opened);
        if bytes.is_empty() {
            self.stage.replace(Stage::Shaking(Some(session)));
            return Ok(false);
        }
        let mut plain = Vec::with_capacity(buffer.capacity() - buffer.len());
        let since = self.shaking_since.get();
        let step = self.encryption.handshakes().run(move || {
            // The watch has closed the connection meanwhile: what waits behind it is more useful.
            let outcome = match since.is_some_and(|since| now() - since > HANDSHAKE_PATIENCE) {
                true => Err(interrupted()),
                false => session.receive(&bytes, &mut plain),
            };
            let mut answer = Vec::new();
            session.take_output(&mut answer);
            (session, outcome, bytes, plain, answer)
        });
        let (session, outcome, bytes, plain, answer) = step.await.map_err(|_| interrupted())?;
        if !answer.is_empty() {
            // A client that has gone is noticed by the next read.
            let _ = self.socket.write(answer).await;
        }
        let taken = outcome?;
        self.received.replace((bytes, taken));
        buffer.extend_from_slice(&plain);
        let Some(facts) = session.facts() else {
            self.stage.replace(Stage::Shaking(Some(session)));
            return Ok(false);
        };
        self.shaking_since.set(None);
        self.entry.info().encryption = Some((facts.protocol, facts.cipher_suite));
        let (protocol, suite) = (facts.protocol, facts.cipher_suite);
        self.encryption.log().debug(format_args!("{} uses {protocol}, {suite}", self.peer));
        self.certificates.replace(facts.certificates);
        self.stage.replace(Stage::Open(session));
        Ok(true)
    }

    pub(super) async fn write_some(
        &self,
        bytes: Vec<u8>,
        from: usize,
    ) -> (io::Result<usize>, Vec<u8>) {
        let rest = bytes.get(from..).unwrap_or_default();
        let part = rest.get(..rest.len().min(SEALED)).unwrap_or_default();
        let mut sealed = Vec::new();
        let outcome = match &mut *self.stage.borrow_mut() {
            Stage::Plain => None,
            Stage::Open(session) => Some(session.seal(part, &mut sealed)),
            Stage::Undecided(_) | Stage::Shaking(_) => Some(Err(interrupted())),
        };
        let length = part.len();
        match outcome {
            None => self.socket.write_some(bytes, from).await,
            Some(Err(failure)) => (Err(io::Error::other(failure.to_string())), bytes),
            Some(Ok(())) => {
                let (outcome, _) = self.socket.write(sealed).await;
                (outcome.map(|()| length), bytes)
            }
        }
    }

    /// Tells the client that nothing follows.
    pub(super) async fn end(&self) {
        let mut sealed = Vec::new();
        if let Stage::Open(session) = &mut *self.stage.borrow_mut() {
            session.close();
            session.take_output(&mut sealed);
        }
        if !sealed.is_empty() {
            let (written, patience) = (self.socket.write(sealed), clock::sleep(CLOSE_PATIENCE));
            select(pin!(written), pin!(patience)).await;
        }
    }
}

fn interrupted() -> Failure {
    Failure::Interrupted
}
