//! What clients and servers can send: connections (frames, envelopes, compression) and bodies behind intact envelopes.

use halcyon_protocol::client::{Client, frame_around};
use halcyon_protocol::{
    Compression, Decoder, Encoder, Envelope, Flags, Limits, Opcode, Request, Version,
};

const FORMS: [(Version, Compression); 8] = [
    (Version::V3, Compression::None),
    (Version::V3, Compression::Snappy),
    (Version::V4, Compression::None),
    (Version::V4, Compression::Lz4),
    (Version::V4, Compression::Snappy),
    (Version::V5, Compression::None),
    (Version::V5, Compression::Lz4),
    (Version::V6, Compression::None),
];

/// For seeds: the first byte of a connection of this form, after STARTUP.
pub fn form(version: Version, compression: Compression) -> u8 {
    let at = FORMS.iter().position(|form| *form == (version, compression));
    at.map_or(0, |at| at as u8 | 0x80)
}

/// The first byte says which form, and with its top bit that STARTUP has been; the rest is what a client sends.
pub fn connection(bytes: &[u8]) {
    let Some((choice, sent)) = bytes.split_first() else { return };
    let (version, compression) = FORMS[usize::from(*choice) % FORMS.len()];
    let limits = Limits { max_frame_size: 1 << 16, max_message_size: 1 << 16 };
    let mut decoder = Decoder::new(limits);
    let mut encoder = Encoder::new();
    if choice & 0x80 != 0 {
        decoder.start(version, compression);
        encoder.start(version, compression);
    }
    // Cut in two anywhere, the same envelopes come out.
    for piece in [&sent[..sent.len() / 2], &sent[sent.len() / 2..]] {
        decoder.feed(piece);
        loop {
            match decoder.next_open() {
                Ok(None) => break,
                Ok(Some(envelope)) => {
                    assert!(envelope.body.len() <= 1 << 18, "limits hold");
                    if let Err(error) = Request::decode(&envelope) {
                        encoder.push_error(&error);
                    }
                }
                Err(error) => encoder.push_error(&error),
            }
        }
    }
    let mut client = Client::new(version, compression);
    if choice & 0x80 != 0 {
        client.started();
    }
    client.feed(&encoder.take());
    while let Ok(Some(_)) = client.next_answer() {}
}

/// What stands in intact v5 frames: the first byte says how long they are, and which of them are self-contained.
pub fn frames(bytes: &[u8]) {
    let Some((choice, payload)) = bytes.split_first() else { return };
    let compression = if choice & 1 == 0 { Compression::None } else { Compression::Lz4 };
    let mut sent = vec![form(Version::V5, compression)];
    let len = if choice & 2 == 0 { payload.len().max(1) } else { usize::from(*choice) };
    for (at, part) in payload.chunks(len).enumerate() {
        let contained = choice >> (2 + at % 4) & 1 == 0;
        sent.extend(frame_around(part, contained, compression));
    }
    connection(&sent);
}

/// The first three bytes are version, opcode and flags; the rest is a body, which is understood as a request and as an answer.
pub fn body(bytes: &[u8]) {
    let [version, opcode, flags, body @ ..] = bytes else { return };
    let (version, _) = FORMS[usize::from(*version) % FORMS.len()];
    let Some(opcode) = Opcode::from_number(opcode % 17) else { return };
    let flags = Flags(flags & !Flags::COMPRESSED.0);
    let envelope = Envelope { version, flags, stream: 1, opcode, body: body.to_vec() };
    let _ = Request::decode(&envelope);
    let mut client = Client::new(version, Compression::None);
    let number = version.number() | 0x80;
    let beta = if version.is_beta() { Flags::USE_BETA.0 } else { 0 };
    client.feed(&[number, flags.0 | beta, 0, 1, opcode.number()]);
    client.feed(&(body.len() as u32).to_be_bytes());
    client.feed(body);
    while let Ok(Some(_)) = client.next_answer() {}
}
