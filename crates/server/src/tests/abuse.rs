//! Clients that break the protocol harm only themselves.

use std::io::Write;
use std::net::Shutdown;

use halcyon_io::Random;
use halcyon_protocol::client::Answer;
use halcyon_protocol::{Compression, Consistency, Opcode, QueryParameters, Version};

use super::TestNode;

const PROTOCOL_ERROR: i32 = 0x000A;

/// Proves that every version and compression starts, and that SUPPORTED says what drivers ask it for.
#[test]
fn all_versions_start() {
    let node = TestNode::start("versions", "");
    for version in [Version::V3, Version::V4, Version::V5] {
        for compression in [Compression::None, Compression::Lz4, Compression::Snappy] {
            if version == Version::V5 && compression == Compression::Snappy {
                continue;
            }
            let mut peer = node.started_as(version, compression);
            peer.client.options(3);
            let (3, Answer::Supported(options)) = peer.answer() else { panic!("{version}") };
            let get = |name: &str| options.iter().find(|(n, _)| n == name).map(|(_, v)| v.clone());
            assert_eq!(get("CQL_VERSION").unwrap(), ["3.4.7"]);
            assert_eq!(get("COMPRESSION").unwrap(), ["snappy", "lz4"]);
            assert_eq!(get("SCYLLA_NR_SHARDS").unwrap(), ["2"]);
            assert_eq!(get("SCYLLA_SHARD_AWARE_PORT"), None);
        }
    }
    let mut peer = node.connect_as(Version::V5, Compression::Snappy);
    peer.client.startup(0);
    let message = "Snappy compression is not supported in protocol V5".to_owned();
    assert_eq!(peer.error(), (PROTOCOL_ERROR, message));
}

/// Proves that requests out of turn get Cassandra's errors, and that the connection continues.
#[test]
fn requests_out_of_turn() {
    let node = TestNode::start("turn", "");
    let mut peer = node.connect();
    peer.client.query(1, "SELECT 1", &QueryParameters::new(Consistency::One));
    let message = "Unexpected message QUERY, expecting STARTUP or OPTIONS".to_owned();
    assert_eq!(peer.error(), (PROTOCOL_ERROR, message));
    peer.start();
    peer.client.startup(2);
    let message = "Unexpected message STARTUP, the connection is already initialized".to_owned();
    assert_eq!(peer.error(), (PROTOCOL_ERROR, message));
    peer.client.push(4, Opcode::Query, &[0, 0, 0, 9, b'x']);
    assert_eq!(peer.error().0, PROTOCOL_ERROR);
    peer.client.register(5, &["SCHEMA_CHANGE"]);
    assert_eq!(peer.answer(), (5, Answer::Ready));
    peer.client.push(6, Opcode::AuthResponse, &[0, 0, 0, 1, b'x']);
    assert_eq!(peer.answer(), (6, Answer::AuthSuccess));
}

/// Proves that random bytes end their own connection at most.
#[test]
fn garbage() {
    let node = TestNode::start("garbage", "");
    let mut random = Random::seeded(7);
    for _ in 0..50 {
        let mut peer = node.connect();
        let bytes: Vec<u8> = (0..2000).map(|_| random.next_u64() as u8).collect();
        // The server may have closed it already.
        let _ = peer.stream.write_all(&bytes);
        let _ = peer.stream.shutdown(Shutdown::Write);
        assert!(peer.is_closed());
    }
    node.is_well();
}

/// Proves that a false length is answered at once without an allocation, and that a body can arrive byte by byte.
#[test]
fn lengths_that_lie() {
    let node = TestNode::start("lengths", "native_transport_max_frame_size: 1MiB\n");
    let mut peer = node.connect();
    peer.stream.write_all(&[4, 0, 0, 1, 7, 0x7F, 0xFF, 0xFF, 0xFF, 0, 0]).unwrap();
    drop(peer);
    let mut slow = node.connect();
    slow.client.startup(1);
    for byte in slow.client.take() {
        slow.stream.write_all(&[byte]).unwrap();
    }
    assert_eq!(slow.answer(), (1, Answer::Ready));
    let mut large = node.started();
    let text = "x".repeat(2 << 20);
    large.client.query(2, &text, &QueryParameters::new(Consistency::One));
    let (code, message) = large.error();
    assert_eq!(code, 0x2200);
    assert!(message.starts_with("Request is too big: length "), "{message}");
    large.client.options(3);
    assert!(matches!(large.answer(), (3, Answer::Supported(_))));
}

/// Proves that a v5 frame with a wrong checksum closes the connection after an answer.
#[test]
fn damaged_frames() {
    let node = TestNode::start("frames", "");
    let mut peer = node.started_as(Version::V5, Compression::None);
    peer.client.options(1);
    let mut bytes = peer.client.take();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    peer.stream.write_all(&bytes).unwrap();
    assert_eq!(peer.error().0, PROTOCOL_ERROR);
    assert!(peer.is_closed());
    node.is_well();
}

/// Proves that clients that vanish with requests under way leave nothing behind.
#[test]
fn vanishing_clients() {
    let node = TestNode::start("vanish", "");
    for _ in 0..20 {
        let mut peer = node.started();
        for stream in 0..100 {
            peer.client.query(
                stream,
                "SELECT * FROM nowhere.t",
                &QueryParameters::new(Consistency::One),
            );
        }
        peer.send();
    }
    node.is_well();
}
