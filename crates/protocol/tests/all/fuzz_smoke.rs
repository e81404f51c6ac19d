//! The functions of the fuzz targets, for a short time, on their seeds and on recorded chunks with random changes.

#[path = "../../../../fuzz/src/mutation.rs"]
#[allow(unreachable_pub, reason = "shared with the crate of the fuzz targets")]
mod mutation;
#[path = "../../../../fuzz/src/protocol.rs"]
#[allow(unreachable_pub, reason = "shared with the crate of the fuzz targets")]
mod protocol;

use crate::support::{CAPTURES, Side, chunks, replay};
use mutation::Mutator;

fn try_mutations(name: &str, samples: &[Vec<u8>], rounds: u64, target: fn(&[u8])) {
    assert!(!samples.is_empty());
    samples.iter().chain(&mutation::seeds(name)).for_each(|bytes| target(bytes));
    for seed in 0..rounds {
        let bytes = Mutator::new(seed).change_one_of(samples);
        eprintln!("seed {seed}, {} bytes", bytes.len());
        target(&bytes);
    }
}

#[test]
fn connections() {
    let mut samples = Vec::new();
    for name in CAPTURES {
        let session = replay(name);
        let form = protocol::form(session.version, session.compression);
        let sent = chunks(name).into_iter().filter(|(side, _)| *side == Side::Client);
        for (at, (_, bytes)) in sent.enumerate().filter(|(_, (_, bytes))| bytes.len() < 4096) {
            // OPTIONS and STARTUP come first, without framing.
            let form = if at < 2 { form & 0x7F } else { form };
            samples.push([&[form], &*bytes].concat());
        }
    }
    try_mutations("protocol_connection", &samples, 20_000, protocol::connection);
}

#[test]
fn bodies() {
    let mut samples = Vec::new();
    for (form, name) in [(0, "driver-v3-none.txt"), (2, CAPTURES[2]), (5, "driver-v5-none.txt")] {
        for (_, envelope) in replay(name).envelopes {
            let head = [form, envelope.opcode.number(), envelope.flags.0];
            samples.push([&head, &*envelope.body].concat());
        }
    }
    try_mutations("protocol_body", &samples, 40_000, protocol::body);
}

#[test]
fn frames() {
    let mut samples = Vec::new();
    for (side, envelope) in replay("driver-v5-none.txt").envelopes {
        let head = [5, envelope.flags.0, 0, 1, envelope.opcode.number()];
        let length = (envelope.body.len() as u32).to_be_bytes();
        let envelope = [&head[..], &length, &*envelope.body].concat();
        if side == Side::Client {
            samples.extend([[&[0], &*envelope].concat(), [&[15], &*envelope].concat()]);
            samples.push([&[0], &*envelope, &*envelope].concat());
        }
    }
    try_mutations("protocol_frames", &samples, 40_000, protocol::frames);
}
