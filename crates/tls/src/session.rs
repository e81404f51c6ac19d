//! One connection's TLS, without its socket.
//!
//! 1. Bytes of the socket go in, plain ones come out: [`Session::receive`]. It stops when the caller's buffer is full.
//! 2. Plain bytes go in, the socket's come out: [`Session::seal`]; what the session itself wants to say, an answer of the handshake or
//!    an alert, comes out by [`Session::take_output`].
//! 3. A handshake takes at most [`HANDSHAKE_MAX`] bytes: rustls bounds a message, not how many of them there are.

use std::io::{BufRead, Write};
use std::net::IpAddr;

use rustls::client::verify_server_name;
use rustls::pki_types::ServerName;
use rustls::server::ParsedCertificate;
use rustls::{ClientConnection, Connection, ServerConnection};

use crate::client::{Client, server_name};
use crate::names::{protocol_name, suite_name};
use crate::server::Server;

/// Chosen: four times the largest message that rustls takes, which a chain of certificates fits into.
const HANDSHAKE_MAX: usize = 256 << 10;

/// Why a session ended.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The peer does not speak TLS; its first bytes.
    #[error("not an SSL/TLS record: {0}")]
    Plaintext(String),
    /// `require_endpoint_verification`
    #[error("the client's certificate does not name its address {0}")]
    OtherEndpoint(IpAddr),
    #[error("the handshake takes more than {HANDSHAKE_MAX} bytes")]
    LongHandshake,
    #[error("{0}")]
    Tls(rustls::Error),
    /// The caller stopped in the middle of a step.
    #[error("the handshake was interrupted")]
    Interrupted,
}

impl From<rustls::Error> for Failure {
    fn from(error: rustls::Error) -> Failure {
        Failure::Tls(error)
    }
}

/// What a handshake has agreed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// Java's name, as `TLSv1.3`.
    pub protocol: &'static str,
    /// Java's name, as `TLS_AES_256_GCM_SHA384`.
    pub cipher_suite: &'static str,
    /// The peer's certificates as DER, its own first; none if it has shown none.
    pub certificates: Vec<Vec<u8>>,
}

pub struct Session {
    connection: Connection,
    /// Bytes that the handshake has taken.
    handshaken: usize,
    has_received: bool,
    has_ended: bool,
    /// The address that the peer's certificate must name, until the handshake is complete.
    endpoint: Option<IpAddr>,
}

impl Session {
    /// `peer`: where the client connects from.
    pub fn server(server: &Server, peer: IpAddr) -> Result<Session, Failure> {
        let mut session = Session::of(ServerConnection::new(server.config.clone())?.into());
        session.endpoint = Some(peer).filter(|_| server.verifies_endpoints);
        Ok(session)
    }

    /// `host`: a name or an address, which the server's certificate must have.
    pub fn client(client: &Client, host: &str) -> Result<Session, Failure> {
        let name = server_name(host)?;
        Ok(Session::of(ClientConnection::new(client.0.clone(), name)?.into()))
    }

    fn of(mut connection: Connection) -> Session {
        // The caller bounds what it seals at once.
        connection.set_buffer_limit(None);
        Session { connection, handshaken: 0, has_received: false, has_ended: false, endpoint: None }
    }

    pub fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    /// Whether the peer has said that nothing follows (close_notify).
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// `None`: the handshake is not complete.
    pub fn facts(&self) -> Option<Facts> {
        if self.is_handshaking() {
            return None;
        }
        let certificates = self.connection.peer_certificates().unwrap_or_default();
        Some(Facts {
            protocol: protocol_name(self.connection.protocol_version()?),
            cipher_suite: suite_name(self.connection.negotiated_cipher_suite()?.suite()),
            certificates: certificates.iter().map(|certificate| certificate.to_vec()).collect(),
        })
    }

    /// Takes bytes of the socket, and appends plain ones to a vector until it is full. How many were taken: others must be given again.
    pub fn receive(&mut self, bytes: &[u8], into: &mut Vec<u8>) -> Result<usize, Failure> {
        if !self.has_received && !bytes.is_empty() {
            self.has_received = true;
            self.check_first(bytes)?;
        }
        let mut rest = bytes;
        loop {
            self.drain(into)?;
            if rest.is_empty() || into.len() == into.capacity() {
                return Ok(bytes.len() - rest.len());
            }
            let was_handshaking = self.is_handshaking();
            // It only copies from memory.
            let read = self
                .connection
                .read_tls(&mut rest)
                .map_err(|e| Failure::Tls(rustls::Error::General(e.to_string())))?;
            if was_handshaking {
                self.handshaken += read;
                if self.handshaken > HANDSHAKE_MAX {
                    return Err(Failure::LongHandshake);
                }
            }
            self.has_ended = self.connection.process_new_packets()?.peer_has_closed();
            self.check_endpoint()?;
            if read == 0 {
                // Behind a close_notify nothing counts.
                self.drain(into)?;
                return Ok(bytes.len());
            }
        }
    }

    /// A peer without TLS would wait for an answer for ever.
    fn check_first(&self, bytes: &[u8]) -> Result<(), Failure> {
        match bytes.first() {
            Some(20..=24) => Ok(()),
            _ => {
                let shown = bytes.iter().take(16).map(|byte| format!("{byte:02x}"));
                Err(Failure::Plaintext(shown.collect()))
            }
        }
    }

    /// As Java does it on an engine of HTTPS: a client that shows a certificate must be in it, by its address.
    fn check_endpoint(&mut self) -> Result<(), Failure> {
        let Some(address) = self.endpoint.filter(|_| !self.is_handshaking()) else { return Ok(()) };
        let leaf = self.connection.peer_certificates().and_then(<[_]>::first);
        if let Some(leaf) = leaf {
            let leaf = ParsedCertificate::try_from(leaf)?;
            verify_server_name(&leaf, &ServerName::from(address))
                .map_err(|_| Failure::OtherEndpoint(address))?;
        }
        self.endpoint = None;
        Ok(())
    }

    fn drain(&mut self, into: &mut Vec<u8>) -> Result<(), Failure> {
        let mut reader = self.connection.reader();
        while into.len() < into.capacity() {
            let room = into.capacity() - into.len();
            let taken = match reader.fill_buf() {
                Ok(chunk) => {
                    let part = chunk.get(..room.min(chunk.len())).unwrap_or_default();
                    into.extend_from_slice(part);
                    part.len()
                }
                // Nothing is left, or the peer has gone without a close_notify, which frames make harmless.
                Err(_) => 0,
            };
            if taken == 0 {
                break;
            }
            reader.consume(taken);
        }
        Ok(())
    }

    /// Seals plain bytes, behind what the session itself wants to say.
    pub fn seal(&mut self, plain: &[u8], into: &mut Vec<u8>) -> Result<(), Failure> {
        let general = |e: std::io::Error| Failure::Tls(rustls::Error::General(e.to_string()));
        self.connection.writer().write_all(plain).map_err(general)?;
        self.take_output(into);
        Ok(())
    }

    /// Appends what the session wants to say.
    pub fn take_output(&mut self, into: &mut Vec<u8>) {
        while self.connection.wants_write() {
            // A vector takes all.
            if self.connection.write_tls(into).unwrap_or(0) == 0 {
                break;
            }
        }
    }

    /// Tells the peer that nothing follows (close_notify).
    pub fn close(&mut self) {
        self.connection.send_close_notify();
    }
}
