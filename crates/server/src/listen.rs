//! Opens and closes ports, accepts the connections of each shard, and serves them.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use halcyon_io::{DetachedSocket, Listener, Socket, clock, descriptors, kept, panic_point, spawn};
use halcyon_scan::Held;
use halcyon_tls::Policy;

use crate::clients::Entry;
use crate::connection::serve::serve;
use crate::connection::{Connection, Tls, Transport};
use crate::shard::{CLOSING_PATIENCE, ListenerKind, ShardServer, Shared};

/// How long a listener waits for descriptors or memory before it looks again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How long requests may take that are interrupted: the answer to the command is one of them.
const INTERRUPTION: Duration = Duration::from_millis(100);

/// What connections of TLS take beside others: a session, and a buffer of sealed bytes. Chosen: half as much again as measured.
const ENCRYPTED: u64 = 64 << 10;

/// Opens the ports on all shards; open ones stay.
pub(crate) async fn open(shared: &Shared) -> Result<(), String> {
    let transport = &shared.native_transport;
    let _changing = transport.change().await;
    if transport.is_open() {
        return Ok(());
    }
    transport.set(true);
    // One shard after the other: one that cannot listen ends the start before the next ones take clients.
    for shard in 0..shared.shards {
        let open = |server: Rc<ShardServer>| async move { start(&server).await };
        let opened = shared.mesh.on(shard, open).await;
        if let Err(why) = opened.map_err(|e| e.to_string()).flatten() {
            close_on_each(shared, CLOSING_PATIENCE).await;
            return Err(why);
        }
    }
    let address = shared.transport.address;
    shared.log.say(format_args!("listening for CQL clients on {address}"));
    Ok(())
}

/// Closes the ports, and soon the connections through them. `interrupts`: requests that run are not waited for.
pub(crate) async fn close(shared: &Shared, interrupts: bool) {
    let _changing = shared.native_transport.change().await;
    if shared.native_transport.is_open() {
        shared.log.say(format_args!("stop listening for CQL clients"));
        close_on_each(shared, if interrupts { INTERRUPTION } else { CLOSING_PATIENCE }).await;
    }
}

async fn close_on_each(shared: &Shared, patience: Duration) {
    shared.native_transport.set(false);
    let close = move |server: Rc<ShardServer>| async move {
        server.close(|kind| kind != ListenerKind::Nodetool, patience);
    };
    // A stopped shard has no clients.
    let _ = shared.mesh.on_each(close).await;
}

/// Opens the port of `nodetool`, which stays open until the shard drains.
pub(crate) async fn start_nodetool(server: &Rc<ShardServer>) -> Result<(), String> {
    let Some(address) = server.shared.transport.nodetool.address else { return Ok(()) };
    let how = (ListenerKind::Nodetool, server.shared.policy());
    listen(server.clone(), address, how).await
}

/// Opens the ports of clients on a shard.
async fn start(server: &Rc<ShardServer>) -> Result<(), String> {
    let transport = &server.shared.transport;
    let address = transport.address;
    let at = |port| SocketAddr::new(address.ip(), port);
    let policy = server.shared.policy();
    let aware = transport.shard_aware_port.map(|port| (at(port), ListenerKind::ShardAware, policy));
    let encrypted = server.shared.encryption.as_ref().zip(transport.port_ssl);
    let encrypted = encrypted.map(|(tls, port)| (at(port), ListenerKind::Any, tls.policy()));
    let ports = [Some((address, ListenerKind::Any, policy)), aware, encrypted];
    for (address, kind, policy) in ports.into_iter().flatten() {
        listen(server.clone(), address, (kind, policy)).await?;
    }
    Ok(())
}

/// Accepts until the listener is shut down.
async fn listen(
    server: Rc<ShardServer>,
    address: SocketAddr,
    kind: (ListenerKind, Policy),
) -> Result<(), String> {
    let bound = Listener::bind(address).await;
    let listener = Rc::new(bound.map_err(|e| format!("cannot listen on {address}: {e}"))?);
    server.keep_listener(kind.0, listener.clone());
    let accepting = move || accept(server.clone(), listener.clone(), kind);
    spawn(kept(accepting)).detach();
    Ok(())
}

async fn accept(server: Rc<ShardServer>, listener: Rc<Listener>, kind: (ListenerKind, Policy)) {
    while server.keeps(&listener) {
        until_there_is_room(&server).await;
        match listener.accept().await {
            Ok((socket, peer)) => {
                panic_point("the acceptor of connections");
                let_in(server.clone(), socket, peer, kind);
            }
            Err(_) if !server.keeps(&listener) => return,
            Err(error) => {
                let log = &server.shared.log;
                log.warning(format_args!("cannot accept a connection: {error}"));
                clock::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Waits until one more connection would find a descriptor that is not of the reserve, and memory.
async fn until_there_is_room(server: &ShardServer) {
    let what = || match (descriptors::are_short(), server.shared.admission.has_room()) {
        (true, _) => Some("file descriptors are short (ulimit -n, LimitNOFILE=)"),
        (_, false) => {
            Some("memory for connections is short (native_transport_max_request_data_in_flight)")
        }
        _ => None,
    };
    let Some(short) = what() else { return };
    let log = &server.shared.log;
    log.warning(format_args!("shard {} accepts no connections for now: {short}", server.index));
    while what().is_some() && !server.is_draining() {
        clock::sleep(ACCEPT_PAUSE).await;
    }
    log.say(format_args!("shard {} accepts connections again", server.index));
}

fn let_in(server: Rc<ShardServer>, socket: Socket, peer: SocketAddr, how: (ListenerKind, Policy)) {
    let wanted = usize::from(peer.port()) % server.shared.shards;
    if how.0 != ListenerKind::ShardAware || wanted == server.index {
        return adopt(server, socket, peer, how);
    }
    spawn(async move {
        // On an error the client has disconnected.
        if let Ok(detached) = socket.detach() {
            let job = move |shard: Rc<ShardServer>| async move {
                adopt_detached(shard, detached, peer, how);
            };
            let _ = server.shared.mesh.on(wanted, job).await;
        }
    })
    .detach();
}

fn adopt_detached(
    server: Rc<ShardServer>,
    socket: DetachedSocket,
    peer: SocketAddr,
    how: (ListenerKind, Policy),
) {
    if let Ok(socket) = socket.attach() {
        adopt(server, socket, peer, how);
    }
}

fn adopt(
    server: Rc<ShardServer>,
    socket: Socket,
    peer: SocketAddr,
    (kind, policy): (ListenerKind, Policy),
) {
    if !server.serves(kind) {
        return socket.shut_down();
    }
    let is_limited = kind != ListenerKind::Nodetool;
    let admitted = match server.shared.admission.enter(peer.ip(), is_limited) {
        Ok(admitted) => admitted,
        Err(why) => {
            server.shared.log.warning(format_args!("{why}"));
            return socket.shut_down();
        }
    };
    if server.shared.transport.keepalive
        && let Err(error) = socket.keep_alive()
    {
        server.shared.log.warning(format_args!("no keepalive for {peer}: {error}"));
    }
    if let Err(error) = socket.time_arrivals() {
        let log = &server.shared.log;
        log.debug(format_args!("the kernel does not say when requests of {peer} arrive: {error}"));
    }
    server.shared.log.debug(format_args!("{peer} is connected to shard {}", server.index));
    let entry = server.shared.clients.enter(peer);
    let (transport, held) = match transport(&server, socket.clone(), (peer, &entry), policy) {
        Ok(transport) => transport,
        Err(why) => {
            server.shared.log.warning(format_args!("{why}"));
            server.shared.clients.leave(peer);
            return socket.shut_down();
        }
    };
    let connection = Rc::new(Connection::new(transport, peer, admitted, entry));
    let id = server.enter(kind, connection.clone());
    spawn(async move {
        serve(server.clone(), connection).await;
        server.shared.clients.leave(peer);
        server.shared.log.debug(format_args!("{peer} is disconnected"));
        server.leave(id);
        drop(held);
    })
    .detach();
}

/// The transport of a new connection, and the memory that it takes.
fn transport(
    server: &ShardServer,
    socket: Socket,
    (peer, entry): (SocketAddr, &Arc<Entry>),
    policy: Policy,
) -> Result<(Transport, Option<Held>), String> {
    let (Some(encryption), Policy::Optional | Policy::Encrypted) =
        (&server.shared.encryption, policy)
    else {
        return Ok((Transport::Plain(socket), None));
    };
    let memory = server.shared.admission.memory();
    let held = Held::small(memory, ENCRYPTED).ok_or_else(|| memory.refusal())?;
    let tls = Tls::new(socket, peer, (encryption, policy), entry).map_err(|e| e.to_string())?;
    Ok((Transport::Tls(Box::new(tls)), Some(held)))
}
