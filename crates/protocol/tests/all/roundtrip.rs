//! Random messages, encoded, framed, split into random reads, and decoded again.

use crate::support::{Random, limits, send};
use halcyon_model::request::ColumnSpec;
use halcyon_protocol::client::{Answer, Client};
use halcyon_protocol::{
    BatchKind, BatchQuery, Body, Compression, Consistency, Decoder, Encoder, Error, ErrorKind,
    Limits, MAX_PAYLOAD, Notes, Opcode, QueryParameters, ReplyTo, Request, Response, Rows,
    RowsMetadata, Startup, Value, Values, Version,
};

const FORMS: [(Version, Compression); 9] = [
    (Version::V3, Compression::None),
    (Version::V3, Compression::Lz4),
    (Version::V4, Compression::None),
    (Version::V4, Compression::Lz4),
    (Version::V4, Compression::Snappy),
    (Version::V5, Compression::None),
    (Version::V5, Compression::Lz4),
    (Version::V6, Compression::None),
    (Version::V6, Compression::Lz4),
];

/// Owned parts from which requests are made.
struct Parts {
    texts: Vec<String>,
    values: Vec<Option<Vec<u8>>>,
}

impl Parts {
    fn new(random: &mut Random) -> Parts {
        let most = if random.below(20) == 0 { 200_000 } else { 300 };
        let mut value = || if random.below(8) == 0 { None } else { Some(random.bytes(most)) };
        let values = (0..6).map(|_| value()).collect();
        let texts = ["SELECT", "k", "größe", ""].map(str::to_owned).to_vec();
        Parts { texts, values }
    }

    fn values(&self, random: &mut Random, version: Version) -> Vec<Value<'_>> {
        let unset = version >= Version::V4;
        let value = |_| match &self.values[random.below(6) as usize] {
            Some(bytes) => Value::Bytes(bytes),
            None if unset && random.below(2) == 0 => Value::Unset,
            None => Value::Null,
        };
        (0..3).map(value).collect()
    }

    fn text(&self, random: &mut Random) -> &str {
        &self.texts[random.below(4) as usize]
    }

    fn parameters(&self, random: &mut Random, version: Version) -> QueryParameters<'_> {
        let level = Consistency::from_code(random.below(12) as u16).expect("a level");
        let mut parameters = QueryParameters::new(level);
        let v5 = version >= Version::V5;
        parameters.values = match random.below(3) {
            0 => Values::default(),
            1 => Values::Positional(self.values(random, version)),
            _ => {
                let values = self.values(random, version);
                Values::Named(values.into_iter().map(|v| (self.text(random), v)).collect())
            }
        };
        let mut sometimes = || random.below(2) == 0;
        parameters.skip_metadata = sometimes();
        parameters.page_size = sometimes().then_some(-7);
        parameters.paging_state = Some(&b"state"[..]).filter(|_| sometimes());
        parameters.serial_consistency = sometimes().then_some(Consistency::LocalSerial);
        parameters.timestamp = sometimes().then_some(i64::MAX);
        parameters.keyspace = Some("ks").filter(|_| v5 && sometimes());
        parameters.now_in_seconds = sometimes().then_some(77).filter(|_| v5);
        parameters
    }

    fn request(&self, random: &mut Random, version: Version) -> Request<'_> {
        let parameters = self.parameters(random, version);
        match random.below(4) {
            0 => Request::Query { text: self.text(random), parameters },
            1 => Request::Prepare { text: self.text(random), keyspace: None },
            2 => Request::Execute {
                id: b"id",
                result_metadata_id: Some(&b"columns"[..]).filter(|_| version >= Version::V5),
                parameters,
            },
            _ => Request::Batch {
                kind: BatchKind::Counter,
                entries: vec![
                    (BatchQuery::Text(self.text(random)), self.values(random, version)),
                    (BatchQuery::Prepared(b"id"), Vec::new()),
                ],
                parameters: QueryParameters { values: Values::default(), ..parameters },
            },
        }
    }
}

/// Splits `bytes` into pieces of random length.
fn pieces<'b>(random: &mut Random, mut bytes: &'b [u8]) -> Vec<&'b [u8]> {
    let mut pieces = Vec::new();
    while !bytes.is_empty() {
        let most = if random.below(2) == 0 { 20 } else { 100_000 };
        let (piece, rest) = bytes.split_at(bytes.len().min(1 + random.below(most) as usize));
        pieces.push(piece);
        bytes = rest;
    }
    pieces
}

#[test]
fn requests() {
    let seed = 0x9E37_79B9_7F4A_7C15;
    println!("seed {seed:#x}");
    let mut random = Random::seeded(seed);
    for round in 0..90 {
        let (version, compression) = FORMS[round % FORMS.len()];
        let parts: Vec<_> = (0..10).map(|_| Parts::new(&mut random)).collect();
        let requests: Vec<_> =
            parts.iter().map(|parts| parts.request(&mut random, version)).collect();
        let mut client = Client::new(version, compression);
        client.started();
        for (stream, request) in requests.iter().enumerate() {
            assert!(send(&mut client, stream as i16, request), "not made");
        }
        let mut decoder = Decoder::new(limits());
        decoder.start(version, compression);
        let mut got = Vec::new();
        for piece in pieces(&mut random, &client.take()) {
            decoder.feed(piece);
            while let Some(envelope) = decoder.next_open().expect("valid") {
                got.push(envelope);
            }
        }
        assert_eq!(got.len(), requests.len());
        for (stream, (envelope, request)) in got.iter().zip(&requests).enumerate() {
            let Body { request: decoded, .. } = Request::decode(envelope).expect("valid");
            assert_eq!((envelope.stream, &decoded), (stream as i16, request), "{version}");
        }
    }
}

#[test]
fn responses() {
    let seed = 0xD1B5_4A32_D192_ED03;
    println!("seed {seed:#x}");
    let mut random = Random::seeded(seed);
    for round in 0..90 {
        let (version, compression) = FORMS[round % FORMS.len()];
        let mut encoder = Encoder::new();
        encoder.start(version, compression);
        encoder.push(ReplyTo::new(version, 0), &Response::Ready, &Notes::default());
        let mut client = Client::new(version, compression);
        client.startup(0);
        client.feed(&encoder.take());
        assert_eq!(client.next_answer(), Ok(Some((0, Answer::Ready))));
        client.started();
        let mut cells = Vec::new();
        for stream in 0..20 {
            let most = [10, 3000, MAX_PAYLOAD as u64 + 200, 500_000][random.below(4) as usize];
            let cell = random.bytes(most);
            let mut content = (cell.len() as i32).to_be_bytes().to_vec();
            content.extend(&cell);
            let column = ColumnSpec {
                keyspace: "k".to_owned(),
                table: "t".to_owned(),
                name: "v".to_owned(),
                cql_type: halcyon_model::CqlType::Blob,
            };
            let metadata = RowsMetadata { columns: &[column], ..RowsMetadata::default() };
            let rows = Rows { metadata, count: 1, content: &content };
            let notes = Notes { warnings: vec!["careful".to_owned()], ..Notes::default() };
            encoder.push(ReplyTo::new(version, stream), &Response::Rows(rows), &notes);
            cells.push(cell);
        }
        let mut got = Vec::new();
        for piece in pieces(&mut random, &encoder.take()) {
            client.feed(piece);
            while let Some(answer) = client.next_answer().expect("valid") {
                got.push(answer);
            }
        }
        assert_eq!(got.len(), cells.len());
        for ((stream, answer), (expected, cell)) in
            got.into_iter().zip(cells.into_iter().enumerate())
        {
            let Answer::Rows(page) = answer else { panic!("{answer:?}") };
            assert_eq!((usize::from(stream as u16), &page.rows[0][0]), (expected, &Some(cell)));
        }
    }
}

/// Proves that small responses share a frame, which is sent only when `take` asks for it.
#[test]
fn small_responses_share_a_frame() {
    let mut encoder = Encoder::new();
    encoder.start(Version::V5, Compression::None);
    let to = ReplyTo::new(Version::V5, 0);
    encoder.push(to, &Response::Ready, &Notes::default());
    assert_eq!(encoder.take().len(), 9, "the answer to STARTUP has no frame");
    for _ in 0..100 {
        encoder.push(to, &Response::Void, &Notes::default());
    }
    assert_eq!(encoder.take().len(), 6 + 100 * (9 + 4) + 4);
    assert!(encoder.take().is_empty());
}

/// Proves that the error of a request above the limits names both lengths, and that the connection continues after it.
#[test]
fn too_long_requests() {
    let frame = "Request is too big: length 1200023 exceeds maximum allowed length 1048576.";
    let message = "CQL Message of size 1200017 bytes exceeds allowed maximum of 1048576 bytes";
    for (version, expected) in [(Version::V4, frame), (Version::V5, message)] {
        let mut client = Client::new(version, Compression::None);
        client.started();
        let mut parameters = QueryParameters::new(Consistency::One);
        let value = vec![7; 1_200_000];
        parameters.values = Values::Positional(vec![Value::Bytes(&value)]);
        client.query(5, "S", &parameters);
        client.options(6);
        let mut decoder = Decoder::new(limits());
        decoder.start(version, Compression::None);
        let mut got = Vec::new();
        for piece in client.take().chunks(10_000) {
            decoder.feed(piece);
            loop {
                match decoder.next_open() {
                    Ok(None) => break,
                    Ok(Some(envelope)) => got.push((envelope.stream, envelope.opcode.to_string())),
                    Err(error) => {
                        assert!(!error.close);
                        assert_eq!(error.error.kind, ErrorKind::Invalid);
                        got.push((error.reply_to.expect("known").stream, error.to_string()));
                    }
                }
            }
        }
        assert_eq!(got, [(5, expected.to_owned()), (6, "OPTIONS".to_owned())]);
    }
}

/// Proves that a false length causes no allocation: LZ4 and Snappy bodies that claim a gigabyte are refused.
#[test]
fn lengths_are_not_believed() {
    let lz4 = [0x40, 0, 0, 0, 0x10, 0x61];
    let snappy = [0x80, 0x80, 0x80, 0x80, 0x04, 0x00];
    for (compression, body) in [(Compression::Lz4, lz4), (Compression::Snappy, snappy)] {
        let mut decoder = Decoder::new(limits());
        decoder.start(Version::V4, compression);
        decoder.feed(&[4, 1, 0, 9, 5, 0, 0, 0, 6]);
        decoder.feed(&body);
        let error = decoder.next_open().expect_err("no such body");
        assert!(!error.close && error.error.code() == 0x000A);
    }
}

/// Proves that a compressed body is not opened before its holder asks for it, who knows its length by then; that a length above the limit
/// is refused before; and that a length that the bytes cannot become is refused without an allocation.
#[test]
fn bodies_are_opened_when_there_is_room() {
    let mut client = Client::new(Version::V4, Compression::Lz4);
    client.started();
    let text = "x".repeat(1_000_000);
    client.query(5, &text, &QueryParameters::new(Consistency::One));
    let sent = client.take();
    assert!(sent.len() < 10_000);
    let mut decoder = Decoder::new(limits());
    decoder.start(Version::V4, Compression::Lz4);
    decoder.feed(&sent);
    let packed = decoder.next().expect("valid").expect("whole");
    assert!(packed.body_len() > text.len() && decoder.held() < 2 * sent.len());
    assert_eq!(packed.bytes(), packed.body_len() + sent.len() - 9);
    assert_eq!(packed.clone().open().expect("valid").body.len(), packed.body_len());
    let mut decoder = Decoder::new(Limits { max_message_size: 999_999, ..limits() });
    decoder.start(Version::V4, Compression::Lz4);
    decoder.feed(&sent);
    assert_eq!(decoder.next().expect_err("too long").error.code(), 0x000A);
    let mut decoder = Decoder::new(limits());
    decoder.start(Version::V4, Compression::Lz4);
    decoder.feed(&[4, 1, 0, 9, 5, 0, 0, 0, 6, 0, 0x0F, 0xFF, 0xFF, 0x10, 0x61]);
    let packed = decoder.next().expect("no more than the limit").expect("whole");
    assert_eq!(packed.open().expect_err("no such body").error.code(), 0x000A);
}

/// Proves that who has not started sends little, and that a STARTUP with more options than are kept is refused.
#[test]
fn startup_is_bounded() {
    let mut decoder = Decoder::new(limits());
    decoder.feed(&[4, 0, 0, 1, 7, 0, 0, 0x50, 0]);
    decoder.feed(&[0; 0x5000]);
    let error = decoder.next().expect_err("too large");
    assert_eq!(error.error.kind, ErrorKind::Invalid);
    assert!(error.to_string().contains("exceeds maximum allowed length 16384"), "{error}");
    let options = |count: usize, len: usize| {
        let version = ("CQL_VERSION".to_owned(), "3.0.0".to_owned());
        let more = (1..count).map(|n| (format!("OPTION{n}"), "x".repeat(len)));
        Startup { options: std::iter::once(version).chain(more).collect() }
    };
    assert_eq!(options(64, 40).check(Version::V4), Ok(Compression::None));
    for startup in [options(65, 0), options(2, 4096)] {
        let message = startup.check(Version::V4).expect_err("too much");
        assert!(message.contains("allowed: 64 options of 4096 bytes"), "{message}");
    }
}

/// Proves that a refused message is dropped with all that still comes of it, that its error has its stream, and that the next
/// message is read; and that what it will take is known by its beginning.
#[test]
fn an_incomplete_message_is_refused() {
    for (version, compression) in [
        (Version::V4, Compression::None),
        (Version::V4, Compression::Lz4),
        (Version::V5, Compression::None),
    ] {
        let mut client = Client::new(version, compression);
        client.started();
        let text: String = (0..300_000u64).map(|n| char::from(b'a' + (n * n % 23) as u8)).collect();
        client.query(5, &text, &QueryParameters::new(Consistency::One));
        let large = client.take();
        client.options(6);
        let next = client.take();
        for cut in [20, large.len() / 2, large.len() - 1] {
            let mut decoder = Decoder::new(limits());
            decoder.start(version, compression);
            assert!(!decoder.refuse(Error::new(ErrorKind::Overloaded, "nothing has begun")));
            let (begun, rest) = large.split_at(cut);
            decoder.feed(begun);
            assert_eq!(decoder.next(), Ok(None));
            let Some(outline) = decoder.incomplete() else {
                // Of the first frame only a part has come.
                assert!(version == Version::V5 && cut == 20);
                continue;
            };
            assert_eq!(outline.opcode, Opcode::Query);
            assert!(outline.body_len > text.len() && outline.body_len < text.len() + 20);
            assert!(decoder.refuse(Error::new(ErrorKind::Overloaded, "no room")));
            decoder.rest();
            assert_eq!((decoder.incomplete(), decoder.expected() < 200_000), (None, true));
            for part in rest.chunks(50_000) {
                let end = part.as_ptr_range().end == rest.as_ptr_range().end;
                decoder.feed(part);
                if !end {
                    assert_eq!(decoder.next(), Ok(None));
                    decoder.rest();
                    // Of a frame that is not whole, its room is kept.
                    assert!(version == Version::V5 || decoder.held() < 200_000);
                }
            }
            let error = decoder.next().expect_err("refused");
            assert_eq!((error.to_string().as_str(), error.close), ("no room", false));
            assert_eq!(error.reply_to.expect("known").stream, 5);
            decoder.feed(&next);
            assert_eq!(decoder.next_open().expect("valid").expect("whole").stream, 6);
        }
    }
}

/// Proves that CQL_VERSION is read and compared as Cassandra 5.0.9 did it with each of these.
#[test]
fn versions_are_read_as_cassandra_reads_them() {
    let check = |version: &str| {
        let option = ("CQL_VERSION".to_owned(), version.to_owned());
        Startup { options: vec![option] }.check(Version::V4)
    };
    let valid = "3.0.0 3.0.0.1 3.0.0.1.2 3.0.0-a 3.0.0-a.b 3.0.0+b 3.0.0-a+b.c 2.99 2.99.0 2.100 3.0.0-.. 3.0.0-a_b 3.0.0-a--b";
    for version in valid.split(' ') {
        assert_eq!(check(version), Ok(Compression::None), "{version}");
    }
    for version in ["2.98", "2.99-x"] {
        assert!(check(version).expect_err("old").contains("is not supported"), "{version}");
    }
    let invalid = "3,3.,3.x,3.0.x,3.0.0-,3.0.0+,3.0.0~x,3-0,-3,+3,3.0_1, 3.0.0,3.0.0 ,3..0,99999999999,3.0.0.b,3.0.0+a-b,.3,,3a.0,\
                   3.0.0.build5,3.0.build,3+x.y..z";
    for version in invalid.split(',') {
        assert_eq!(check(version), Err(format!("Invalid version value: {version}")));
    }
}
