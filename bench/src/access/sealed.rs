//! A port of this machine behind which all is sealed on its way to a server: two threads for each connection.
//!
//! ```text
//!   generator ─► plain ─► Session::seal ─► server
//!   generator ◄─ plain ◄─ Session::receive ◄─ server
//! ```

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use halcyon_oracle::Result;
use halcyon_tls::{Client, ClientOptions, Session};

use crate::connection::local;

/// Bytes of one read.
const BUFFER: usize = 64 << 10;

pub(super) struct Sealed {
    /// Where plain connections are accepted.
    pub(super) port: u16,
    ended: Arc<AtomicBool>,
}

impl Sealed {
    /// `trust`: the server's certificate.
    pub(super) fn start(server: u16, trust: &Path) -> Result<Sealed> {
        let trusted = (trust.display().to_string(), std::fs::read(trust)?);
        let client = Client::build(ClientOptions { trust: trusted, ..ClientOptions::default() })?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let ended = Arc::new(AtomicBool::new(false));
        let is_ended = ended.clone();
        std::thread::spawn(move || {
            for plain in listener.incoming() {
                if is_ended.load(Relaxed) {
                    return;
                }
                let Ok(plain) = plain else { continue };
                if let Err(error) = connect(plain, server, &client) {
                    eprintln!("bench: TLS: {error}");
                }
            }
        });
        Ok(Sealed { port, ended })
    }
}

impl Drop for Sealed {
    fn drop(&mut self) {
        self.ended.store(true, Relaxed);
        // Wakes the acceptor, which then ends.
        let _ = TcpStream::connect(local(self.port));
    }
}

type Shared = Arc<Mutex<Session>>;

fn locked(session: &Shared) -> MutexGuard<'_, Session> {
    session.lock().unwrap_or_else(PoisonError::into_inner)
}

fn connect(plain: TcpStream, server: u16, client: &Client) -> Result<()> {
    let mut socket = TcpStream::connect(local(server))?;
    socket.set_nodelay(true)?;
    plain.set_nodelay(true)?;
    let mut session = Session::client(client, "localhost")?;
    let (mut none, mut received) = (Vec::with_capacity(1), vec![0; BUFFER]);
    loop {
        let mut answer = Vec::new();
        session.take_output(&mut answer);
        socket.write_all(&answer)?;
        if !session.is_handshaking() {
            break;
        }
        let length = socket.read(&mut received)?;
        if length == 0 {
            return Err("the server ended a handshake".into());
        }
        session.receive(received.get(..length).unwrap_or_default(), &mut none)?;
    }
    let session = Arc::new(Mutex::new(session));
    let up = (plain.try_clone()?, socket.try_clone()?, session.clone());
    // An end of either side ends both threads: each shuts down what the other reads.
    std::thread::spawn(move || {
        let (mut plain, mut socket, session) = up;
        let _ = seal(&mut plain, &mut socket, &session);
        let _ = socket.shutdown(std::net::Shutdown::Both);
    });
    std::thread::spawn(move || {
        let (mut plain, mut socket) = (plain, socket);
        let _ = open(&mut socket, &mut plain, &session);
        let _ = plain.shutdown(std::net::Shutdown::Both);
    });
    Ok(())
}

fn seal(plain: &mut TcpStream, socket: &mut TcpStream, session: &Shared) -> Result<()> {
    let (mut bytes, mut sealed) = (vec![0; BUFFER], Vec::new());
    loop {
        let length = plain.read(&mut bytes)?;
        if length == 0 {
            return Ok(());
        }
        sealed.clear();
        locked(session).seal(bytes.get(..length).unwrap_or_default(), &mut sealed)?;
        socket.write_all(&sealed)?;
    }
}

fn open(socket: &mut TcpStream, plain: &mut TcpStream, session: &Shared) -> Result<()> {
    let (mut bytes, mut opened) = (vec![0; BUFFER], Vec::with_capacity(4 * BUFFER));
    loop {
        let length = socket.read(&mut bytes)?;
        let mut rest = bytes.get(..length).unwrap_or_default();
        if length == 0 {
            return Ok(());
        }
        while !rest.is_empty() {
            opened.clear();
            let taken = locked(session).receive(rest, &mut opened)?;
            rest = rest.get(taken..).unwrap_or_default();
            plain.write_all(&opened)?;
        }
        // What was left inside for want of room.
        loop {
            opened.clear();
            locked(session).receive(&[], &mut opened)?;
            if opened.is_empty() {
                break;
            }
            plain.write_all(&opened)?;
        }
    }
}
