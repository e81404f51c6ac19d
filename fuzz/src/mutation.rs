//! The seeds of a target, and random changes of bytes, for test runs without a fuzzer.

use std::path::Path;

use halcyon_io::Random;

/// The inputs in `fuzz/seeds/<target>/`, in the order of their names.
pub fn seeds(target: &str) -> Vec<Vec<u8>> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = here.ancestors().find(|dir| dir.join("fuzz/seeds").exists()).unwrap_or(here);
    let entries = std::fs::read_dir(root.join("fuzz/seeds").join(target)).expect("seeds");
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "no seeds of {target}");
    paths.into_iter().map(|path| std::fs::read(path).expect("readable")).collect()
}

pub struct Mutator(Random);

impl Mutator {
    pub fn new(seed: u64) -> Mutator {
        Mutator(Random::seeded(seed))
    }

    pub fn below(&mut self, bound: usize) -> usize {
        self.0.below(bound as u64) as usize
    }

    pub fn change_one_of(&mut self, samples: &[Vec<u8>]) -> Vec<u8> {
        let choice = self.below(samples.len());
        let mut bytes = samples[choice].clone();
        for _ in 0..1 + self.below(4) {
            self.change(&mut bytes, samples);
        }
        bytes
    }

    fn change(&mut self, bytes: &mut Vec<u8>, samples: &[Vec<u8>]) {
        let at = self.below(bytes.len());
        let to = (at + 1 + self.below(16)).min(bytes.len());
        match self.below(7) {
            _ if bytes.is_empty() => bytes.push(self.below(256) as u8),
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..to)),
            2 => bytes.insert(at, self.below(256) as u8),
            3 => bytes[at..to].fill([0, 0x7f, 0x80, 0xff][self.below(4)]),
            4 => {
                let other = &samples[self.below(samples.len())];
                let from = self.below(other.len());
                let end = (from + 1 + self.below(64)).min(other.len());
                let piece: Vec<u8> = other[from.min(end)..end].to_vec();
                bytes.splice(at..to, piece);
            }
            _ => bytes[at] ^= 1 << self.below(8),
        }
    }
}
