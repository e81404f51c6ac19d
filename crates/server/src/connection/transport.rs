//! The bytes between the socket and the frames of the protocol.
//!
//! TLS would be another variant: its records are opened behind `read_timed`, which keeps the time that the kernel says, and sealed before
//! `write_some`.

use std::io;
use std::time::Duration;

use halcyon_io::Socket;

pub(crate) enum Transport {
    /// As they are.
    Plain(Socket),
}

impl Transport {
    /// Reads into the buffer; how long ago its bytes arrived.
    pub(super) async fn read_timed(
        &self,
        buffer: Vec<u8>,
    ) -> (io::Result<usize>, Vec<u8>, Duration) {
        match self {
            Transport::Plain(socket) => socket.read_timed(buffer).await,
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
        }
    }

    pub(super) fn has_hung_up(&self) -> bool {
        match self {
            Transport::Plain(socket) => socket.has_hung_up(),
        }
    }

    pub(super) fn shut_down_reads(&self) {
        match self {
            Transport::Plain(socket) => socket.shut_down_reads(),
        }
    }

    pub(super) fn shut_down(&self) {
        match self {
            Transport::Plain(socket) => socket.shut_down(),
        }
    }
}
