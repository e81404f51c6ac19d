//! A socket, with or without TLS.

use std::io;

use halcyon_io::Socket;
use halcyon_tls::{Client, Session};

use crate::error::Cause;

/// Sealed bytes of one read.
const RECEIVED: usize = 16 << 10;

pub(crate) struct Stream {
    socket: Socket,
    session: Option<Box<Session>>,
    received: Vec<u8>,
}

impl Stream {
    pub(crate) fn new(socket: Socket) -> Stream {
        Stream { socket, session: None, received: Vec::new() }
    }

    /// Encrypts what follows, after a handshake with a server of that name.
    pub(crate) async fn encrypt(&mut self, client: &Client, name: &str) -> Result<(), Cause> {
        let mut session = Box::new(Session::client(client, name)?);
        // A full one would stop the session; a server sends nothing before it is asked.
        let mut none = Vec::with_capacity(1);
        loop {
            let mut answer = Vec::new();
            session.take_output(&mut answer);
            if !answer.is_empty() {
                self.socket.write(answer).await.0?;
            }
            if !session.is_handshaking() {
                self.session = Some(session);
                return Ok(());
            }
            let (outcome, bytes) = self.socket.read(Vec::with_capacity(RECEIVED)).await;
            if outcome? == 0 {
                return Err(Cause::Closed);
            }
            if let Err(failure) = session.receive(&bytes, &mut none) {
                let mut alert = Vec::new();
                session.take_output(&mut alert);
                // The server learns why; the failure is reported in any case.
                let _ = self.socket.write(alert).await;
                return Err(failure.into());
            }
        }
    }

    pub(crate) async fn write(&mut self, bytes: Vec<u8>) -> Result<(), Cause> {
        let bytes = match &mut self.session {
            None => bytes,
            Some(session) => {
                let mut sealed = Vec::new();
                session.seal(&bytes, &mut sealed)?;
                sealed
            }
        };
        Ok(self.socket.write(bytes).await.0?)
    }

    /// Appends to the vector, which has room; zero is the end.
    pub(crate) async fn read(&mut self, mut into: Vec<u8>) -> (Result<usize, Cause>, Vec<u8>) {
        let Some(session) = &mut self.session else {
            let (outcome, into) = self.socket.read(into).await;
            return (outcome.map_err(Cause::from), into);
        };
        let before = into.len();
        loop {
            match session.receive(&self.received, &mut into) {
                Ok(taken) => drop(self.received.drain(..taken)),
                Err(failure) => return (Err(failure.into()), into),
            }
            if into.len() > before || session.has_ended() {
                return (Ok(into.len() - before), into);
            }
            let mut received = std::mem::take(&mut self.received);
            received.reserve(RECEIVED);
            let (outcome, received): (io::Result<usize>, _) = self.socket.read(received).await;
            self.received = received;
            match outcome {
                Ok(1..) => {}
                Ok(_) => return (Ok(0), into),
                Err(error) => return (Err(error.into()), into),
            }
        }
    }
}
