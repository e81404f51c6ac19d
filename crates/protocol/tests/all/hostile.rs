//! Recorded bytes, truncated and changed: they give an error or another message, no panic, no allocation by a false length.

use crate::support::{CAPTURES, Side, chunks, limits, replay};
use halcyon_protocol::client::Client;
use halcyon_protocol::{Compression, Decoder, Envelope, Request, Version};

fn decode_all(decoder: &mut Decoder, bytes: &[u8]) -> usize {
    decoder.feed(bytes);
    let mut decoded = 0;
    for _ in 0..1000 {
        match decoder.next_open() {
            Ok(Some(envelope)) => {
                let _ = Request::decode(&envelope);
                decoded += 1;
            }
            Ok(None) => return decoded,
            Err(_) => {}
        }
    }
    panic!("it does not end");
}

fn started(version: Version, compression: Compression) -> Decoder {
    let mut decoder = Decoder::new(limits());
    decoder.start(version, compression);
    decoder
}

/// Proves that a chunk split at any byte decodes to the same messages.
#[test]
fn cut_anywhere() {
    for name in CAPTURES {
        let session = replay(name);
        let sent = chunks(name).into_iter().filter(|(side, _)| *side == Side::Client);
        for (_, bytes) in sent.skip(2).filter(|(_, bytes)| bytes.len() < 1024) {
            let whole = decode_all(&mut started(session.version, session.compression), &bytes);
            for cut in 0..bytes.len() {
                let mut decoder = started(session.version, session.compression);
                let (head, tail) = bytes.split_at(cut);
                let first = decode_all(&mut decoder, head);
                assert_eq!(first + decode_all(&mut decoder, tail), whole);
            }
        }
    }
}

/// Proves that a change of any byte is harmless. In v5 the checksums always find it: the frame yields no envelope.
#[test]
fn any_byte_changed() {
    for name in CAPTURES {
        let session = replay(name);
        let sent = chunks(name).into_iter().filter(|(side, _)| *side == Side::Client);
        for (_, bytes) in sent.skip(2).filter(|(_, bytes)| bytes.len() < 1024) {
            let whole = decode_all(&mut started(session.version, session.compression), &bytes);
            for at in 0..bytes.len() {
                for mask in [0x01, 0xFF] {
                    let mut changed = bytes.clone();
                    changed[at] ^= mask;
                    let mut decoder = started(session.version, session.compression);
                    let decoded = decode_all(&mut decoder, &changed);
                    assert!(!session.version.is_framed() || decoded < whole, "{name}: {at}");
                }
            }
        }
    }
}

/// Proves that a changed or truncated body in an intact frame is harmless.
#[test]
fn any_byte_of_a_body_changed() {
    for name in CAPTURES {
        let session = replay(name);
        for envelope in session.of(Side::Client).filter(|e| e.body.len() < 4096) {
            for at in 0..envelope.body.len() {
                let cut = Envelope { body: envelope.body[..at].to_vec(), ..envelope.clone() };
                let _ = Request::decode(&cut);
                for mask in [0x01, 0xFF] {
                    let mut changed = envelope.clone();
                    changed.body[at] ^= mask;
                    let _ = Request::decode(&changed);
                }
            }
        }
    }
}

/// Proves that no changed or truncated answer makes the client panic.
#[test]
fn any_byte_of_an_answer_changed() {
    for name in CAPTURES.iter().filter(|name| name.contains("v4")) {
        let session = replay(name);
        let received = chunks(name).into_iter().filter(|(side, _)| *side == Side::Server);
        for (_, bytes) in received.skip(2).filter(|(_, bytes)| bytes.len() < 1024) {
            for at in 0..bytes.len() {
                let mut changed = bytes.clone();
                changed[at] ^= 0x81;
                let mut client = Client::new(session.version, session.compression);
                client.started();
                client.feed(&changed);
                while let Ok(Some(_)) = client.next_answer() {}
            }
        }
    }
}
