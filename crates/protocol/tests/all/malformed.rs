//! Our answers to malformed bytes are Cassandra's (`testdata/malformed.txt`).

use crate::support::{limits, testdata, unhex};
use halcyon_protocol::{
    Compression, Decoder, Encoder, Envelope, Notes, ReplyTo, Request, Response, Version,
};

/// Cases with a well-formed request, which the server answers, not this crate.
const OF_THE_SERVER: [&str; 3] = ["query before startup", "error from a client", "value length -3"];

/// Cassandra answers with the text of a Java exception. Ours names the defect; both close the connection.
const OTHER_WORDS: [&str; 2] = ["half a header", "body beyond the frame"];

struct Case {
    version: Option<Version>,
    name: String,
    sent: Vec<u8>,
    got: Vec<u8>,
    closed: bool,
}

fn cases() -> Vec<Case> {
    let text = std::fs::read_to_string(testdata("malformed.txt")).expect("recorded");
    let lines: Vec<_> = text.lines().skip(1).collect();
    let case = |lines: &[&str]| {
        let (version, name) = lines[0].split_once(' ').expect("a name");
        let (got, state) = lines[2].split_at(2).1.split_once(' ').expect("a state");
        Case {
            version: Version::from_number(version.parse().expect("a number")),
            name: name.to_owned(),
            sent: unhex(lines[1].split_at(2).1),
            got: unhex(got),
            closed: state == "closed",
        }
    };
    lines.chunks_exact(3).map(case).collect()
}

/// Decodes the bytes and answers: errors as they are, every request with READY, like REGISTER.
fn answer(case: &Case) -> (Vec<u8>, bool) {
    let mut decoder = Decoder::new(limits());
    let mut encoder = Encoder::new();
    if let Some(version) = case.version {
        decoder.start(version, Compression::None);
        encoder.start(version, Compression::None);
        encoder.push(ReplyTo::new(version, 0), &Response::Ready, &Notes::default());
        encoder.take();
    }
    decoder.feed(&case.sent);
    loop {
        let error = match decoder.next_open() {
            Ok(None) => return (encoder.take(), false),
            Ok(Some(envelope)) => match refused(&envelope) {
                Some(error) => error,
                None => {
                    encoder.push(envelope.reply_to(), &Response::Ready, &Notes::default());
                    continue;
                }
            },
            Err(error) => error,
        };
        encoder.push_error(&error);
        if error.close {
            assert_eq!(decoder.next_open(), Ok(None), "nothing is decoded afterwards");
            return (encoder.take(), true);
        }
    }
}

fn refused(envelope: &Envelope) -> Option<halcyon_protocol::ProtocolError> {
    match Request::decode(envelope) {
        Err(error) => Some(error),
        Ok(body) => match body.request {
            Request::Startup(startup) => startup
                .check(envelope.version)
                .err()
                .map(|message| halcyon_protocol::ProtocolError::refusing(envelope, message)),
            _ => None,
        },
    }
}

/// The bytes of envelopes without frames, of the server or of a version with the shorter header.
fn unframed(case: &Case, bytes: &[u8]) -> Vec<String> {
    if case.version != Some(Version::V5) {
        return vec![String::from_utf8_lossy(bytes).into_owned()];
    }
    let mut decoder = Decoder::for_client(limits());
    decoder.start(Version::V5, Compression::None);
    decoder.feed(bytes);
    let mut all = Vec::new();
    while let Some(envelope) = decoder.next_open().expect("valid") {
        let body = String::from_utf8_lossy(&envelope.body);
        // Cassandra's message starts with the name of the channel.
        let text = body.split_once("invalid, unrec").map_or(&*body, |(_, text)| text).to_owned();
        all.push(format!("{} {} {text}", envelope.stream, envelope.opcode));
    }
    all.sort();
    all
}

/// Proves that the answer has the same bytes, and that the connection is closed where Cassandra closes it.
#[test]
fn malformed_bytes() {
    let cases = cases();
    assert!(cases.len() > 60);
    for case in cases {
        if OF_THE_SERVER.contains(&case.name.as_str()) && case.version < Some(Version::V4) {
            continue;
        }
        let (mine, closed) = answer(&case);
        let name = format!("{:?} {}", case.version, case.name);
        assert_eq!(closed, case.closed, "{name}");
        if !OTHER_WORDS.contains(&case.name.as_str()) {
            assert_eq!(unframed(&case, &mine), unframed(&case, &case.got), "{name}");
        }
    }
}
