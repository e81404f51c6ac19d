//! Recorded connections (`testdata/driver-*.txt`), replayed.

pub(crate) mod parse;

use std::path::{Path, PathBuf};

use halcyon_protocol::client::Client;
use halcyon_protocol::{Compression, Decoder, Envelope, Limits, Opcode, Request, Startup, Version};

pub(crate) const CAPTURES: [&str; 8] = [
    "driver-v3-none.txt",
    "driver-v3-snappy.txt",
    "driver-v4-none.txt",
    "driver-v4-lz4.txt",
    "driver-v4-snappy.txt",
    "driver-v5-none.txt",
    "driver-v5-lz4.txt",
    "driver-v5-control.txt",
];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    Client,
    Server,
}

/// Sends a request as our client spells it; false if it is of another kind than statements.
pub(crate) fn send(client: &mut Client, stream: i16, request: &Request<'_>) -> bool {
    match request {
        Request::Query { text, parameters } => client.query(stream, text, parameters),
        Request::Prepare { text, .. } => client.prepare(stream, text),
        Request::Execute { id, result_metadata_id, parameters } => {
            client.execute(stream, id, result_metadata_id.unwrap_or_default(), parameters);
        }
        Request::Batch { kind, entries, parameters } => {
            client.batch(stream, *kind, entries, parameters);
        }
        _ => return false,
    }
    true
}

pub(crate) fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(name)
}

pub(crate) fn unhex(text: &str) -> Vec<u8> {
    let digit = |byte: u8| (byte as char).to_digit(16).expect("hex") as u8;
    text.as_bytes().chunks_exact(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

pub(crate) fn chunks(name: &str) -> Vec<(Side, Vec<u8>)> {
    let text = std::fs::read_to_string(testdata(name)).expect("recorded");
    let chunk = |line: &str| match line.split_once(' ')? {
        (">", hex) => Some((Side::Client, unhex(hex))),
        ("<", hex) => Some((Side::Server, unhex(hex))),
        _ => None,
    };
    text.lines().filter_map(chunk).collect()
}

/// A connection as it was decoded.
pub(crate) struct Session {
    pub(crate) version: Version,
    pub(crate) compression: Compression,
    pub(crate) envelopes: Vec<(Side, Envelope)>,
}

impl Session {
    pub(crate) fn of(&self, side: Side) -> impl Iterator<Item = &Envelope> {
        self.envelopes.iter().filter(move |(from, _)| *from == side).map(|(_, envelope)| envelope)
    }
}

pub(crate) fn limits() -> Limits {
    Limits { max_frame_size: 1 << 20, max_message_size: 1 << 20 }
}

pub(crate) fn replay(name: &str) -> Session {
    let mut server = Decoder::new(limits());
    let mut client = Decoder::for_client(limits());
    let mut session =
        Session { version: Version::V3, compression: Compression::None, envelopes: Vec::new() };
    for (side, bytes) in chunks(name) {
        let from_client = side == Side::Client;
        if from_client {
            server.feed(&bytes)
        } else {
            client.feed(&bytes)
        }
        loop {
            let next = if from_client { server.next_open() } else { client.next_open() };
            let Some(envelope) = next.expect("valid") else { break };
            session.envelopes.push((side, envelope.clone()));
            if let Some(startup) = startup(&envelope).filter(|_| from_client) {
                session.version = envelope.version;
                session.compression = startup.check(envelope.version).expect("supported");
                server.start(session.version, session.compression);
                // The answer has no frame, but it is compressed.
                if !session.version.is_framed() {
                    client.start(session.version, session.compression);
                }
            } else if envelope.opcode == Opcode::Ready && envelope.version.is_framed() {
                client.start(session.version, session.compression);
            }
        }
    }
    session
}

fn startup(envelope: &Envelope) -> Option<Startup> {
    match Request::decode(envelope).ok()?.request {
        Request::Startup(startup) => Some(startup),
        _ => None,
    }
}

pub(crate) struct Random(halcyon_io::Random);

impl Random {
    pub(crate) fn seeded(seed: u64) -> Random {
        Random(halcyon_io::Random::seeded(seed))
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    pub(crate) fn bytes(&mut self, most: u64) -> Vec<u8> {
        let len = self.below(most + 1);
        // Half of them compress well.
        let bound = if self.below(2) == 0 { 3 } else { 256 };
        (0..len).map(|_| self.below(bound) as u8).collect()
    }
}
