//! Connections between the tasks of one simulated runtime: bytes arrive in order, in pieces, late; a connection may be reset.
//!
//! 1. What is written is cut at random and becomes due after random delays. Each direction of a connection keeps its order; the order
//!    between connections is open.
//! 2. A direction holds at most [`WINDOW`] bytes that were not read: a writer waits for its reader, as with TCP's window.
//! 3. Several listeners may share an address; each connection goes to one of them by the seed.
//! 4. A reset (see [`SimRuntime::set_resets`]) loses what has not been read, and ends both directions with an error.

use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::executor::{SimRuntime, Sleep};
use crate::runtime::clock::{Instant, nanos};
use crate::runtime::random::Random;

const WINDOW: usize = 256 << 10;
const PIECES_MAX: u64 = 4;
const DELAY_MAX: Duration = Duration::from_micros(500);
/// One piece in this many arrives a hundred times as late.
const LATE_ONE_IN: u64 = 64;
const FIRST_PORT: u16 = 20_000;
const FIRST_CLIENT_PORT: u16 = 40_000;

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) struct Network {
    random: Random,
    listeners: BTreeMap<SocketAddr, Vec<Arc<Mutex<Backlog>>>>,
    /// Gone when their claims are dropped.
    claims: BTreeMap<SocketAddr, Weak<()>>,
    next_port: u16,
    next_client: u16,
    resets_per_million: u64,
}

#[derive(Default)]
struct Backlog {
    waiting: VecDeque<(SimSocket, SocketAddr)>,
    closed: bool,
    acceptor: Option<Waker>,
}

/// One direction of a connection.
#[derive(Default)]
struct Pipe {
    /// By the time at which they arrive.
    pieces: VecDeque<(Instant, Vec<u8>)>,
    unread: usize,
    /// The writer has closed.
    ended: bool,
    /// The reader has closed: it still gets what has arrived.
    cut: bool,
    reset: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

enum Arrival {
    Bytes(usize),
    /// Nothing before that time.
    At(Instant),
}

impl Network {
    pub(super) fn seeded(seed: u64) -> Network {
        Network {
            random: Random::seeded(seed ^ 0x6e65_7477_6f72_6b21),
            listeners: BTreeMap::new(),
            claims: BTreeMap::new(),
            next_port: FIRST_PORT,
            next_client: FIRST_CLIENT_PORT,
            resets_per_million: 0,
        }
    }

    pub(super) fn set_resets(&mut self, per_million: u64) {
        self.resets_per_million = per_million;
    }

    /// Forgets all claims, all listeners and what waits for them.
    #[must_use = "drop it without the lock"]
    pub(super) fn close_all(&mut self) -> impl Sized + use<> {
        self.claims.clear();
        std::mem::take(&mut self.listeners)
    }

    fn claim(&mut self, mut address: SocketAddr) -> io::Result<SimClaim> {
        if address.port() == 0 {
            address.set_port(self.next_port);
            self.next_port = self.next_port.checked_add(1).unwrap_or(FIRST_PORT);
        }
        let is_claimed = self.claims.get(&address).is_some_and(|held| held.strong_count() > 0);
        if is_claimed || self.listeners.contains_key(&address) {
            return Err(ErrorKind::AddrInUse.into());
        }
        let held = Arc::new(());
        self.claims.insert(address, Arc::downgrade(&held));
        Ok(SimClaim { address, _held: held })
    }

    /// Cuts what is written; the delays are from the piece before.
    fn cut(&mut self, mut bytes: Vec<u8>) -> Vec<(Duration, Vec<u8>)> {
        let mut pieces = Vec::new();
        let count = 1 + self.random.below(PIECES_MAX);
        for left in (0..count).rev() {
            let rest = match left {
                0 => Vec::new(),
                _ => bytes.split_off(self.random.below(bytes.len() as u64 + 1) as usize),
            };
            let piece = std::mem::replace(&mut bytes, rest);
            if !piece.is_empty() {
                let late = if self.random.chance(1, LATE_ONE_IN) { 100 } else { 1 };
                let most = nanos(DELAY_MAX) * late;
                pieces.push((Duration::from_nanos(self.random.below(most)), piece));
            }
        }
        pieces
    }
}

/// See [`crate::Claim`].
pub(crate) struct SimClaim {
    address: SocketAddr,
    _held: Arc<()>,
}

impl SimClaim {
    pub(crate) fn take(runtime: &SimRuntime, address: SocketAddr) -> io::Result<SimClaim> {
        runtime.network().claim(address)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

/// See [`crate::Listener`].
pub(crate) struct SimListener {
    runtime: SimRuntime,
    address: SocketAddr,
    backlog: Arc<Mutex<Backlog>>,
}

impl SimListener {
    pub(crate) fn bind(runtime: SimRuntime, address: SocketAddr) -> SimListener {
        let backlog = Arc::<Mutex<Backlog>>::default();
        runtime.network().listeners.entry(address).or_default().push(backlog.clone());
        SimListener { runtime, address, backlog }
    }

    pub(crate) async fn accept(&self) -> io::Result<(SimSocket, SocketAddr)> {
        poll_fn(|context| {
            let mut backlog = lock(&self.backlog);
            if backlog.closed {
                return Poll::Ready(Err(ErrorKind::InvalidInput.into()));
            }
            match backlog.waiting.pop_front() {
                Some(connection) => Poll::Ready(Ok(connection)),
                None => {
                    backlog.acceptor = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }

    pub(crate) fn shut_down(&self) {
        let (waiting, acceptor) = {
            let mut backlog = lock(&self.backlog);
            backlog.closed = true;
            (std::mem::take(&mut backlog.waiting), backlog.acceptor.take())
        };
        drop(waiting);
        acceptor.into_iter().for_each(Waker::wake);
    }
}

impl Drop for SimListener {
    fn drop(&mut self) {
        self.shut_down();
        let mut network = self.runtime.network();
        if let Some(sharing) = network.listeners.get_mut(&self.address) {
            sharing.retain(|other| !Arc::ptr_eq(other, &self.backlog));
            if sharing.is_empty() {
                network.listeners.remove(&self.address);
            }
        }
    }
}

/// See [`crate::Socket`].
#[derive(Clone)]
pub(crate) struct SimSocket(Arc<End>);

struct End {
    runtime: SimRuntime,
    outgoing: Arc<Mutex<Pipe>>,
    incoming: Arc<Mutex<Pipe>>,
}

impl SimSocket {
    pub(crate) fn connect(runtime: SimRuntime, address: SocketAddr) -> io::Result<SimSocket> {
        let (there, back) = (Arc::<Mutex<Pipe>>::default(), Arc::<Mutex<Pipe>>::default());
        let end = |outgoing: &Arc<Mutex<Pipe>>, incoming: &Arc<Mutex<Pipe>>| {
            let (outgoing, incoming) = (outgoing.clone(), incoming.clone());
            SimSocket(Arc::new(End { runtime: runtime.clone(), outgoing, incoming }))
        };
        let (client, server) = (end(&there, &back), end(&back, &there));
        let acceptor = {
            let mut network = runtime.network();
            let peer = SocketAddr::new(address.ip(), network.next_client);
            network.next_client = network.next_client.checked_add(1).unwrap_or(FIRST_CLIENT_PORT);
            let sharing = network.listeners.get(&address).map_or(0, Vec::len);
            let chosen = network.random.below(sharing as u64) as usize;
            let listener = network.listeners.get(&address).and_then(|all| all.get(chosen));
            let Some(listener) = listener else { return Err(ErrorKind::ConnectionRefused.into()) };
            let mut backlog = lock(listener);
            backlog.waiting.push_back((server, peer));
            backlog.acceptor.take()
        };
        acceptor.into_iter().for_each(Waker::wake);
        Ok(client)
    }

    pub(crate) async fn read(&self, mut buffer: Vec<u8>) -> (io::Result<usize>, Vec<u8>) {
        loop {
            let now = self.0.runtime.clock().clock().now();
            let arrived =
                poll_fn(|context| lock(&self.0.incoming).poll_read(context, now, &mut buffer))
                    .await;
            match arrived {
                Ok(Arrival::Bytes(count)) => return (Ok(count), buffer),
                Ok(Arrival::At(time)) => Sleep::until(self.0.runtime.clone(), time).await,
                Err(error) => return (Err(error), buffer),
            }
        }
    }

    pub(crate) async fn write(&self, bytes: Vec<u8>) -> (io::Result<()>, Vec<u8>) {
        let (resets, pieces) = {
            let mut network = self.0.runtime.network();
            let resets = network.resets_per_million;
            (network.random.chance(resets, 1_000_000), network.cut(bytes.clone()))
        };
        if resets {
            self.reset();
        }
        for (delay, piece) in pieces {
            let mut piece = Some(piece);
            let due = self.0.runtime.clock().clock().now() + delay;
            let sent =
                poll_fn(|context| lock(&self.0.outgoing).poll_write(context, due, &mut piece));
            if let Err(error) = sent.await {
                return (Err(error), bytes);
            }
        }
        (Ok(()), bytes)
    }

    pub(crate) fn has_hung_up(&self) -> bool {
        let incoming = lock(&self.0.incoming);
        incoming.reset || incoming.ended || incoming.cut
    }

    fn reset(&self) {
        for pipe in [&self.0.outgoing, &self.0.incoming] {
            Pipe::change(pipe, |pipe| {
                pipe.reset = true;
                pipe.pieces.clear();
            });
        }
    }

    pub(crate) fn shut_down(&self) {
        self.shut_down_reads();
        Pipe::change(&self.0.outgoing, |pipe| pipe.ended = true);
    }

    pub(crate) fn shut_down_reads(&self) {
        Pipe::change(&self.0.incoming, |pipe| pipe.cut = true);
    }
}

impl Drop for End {
    fn drop(&mut self) {
        Pipe::change(&self.outgoing, |pipe| pipe.ended = true);
        Pipe::change(&self.incoming, |pipe| {
            pipe.cut = true;
            pipe.pieces.clear();
        });
    }
}

impl Pipe {
    /// Changes it and wakes both sides, without the lock.
    fn change(pipe: &Mutex<Pipe>, change: impl FnOnce(&mut Pipe)) {
        let wakers = {
            let mut pipe = lock(pipe);
            change(&mut pipe);
            [pipe.reader.take(), pipe.writer.take()]
        };
        wakers.into_iter().flatten().for_each(Waker::wake);
    }

    fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        now: Instant,
        buffer: &mut Vec<u8>,
    ) -> Poll<io::Result<Arrival>> {
        if self.reset {
            return Poll::Ready(Err(ErrorKind::ConnectionReset.into()));
        }
        match self.pieces.front_mut() {
            Some((due, piece)) if *due <= now => {
                let count = piece.len().min(buffer.capacity() - buffer.len());
                buffer.extend(piece.drain(..count));
                if piece.is_empty() {
                    self.pieces.pop_front();
                }
                self.unread -= count;
                self.writer.take().into_iter().for_each(Waker::wake);
                Poll::Ready(Ok(Arrival::Bytes(count)))
            }
            _ if self.cut => Poll::Ready(Ok(Arrival::Bytes(0))),
            Some((due, _)) => Poll::Ready(Ok(Arrival::At(*due))),
            None if self.ended => Poll::Ready(Ok(Arrival::Bytes(0))),
            None => {
                self.reader = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    fn poll_write(
        &mut self,
        context: &mut Context<'_>,
        due: Instant,
        piece: &mut Option<Vec<u8>>,
    ) -> Poll<io::Result<()>> {
        if self.reset {
            return Poll::Ready(Err(ErrorKind::ConnectionReset.into()));
        }
        if self.cut || self.ended {
            return Poll::Ready(Err(ErrorKind::BrokenPipe.into()));
        }
        if self.unread >= WINDOW {
            self.writer = Some(context.waker().clone());
            return Poll::Pending;
        }
        if let Some(piece) = piece.take() {
            let due = self.pieces.back().map_or(due, |(last, _)| due.max(*last));
            self.unread += piece.len();
            self.pieces.push_back((due, piece));
            self.reader.take().into_iter().for_each(Waker::wake);
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;
    use crate::{Claim, Listener, Socket, spawn};

    fn address() -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], 9042))
    }

    async fn read_all(socket: &Socket) -> io::Result<Vec<u8>> {
        let mut all = Vec::new();
        loop {
            all.reserve(7);
            let (outcome, buffer) = socket.read(all).await;
            all = buffer;
            if outcome? == 0 {
                return Ok(all);
            }
        }
    }

    /// Proves that bytes arrive in order, in pieces, on one of two listeners; that a reader bounds its writer; and that the
    /// writer's end is the reader's.
    #[test]
    fn bytes_arrive_in_order() {
        for seed in 0..20 {
            SimRuntime::seeded(seed).block_on(async {
                let claim = Claim::take(address()).await.unwrap();
                let address = claim.address();
                assert!(Claim::take(address).await.is_err(), "seed {seed}");
                let accepted = Rc::new(std::cell::Cell::new(0));
                for _ in 0..2 {
                    let listener = Listener::bind(address).await.unwrap();
                    let accepted = accepted.clone();
                    spawn(async move {
                        let (socket, _) = listener.accept().await.unwrap();
                        accepted.set(accepted.get() + 1);
                        let got = read_all(&socket).await.unwrap();
                        socket.write(got).await.0.unwrap();
                    })
                    .detach();
                }
                drop(claim);
                assert!(Claim::take(address).await.is_err(), "seed {seed}");
                let socket = Socket::connect(address).await.unwrap();
                let sent: Vec<u8> = (0..3 * WINDOW).map(|n| (n % 251) as u8).collect();
                socket.write(sent.clone()).await.0.unwrap();
                let mut got = Vec::with_capacity(16);
                // Only the write direction is closed: the other side answers when it has all.
                let simulated = socket.simulated().unwrap();
                Pipe::change(&simulated.0.outgoing, |pipe| pipe.ended = true);
                while got.len() < sent.len() {
                    got.reserve(1000);
                    let (outcome, buffer) = socket.read(got).await;
                    assert!(outcome.unwrap() > 0, "seed {seed}");
                    got = buffer;
                }
                assert_eq!(accepted.get(), 1, "seed {seed}");
                assert!(got == sent, "seed {seed}");
            });
        }
    }

    /// Proves that a reset ends both sides, and that a connection to an address without a listener fails.
    #[test]
    fn connections_are_reset() {
        let runtime = SimRuntime::seeded(1);
        runtime.block_on(async {
            assert!(Socket::connect(address()).await.is_err());
            let listener = Listener::bind(address()).await.unwrap();
            let socket = Socket::connect(address()).await.unwrap();
            let (other, _) = listener.accept().await.unwrap();
            runtime.set_resets(1_000_000);
            assert!(socket.write(b"lost".to_vec()).await.0.is_err());
            assert_eq!(read_all(&other).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
        });
    }

    /// Proves that shutting down ends an `accept`, and a read that waits, with what came before it.
    #[test]
    fn shutting_down_ends_waits() {
        SimRuntime::seeded(2).block_on(async {
            let listener = Rc::new(Listener::bind(address()).await.unwrap());
            let socket = Socket::connect(address()).await.unwrap();
            let (other, _) = listener.accept().await.unwrap();
            let there = listener.clone();
            let accepting = spawn(async move { there.accept().await.is_err() });
            listener.shut_down();
            assert_eq!(accepting.await, Some(true));
            socket.write(b"last".to_vec()).await.0.unwrap();
            let there = other.clone();
            let reading = spawn(async move { read_all(&there).await });
            crate::clock::sleep(DELAY_MAX * 1000).await;
            other.shut_down_reads();
            assert_eq!(reading.await.unwrap().unwrap(), b"last");
        });
    }
}
