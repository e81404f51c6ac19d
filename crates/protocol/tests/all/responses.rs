//! Bodies by version that no recorded connection has. The bytes follow the specifications of the native protocol; errors for
//! older versions follow `ErrorMessage.getBackwardsCompatibleException` of Cassandra 5.0.9.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use halcyon_model::CqlType;
use halcyon_model::request::{ColumnSpec, SchemaAction, SchemaChange, SchemaTarget};
use halcyon_protocol::{
    Consistency, Decoder, Encoder, Error, ErrorKind, Event, Limits, Notes, ReplyTo, Response, Rows,
    RowsMetadata, StatusChange, TopologyChange, Version,
};

const ALL: [Version; 3] = [Version::V3, Version::V4, Version::V5];

fn body(version: Version, response: &Response<'_>) -> Vec<u8> {
    let mut encoder = Encoder::new();
    encoder.push(ReplyTo::new(version, 3), response, &Notes::default());
    let mut decoder = Decoder::for_client(Limits::default());
    decoder.feed(&encoder.take());
    decoder.next_open().expect("valid").expect("whole").body
}

fn string(text: &str) -> Vec<u8> {
    [&(text.len() as u16).to_be_bytes(), text.as_bytes()].concat()
}

fn check(kind: ErrorKind, expected: [(i32, &str, Vec<u8>); 3]) {
    for (version, (code, message, rest)) in ALL.into_iter().zip(expected) {
        let error = Error::new(kind.clone(), "text");
        let expected = [code.to_be_bytes().to_vec(), string(message), rest].concat();
        assert_eq!(body(version, &Response::Error(error)), expected, "{version} {kind:?}");
    }
}

const TIMED_OUT: &str = "Operation timed out - received only 1 responses.";
const LEVEL: [u8; 10] = [0, 4, 0, 0, 0, 1, 0, 0, 0, 2];

/// QUORUM, 1 received, 2 required, and what follows.
fn answers(rest: &[u8]) -> Vec<u8> {
    [&LEVEL, rest].concat()
}

#[test]
fn timeouts_and_failures() {
    let (consistency, received, block_for) = (Consistency::Quorum, 1, 2);
    let same = |code, rest: Vec<u8>| [(); 3].map(|()| (code, "text", rest.clone()));
    check(
        ErrorKind::Unavailable { consistency, required: 1, alive: 2 },
        same(0x1000, answers(&[])),
    );
    let data_present = true;
    let kind = ErrorKind::ReadTimeout { consistency, received, block_for, data_present };
    check(kind, same(0x1200, answers(&[1])));
    let (write_type, contentions) = ("SIMPLE", None);
    let kind =
        ErrorKind::WriteTimeout { consistency, received, block_for, write_type, contentions };
    check(kind, same(0x1100, answers(&string("SIMPLE"))));

    let cas = answers(&string("CAS"));
    let (write_type, contentions) = ("CAS", Some(7));
    let kind =
        ErrorKind::WriteTimeout { consistency, received, block_for, write_type, contentions };
    let v5 = [&*cas, &[0, 7]].concat();
    let older = (0x1100, TIMED_OUT, cas.clone());
    check(kind, [older.clone(), older.clone(), (0x1100, "text", v5)]);
    let kind = ErrorKind::CasWriteUnknown { consistency, received, block_for };
    check(kind, [older.clone(), older, (0x1700, "text", answers(&[]))]);

    let failures = vec![(IpAddr::V4(Ipv4Addr::LOCALHOST), 1), (IpAddr::V6(Ipv6Addr::LOCALHOST), 2)];
    let count = [0, 0, 0, 2];
    let v6 = Ipv6Addr::LOCALHOST.octets();
    let map = [&count[..], &[4, 127, 0, 0, 1, 0, 1], &[16], &v6, &[0, 2]].concat();
    let kind = ErrorKind::ReadFailure {
        consistency,
        received,
        block_for,
        failures: failures.clone(),
        data_present: false,
    };
    check(
        kind,
        [
            (0x1200, TIMED_OUT, answers(&[0])),
            (0x1300, "text", answers(&[&count[..], &[0]].concat())),
            (0x1300, "text", answers(&[&*map, &[0]].concat())),
        ],
    );
    let write_type = "BATCH";
    let kind = ErrorKind::WriteFailure { consistency, received, block_for, failures, write_type };
    let batch = string("BATCH");
    check(
        kind,
        [
            (0x1100, TIMED_OUT, answers(&batch)),
            (0x1500, "text", answers(&[&count[..], &batch].concat())),
            (0x1500, "text", answers(&[&*map, &batch].concat())),
        ],
    );
}

#[test]
fn errors_that_v3_does_not_know() {
    let kind = ErrorKind::FunctionFailure {
        keyspace: "k".to_owned(),
        function: "f".to_owned(),
        arguments: vec!["int".to_owned()],
    };
    let rest = [string("k"), string("f"), vec![0, 1], string("int")].concat();
    let v4 = (0x1400, "text", rest);
    check(kind, [(0x2200, "ERROR FUNCTION_FAILURE: text", Vec::new()), v4.clone(), v4]);
    let v4 = (0x1600, "text", Vec::new());
    let v3 = (0x2200, "ERROR CDC_WRITE_FAILURE: text", Vec::new());
    check(ErrorKind::CdcWriteFailure, [v3, v4.clone(), v4]);
}

#[test]
fn events() {
    let node = SocketAddr::from(([127, 0, 0, 1], 9042));
    let inet = [4, 127, 0, 0, 1, 0, 0, 0x23, 0x52];
    let up = Response::Event(Event::StatusChange(StatusChange::Up, node));
    let new = Response::Event(Event::TopologyChange(TopologyChange::NewNode, node));
    let change = SchemaChange {
        action: SchemaAction::Dropped,
        target: SchemaTarget::Table,
        keyspace: "k".to_owned(),
        name: "t".to_owned(),
        arguments: Vec::new(),
    };
    let dropped = Response::Event(Event::SchemaChange(&change));
    for version in ALL {
        let expected = [&*string("STATUS_CHANGE"), &string("UP"), &inet].concat();
        assert_eq!(body(version, &up), expected);
        let expected = [&*string("TOPOLOGY_CHANGE"), &string("NEW_NODE"), &inet].concat();
        assert_eq!(body(version, &new), expected);
        let words = ["SCHEMA_CHANGE", "DROPPED", "TABLE", "k", "t"];
        assert_eq!(body(version, &dropped), words.map(string).concat());
    }
}

/// Proves that `skip` omits the columns, and that a changed id (v5) sends them even if the client asked to skip them.
#[test]
fn metadata_that_is_not_sent() {
    let [keyspace, table, name] = ["k", "t", "c"].map(str::to_owned);
    let columns = [ColumnSpec { keyspace, table, name, cql_type: CqlType::Int }];
    let mut metadata = RowsMetadata { columns: &columns, skip: true, ..RowsMetadata::default() };
    metadata.paging_state = Some(b"p");
    let rows = |metadata| Response::Rows(Rows { metadata, count: 0, content: &[] });
    let head = [0, 0, 0, 2, 0, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0, 1, b'p'];
    let skipped = [&head[..], &[0, 0, 0, 0]].concat();
    for version in ALL {
        assert_eq!(body(version, &rows(metadata)), skipped);
    }
    metadata.changed = Some([9; 16]);
    assert_eq!(body(Version::V4, &rows(metadata)), skipped);
    let whole = [
        &[0, 0, 0, 2, 0, 0, 0, 0x0B, 0, 0, 0, 1, 0, 0, 0, 1, b'p', 0, 16][..],
        &[9; 16],
        &["k", "t", "c"].map(string).concat(),
        &[0, 9, 0, 0, 0, 0],
    ];
    assert_eq!(body(Version::V5, &rows(metadata)), whole.concat());
}
