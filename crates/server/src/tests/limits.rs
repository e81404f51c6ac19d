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
        !matches!(std::io::Read::read(&mut self.stream, &mut byte), Ok(1))
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
    throwing.stream.write_all(&envelope).unwrap();
    throwing.stream.write_all(&startup).unwrap();
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

/// Proves `native_transport_max_requests_per_second`: a client that asked for it gets Cassandra's error, another one waits and
/// is warned; without `native_transport_rate_limiting_enabled` there is no limit.
#[test]
fn requests_a_second() {
    let text = "native_transport_max_requests_per_second: 2\nnative_transport_throw_on_overload: ";
    let limited = "native_transport_rate_limiting_enabled: true\n";
    let ask = |peer: &mut Peer, count: i16| {
        let parameters = QueryParameters::new(Consistency::One);
        for stream in 0..count {
            peer.client.query(stream, "SELECT key FROM system.local", &parameters);
        }
        (0..count).map(|_| peer.answer().1).collect::<Vec<_>>()
    };
    let node = TestNode::start("rate", &format!("{text}true\n{limited}"));
    let answers = ask(&mut node.started(), 20);
    let refused = answers.iter().filter_map(|answer| match answer {
        Answer::Error { code: 0x1001, message, .. } => Some(message.as_str()),
        _ => None,
    });
    let expected = "Request breached global limit of 2 requests/second. Server is currently in an overloaded state and \
                    cannot accept more requests.";
    let refused: Vec<_> = refused.collect();
    assert!(refused.len() >= 15 && refused.iter().all(|text| *text == expected), "{refused:?}");
    drop(node);
    let node = TestNode::start("rate", &format!("{text}false\n{limited}"));
    let answers = ask(&mut node.started(), 4);
    assert!(answers.iter().all(|answer| matches!(answer, Answer::Rows(_))), "{answers:?}");
    drop(node);
    let node =
        TestNode::start("rate", text.trim_end_matches("native_transport_throw_on_overload: "));
    assert!(ask(&mut node.started(), 100).iter().all(|answer| matches!(answer, Answer::Rows(_))));
}

/// Proves that a client that never reads its answers is not read from for ever, and that others are served meanwhile.
#[test]
fn a_client_that_does_not_read() {
    let node = TestNode::start("deaf", "");
    let mut deaf = node.started();
    deaf.stream.set_write_timeout(Some(std::time::Duration::from_millis(500))).unwrap();
    let mut query = halcyon_protocol::client::Client::new(Version::V4, Compression::None);
    let parameters = QueryParameters::new(Consistency::One);
    query.query(1, "SELECT * FROM system_schema.columns", &parameters);
    let bytes = query.take();
    let mut sent = 0;
    while deaf.stream.write_all(&bytes).is_ok() {
        sent += 1;
        assert!(sent < 1_000_000, "the server reads on");
    }
    node.is_well();
}

/// Proves that answers to malformed bytes do not pile up for a client that does not read them.
#[test]
fn wrong_messages_without_a_reader() {
    let node = TestNode::start("deafwrong", "");
    let mut deaf = node.started();
    deaf.stream.set_write_timeout(Some(std::time::Duration::from_millis(500))).unwrap();
    let wrong = [4, 0, 0, 1, 0x7F, 0, 0, 0, 0].repeat(1000);
    let mut sent = 0;
    while deaf.stream.write_all(&wrong).is_ok() {
        sent += 1;
        assert!(sent < 100_000, "the server reads on");
    }
    node.is_well();
}

/// Proves that of requests that never become complete only those are read that fit into memory, that each of these gives way to the next
/// one that waits, and that others are served: also those that were idle meanwhile, and had sent large requests before.
#[test]
fn large_requests_that_never_end() {
    let node =
        TestNode::start("slow", "native_transport_max_request_data_in_flight_per_ip: 4MiB\n");
    let parameters = QueryParameters::new(Consistency::One);
    let mut idle: Vec<Peer> = (0..12).map(|_| node.started()).collect();
    for (number, peer) in idle.iter_mut().enumerate() {
        let comment = "x".repeat((number + 1) * 35_000);
        let query = format!("SELECT key FROM system.local /* {comment} */");
        peer.client.query(3, &query, &parameters);
        assert!(matches!(peer.answer(), (3, Answer::Rows(_))));
    }
    let mut slow: Vec<Peer> = (0..8).map(|_| node.started()).collect();
    for peer in &mut slow {
        // More than a socket takes from a peer that does not read.
        peer.stream.set_write_timeout(Some(std::time::Duration::from_millis(200))).unwrap();
        let mut bytes = vec![4, 0, 0, 1, 7];
        bytes.extend((8u32 << 20).to_be_bytes());
        bytes.resize(7 << 20, 0);
        let _ = peer.stream.write_all(&bytes);
        node.is_well();
    }
    let cut = || {
        let said = node.said.lock().unwrap();
        said.iter().filter(|line| line.contains("is disconnected")).count()
    };
    for _ in 0..6000 {
        if cut() < 2 {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
    assert!(cut() >= 2, "{}", cut());
    for peer in &mut idle {
        peer.client.query(4, "SELECT key FROM system.local", &parameters);
        assert!(matches!(peer.answer(), (4, Answer::Rows(_))), "an idle client is there");
    }
    node.is_well();
}

/// Proves that an idle connection is closed, and one that is as old and active is not. Its pauses are a fortieth of the timeout, for they
/// are longer where other programs keep all cores busy.
#[test]
fn idleness() {
    let node = TestNode::start("idle", "native_transport_idle_timeout: 2s\n");
    let mut talking = node.started();
    let mut silent = node.started_as(Version::V5, Compression::Lz4);
    let closing = std::thread::spawn(move || silent.is_closed());
    while !closing.is_finished() {
        std::thread::sleep(std::time::Duration::from_millis(50));
        talking.client.options(7);
        assert_eq!(talking.answer().0, 7);
    }
    assert!(closing.join().unwrap());
}
