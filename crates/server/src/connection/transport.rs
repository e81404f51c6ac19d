//! The bytes between the socket and the frames of the protocol.

use std::io;
use std::time::Duration;

use halcyon_io::Socket;

use super::tls::Tls;

pub(crate) enum Transport {
    /// As they are.
    Plain(Socket),
    /// In records of TLS, or as they are where the port takes both.
    Tls(Box<Tls>),
}

impl Transport {
    fn socket(&self) -> &Socket {
        match self {
            Transport::Plain(socket) => socket,
            Transport::Tls(tls) => tls.socket(),
        }
    }

    /// Reads into the buffer; how long ago its bytes arrived.
    pub(super) async fn read_timed(
        &self,
        buffer: Vec<u8>,
    ) -> (io::Result<usize>, Vec<u8>, Duration) {
        match self {
            Transport::Plain(socket) => socket.read_timed(buffer).await,
            Transport::Tls(tls) => Box::pin(tls.read_timed(buffer)).await,
        }
    }

    /// Writes some of the bytes from `from` on.
    pub(super) async fn write_some(
        &self,
        bytes: Vec<u8>,
        from: usize,
    ) -> (io::Result<usize>, Vec<u8>) {
        match self {
            Transport::Plain(socket) => socket.write_some(bytes, from).await,
            Transport::Tls(tls) => Box::pin(tls.write_some(bytes, from)).await,
        }
    }

    /// Tells the client that nothing follows, where there is a way to.
    pub(super) async fn end(&self) {
        if let Transport::Tls(tls) = self {
            Box::pin(tls.end()).await;
        }
    }

    /// Whether the client takes too long to begin.
    pub(super) fn is_late(&self) -> bool {
        matches!(self, Transport::Tls(tls) if tls.is_late())
    }

    /// The client's certificates as DER, its own first; none where it has shown none.
    pub(super) fn certificates(&self) -> Vec<Vec<u8>> {
        match self {
            Transport::Plain(_) => Vec::new(),
            Transport::Tls(tls) => tls.certificates(),
        }
    }

    pub(super) fn has_hung_up(&self) -> bool {
        self.socket().has_hung_up()
    }

    pub(super) fn shut_down_reads(&self) {
        self.socket().shut_down_reads();
    }

    pub(super) fn shut_down(&self) {
        self.socket().shut_down();
    }
}
