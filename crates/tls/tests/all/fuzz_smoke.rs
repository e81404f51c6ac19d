//! The functions of the fuzz targets, for a short time, on their seeds with random changes.

#[path = "../../../../fuzz/src/mutation.rs"]
#[allow(unreachable_pub, reason = "shared with the crate of the fuzz targets")]
mod mutation;
#[path = "../../../../fuzz/src/tls.rs"]
#[allow(unreachable_pub, reason = "shared with the crate of the fuzz targets")]
mod tls;

use mutation::Mutator;

fn try_mutations(name: &str, rounds: u64, target: fn(&[u8])) {
    let samples = mutation::seeds(name);
    samples.iter().for_each(|bytes| target(bytes));
    for seed in 0..rounds {
        let bytes = Mutator::new(seed).change_one_of(&samples);
        eprintln!("seed {seed}, {} bytes", bytes.len());
        target(&bytes);
    }
}

/// Proves that stores of each kind that are damaged in any way are read or refused, and cause no panic.
#[test]
fn stores() {
    try_mutations("tls_stores", 400, tls::stores);
}

/// Proves that whatever a client sends in place of a handshake, nothing of it is taken for a request, and nothing panics.
#[test]
fn sessions() {
    try_mutations("tls_session", 20_000, tls::session);
}
