//! The server of one shard: what it knows, and its connections.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use halcyon_access::Access;
use halcyon_io::{Listener, Mesh, Notify, clock, panic_point, spawn};
use halcyon_model::request::SchemaChange;
use halcyon_protocol::{Event, EventType, StatusChange};
use halcyon_query::{ClientRequests, Coordinator, Denylist, RequestLimits};
use halcyon_tls::Policy;

use crate::admission::Admission;
use crate::clients::Clients;
use crate::connection::{Authenticator, Connection};
use crate::encryption::Encryption;
use crate::log::Log;
use crate::metrics::ClientMetrics;
use crate::native_transport::NativeTransport;
use crate::prepared::{LocalStatements, PreparedStatements};
use crate::recent_lines::RecentLines;
use crate::request_log::RequestLogs;
use crate::running::Running;
use crate::settings::Transport;
use crate::size_estimates::{self, Known};
use crate::slow_queries::SlowQueries;
use crate::trace::probability::TraceProbability;
use crate::trace::spans::Spans;

/// `SizeEstimatesRecorder`: when it runs first, and how often.
const FIRST_ESTIMATES: Duration = Duration::from_secs(30);
const ESTIMATES_PERIOD: Duration = Duration::from_secs(300);
/// How often stalled connections are looked for.
const SHED_PAUSE: Duration = Duration::from_millis(250);
/// How long a port that closes waits for clients to read their answers.
pub(crate) const CLOSING_PATIENCE: Duration = Duration::from_secs(5);

/// The shard that serves the connections of a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListenerKind {
    /// The shard that accepted the connection.
    Any,
    /// The shard that the client chooses by its source port.
    ShardAware,
    /// As `Any`; for operators, whom no limit on connections keeps out.
    Nodetool,
}

/// The state that all shards share. What virtual tables show of it, they have from the same handles (`virtual_tables::Facts`).
pub(crate) struct Shared {
    pub(crate) transport: Transport,
    pub(crate) shards: usize,
    pub(crate) limits: RequestLimits,
    pub(crate) authenticator: Box<dyn Authenticator>,
    /// `None`: all ports are plain.
    pub(crate) encryption: Option<Arc<Encryption>>,
    pub(crate) access: Arc<Access>,
    pub(crate) admission: Arc<Admission>,
    pub(crate) prepared: Arc<PreparedStatements>,
    pub(crate) mesh: Mesh<ShardServer>,
    pub(crate) log: Log,
    /// What guardrails have said in the log.
    pub(crate) told: RecentLines,
    pub(crate) clients: Arc<Clients>,
    /// By shard.
    pub(crate) metrics: Arc<[ClientMetrics]>,
    /// How long statements took.
    pub(crate) requests: Arc<ClientRequests>,
    /// The node's, once it has joined.
    pub(crate) tokens: OnceLock<Vec<i64>>,
    pub(crate) trace_probability: Arc<TraceProbability>,
    pub(crate) request_logs: Arc<RequestLogs>,
    pub(crate) slow_queries: Arc<SlowQueries>,
    /// `None`: none are sent.
    pub(crate) spans: Option<Spans>,
    /// Whether the ports of clients are open.
    pub(crate) native_transport: Arc<NativeTransport>,
    /// A client has asked for the end of the node (`nodetool stopdaemon`).
    pub(crate) is_to_stop: Arc<AtomicBool>,
    /// `None`: it is off.
    pub(crate) denylist: Option<Arc<Denylist>>,
}

impl Shared {
    /// Of `native_transport_port`, and of the shard-aware one: plain where encryption has a port of its own.
    pub(crate) fn policy(&self) -> Policy {
        match (&self.encryption, self.transport.port_ssl) {
            (Some(encryption), None) => encryption.policy(),
            _ => Policy::Unencrypted,
        }
    }

    /// Whether only clients with a trusted certificate are served, on every port.
    pub(crate) fn requires_certificates(&self) -> bool {
        let required = self.encryption.as_ref().is_some_and(|e| e.requires_certificates());
        required && self.policy() == Policy::Encrypted
    }
}

pub(crate) struct ShardServer {
    pub(crate) index: usize,
    pub(crate) shared: Arc<Shared>,
    pub(crate) coordinator: Coordinator,
    pub(crate) statements: LocalStatements,
    pub(crate) running: Running,
    connections: RefCell<BTreeMap<u64, (ListenerKind, Rc<Connection>)>>,
    next_connection: Cell<u64>,
    listeners: RefCell<Vec<(ListenerKind, Rc<Listener>)>>,
    /// Notified when a connection has ended.
    left: Notify,
    draining: Cell<bool>,
    stopped: Notify,
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
        self.connections_of(|_| true)
    }

    fn connections_of(&self, which: impl Fn(ListenerKind) -> bool) -> Vec<Rc<Connection>> {
        let connections = self.connections.borrow();
        let wanted = connections.values().filter(|(kind, _)| which(*kind));
        wanted.map(|(_, connection)| connection.clone()).collect()
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.get()
    }

    /// Whether connections of such a listener are served now.
    pub(crate) fn serves(&self, kind: ListenerKind) -> bool {
        let is_open = kind == ListenerKind::Nodetool || self.shared.native_transport.is_open();
        is_open && !self.is_draining()
    }

    /// Keeps a listener until its port is closed.
    pub(crate) fn keep_listener(&self, kind: ListenerKind, listener: Rc<Listener>) {
        self.listeners.borrow_mut().push((kind, listener));
    }

    pub(crate) fn keeps(&self, listener: &Rc<Listener>) -> bool {
        self.listeners.borrow().iter().any(|(_, kept)| Rc::ptr_eq(kept, listener))
    }

    /// Adds a connection, until it leaves under this number.
    pub(crate) fn enter(&self, kind: ListenerKind, connection: Rc<Connection>) -> u64 {
        let id = self.next_connection.replace(self.next_connection.get() + 1);
        self.connections.borrow_mut().insert(id, (kind, connection));
        self.metrics().connections.up();
        id
    }

    pub(crate) fn leave(&self, id: u64) {
        self.connections.borrow_mut().remove(&id);
        self.metrics().connections.down();
        self.left.notify_one();
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

    /// Closes the connections whose handshakes of TLS take too long, and while memory is short those that keep it without a step forward.
    pub(crate) async fn shed(self: Rc<Self>) {
        while !self.draining.get() {
            clock::sleep(SHED_PAUSE).await;
            panic_point("the watch of stalled connections");
            let stalled = |connection: &Rc<Connection>| {
                self.shared.admission.is_wanted() && connection.is_stalled()
            };
            if self.shared.encryption.is_some() {
                let late = self.connections().into_iter().filter(|connection| connection.is_late());
                late.for_each(|connection| connection.close());
            }
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
        for (_, connection) in self.connections.borrow().values() {
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

    /// Stops accepting at these listeners and sends their registered clients an event. Their requests are answered, unless the client takes
    /// longer than `patience` to read that; then their connections are closed.
    pub(crate) fn close(&self, which: impl Fn(ListenerKind) -> bool, patience: Duration) {
        for (_, listener) in self.listeners.borrow_mut().extract_if(.., |(kind, _)| which(*kind)) {
            listener.shut_down();
        }
        let closing = self.connections_of(which);
        for connection in &closing {
            let down = Event::StatusChange(StatusChange::Down, self.shared.transport.address);
            connection.announce(EventType::StatusChange, down);
            connection.finish();
        }
        let late: Vec<Weak<Connection>> = closing.iter().map(Rc::downgrade).collect();
        spawn(async move {
            clock::sleep(patience).await;
            late.iter().filter_map(Weak::upgrade).for_each(|connection| connection.close());
        })
        .detach();
    }

    /// Closes all ports, and waits until all requests are answered and all connections closed.
    pub(crate) async fn drain(self: Rc<Self>) {
        if self.draining.replace(true) {
            return;
        }
        self.close(|_| true, CLOSING_PATIENCE);
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
