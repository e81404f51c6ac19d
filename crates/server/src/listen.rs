//! Accepts the connections of one shard, and serves them.

use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use halcyon_io::{DetachedSocket, Listener, Socket, clock, descriptors, kept, panic_point, spawn};

use crate::connection::serve::serve;
use crate::connection::{Connection, Transport};
use crate::shard::ShardServer;

/// How long a listener waits for descriptors or memory before it looks again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The shard that serves the connections of a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListenerKind {
    /// The shard that accepted the connection.
    Any,
    /// The shard that the client chooses by its source port.
    ShardAware,
}

pub(crate) async fn start(server: &Rc<ShardServer>) -> Result<(), String> {
    let address = server.shared.transport.address;
    let aware = server.shared.transport.shard_aware_port;
    let aware = aware.map(|port| (SocketAddr::new(address.ip(), port), ListenerKind::ShardAware));
    for (address, kind) in [Some((address, ListenerKind::Any)), aware].into_iter().flatten() {
        let listening = listen(server.clone(), address, kind).await;
        listening.map_err(|e| format!("cannot listen on {address}: {e}"))?;
    }
    Ok(())
}

/// Accepts until the listener is shut down.
async fn listen(
    server: Rc<ShardServer>,
    address: SocketAddr,
    kind: ListenerKind,
) -> std::io::Result<()> {
    let listener = Rc::new(Listener::bind(address).await?);
    server.keep_listener(listener.clone());
    let accepting = move || accept(server.clone(), listener.clone(), kind);
    spawn(kept(accepting)).detach();
    Ok(())
}

async fn accept(server: Rc<ShardServer>, listener: Rc<Listener>, kind: ListenerKind) {
    while !server.is_draining() {
        until_there_is_room(&server).await;
        match listener.accept().await {
            Ok((socket, peer)) => {
                panic_point("the acceptor of connections");
                let_in(server.clone(), socket, peer, kind);
            }
            Err(_) if server.is_draining() => return,
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

fn let_in(server: Rc<ShardServer>, socket: Socket, peer: SocketAddr, kind: ListenerKind) {
    let wanted = usize::from(peer.port()) % server.shared.shards;
    if kind == ListenerKind::Any || wanted == server.index {
        return adopt(server, socket, peer);
    }
    spawn(async move {
        // On an error the client has disconnected.
        if let Ok(detached) = socket.detach() {
            let job = move |shard: Rc<ShardServer>| async move {
                adopt_detached(shard, detached, peer);
            };
            let _ = server.shared.mesh.on(wanted, job).await;
        }
    })
    .detach();
}

fn adopt_detached(server: Rc<ShardServer>, socket: DetachedSocket, peer: SocketAddr) {
    if let Ok(socket) = socket.attach() {
        adopt(server, socket, peer);
    }
}

fn adopt(server: Rc<ShardServer>, socket: Socket, peer: SocketAddr) {
    if server.is_draining() {
        return socket.shut_down();
    }
    let admitted = match server.shared.admission.enter(peer.ip()) {
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
    let transport = Transport::Plain(socket);
    let connection = Rc::new(Connection::new(transport, peer, admitted, entry));
    let id = server.enter(connection.clone());
    spawn(async move {
        serve(server.clone(), connection).await;
        server.shared.clients.leave(peer);
        server.shared.log.debug(format_args!("{peer} has left"));
        server.leave(id);
    })
    .detach();
}
