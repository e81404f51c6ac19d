//! Values as applications have them: documents with recurring field names, and hashes that nothing compresses.

use halcyon_io::Random;

const FIELDS: [&str; 12] = [
    "temperature",
    "humidity",
    "pressure",
    "voltage",
    "firmware",
    "latitude",
    "longitude",
    "altitude",
    "operator",
    "last_seen",
    "checksum",
    "comment",
];
const WORDS: [&str; 32] = [
    "nominal",
    "degraded",
    "offline",
    "maintenance",
    "north",
    "south",
    "harbour",
    "station",
    "relay",
    "gateway",
    "battery",
    "replaced",
    "inspected",
    "pending",
    "approved",
    "rejected",
    "calm",
    "storm",
    "kingfisher",
    "seven",
    "days",
    "winter",
    "solstice",
    "nest",
    "wave",
    "tide",
    "buoy",
    "lantern",
    "keeper",
    "signal",
    "drift",
    "anchor",
];
const PHRASES: [&str; 8] = [
    "within limits, next inspection in thirty days",
    "replaced by the harbour authority",
    "signal lost during the storm",
    "battery below twenty per cent",
    "no answer from the relay station",
    "calibrated against the reference buoy",
    "lantern cleaned, lens without damage",
    "scheduled for maintenance",
];

/// A JSON document of about `length` bytes.
pub(crate) fn document(random: &mut Random, length: usize, to: &mut Vec<u8>) {
    let end = to.len() + length;
    to.push(b'{');
    let mut field = random.below(FIELDS.len() as u64) as usize;
    while to.len() < end {
        to.push(b'"');
        to.extend_from_slice(FIELDS[field % FIELDS.len()].as_bytes());
        to.extend_from_slice(b"\":");
        if random.chance(1, 3) {
            sentence(random, to);
        } else {
            number(random, to);
        }
        to.push(b',');
        field += 1;
    }
    to.extend_from_slice(b"\"end\":true}");
}

/// `27.375`: sensors have few digits.
fn number(random: &mut Random, to: &mut Vec<u8>) {
    let draw = random.below(800);
    let (whole, eighths) = (draw / 8, draw % 8 * 125);
    for (value, unit) in [(whole, 10), (whole, 1), (eighths, 100), (eighths, 10), (eighths, 1)] {
        if unit == 100 {
            to.push(b'.');
        }
        to.push(b'0' + (value / unit % 10) as u8);
    }
}

fn sentence(random: &mut Random, to: &mut Vec<u8>) {
    let phrase = PHRASES[random.below(PHRASES.len() as u64) as usize];
    to.push(b'"');
    to.extend_from_slice(phrase.as_bytes());
    to.push(b'"');
}

pub(crate) fn word(random: &mut Random) -> &'static str {
    WORDS[random.below(WORDS.len() as u64) as usize]
}

pub(crate) fn noise(random: &mut Random, length: usize, to: &mut Vec<u8>) {
    for _ in 0..length.div_ceil(8) {
        to.extend_from_slice(&random.next_u64().to_le_bytes());
    }
    to.truncate(to.len() - (length.next_multiple_of(8) - length));
}
