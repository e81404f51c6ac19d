//! The state of connections between the tasks of one simulated runtime: bytes arrive in order, in pieces, late; a connection may be reset.
//!
//! 1. What is written is cut at random and becomes due after random delays. Each direction of a connection keeps its order; the order
//!    between connections is open.
//! 2. A direction holds at most [`WINDOW`] bytes that were not read: a writer waits for its reader, as with TCP's window.
//! 3. Several listeners may share an address; each connection goes to one of them by the seed.
//! 4. A reset (see [`crate::SimRuntime::set_resets`]) discards the unread bytes and ends both directions with an error.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::runtime::clock::{Instant, nanos};
use crate::runtime::random::Random;
use crate::sync::mutex::Mutex;

pub(super) const WINDOW: usize = 256 << 10;
const PIECES_MAX: u64 = 4;
pub(super) const DELAY_MAX: Duration = Duration::from_micros(500);
/// One piece in this many arrives a hundred times as late.
const LATE_ONE_IN: u64 = 64;
const FIRST_PORT: u16 = 20_000;
const FIRST_CLIENT_PORT: u16 = 40_000;

pub(super) struct Network {
    random: Random,
    listeners: BTreeMap<SocketAddr, Vec<Arc<Mutex<Backlog>>>>,
    /// JobLost when their claims are dropped.
    claims: BTreeMap<SocketAddr, Weak<()>>,
    next_port: u16,
    next_client: u16,
    resets_per_million: u64,
}

/// Connections that wait for `accept`.
#[derive(Default)]
pub(super) struct Backlog {
    pub(super) waiting: VecDeque<(End, SocketAddr)>,
    pub(super) closed: bool,
    pub(super) acceptor: Option<Waker>,
}

/// One end of a connection; dropped, it closes both directions.
pub(super) struct End {
    pub(super) outgoing: Arc<Mutex<Pipe>>,
    pub(super) incoming: Arc<Mutex<Pipe>>,
}

/// See [`crate::Claim`].
pub(crate) struct SimClaim {
    address: SocketAddr,
    _held: Arc<()>,
}

impl SimClaim {
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

/// One direction of a connection.
#[derive(Default)]
pub(super) struct Pipe {
    /// By the time at which they arrive.
    pub(super) pieces: VecDeque<(Instant, Vec<u8>)>,
    unread: usize,
    /// The writer has closed.
    pub(super) ended: bool,
    /// The reader has closed: it still gets what has arrived.
    pub(super) cut: bool,
    pub(super) reset: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

pub(super) enum Arrival {
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

    pub(super) fn claim(&mut self, mut address: SocketAddr) -> io::Result<SimClaim> {
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

    pub(super) fn listen(&mut self, address: SocketAddr) -> Arc<Mutex<Backlog>> {
        let backlog = Arc::<Mutex<Backlog>>::default();
        self.listeners.entry(address).or_default().push(backlog.clone());
        backlog
    }

    pub(super) fn unlisten(&mut self, address: &SocketAddr, backlog: &Arc<Mutex<Backlog>>) {
        if let Some(sharing) = self.listeners.get_mut(address) {
            sharing.retain(|other| !Arc::ptr_eq(other, backlog));
            if sharing.is_empty() {
                self.listeners.remove(address);
            }
        }
    }

    /// Gives `server` to a listener of the address; returns the acceptor to be woken without the lock.
    pub(super) fn connect(
        &mut self,
        server: End,
        address: SocketAddr,
    ) -> Result<Option<Waker>, End> {
        let peer = SocketAddr::new(address.ip(), self.next_client);
        self.next_client = self.next_client.checked_add(1).unwrap_or(FIRST_CLIENT_PORT);
        let sharing = self.listeners.get(&address).map_or(0, Vec::len);
        let chosen = self.random.below(sharing as u64) as usize;
        let listener = self.listeners.get(&address).and_then(|all| all.get(chosen));
        let Some(listener) = listener else { return Err(server) };
        let mut backlog = listener.lock();
        backlog.waiting.push_back((server, peer));
        Ok(backlog.acceptor.take())
    }

    /// Whether a write resets its connection, and the pieces in which the bytes arrive otherwise.
    pub(super) fn write(&mut self, bytes: Vec<u8>) -> (bool, Vec<(Duration, Vec<u8>)>) {
        let resets = self.resets_per_million;
        (self.random.chance(resets, 1_000_000), self.cut(bytes))
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
    pub(super) fn change(pipe: &Mutex<Pipe>, change: impl FnOnce(&mut Pipe)) {
        let wakers = {
            let mut pipe = pipe.lock();
            change(&mut pipe);
            [pipe.reader.take(), pipe.writer.take()]
        };
        wakers.into_iter().flatten().for_each(Waker::wake);
    }

    pub(super) fn poll_read(
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

    pub(super) fn poll_write(
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
