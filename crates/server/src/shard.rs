//! The server of one shard: its listeners and connections.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use halcyon_io::clock::Instant;
use halcyon_io::{
    AccessMode, DetachedSocket, Disk, Listener, Mesh, Notify, Socket, clock, descriptors, kept,
    panic_point, spawn,
};
use halcyon_model::request::SchemaChange;
use halcyon_protocol::{Event, EventType, StatusChange};
use halcyon_query::{Coordinator, RequestLimits};

use crate::admission::Admission;
use crate::cache_rates::CacheRates;
use crate::clients::Clients;
use crate::connection::{self, Connection};
use crate::log::Log;
use crate::metrics::ClientMetrics;
use crate::prepared::{LocalStatements, PreparedStatements};
use crate::running::Running;
use crate::settings::{RunningSettings, Transport};
use crate::size_estimates::{self, Known};
use crate::trace::TraceProbability;
use crate::virtual_tables::registry::Registry;

/// How long a listener waits for descriptors or memory before it looks again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// `SizeEstimatesRecorder`: when it runs first, and how often.
const FIRST_ESTIMATES: Duration = Duration::from_secs(30);
const ESTIMATES_PERIOD: Duration = Duration::from_secs(300);
/// How often stalled connections are looked for.
const SHED_PAUSE: Duration = Duration::from_millis(250);
/// How long a drain waits for clients to read their answers.
const DRAIN_PATIENCE: Duration = Duration::from_secs(5);

/// The state that all shards share.
pub(crate) struct Shared {
    pub(crate) transport: Transport,
    pub(crate) shards: usize,
    pub(crate) limits: RequestLimits,
    pub(crate) admission: Arc<Admission>,
    pub(crate) prepared: PreparedStatements,
    pub(crate) mesh: Mesh<ShardServer>,
    pub(crate) log: Log,
    pub(crate) clients: Clients,
    /// By shard.
    pub(crate) metrics: Vec<ClientMetrics>,
    pub(crate) cache_rates: Arc<CacheRates>,
    pub(crate) virtual_tables: Registry,
    /// The values of `system_views.settings`.
    pub(crate) settings: RunningSettings,
    pub(crate) data_dir: PathBuf,
    pub(crate) began: Instant,
    /// The node's, once it has joined.
    pub(crate) tokens: OnceLock<Vec<i64>>,
    pub(crate) trace_probability: TraceProbability,
    pub(crate) disk: Disk,
    /// Directory, purpose, configured mode, and whether it is for writes.
    pub(crate) io_modes: Vec<(PathBuf, &'static str, AccessMode, bool)>,
}

pub(crate) struct ShardServer {
    pub(crate) index: usize,
    pub(crate) shared: Arc<Shared>,
    pub(crate) coordinator: Coordinator,
    pub(crate) statements: LocalStatements,
    pub(crate) running: Running,
    connections: RefCell<BTreeMap<u64, Rc<Connection>>>,
    next_connection: Cell<u64>,
    listeners: RefCell<Vec<Rc<Listener>>>,
    /// Notified when a connection has ended.
    left: Notify,
    draining: Cell<bool>,
    stopped: Notify,
}

/// The shard that serves the connections of a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListenerKind {
    /// The shard that accepted the connection.
    Any,
    /// The shard that the client chooses by its source port.
    ShardAware,
}

impl ShardServer {
    pub(crate) fn new(index: usize, shared: Arc<Shared>, coordinator: Coordinator) -> ShardServer {
        ShardServer {
            index,
            shared,
            coordinator,
            statements: LocalStatements::default(),
            running: Running::default(),
            connections: RefCell::default(),
            next_connection: Cell::new(0),
            listeners: RefCell::default(),
            left: Notify::default(),
            draining: Cell::new(false),
            stopped: Notify::default(),
        }
    }

    pub(crate) fn metrics(&self) -> &ClientMetrics {
        &self.shared.metrics[self.index]
    }

    pub(crate) fn connections(&self) -> Vec<Rc<Connection>> {
        self.connections.borrow().values().cloned().collect()
    }

    pub(crate) async fn start_listening(self: Rc<Self>) -> Result<(), String> {
        let address = self.shared.transport.address;
        let aware = self.shared.transport.shard_aware_port;
        let aware =
            aware.map(|port| (SocketAddr::new(address.ip(), port), ListenerKind::ShardAware));
        for (address, kind) in [Some((address, ListenerKind::Any)), aware].into_iter().flatten() {
            let listening = self.clone().listen(address, kind).await;
            listening.map_err(|e| format!("cannot listen on {address}: {e}"))?;
        }
        Ok(())
    }

    /// Accepts until the listener is shut down.
    async fn listen(
        self: Rc<Self>,
        address: SocketAddr,
        kind: ListenerKind,
    ) -> std::io::Result<()> {
        let listener = Rc::new(Listener::bind(address).await?);
        self.listeners.borrow_mut().push(listener.clone());
        let accepting = move || self.clone().accept(listener.clone(), kind);
        spawn(kept(accepting)).detach();
        Ok(())
    }

    async fn accept(self: Rc<Self>, listener: Rc<Listener>, kind: ListenerKind) {
        while !self.draining.get() {
            self.until_there_is_room().await;
            match listener.accept().await {
                Ok((socket, peer)) => {
                    panic_point("the acceptor of connections");
                    self.clone().let_in(socket, peer, kind);
                }
                Err(_) if self.draining.get() => return,
                Err(error) => {
                    let log = &self.shared.log;
                    log.warning(format_args!("cannot accept a connection: {error}"));
                    clock::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Waits until one more connection would find a descriptor that is not of the reserve, and memory.
    async fn until_there_is_room(&self) {
        let what = || match (descriptors::are_short(), self.shared.admission.has_room()) {
            (true, _) => Some("file descriptors are short (ulimit -n, LimitNOFILE=)"),
            (_, false) => Some(
                "memory for connections is short (native_transport_max_request_data_in_flight)",
            ),
            _ => None,
        };
        let Some(short) = what() else { return };
        let log = &self.shared.log;
        log.warning(format_args!("shard {} accepts no connections for now: {short}", self.index));
        while what().is_some() && !self.draining.get() {
            clock::sleep(ACCEPT_PAUSE).await;
        }
        log.say(format_args!("shard {} accepts connections again", self.index));
    }

    fn let_in(self: Rc<Self>, socket: Socket, peer: SocketAddr, kind: ListenerKind) {
        let wanted = usize::from(peer.port()) % self.shared.shards;
        if kind == ListenerKind::Any || wanted == self.index {
            return self.adopt(socket, peer);
        }
        spawn(async move {
            // On an error the client has disconnected.
            if let Ok(detached) = socket.detach() {
                let job = move |shard: Rc<ShardServer>| async move {
                    shard.adopt_detached(detached, peer);
                };
                let _ = self.shared.mesh.on(wanted, job).await;
            }
        })
        .detach();
    }

    fn adopt_detached(self: Rc<Self>, socket: DetachedSocket, peer: SocketAddr) {
        if let Ok(socket) = socket.attach() {
            self.adopt(socket, peer);
        }
    }

    fn adopt(self: Rc<Self>, socket: Socket, peer: SocketAddr) {
        if self.draining.get() {
            return socket.shut_down();
        }
        let admitted = match self.shared.admission.enter(peer.ip()) {
            Ok(admitted) => admitted,
            Err(why) => {
                self.shared.log.warning(format_args!("{why}"));
                return socket.shut_down();
            }
        };
        if self.shared.transport.keepalive
            && let Err(error) = socket.keep_alive()
        {
            self.shared.log.warning(format_args!("no keepalive for {peer}: {error}"));
        }
        if let Err(error) = socket.time_arrivals() {
            let log = &self.shared.log;
            log.debug(format_args!(
                "the kernel does not say when requests of {peer} arrive: {error}"
            ));
        }
        self.shared.log.debug(format_args!("{peer} is connected to shard {}", self.index));
        let id = self.next_connection.replace(self.next_connection.get() + 1);
        let entry = self.shared.clients.enter(peer);
        self.metrics().connections.up();
        let connection = Rc::new(Connection::new(socket, peer, admitted, entry));
        self.connections.borrow_mut().insert(id, connection.clone());
        spawn(async move {
            connection::serve(self.clone(), connection).await;
            self.connections.borrow_mut().remove(&id);
            self.shared.clients.leave(peer);
            self.shared.log.debug(format_args!("{peer} has left"));
            self.metrics().connections.down();
            self.left.notify_one();
        })
        .detach();
    }

    /// Closes idle connections while the shard serves.
    pub(crate) async fn close_idle(self: Rc<Self>, timeout: Duration) {
        let pause = (timeout / 4).clamp(Duration::from_millis(10), Duration::from_secs(1));
        while !self.draining.get() {
            clock::sleep(pause).await;
            panic_point("the watch of idle connections");
            for connection in self.connections() {
                if connection.idle() > timeout {
                    connection.close();
                }
            }
        }
    }

    /// Keeps estimates of sizes while the shard serves.
    pub(crate) async fn estimate_sizes(self: Rc<Self>) {
        let mut known = None;
        clock::sleep(FIRST_ESTIMATES).await;
        while !self.draining.get() {
            if let Err(why) = self.record_sizes(&mut known).await
                && !self.draining.get()
            {
                let log = &self.shared.log;
                log.warning(format_args!("system.size_estimates cannot be kept: {why}"));
            }
            clock::sleep(ESTIMATES_PERIOD).await;
        }
    }

    pub(crate) async fn record_sizes(
        &self,
        known: &mut Option<Known>,
    ) -> halcyon_query::Result<()> {
        let tokens = self.shared.tokens.get().map_or(&[][..], Vec::as_slice);
        size_estimates::record(&self.coordinator, tokens, known).await
    }

    /// While memory is short, closes the connections that keep it without a step forward.
    pub(crate) async fn shed(self: Rc<Self>) {
        while !self.draining.get() {
            clock::sleep(SHED_PAUSE).await;
            panic_point("the watch of stalled connections");
            let stalled = |connection: &Rc<Connection>| {
                self.shared.admission.is_wanted() && connection.is_stalled()
            };
            for connection in self.connections().into_iter().filter(stalled) {
                self.shared.log.warning(format_args!(
                    "{} is disconnected: memory is short, and it neither reads its answers nor completes its request",
                    connection.peer
                ));
                connection.close();
            }
        }
    }

    /// Sends a schema change to the clients of this shard that registered for it.
    pub(crate) fn announce(&self, change: &SchemaChange) {
        for connection in self.connections.borrow().values() {
            connection.announce(EventType::SchemaChange, Event::SchemaChange(change));
        }
    }

    /// Sends a schema change to the clients of all shards.
    pub(crate) async fn announce_everywhere(&self, change: &SchemaChange) {
        let change = change.clone();
        let job = move |shard: Rc<ShardServer>| {
            let change = change.clone();
            async move { shard.announce(&change) }
        };
        // A stopped shard has no clients.
        let _ = self.shared.mesh.on_each(job).await;
    }

    /// Stops accepting, sends the registered clients an event, and waits until all requests are answered and all connections closed.
    pub(crate) async fn drain(self: Rc<Self>) {
        if self.draining.replace(true) {
            return;
        }
        for listener in self.listeners.borrow_mut().drain(..) {
            listener.shut_down();
        }
        for connection in self.connections() {
            let down = Event::StatusChange(StatusChange::Down, self.shared.transport.address);
            connection.announce(EventType::StatusChange, down);
            connection.finish();
        }
        let server = self.clone();
        spawn(async move {
            clock::sleep(DRAIN_PATIENCE).await;
            server.connections().iter().for_each(|connection| connection.close());
        })
        .detach();
        while !self.connections.borrow().is_empty() {
            self.left.notified().await;
        }
    }

    /// Ends the shard's thread.
    pub(crate) fn stop(&self) {
        self.stopped.notify_one();
    }

    pub(crate) async fn until_stopped(&self) {
        self.stopped.notified().await;
    }
}
