//! Limits: connections, bytes under way, idleness.

use std::io::Write;

use halcyon_protocol::client::Answer;
use halcyon_protocol::{Compression, Consistency, QueryParameters, Version};

use super::{Peer, TestNode};

/// Proves that a connection beyond the limit is closed, and that a place is free again when one leaves.
#[test]
fn connections() {
    let node = TestNode::start("connections", "native_transport_max_concurrent_connections: 1\n");
    let first = node.started();
    assert!(node.connect().is_closed());
    assert!(
        node.said.lock().unwrap().iter().any(|line| line.contains("native connection limit of 1"))
    );
    drop(first);
    for attempt in 0.. {
        let mut peer = node.connect();
        peer.client.options(1);
        peer.send();
        if !peer.is_closed_without_answer() {
            break;
        }
        assert!(attempt < 1000);
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

impl Peer {
    fn is_closed_without_answer(&mut self) -> bool {
        let mut byte = [0];
        !matches!(std::io::Read::read(&mut self.socket, &mut byte), Ok(1))
    }
}

/// Proves that overload is Cassandra's error for a client that asked for it in STARTUP, and for others only a delay.
#[test]
fn overload() {
    let node = TestNode::start("overload", "native_transport_max_request_data_in_flight: 10B\n");
    let mut throwing = node.connect();
    let mut startup = vec![0, 2];
    for text in ["CQL_VERSION", "3.0.0", "THROW_ON_OVERLOAD", "1"] {
        startup.extend((text.len() as u16).to_be_bytes());
        startup.extend(text.as_bytes());
    }
    let mut envelope = vec![4, 0, 0, 0, 1];
    envelope.extend((startup.len() as u32).to_be_bytes());
    throwing.socket.write_all(&envelope).unwrap();
    throwing.socket.write_all(&startup).unwrap();
    assert_eq!(throwing.answer(), (0, Answer::Ready));
    let parameters = QueryParameters::new(Consistency::One);
    throwing.client.query(1, "SELECT * FROM nowhere.t", &parameters);
    assert_eq!(
        throwing.error(),
        (
            0x1001,
            "Request breached limit on bytes in flight. (Endpoint: 0/6710886 bytes, Global: 0/10 bytes.)Server is \
             currently in an overloaded state and cannot accept more requests."
                .to_owned()
        )
    );
    let mut patient = node.started();
    for stream in 0..50 {
        patient.client.query(stream, "SELECT * FROM nowhere.t", &parameters);
    }
    for _ in 0..50 {
        let (code, message) = patient.error();
        assert_eq!((code, message.as_str()), (0x2200, "keyspace nowhere does not exist"));
    }
}

/// Proves that a connection that says nothing is closed, and one that goes on asking is not.
#[test]
fn idleness() {
    let node = TestNode::start("idle", "native_transport_idle_timeout: 300ms\n");
    let mut silent = node.started_as(Version::V5, Compression::Lz4);
    let mut talking = node.started();
    for stream in 0..12 {
        std::thread::sleep(std::time::Duration::from_millis(50));
        talking.client.options(stream);
        assert_eq!(talking.answer().0, stream);
    }
    assert!(silent.is_closed());
}
