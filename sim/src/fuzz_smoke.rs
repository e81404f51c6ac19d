//! The functions of the fuzz targets that need a node, on their seeds and on random changes of them.

#[path = "../../fuzz/src/mutation.rs"]
#[allow(unreachable_pub, reason = "shared with the crate of the fuzz targets")]
mod mutation;
#[path = "../../fuzz/src/node/mod.rs"]
#[allow(unreachable_pub, dead_code, reason = "shared with the crate of the fuzz targets")]
mod node;
#[path = "../../fuzz/src/settings.rs"]
#[allow(unreachable_pub, reason = "shared with the crate of the fuzz targets")]
mod settings;
#[path = "../../fuzz/src/words.rs"]
#[allow(unreachable_pub, reason = "shared with the crate of the fuzz targets")]
mod words;

use mutation::{Mutator, seeds};
use node::{Host, Run};

/// Proves that a node answers every seed of the target and some changes of them, and that what they leave starts again.
fn try_mutations(target: &str, run: Run, rounds: u64, change: impl Fn(&[Vec<u8>], u64) -> Vec<u8>) {
    let samples = seeds(target);
    let host = Host::start(run, None);
    samples.iter().for_each(|bytes| host.put(bytes));
    for seed in 0..rounds {
        let bytes = change(&samples, seed);
        eprintln!("seed {seed}: {}", bytes.escape_ascii());
        host.put(&bytes);
    }
    host.finish();
}

fn bytes(samples: &[Vec<u8>], seed: u64) -> Vec<u8> {
    Mutator::new(seed).change_one_of(samples)
}

#[test]
fn statements() {
    let recorded = node::recorded();
    let words = words::Words::of(recorded.iter().map(|(_, text)| text.as_str()));
    try_mutations("statements", node::statements::run, 1_000, |samples, seed| {
        let mut mutator = Mutator::new(seed);
        let sample = mutator.below(samples.len());
        words.change(&samples[sample], &mut mutator)
    });
}

#[test]
fn paging_states() {
    try_mutations("paging", node::paging::run, 2_000, bytes);
}

#[test]
fn prepared_statements() {
    try_mutations("prepared", node::prepared::run, 500, bytes);
}

/// Proves that no text makes settings panic, or gives ones that a node cannot have.
#[test]
fn texts_of_settings() {
    let samples = seeds("settings");
    samples.iter().for_each(|bytes| settings::settings(bytes));
    for seed in 0..5_000 {
        let bytes = Mutator::new(seed).change_one_of(&samples);
        eprintln!("seed {seed}: {}", bytes.escape_ascii());
        settings::settings(&bytes);
    }
}
