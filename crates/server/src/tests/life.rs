//! Start and stop.

use std::net::{SocketAddr, TcpListener, TcpStream};

use halcyon_io::{Claim, block_on};
use halcyon_protocol::client::Answer;
use halcyon_protocol::{Compression, Version};

use super::{Peer, TestNode, directory};

/// Proves that a second process is refused the directory, in words that help, and that it can have it afterwards.
#[test]
fn one_process_a_directory() {
    let mut node = TestNode::start("lock", "");
    let refused = TestNode::start_in(node.directory.clone(), "").err().unwrap().to_string();
    let expected = [
        node.directory.to_str().unwrap(),
        "is at work in it; wait until it is done, or stop it, or choose another with --data-dir or HALCYON_DATA_DIR",
    ];
    assert!(expected.iter().all(|part| refused.contains(part)), "{refused}");
    node.stop().unwrap();
    TestNode::start_in(node.directory.clone(), "").unwrap_or_else(|e| panic!("{e}"));
}

/// Proves that `start_native_transport: false` opens no door, until an operator does.
#[test]
fn without_doors() {
    let port = free_port();
    let text = format!("start_native_transport: false\nnodetool_port: {port}\n");
    let node = TestNode::start("doors", &text);
    assert!(TcpStream::connect(node.address).is_err());
    let at = SocketAddr::new(node.address.ip(), port);
    let mut operator = Peer::connect(at, Version::V4, Compression::None);
    operator.start();
    operator.0.query(&command("enablebinary")).unwrap();
    node.is_well();
}

fn free_port() -> u16 {
    block_on(Claim::take("127.0.0.1:0".parse().unwrap())).unwrap().address().port()
}

fn command(verb: &str) -> String {
    format!(
        "INSERT INTO halcyon_views.commands (verb, keyspace_name, table_name, argument) VALUES ('{verb}', '', '', '')"
    )
}

/// Proves that the ports of clients close and open while the node runs, that the port of `nodetool` stays, and that limits on connections
/// do not keep operators out.
#[test]
fn ports_of_clients_close_and_open() {
    let port = free_port();
    let text = format!("nodetool_port: {port}\nnative_transport_max_concurrent_connections: 3\n");
    let node = TestNode::start("ports", &text);
    let at = SocketAddr::new(node.address.ip(), port);
    let (mut first, mut second, third) = (node.started(), node.started(), node.started());
    assert!(node.connect().is_closed());
    let mut operator = Peer::connect(at, Version::V4, Compression::None);
    operator.start();
    drop(third);
    for force in ["", "{\"force\":true}"] {
        let closing = command("disablebinary").replace("'')", &format!("'{force}')"));
        first.0.query(&closing).unwrap();
        assert!(first.is_closed() && second.is_closed());
        assert!(TcpStream::connect(node.address).is_err());
        operator.0.query(&command("disablebinary")).unwrap();
        let look = "SELECT native_transport_active FROM halcyon_views.node";
        assert_eq!(operator.0.page(look).unwrap().rows, [[Some(vec![0])]]);
        operator.0.query(&command("enablebinary")).unwrap();
        operator.0.query(&command("enablebinary")).unwrap();
        assert_eq!(operator.0.page(look).unwrap().rows, [[Some(vec![1])]]);
        (first, second) = (node.started(), node.started());
    }
    drop(second);
}

/// Proves that a node that `nodetool` could not reach keeps its ports open.
#[test]
fn the_last_port_stays_open() {
    let node = TestNode::start("last-port", "nodetool_port: 0\n");
    let refused = node.started().0.query(&command("disablebinary")).unwrap_err().to_string();
    assert!(refused.contains("choose one with nodetool_port"), "{refused}");
    node.is_well();
}

/// Proves that the error of a taken port names the cure.
#[test]
fn a_taken_port() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let directory = directory("port");
    let mut settings = super::settings(&directory, "");
    settings.transport.address = taken.local_addr().unwrap();
    let log = crate::Log::new(|_| ());
    let refused = crate::serve(settings, &log, |_| (), std::future::ready(())).unwrap_err();
    assert!(refused.to_string().contains("is another server running there?"), "{refused}");
    let _ = std::fs::remove_dir_all(directory);
}

/// Proves that a node starts on a port that is about to become free, as a killed node's is.
#[test]
fn a_port_that_becomes_free() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut settings = super::settings(&directory("gasp"), "");
    settings.transport.address = taken.local_addr().unwrap();
    let data = settings.data_dir.clone();
    let freeing = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(100));
        drop(taken);
    });
    crate::serve(settings, &crate::Log::new(|_| ()), |_| (), std::future::ready(())).unwrap();
    freeing.join().unwrap();
    let _ = std::fs::remove_dir_all(data);
}

/// Proves that a drain closes connections, and that the port is free when it is done.
#[test]
fn drain() {
    let mut node = TestNode::start("drain", "");
    let mut idle = node.started();
    let mut fresh = node.connect();
    node.stop().unwrap();
    assert!(idle.is_closed());
    assert!(fresh.is_closed());
    block_on(Claim::take(node.address)).unwrap();
    let said = node.said.lock().unwrap();
    assert_eq!(said.last().map(String::as_str), Some("drained"));
}

/// Proves that the port that a client connects from chooses its shard.
#[test]
fn shard_aware_port() {
    let free = free_port();
    let node = TestNode::start("aware", &format!("native_transport_shard_aware_port: {free}\n"));
    let address = SocketAddr::new(node.address.ip(), free);
    let mut seen = [false; 2];
    for _ in 0..40 {
        let socket = TcpStream::connect(address).unwrap();
        let shard = socket.local_addr().unwrap().port() % 2;
        seen[usize::from(shard)] = true;
        let mut peer = Peer::over(socket, Version::V4, Compression::None);
        peer.client.options(0);
        let (0, Answer::Supported(options)) = peer.answer() else { panic!() };
        let told = options.iter().find(|(name, _)| name == "SCYLLA_SHARD").unwrap();
        assert_eq!(told.1, [shard.to_string()]);
        if seen == [true, true] {
            return;
        }
    }
}
