//! Sockets: TCP listeners and streams on the thread's runtime, ring or poll.
//!
//! 1. Each thread has a listener of its own on the same port (`SO_REUSEPORT`); the kernel spreads connections over them.
//! 2. Buffers are owned: a read takes a vector and gives it back longer, a write gives it back as it was.
//! 3. A read is ended by [`Socket::shut_down`], never by dropping it: what a dropped read has received is lost.
//! 4. A socket may move to another thread between two operations ([`Socket::detach`]).

use std::io;
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use compio::buf::{BufResult, IntoInner, IoBufMut};
use compio::io::{AsyncRead, AsyncWriteExt};
use compio::net::{TcpListener, TcpSocket, TcpStream};

/// Connections that the kernel keeps until they are accepted.
const BACKLOG: i32 = 1024;

/// Accepts connections on one thread.
#[derive(Debug)]
pub struct Listener(TcpListener);

impl Listener {
    /// Finds out whether an address can be listened on, and which port `0` becomes. Without this, `SO_REUSEPORT` would
    /// silently share the port of another process of the same user.
    pub async fn claim(address: SocketAddr) -> io::Result<SocketAddr> {
        open(address, false).await?.local_addr()
    }

    /// One of several listeners of this process on an address.
    pub async fn bind(address: SocketAddr) -> io::Result<Listener> {
        Ok(Listener(open(address, true).await?))
    }

    /// The next connection and who made it. Small packets are sent at once (`TCP_NODELAY`).
    pub async fn accept(&self) -> io::Result<(Socket, SocketAddr)> {
        let (stream, peer) = self.0.accept().await?;
        stream.set_nodelay(true)?;
        Ok((Socket(stream), peer))
    }

    /// Ends `accept` with an error; the port is free again when the listener is dropped.
    pub fn shut_down(&self) {
        shut_down(self.0.as_raw_fd(), Shutdown::Both);
    }
}

async fn open(address: SocketAddr, shared: bool) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4().await?,
        SocketAddr::V6(_) => TcpSocket::new_v6().await?,
    };
    socket.set_reuseaddr(true)?;
    if shared {
        socket.set_reuseport(true)?;
    }
    socket.bind(address).await?;
    socket.listen(BACKLOG).await
}

/// A connection; clones are the same one.
#[derive(Debug, Clone)]
pub struct Socket(TcpStream);

impl Socket {
    pub async fn connect(address: SocketAddr) -> io::Result<Socket> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Socket(stream))
    }

    /// Appends what has arrived, at most as much as the vector has room for without growing; zero is the end.
    pub async fn read(&self, buffer: Vec<u8>) -> (io::Result<usize>, Vec<u8>) {
        let BufResult(outcome, rest) = (&self.0).read(buffer.uninit()).await;
        (outcome, rest.into_inner())
    }

    /// Writes all of it; the vector comes back to be used again.
    pub async fn write(&self, bytes: Vec<u8>) -> (io::Result<()>, Vec<u8>) {
        let BufResult(outcome, bytes) = (&self.0).write_all(bytes).await;
        (outcome, bytes)
    }

    /// Ends both directions: a read in flight comes back with what there is, then with nothing.
    pub fn shut_down(&self) {
        shut_down(self.0.as_raw_fd(), Shutdown::Both);
    }

    /// Ends reading only: what is being answered can still be sent.
    pub fn shut_down_reads(&self) {
        shut_down(self.0.as_raw_fd(), Shutdown::Read);
    }

    /// The kernel asks after a peer that has been silent for long, and ends the connection if it has gone (`SO_KEEPALIVE`).
    pub fn keep_alive(&self) -> io::Result<()> {
        let on: libc::c_int = 1;
        // SAFETY: the descriptor is open while `self` lives; the option is a live local of the length given.
        let failed = unsafe {
            libc::setsockopt(
                self.0.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_KEEPALIVE,
                (&raw const on).cast(),
                size_of_val(&on) as libc::socklen_t,
            )
        };
        if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// A handle that another thread can attach to its own runtime. No operation may be in flight.
    pub fn detach(self) -> io::Result<DetachedSocket> {
        let fd: BorrowedFd<'_> = self.0.as_fd();
        Ok(DetachedSocket(std::net::TcpStream::from(fd.try_clone_to_owned()?)))
    }
}

/// A connection between two threads.
#[derive(Debug)]
pub struct DetachedSocket(std::net::TcpStream);

impl DetachedSocket {
    /// Call it inside `block_on`.
    pub fn attach(self) -> io::Result<Socket> {
        TcpStream::from_std(self.0).map(Socket)
    }
}

fn shut_down(fd: i32, how: Shutdown) {
    let how = match how {
        Shutdown::Read => libc::SHUT_RD,
        Shutdown::Write => libc::SHUT_WR,
        Shutdown::Both => libc::SHUT_RDWR,
    };
    // A peer that has gone already is no error. SAFETY: the descriptor is open, its owner is borrowed by the caller.
    unsafe { libc::shutdown(fd, how) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BackendChoice, block_on_backend, spawn};

    fn on_both_backends(test: impl AsyncFn()) {
        block_on_backend(BackendChoice::Auto, test()).expect("auto always has a backend");
        block_on_backend(BackendChoice::Pool, test()).expect("the pool is always there");
    }

    async fn pair(listener: &Listener) -> (Socket, Socket) {
        let address = listener.0.local_addr().unwrap();
        let connecting = spawn(Socket::connect(address));
        let (server, _) = listener.accept().await.unwrap();
        (server, connecting.await.unwrap().unwrap())
    }

    async fn listener() -> Listener {
        let free = Listener::claim("127.0.0.1:0".parse().unwrap()).await.unwrap();
        Listener::bind(free).await.unwrap()
    }

    /// Proves that bytes arrive in order behind those that the vector had, on both backends.
    #[test]
    fn bytes_go_through() {
        on_both_backends(async || {
            let (server, client) = pair(&listener().await).await;
            let (written, _) = client.write(b"hello".to_vec()).await;
            written.unwrap();
            let mut got = Vec::with_capacity(64);
            got.extend_from_slice(b"> ");
            while got.len() < 7 {
                let (outcome, buffer) = server.read(got).await;
                assert!(outcome.unwrap() > 0);
                got = buffer;
            }
            assert_eq!(got, b"> hello");
        });
    }

    /// Proves that shutting a socket down ends a read that is in flight, and that what came before it is not lost.
    #[test]
    fn a_read_ends_when_its_socket_is_shut_down() {
        on_both_backends(async || {
            let (server, client) = pair(&listener().await).await;
            let reader = server.clone();
            let reading = spawn(async move {
                let mut all = Vec::new();
                loop {
                    all.reserve(16);
                    let (outcome, buffer) = reader.read(all).await;
                    all = buffer;
                    if outcome.unwrap() == 0 {
                        return all;
                    }
                }
            });
            client.write(b"last".to_vec()).await.0.unwrap();
            crate::Clock::system().sleep(std::time::Duration::from_millis(20)).await;
            server.shut_down_reads();
            assert_eq!(reading.await.unwrap(), b"last");
        });
    }

    /// Proves that a listener that is shut down ends its `accept`.
    #[test]
    fn accept_ends_when_its_listener_is_shut_down() {
        on_both_backends(async || {
            let listener = std::rc::Rc::new(listener().await);
            let accepting = listener.clone();
            let accepting = spawn(async move { accepting.accept().await.map(drop) });
            crate::Clock::system().sleep(std::time::Duration::from_millis(20)).await;
            listener.shut_down();
            assert!(accepting.await.unwrap().is_err());
        });
    }

    /// Proves that two listeners of one process share a port, and that a claim on it is refused meanwhile.
    #[test]
    fn a_port_is_shared_within_and_claimed_against_others() {
        on_both_backends(async || {
            let first = listener().await;
            let address = first.0.local_addr().unwrap();
            let second = Listener::bind(address).await.unwrap();
            assert_eq!(second.0.local_addr().unwrap(), address);
            let refused = Listener::claim(address).await.unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::AddrInUse);
        });
    }

    /// Proves that a connection goes on on another thread.
    #[test]
    fn a_socket_moves_to_another_thread() {
        on_both_backends(async || {
            let (server, client) = pair(&listener().await).await;
            let detached = server.detach().unwrap();
            let thread = std::thread::spawn(move || {
                crate::block_on(async {
                    detached.attach().unwrap().write(b"moved".to_vec()).await.0.unwrap();
                });
            });
            let mut got = Vec::new();
            while got.len() < 5 {
                got.reserve(16);
                let (outcome, buffer) = client.read(got).await;
                assert!(outcome.unwrap() > 0);
                got = buffer;
            }
            thread.join().unwrap();
            assert_eq!(got, b"moved");
        });
    }
}
