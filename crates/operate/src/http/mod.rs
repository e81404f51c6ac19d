//! The endpoint: one thread, which answers all requests.

mod answer;
mod site;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::pin;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use futures_channel::oneshot;
use futures_util::future::select;
use halcyon_io::{ThreadPriority, spawn_thread};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;

use crate::page::Page;
use crate::watched::Watched;
use site::{From, Site};

/// With one more, the oldest ends: clients that connect and say nothing do not keep others out.
const CONNECTIONS_MAX: usize = 64;
/// A connection ends after this time, also one whose client does not read its answer; clients connect again.
const CONNECTION_MAX: Duration = Duration::from_secs(300);
/// The time in which a client has to send a request, from the answer before on. A server of metrics connects again.
const REQUEST_MAX: Duration = Duration::from_secs(10);
/// Bytes of a request's head.
const HEAD_MAX: usize = 16 << 10;

/// An address that is listened on until it is closed.
pub struct Endpoint {
    address: SocketAddr,
    closes: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl Endpoint {
    /// Listens on an address; port 0 takes a free one.
    ///
    /// # Errors
    /// If the address cannot be listened on.
    pub fn open(address: SocketAddr, watched: Arc<Watched>) -> io::Result<Endpoint> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (closes, closed) = oneshot::channel();
        let body = move || runtime.block_on(serve(listener, watched, closed));
        let thread = spawn_thread("metrics", ThreadPriority::Batch, body);
        Ok(Endpoint { address, closes, thread })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends all connections, and waits for the end of the thread.
    pub fn close(self) {
        drop(self.closes);
        // A panic was reported when it happened.
        let _ = self.thread.join();
    }
}

async fn serve(listener: TcpListener, watched: Arc<Watched>, closed: oneshot::Receiver<()>) {
    let is_local = listener.local_addr().is_ok_and(|address| address.ip().is_loopback());
    let site = Arc::new(Site { watched, page: Page::default(), is_local });
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let accept = async {
        let mut connections: VecDeque<AbortHandle> = VecDeque::new();
        loop {
            let Ok((stream, peer)) = listener.accept().await else {
                // Out of descriptors, mostly.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            connections.retain(|connection| !connection.is_finished());
            if connections.len() >= CONNECTIONS_MAX
                && let Some(oldest) = connections.pop_front()
            {
                oldest.abort();
            }
            let is_local = stream.local_addr().is_ok_and(|address| address.ip().is_loopback());
            let from = From { peer: peer.ip(), is_local };
            let site = site.clone();
            let served = tokio::spawn(async move {
                connection(stream, &site, from).await;
            });
            connections.push_back(served.abort_handle());
        }
    };
    select(pin!(accept), closed).await;
}

async fn connection(stream: TcpStream, site: &Site, from: From) {
    let service =
        service_fn(
            |request| async move { Ok::<_, Infallible>(answer::to(&request, site, from).await) },
        );
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST_MAX)
        .max_buf_size(HEAD_MAX)
        .serve_connection(TokioIo::new(stream), service);
    // What a client breaks is its own.
    let _ = tokio::time::timeout(CONNECTION_MAX, served).await;
}

#[cfg(test)]
mod tests;
