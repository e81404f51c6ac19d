use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};

use super::*;
use crate::exposition::{Names, NodeIdentity};

/// What is answered to a request; `head` is the request without its end.
fn ask(endpoint: &Endpoint, head: &str) -> String {
    let mut stream = TcpStream::connect(endpoint.address()).expect("listens");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    write!(stream, "{head}\r\nConnection: close\r\n\r\n").expect("reads");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("answers");
    String::from_utf8_lossy(&answer).into_owned()
}

fn open() -> (Endpoint, Arc<Watched>) {
    let watched = Arc::new(Watched::starting(Names::default()));
    let endpoint = Endpoint::open((Ipv4Addr::LOCALHOST, 0).into(), watched.clone());
    (endpoint.expect("a free port"), watched)
}

/// Proves that a node is not ready and shows nothing before its data is open, then both, and that it is not reachable once closed.
#[test]
fn a_node_becomes_ready() {
    let (endpoint, watched) = open();
    let get = |path: &str| ask(&endpoint, &format!("GET {path} HTTP/1.1\r\nHost: localhost"));
    assert!(get("/health").starts_with("HTTP/1.1 200"));
    let starting = get("/ready");
    assert!(starting.starts_with("HTTP/1.1 503") && starting.contains("is starting"), "{starting}");
    assert!(get("/metrics").starts_with("HTTP/1.1 503"));
    watched.show(Arc::default(), NodeIdentity::default());
    watched.become_ready(None);
    assert!(get("/ready").starts_with("HTTP/1.1 200"));
    let metrics = get("/metrics");
    assert!(metrics.starts_with("HTTP/1.1 200") && metrics.contains("version=0.0.4"), "{metrics}");
    assert!(get("/metrics?names=criteo").starts_with("HTTP/1.1 200"));
    let unknown = get("/metrics?names=mcac");
    assert!(unknown.starts_with("HTTP/1.1 400") && unknown.contains("management-api"), "{unknown}");
    assert!(get("/").starts_with("HTTP/1.1 503"));
    assert!(get("/no").starts_with("HTTP/1.1 404"));
    let address = endpoint.address();
    endpoint.close();
    assert!(TcpStream::connect(address).is_err());
}

/// Proves that other methods, other hosts and bytes that are not HTTP are refused, and that the endpoint then answers as before.
#[test]
fn bad_requests_are_refused() {
    let (endpoint, _watched) = open();
    let long = format!("GET /health HTTP/1.1\r\nHost: localhost\r\nX: {}", "x".repeat(HEAD_MAX));
    for (head, status) in [
        ("POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0", "405"),
        ("GET /metrics HTTP/1.1\r\nHost: example.com", "421"),
        ("GET /metrics HTTP/1.1", "421"),
        ("GET /\u{1} HTTP/1.1\r\nHost: localhost", "400"),
        (long.as_str(), "431"),
        ("HEAD /health HTTP/1.1\r\nHost: localhost", "200"),
    ] {
        let answer = ask(&endpoint, head);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{head}: {answer}");
    }
    endpoint.close();
}

/// Proves that a scraper that asks for gzip gets it.
#[test]
fn answers_are_compressed_for_who_asks() {
    let (endpoint, watched) = open();
    watched.show(Arc::default(), NodeIdentity::default());
    let head = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\nAccept: application/openmetrics-text";
    let answer = ask(&endpoint, head);
    let lower = answer.to_ascii_lowercase();
    assert!(
        lower.contains("content-encoding: gzip") && lower.contains("openmetrics-text"),
        "{answer}"
    );
    endpoint.close();
}
