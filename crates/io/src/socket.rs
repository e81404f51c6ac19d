//! Sockets: TCP listeners and streams on the thread's runtime, ring or poll.
//!
//! 1. Each thread has a listener of its own on the same port (`SO_REUSEPORT`); the kernel spreads connections over them. The process
//!    has claimed the port before ([`Claim`]).
//! 2. Buffers are owned: a read takes a vector and gives it back longer, a write gives it back as it was.
//! 3. A read is ended by [`Socket::shut_down`], never by dropping it: what a dropped read has received is lost.
//! 4. A socket may move to another thread between two operations ([`Socket::detach`]).
//! 5. Where a simulated runtime runs, all of this is simulated (`sim/network.rs`).

use std::io;
use std::mem::MaybeUninit;
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Duration;

use compio::buf::{BufResult, IntoInner, IoBuf, IoBufMut};
use compio::io::ancillary::{
    AncillaryBuf, AncillaryData, AncillaryIter, AncillaryRef, AsyncReadAncillary, CodecError,
    ancillary_space,
};
use compio::io::{AsyncWrite, AsyncWriteExt};
use compio::net::{TcpListener, TcpSocket, TcpStream};

use crate::runtime::clock::unix_micros;
use crate::sim::executor;
use crate::sim::sockets::{self, SimClaim, SimListener, SimSocket};

/// Connections that the kernel keeps until they are accepted.
const BACKLOG: i32 = 1024;

/// The system's, or a simulated one.
#[derive(Clone)]
enum Either<T, S> {
    System(T),
    Simulated(S),
}

/// Accepts connections on one thread.
pub struct Listener(Either<TcpListener, SimListener>);

impl Listener {
    /// One of several listeners of this process on an address that it has claimed.
    pub async fn bind(address: SocketAddr) -> io::Result<Listener> {
        match executor::entered() {
            Some(runtime) => Ok(Listener(Either::Simulated(SimListener::bind(runtime, address)))),
            None => {
                let socket = unbound(address).await?;
                socket.set_reuseport(true)?;
                socket.bind(address).await?;
                Ok(Listener(Either::System(socket.listen(BACKLOG).await?)))
            }
        }
    }

    /// The next connection and who made it. Small packets are sent at once (`TCP_NODELAY`).
    pub async fn accept(&self) -> io::Result<(Socket, SocketAddr)> {
        match &self.0 {
            Either::System(listener) => {
                let (stream, peer) = listener.accept().await?;
                stream.set_nodelay(true)?;
                Ok((Socket(Either::System(stream)), peer))
            }
            Either::Simulated(listener) => {
                let (socket, peer) = listener.accept().await?;
                Ok((Socket(Either::Simulated(socket)), peer))
            }
        }
    }

    /// Ends `accept` with an error; the port is free again when the listener is dropped.
    pub fn shut_down(&self) {
        match &self.0 {
            Either::System(listener) => shut_down(listener.as_raw_fd(), Shutdown::Both),
            Either::Simulated(listener) => listener.shut_down(),
        }
    }
}

/// A socket that connections of an earlier process (`TIME_WAIT`) do not keep from its port.
async fn unbound(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4().await?,
        SocketAddr::V6(_) => TcpSocket::new_v6().await?,
    };
    socket.set_reuseaddr(true)?;
    Ok(socket)
}

/// Reserves an address for this process until the claim is dropped or the process ends: no other process of the network namespace, of
/// whatever user, can listen on it. Without a claim, `SO_REUSEPORT` would silently share the port with another process of the same user.
///
/// A bound socket that does not listen holds it, so that connections are refused meanwhile:
/// 1. It listens for a moment, because of sockets that are bound with `SO_REUSEADDR` the kernel lets one listen: of two processes at
///    one time one fails here. A filter drops what arrives in that moment, so no client gets in; its system tries again.
/// 2. It takes `SO_REUSEADDR` from itself and stops listening. No later claim binds beside it.
/// 3. It gives itself `SO_REUSEPORT`, with which the listeners of this process bind beside it; a claim has none, and fails.
///
/// The kernel knows which addresses overlap: wildcards, and those of IPv4 in those of IPv6.
pub struct Claim {
    address: SocketAddr,
    _held: Either<TcpListener, SimClaim>,
}

impl Claim {
    /// Takes an address; port `0` becomes a free one.
    pub async fn take(address: SocketAddr) -> io::Result<Claim> {
        if let Some(runtime) = executor::entered() {
            let claim = sockets::claim(&runtime, address)?;
            return Ok(Claim { address: claim.address(), _held: Either::Simulated(claim) });
        }
        let chosen = unbound(address).await?;
        let address = match address.port() {
            // The port stays with a socket that stops listening only if it was bound by its number.
            0 => {
                chosen.bind(address).await?;
                chosen.local_addr()?
            }
            _ => address,
        };
        let socket = unbound(address).await?;
        drop_arrivals(socket.as_raw_fd())?;
        socket.bind(address).await?;
        let held = socket.listen(1).await?;
        set_option(held.as_raw_fd(), libc::SO_REUSEADDR, &0)?;
        set_option(held.as_raw_fd(), libc::SO_REUSEPORT, &1)?;
        shut_down(held.as_raw_fd(), Shutdown::Both);
        Ok(Claim { address, _held: Either::System(held) })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Has the kernel drop every packet for a socket.
fn drop_arrivals(fd: i32) -> io::Result<()> {
    // One instruction of its filters: return 0, the length to keep.
    let mut drop_all =
        [libc::sock_filter { code: (libc::BPF_RET | libc::BPF_K) as u16, jt: 0, jf: 0, k: 0 }];
    let program = libc::sock_fprog { len: 1, filter: drop_all.as_mut_ptr() };
    set_option(fd, libc::SO_ATTACH_FILTER, &program)
}

/// A connection; clones are the same one.
#[derive(Clone)]
pub struct Socket(Either<TcpStream, SimSocket>);

impl Socket {
    pub async fn connect(address: SocketAddr) -> io::Result<Socket> {
        if let Some(runtime) = executor::entered() {
            return SimSocket::connect(runtime, address)
                .map(|socket| Socket(Either::Simulated(socket)));
        }
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Socket(Either::System(stream)))
    }

    /// Appends what has arrived, at most as much as the vector has room for without growing; zero is the end.
    pub async fn read(&self, buffer: Vec<u8>) -> (io::Result<usize>, Vec<u8>) {
        let (outcome, buffer, _) = self.read_timed(buffer).await;
        (outcome, buffer)
    }

    /// As `read`; besides, how long the last byte of it had been here, where the kernel says so: zero before [`Socket::time_arrivals`],
    /// and when the calendar has jumped back.
    pub async fn read_timed(&self, buffer: Vec<u8>) -> (io::Result<usize>, Vec<u8>, Duration) {
        match &self.0 {
            Either::System(stream) => {
                let mut stream = stream;
                let control = AncillaryBuf::<{ ancillary_space::<Stamp>() }>::new();
                let BufResult(outcome, (rest, control)) =
                    stream.read_with_ancillary(buffer.uninit(), control).await;
                let waited =
                    stamp(&control).map_or(0, |stamp| unix_micros().saturating_sub(stamp.micros()));
                let waited = Duration::from_micros(u64::try_from(waited).unwrap_or(0));
                (outcome.map(|(length, ..)| length), rest.into_inner(), waited)
            }
            Either::Simulated(socket) => {
                let (outcome, buffer) = socket.read(buffer).await;
                (outcome, buffer, Duration::ZERO)
            }
        }
    }

    /// Writes all of it; the vector comes back to be used again.
    pub async fn write(&self, bytes: Vec<u8>) -> (io::Result<()>, Vec<u8>) {
        match &self.0 {
            Either::System(stream) => {
                let mut stream = stream;
                let BufResult(outcome, bytes) = stream.write_all(bytes).await;
                (outcome, bytes)
            }
            Either::Simulated(socket) => socket.write(bytes).await,
        }
    }

    /// Writes what the peer has room for, from a position on; how much that was tells whether the peer reads.
    pub async fn write_some(&self, bytes: Vec<u8>, from: usize) -> (io::Result<usize>, Vec<u8>) {
        let from = from.min(bytes.len());
        match &self.0 {
            Either::System(stream) => {
                let mut stream = stream;
                let BufResult(outcome, slice) = stream.write(bytes.slice(from..)).await;
                (outcome, slice.into_inner())
            }
            Either::Simulated(socket) => {
                let rest = bytes.get(from..).unwrap_or_default().to_vec();
                let (outcome, rest) = socket.write(rest).await;
                (outcome.map(|()| rest.len()), bytes)
            }
        }
    }

    /// Ends both directions: a read in flight comes back with what there is, then with nothing.
    pub fn shut_down(&self) {
        match &self.0 {
            Either::System(stream) => shut_down(stream.as_raw_fd(), Shutdown::Both),
            Either::Simulated(socket) => socket.shut_down(),
        }
    }

    /// Ends reading only: what is being answered can still be sent.
    pub fn shut_down_reads(&self) {
        match &self.0 {
            Either::System(stream) => shut_down(stream.as_raw_fd(), Shutdown::Read),
            Either::Simulated(socket) => socket.shut_down_reads(),
        }
    }

    /// Whether the peer sends nothing more, as a read would tell behind the bytes that have arrived.
    pub fn has_hung_up(&self) -> bool {
        match &self.0 {
            Either::System(stream) => {
                let wanted = libc::POLLRDHUP;
                let mut entry = libc::pollfd { fd: stream.as_raw_fd(), events: wanted, revents: 0 };
                // SAFETY: one entry, a live local; its descriptor is open while `self` lives.
                let ready = unsafe { libc::poll(&raw mut entry, 1, 0) };
                ready > 0
            }
            Either::Simulated(socket) => socket.has_hung_up(),
        }
    }

    /// The kernel asks after a peer that has been silent for long, and ends the connection if it has gone (`SO_KEEPALIVE`).
    pub fn keep_alive(&self) -> io::Result<()> {
        self.switch_on(libc::SO_KEEPALIVE)
    }

    /// The kernel notes when bytes arrive, for [`Socket::read_timed`] (`SO_TIMESTAMPNS`).
    pub fn time_arrivals(&self) -> io::Result<()> {
        self.switch_on(libc::SO_TIMESTAMPNS)
    }

    fn switch_on(&self, option: libc::c_int) -> io::Result<()> {
        let Either::System(stream) = &self.0 else { return Ok(()) };
        set_option(stream.as_raw_fd(), option, &1)
    }

    /// A handle that another thread can attach to its own runtime. No operation may be in flight.
    pub fn detach(self) -> io::Result<DetachedSocket> {
        match &self.0 {
            Either::System(stream) => {
                let fd: BorrowedFd<'_> = stream.as_fd();
                let stream = std::net::TcpStream::from(fd.try_clone_to_owned()?);
                Ok(DetachedSocket(Either::System(stream)))
            }
            Either::Simulated(socket) => Ok(DetachedSocket(Either::Simulated(socket.clone()))),
        }
    }
}

#[cfg(test)]
impl Socket {
    pub(crate) fn simulated(&self) -> Option<&SimSocket> {
        match &self.0 {
            Either::System(_) => None,
            Either::Simulated(socket) => Some(socket),
        }
    }
}

/// A connection between two threads.
pub struct DetachedSocket(Either<std::net::TcpStream, SimSocket>);

impl DetachedSocket {
    /// Call it inside `block_on`.
    pub fn attach(self) -> io::Result<Socket> {
        match self.0 {
            Either::System(stream) => {
                TcpStream::from_std(stream).map(|stream| Socket(Either::System(stream)))
            }
            Either::Simulated(socket) => Ok(Socket(Either::Simulated(socket))),
        }
    }
}

/// When bytes arrived, by the calendar: `struct timespec`, as the kernel writes it.
struct Stamp([i64; 2]);

impl Stamp {
    fn micros(&self) -> i64 {
        let Stamp([seconds, nanos]) = self;
        seconds.saturating_mul(1_000_000).saturating_add(nanos / 1000)
    }
}

impl AncillaryData for Stamp {
    fn encode(&self, _: &mut [MaybeUninit<u8>]) -> Result<(), CodecError> {
        Err(CodecError::other("only the kernel says when bytes arrived"))
    }

    fn decode(bytes: &[u8]) -> Result<Stamp, CodecError> {
        let number = |bytes: Option<&[u8; 8]>| bytes.copied().map(i64::from_ne_bytes);
        let seconds = number(bytes.first_chunk());
        let nanos = number(bytes.get(8..).and_then(|rest| rest.first_chunk()));
        let both = seconds.zip(nanos).ok_or(CodecError::BufferTooSmall);
        both.map(|(seconds, nanos)| Stamp([seconds, nanos]))
    }
}

/// Of what was read with these control messages.
fn stamp(control: &[u8]) -> Option<Stamp> {
    if control.is_empty() {
        return None;
    }
    // SAFETY: the kernel has written them, as many bytes as there are.
    let mut messages = unsafe { AncillaryIter::new(control) };
    let is_stamp = |message: &AncillaryRef<'_>| {
        (message.level(), message.ty()) == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS)
    };
    messages.find(is_stamp)?.data().ok()
}

/// Sets an option of a socket, whose value has the type that the kernel expects of it.
fn set_option<T>(fd: i32, option: libc::c_int, value: &T) -> io::Result<()> {
    let length = size_of_val(value) as libc::socklen_t;
    // SAFETY: the descriptor is open, its owner is borrowed by the caller; the value lives, and has the length given.
    let failed = unsafe {
        libc::setsockopt(fd, libc::SOL_SOCKET, option, (&raw const *value).cast(), length)
    };
    if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn shut_down(fd: i32, how: Shutdown) {
    let how = match how {
        Shutdown::Read => libc::SHUT_RD,
        Shutdown::Write => libc::SHUT_WR,
        Shutdown::Both => libc::SHUT_RDWR,
    };
    // A peer that has disconnected already is fine. SAFETY: the descriptor is open, its owner is borrowed by the caller.
    unsafe { libc::shutdown(fd, how) };
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

    use super::*;
    use crate::clock::sleep;
    use crate::{BackendChoice, block_on_backend, spawn};

    fn on_both_backends(test: impl AsyncFn()) {
        block_on_backend(BackendChoice::Auto, test()).expect("auto always has a backend");
        block_on_backend(BackendChoice::Pool, test()).expect("the pool is always there");
    }

    fn bound(listener: &Listener) -> io::Result<SocketAddr> {
        match &listener.0 {
            Either::System(listener) => listener.local_addr(),
            Either::Simulated(_) => panic!("no simulated runtime runs"),
        }
    }

    async fn pair(listener: &Listener) -> (Socket, Socket) {
        let address = bound(listener).unwrap();
        let connecting = spawn(Socket::connect(address));
        let (server, _) = listener.accept().await.unwrap();
        (server, connecting.await.unwrap().unwrap())
    }

    async fn listener() -> Listener {
        let free = Claim::take("127.0.0.1:0".parse().unwrap()).await.unwrap();
        Listener::bind(free.address()).await.unwrap()
    }

    /// Proves that `has_hung_up` reports a closed peer even while bytes from it are unread, and does not report an open one.
    #[test]
    fn who_hangs_up_is_seen() {
        on_both_backends(async || {
            let (server, client) = pair(&listener().await).await;
            let (written, _) = client.write(b"hello".to_vec()).await;
            written.unwrap();
            let (read, _) = server.read(Vec::with_capacity(1)).await;
            assert_eq!((read.unwrap(), server.has_hung_up()), (1, false));
            drop(client);
            while !server.has_hung_up() {
                sleep(Duration::from_millis(1)).await;
            }
        });
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

    /// Proves that a read says how long the last of what it brings has been there, if it was asked to, and whether or not it was there
    /// before the read.
    #[test]
    fn arrivals_are_timed() {
        const WAITS: Duration = Duration::from_millis(50);
        on_both_backends(async || {
            let (server, client) = pair(&listener().await).await;
            let sleep = async || crate::Clock::system().sleep(WAITS).await;
            client.write(b"unasked".to_vec()).await.0.unwrap();
            sleep().await;
            let (outcome, got, waited) = server.read_timed(Vec::with_capacity(64)).await;
            assert_eq!(
                (outcome.unwrap(), got.as_slice(), waited),
                (7, &b"unasked"[..], Duration::ZERO)
            );
            server.time_arrivals().unwrap();
            // The kernel begins to stamp a moment after the first socket of all has asked it to.
            let mut waited = Duration::ZERO;
            for _ in 0..100 {
                client.write(b"late".to_vec()).await.0.unwrap();
                sleep().await;
                let (outcome, got, that) = server.read_timed(Vec::with_capacity(64)).await;
                assert_eq!((outcome.unwrap(), got.as_slice()), (4, &b"late"[..]));
                waited = that;
                if !waited.is_zero() {
                    break;
                }
            }
            assert!(waited >= WAITS, "{waited:?}");
            // The thread does something else while the bytes arrive behind a read that waits for them.
            let reading = spawn(async move { server.read_timed(Vec::with_capacity(64)).await.2 });
            crate::Clock::system().sleep(Duration::from_millis(1)).await;
            client.write(b"busy".to_vec()).await.0.unwrap();
            let begun = std::time::Instant::now();
            while begun.elapsed() < WAITS {
                std::hint::spin_loop();
            }
            let waited = reading.await.unwrap();
            assert!(waited >= WAITS / 2, "{waited:?}");
        });
    }

    /// Proves that a write in parts resumes where it was, and stops where the peer does not read.
    #[test]
    fn a_write_in_parts() {
        on_both_backends(async || {
            let (server, client) = pair(&listener().await).await;
            let (outcome, bytes) = client.write_some(b"hello".to_vec(), 3).await;
            assert_eq!((outcome.unwrap(), bytes.as_slice()), (2, b"hello".as_slice()));
            let (outcome, got) = server.read(Vec::with_capacity(8)).await;
            assert_eq!((outcome.unwrap(), got.as_slice()), (2, b"lo".as_slice()));
            let large = vec![0; 64 << 20];
            let (outcome, large) = client.write_some(large, 0).await;
            assert!(outcome.unwrap() < large.len());
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
            crate::Clock::system().sleep(Duration::from_millis(20)).await;
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
            crate::Clock::system().sleep(Duration::from_millis(20)).await;
            listener.shut_down();
            assert!(accepting.await.unwrap().is_err());
        });
    }

    async fn is_taken(address: SocketAddr) -> bool {
        match Claim::take(address).await {
            Ok(_) => false,
            Err(error) => error.kind() == io::ErrorKind::AddrInUse,
        }
    }

    /// Proves that a claim refuses connections and other claims, on overlapping addresses too, before, while and after its own listeners
    /// share the port, and that nothing stays of it.
    #[test]
    fn a_claimed_port_is_shared_within_and_kept_from_others() {
        on_both_backends(async || {
            for (of, others) in [
                ("127.0.0.1:0", ["127.0.0.1", "0.0.0.0", "::"]),
                ("0.0.0.0:0", ["127.0.0.1", "0.0.0.0", "::"]),
                ("[::]:0", ["127.0.0.1", "::1", "::"]),
            ] {
                let claim = Claim::take(of.parse().unwrap()).await.unwrap();
                let address = claim.address();
                let others = others.map(|ip| SocketAddr::new(ip.parse().unwrap(), address.port()));
                let connect = SocketAddr::from(([127, 0, 0, 1], address.port()));
                assert!(std::net::TcpStream::connect(connect).is_err(), "{of}");
                for other in others {
                    assert!(is_taken(other).await, "{of} {other}");
                }
                let first = Listener::bind(address).await.unwrap();
                let second = Listener::bind(address).await.unwrap();
                assert_eq!((bound(&first).unwrap(), bound(&second).unwrap()), (address, address));
                for other in others {
                    assert!(is_taken(other).await, "{of} {other}");
                }
                let client = Socket::connect(connect).await.unwrap();
                drop((first, second));
                assert!(is_taken(address).await, "{of}");
                drop((claim, client));
                assert!(!is_taken(address).await, "{of}");
            }
        });
    }

    /// Proves that of claims that are made at one time one succeeds.
    #[test]
    fn one_of_several_claims_succeeds() {
        const ROUNDS: u32 = 50;
        let free = crate::block_on(Claim::take("127.0.0.1:0".parse().unwrap())).unwrap();
        let address = free.address();
        drop(free);
        let (barrier, won) = (std::sync::Barrier::new(4), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    crate::block_on(async {
                        for _ in 0..ROUNDS {
                            barrier.wait();
                            let claim = Claim::take(address).await;
                            won.fetch_add(u32::from(claim.is_ok()), SeqCst);
                            barrier.wait();
                            drop(claim);
                            barrier.wait();
                        }
                    });
                });
            }
        });
        assert_eq!(won.load(SeqCst), ROUNDS);
    }

    /// Proves that a connection continues on another thread.
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
