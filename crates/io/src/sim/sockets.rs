//! Simulated sockets: what [`crate::Socket`], [`crate::Listener`] and [`crate::Claim`] are within a simulated runtime. What happens to
//! their bytes is in `network`.

use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Poll, Waker};

use super::executor::{SimRuntime, Sleep};
use super::network::{Arrival, Backlog, End, Pipe};
use crate::sync::mutex::Mutex;

pub(crate) use super::network::SimClaim;

/// See [`crate::Claim::take`].
pub(crate) fn claim(runtime: &SimRuntime, address: SocketAddr) -> io::Result<SimClaim> {
    runtime.network().claim(address)
}

/// See [`crate::Listener`].
pub(crate) struct SimListener {
    runtime: SimRuntime,
    address: SocketAddr,
    backlog: Arc<Mutex<Backlog>>,
}

impl SimListener {
    pub(crate) fn bind(runtime: SimRuntime, address: SocketAddr) -> SimListener {
        let backlog = runtime.network().listen(address);
        SimListener { runtime, address, backlog }
    }

    pub(crate) async fn accept(&self) -> io::Result<(SimSocket, SocketAddr)> {
        poll_fn(|context| {
            let mut backlog = self.backlog.lock();
            if backlog.closed {
                return Poll::Ready(Err(ErrorKind::InvalidInput.into()));
            }
            match backlog.waiting.pop_front() {
                Some((end, peer)) => {
                    let socket = SimSocket::with(end, self.runtime.clone());
                    Poll::Ready(Ok((socket, peer)))
                }
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
            let mut backlog = self.backlog.lock();
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
        self.runtime.network().unlisten(&self.address, &self.backlog);
    }
}

/// See [`crate::Socket`].
#[derive(Clone)]
pub(crate) struct SimSocket(Arc<Connected>);

struct Connected {
    end: End,
    runtime: SimRuntime,
}

impl SimSocket {
    pub(crate) fn connect(runtime: SimRuntime, address: SocketAddr) -> io::Result<SimSocket> {
        let (there, back) = (Arc::<Mutex<Pipe>>::default(), Arc::<Mutex<Pipe>>::default());
        let end = |outgoing: &Arc<Mutex<Pipe>>, incoming: &Arc<Mutex<Pipe>>| {
            let (outgoing, incoming) = (outgoing.clone(), incoming.clone());
            End { outgoing, incoming }
        };
        let (client, server) = (end(&there, &back), end(&back, &there));
        let connected = runtime.network().connect(server, address);
        let Ok(acceptor) = connected else { return Err(ErrorKind::ConnectionRefused.into()) };
        acceptor.into_iter().for_each(Waker::wake);
        Ok(SimSocket::with(client, runtime))
    }

    fn with(end: End, runtime: SimRuntime) -> SimSocket {
        SimSocket(Arc::new(Connected { end, runtime }))
    }

    pub(crate) async fn read(&self, mut buffer: Vec<u8>) -> (io::Result<usize>, Vec<u8>) {
        loop {
            let now = self.0.runtime.clock().clock().now();
            let arrived =
                poll_fn(|context| self.0.end.incoming.lock().poll_read(context, now, &mut buffer))
                    .await;
            match arrived {
                Ok(Arrival::Bytes(count)) => return (Ok(count), buffer),
                Ok(Arrival::At(time)) => Sleep::until(self.0.runtime.clone(), time).await,
                Err(error) => return (Err(error), buffer),
            }
        }
    }

    pub(crate) async fn write(&self, bytes: Vec<u8>) -> (io::Result<()>, Vec<u8>) {
        let (resets, pieces) = self.0.runtime.network().write(bytes.clone());
        if resets {
            self.reset();
        }
        for (delay, piece) in pieces {
            let mut piece = Some(piece);
            let due = self.0.runtime.clock().clock().now() + delay;
            let sent =
                poll_fn(|context| self.0.end.outgoing.lock().poll_write(context, due, &mut piece));
            if let Err(error) = sent.await {
                return (Err(error), bytes);
            }
        }
        (Ok(()), bytes)
    }

    pub(crate) fn has_hung_up(&self) -> bool {
        let incoming = self.0.end.incoming.lock();
        incoming.reset || incoming.ended || incoming.cut
    }

    fn reset(&self) {
        for pipe in [&self.0.end.outgoing, &self.0.end.incoming] {
            Pipe::change(pipe, |pipe| {
                pipe.reset = true;
                pipe.pieces.clear();
            });
        }
    }

    pub(crate) fn shut_down(&self) {
        self.shut_down_reads();
        Pipe::change(&self.0.end.outgoing, |pipe| pipe.ended = true);
    }

    pub(crate) fn shut_down_reads(&self) {
        Pipe::change(&self.0.end.incoming, |pipe| pipe.cut = true);
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::super::network::{DELAY_MAX, WINDOW};
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
                Pipe::change(&simulated.0.end.outgoing, |pipe| pipe.ended = true);
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
