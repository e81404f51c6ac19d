//! Recorded connections of a real driver and a real Cassandra, decoded and encoded again byte for byte.

use std::collections::HashMap;

use crate::support::{CAPTURES, Session, Side, limits, parse, replay, send};
use halcyon_model::CqlType;
use halcyon_model::request::ColumnSpec;
use halcyon_protocol::client::Client;
use halcyon_protocol::{
    Decoder, Encoder, Envelope, Flags, Opcode, ReplyTo, Request, Response, Values, Version,
    result_metadata_id, statement_id,
};

/// Proves that every request decodes, and that our client encodes the same body: decoding loses nothing.
#[test]
fn requests_of_the_driver() {
    for name in CAPTURES {
        let session = replay(name);
        let mut seen = Vec::new();
        for envelope in session.of(Side::Client) {
            let body = Request::decode(envelope).expect("valid");
            assert_eq!(
                body.custom_payload.is_empty(),
                !envelope.flags.contains(Flags::CUSTOM_PAYLOAD)
            );
            seen.push(envelope.opcode);
            if body.custom_payload.is_empty() {
                written_again(&session, envelope, &body.request);
            }
        }
        if !name.contains("control") {
            for opcode in [Opcode::Query, Opcode::Prepare, Opcode::Execute, Opcode::Batch] {
                assert!(seen.contains(&opcode), "{name}: no {opcode}");
            }
        }
    }
}

fn written_again(session: &Session, envelope: &Envelope, request: &Request<'_>) {
    let mut client = Client::new(session.version, session.compression);
    client.started();
    if !send(&mut client, envelope.stream, request) {
        return;
    }
    let mut decoder = Decoder::new(limits());
    decoder.start(session.version, session.compression);
    decoder.feed(&client.take());
    let again = decoder.next_open().expect("valid").expect("whole");
    assert_eq!(&Request::decode(&again).expect("valid").request, request);
    // The driver sets the flag for values and sends none; our client does not set it.
    let no_values =
        matches!(request, Request::Execute { parameters, .. } if parameters.values.is_empty());
    assert!(no_values || again.body == envelope.body, "{request:?}");
}

/// Proves that every response, decoded and encoded again, has Cassandra's bytes, with each compression and framing.
#[test]
fn responses_of_cassandra() {
    for name in CAPTURES {
        let session = replay(name);
        let mut bare = Encoder::new();
        let mut packed = Encoder::new();
        packed.start(session.version, session.compression);
        packed.push(ReplyTo::new(session.version, 0), &Response::Ready, &Default::default());
        let mut unpacked = Decoder::for_client(limits());
        let mut expected = Vec::new();
        for envelope in session.of(Side::Server).filter(|e| e.opcode != Opcode::Event) {
            let (notes, body) = parse::notes(envelope);
            let to = ReplyTo::new(envelope.version, envelope.stream);
            parse::with_response(envelope, body, |response| {
                bare.push(to, response, &notes);
                packed.push(to, response, &notes);
                let mut decoder = Decoder::for_client(limits());
                decoder.feed(&bare.take());
                let mine = decoder.next_open().expect("valid").expect("whole");
                // Cassandra sets NO_METADATA although there are no columns; it has no effect.
                assert_eq!(mine.body, envelope.body, "{name}: {response:?}");
                let flags = Flags(envelope.flags.0 & !Flags::COMPRESSED.0);
                assert_eq!(mine.flags, flags, "{name}: {response:?}");
            });
            expected.push(envelope.body.clone());
        }
        let bytes = packed.take();
        if !session.version.is_framed() {
            unpacked.start(session.version, session.compression);
        }
        unpacked.feed(&bytes);
        assert_eq!(unpacked.next_open().expect("valid").map(|e| e.opcode), Some(Opcode::Ready));
        unpacked.start(session.version, session.compression);
        for body in expected {
            assert_eq!(unpacked.next_open().expect("valid").expect("whole").body, body);
        }
        assert_eq!(unpacked.next_open(), Ok(None));
    }
}

/// Proves the ids of statements, with and without a keyspace in the session.
#[test]
fn statement_ids() {
    for name in CAPTURES {
        let session = replay(name);
        for (text, response) in prepared(&session) {
            let (_, mut body) = parse::notes(response);
            assert_eq!(body.int(), 4);
            let len = usize::from(body.short());
            let id = body.take(len);
            let qualified = text.contains("p.");
            let keyspace = if qualified { None } else { Some("p") };
            assert_eq!(id, statement_id(&text, keyspace), "{name}: {text}");
        }
    }
}

fn prepared(session: &Session) -> impl Iterator<Item = (String, &Envelope)> {
    session.of(Side::Client).filter_map(|envelope| {
        let text = match Request::decode(envelope).expect("valid").request {
            Request::Prepare { text, .. } => text.to_owned(),
            _ => return None,
        };
        let answer = session.of(Side::Server).find(|answer| answer.stream == envelope.stream);
        answer.filter(|answer| answer.opcode == Opcode::Result).map(|answer| (text, answer))
    })
}

/// Proves the id of the columns of `SELECT * FROM p.t`, with frozen types and a reversed one.
#[test]
fn result_metadata_ids() {
    let session = replay("driver-v5-none.txt");
    let columns = [
        ("k", "Int32Type"),
        ("c", "ReversedType(org.apache.cassandra.db.marshal.TimeUUIDType)"),
        ("s", "UTF8Type"),
        ("a", "AsciiType"),
        ("bi", "LongType"),
        ("bl", "BytesType"),
        ("bo", "BooleanType"),
        ("da", "SimpleDateType"),
        ("de", "DecimalType"),
        ("do", "DoubleType"),
        ("du", "DurationType"),
        ("f", "FloatType"),
        ("fli", "FrozenType(ListType(UTF8Type))"),
        ("ine", "InetAddressType"),
        ("li", "ListType(Int32Type)"),
        ("m", "MapType(UTF8Type,FrozenType(ListType(Int32Type)))"),
        ("se", "SetType(UUIDType)"),
        ("si", "ShortType"),
        ("ti", "TimeType"),
        ("ts", "TimestampType"),
        ("tu", "TupleType(Int32Type,UTF8Type)"),
        ("ty", "ByteType"),
        (
            "u",
            "FrozenType(UserType(p,61646472657373,737472656574:UTF8Type,7a697073:SetType(Int32Type)))",
        ),
        ("v", "VectorType(FloatType , 3)"),
        ("va", "IntegerType"),
    ];
    let types: HashMap<_, _> = columns
        .iter()
        .map(|(name, spelled)| (*name, CqlType::parse(spelled).expect(spelled)))
        .collect();
    let mut found = 0;
    for (text, answer) in prepared(&session) {
        let (_, mut body) = parse::notes(answer);
        body.take(4 + 2 + 16 + 2);
        let id = body.take(16);
        parse::metadata(&mut body, true);
        let selected = parse::metadata(&mut body, false).columns;
        if text == "SELECT * FROM p.t WHERE k = ?" {
            assert_eq!(selected.len(), types.len());
            let declared: Vec<_> = selected
                .iter()
                .map(|column| ColumnSpec {
                    cql_type: types[&*column.name].clone(),
                    ..column.clone()
                })
                .collect();
            assert_eq!(id, result_metadata_id(&declared));
            found += 1;
        } else if selected.is_empty() {
            assert_eq!(id, result_metadata_id([]));
            found += 1;
        }
    }
    assert!(found > 2);
}

/// Proves that an unset value decodes: the driver sends it for a marker without a value.
#[test]
fn unset_values() {
    let session = replay("driver-v4-none.txt");
    let unset = session.of(Side::Client).any(|envelope| {
        let body = Request::decode(envelope).expect("valid");
        matches!(body.request, Request::Execute { parameters, .. }
            if matches!(&parameters.values, Values::Positional(values) if values.contains(&halcyon_protocol::Value::Unset)))
    });
    assert!(unset);
    assert_eq!(session.version, Version::V4);
}
