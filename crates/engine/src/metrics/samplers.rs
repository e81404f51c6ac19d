//! What `nodetool profileload` samples of one table on one shard.
//!
//! While no sampler runs, what may be sampled costs one relaxed load. While one runs, a sample takes the lock of its shard's part, which
//! only the beginning and the end of a sampling take too, for some pointers.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use halcyon_io::Mutex;
use halcyon_metrics::{Frequent, Largest, Top};

/// Longer keys and commands are not kept whole: with these, all samplers of a table take some tens of megabytes at most.
const KEY_MAX: usize = 4 << 10;

/// What is sampled of reads and writes; names are Cassandra's (`Sampler.SamplerType`), in its order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sampler {
    Reads,
    Writes,
    /// In microseconds; its samples are commands, not partitions.
    LocalReadTime,
    ReadRowCount,
    ReadTombstoneCount,
    ReadSSTableCount,
    /// In bytes.
    WriteSize,
    CasContentions,
}

impl Sampler {
    pub const ALL: [Sampler; 8] = [
        Sampler::Reads,
        Sampler::Writes,
        Sampler::LocalReadTime,
        Sampler::ReadRowCount,
        Sampler::ReadTombstoneCount,
        Sampler::ReadSSTableCount,
        Sampler::WriteSize,
        Sampler::CasContentions,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Sampler::Reads => "READS",
            Sampler::Writes => "WRITES",
            Sampler::LocalReadTime => "LOCAL_READ_TIME",
            Sampler::ReadRowCount => "READ_ROW_COUNT",
            Sampler::ReadTombstoneCount => "READ_TOMBSTONE_COUNT",
            Sampler::ReadSSTableCount => "READ_SSTABLE_COUNT",
            Sampler::WriteSize => "WRITE_SIZE",
            Sampler::CasContentions => "CAS_CONTENTIONS",
        }
    }

    /// Whether samples of a partition add up.
    pub fn counts(self) -> bool {
        matches!(self, Sampler::Reads | Sampler::Writes | Sampler::CasContentions)
    }

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

#[derive(Debug)]
enum Kept {
    Frequent(Frequent),
    Largest(Largest),
}

#[derive(Debug, Default)]
pub(crate) struct Samplers {
    /// A bit for each that runs.
    running: AtomicU8,
    kept: Mutex<Vec<(Sampler, Kept)>>,
}

impl Samplers {
    #[inline]
    pub(crate) fn are_on(&self) -> bool {
        self.running.load(Relaxed) != 0
    }

    #[inline]
    pub(crate) fn is_on(&self, sampler: Sampler) -> bool {
        self.running.load(Relaxed) & sampler.bit() != 0
    }

    /// Adds a sample, if the sampler runs.
    pub(crate) fn add(&self, sampler: Sampler, key: &[u8], count: u64) {
        if self.is_on(sampler) {
            self.keep(sampler, key, count);
        }
    }

    #[cold]
    fn keep(&self, sampler: Sampler, key: &[u8], count: u64) {
        // A command is readable without its end, a key is not.
        let key = match (key.get(..KEY_MAX), sampler) {
            (None, _) => key,
            (Some(start), Sampler::LocalReadTime) => start,
            (Some(_), _) => return,
        };
        let mut kept = self.kept.lock();
        match kept.iter_mut().find(|(of, _)| *of == sampler) {
            Some((_, Kept::Frequent(frequent))) => frequent.add(key, count),
            Some((_, Kept::Largest(largest))) => largest.add(key, count),
            None => {}
        }
    }

    pub(crate) fn begin(&self, sampler: Sampler, capacity: usize) {
        let new = match sampler.counts() {
            true => Kept::Frequent(Frequent::of(capacity)),
            false => Kept::Largest(Largest::of(capacity)),
        };
        self.kept.lock().push((sampler, new));
        self.running.fetch_or(sampler.bit(), Relaxed);
    }

    /// What was sampled since it began; nothing if it did not run.
    pub(crate) fn end(&self, sampler: Sampler, most: usize) -> Vec<Top> {
        self.running.fetch_and(!sampler.bit(), Relaxed);
        let found = {
            let mut kept = self.kept.lock();
            let at = kept.iter().position(|(of, _)| *of == sampler);
            at.map(|at| kept.swap_remove(at).1)
        };
        match found {
            Some(Kept::Frequent(frequent)) => frequent.top(most),
            Some(Kept::Largest(largest)) => largest.top(most),
            None => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that samples outside of a sampling are not kept, that samplers are apart, and what becomes of long keys.
    #[test]
    fn samplers_keep_what_comes_while_they_run() {
        let samplers = Samplers::default();
        samplers.add(Sampler::Reads, b"early", 1);
        assert!(!samplers.are_on());
        for sampler in [Sampler::Reads, Sampler::WriteSize, Sampler::LocalReadTime] {
            samplers.begin(sampler, 4);
        }
        assert!(samplers.are_on() && !samplers.is_on(Sampler::Writes));
        let long = vec![b'k'; KEY_MAX + 1];
        for sampler in Sampler::ALL {
            samplers.add(sampler, b"k", 7);
            samplers.add(sampler, b"k", 5);
            samplers.add(sampler, &long, 9);
        }
        let end = |sampler: Sampler| -> Vec<(usize, u64)> {
            samplers.end(sampler, 9).iter().map(|top| (top.key.len(), top.count)).collect()
        };
        assert_eq!(end(Sampler::Reads), [(1, 12)]);
        assert_eq!(end(Sampler::WriteSize), [(1, 7), (1, 5)]);
        assert_eq!(end(Sampler::LocalReadTime), [(KEY_MAX, 9), (1, 7), (1, 5)]);
        assert_eq!((end(Sampler::Writes), end(Sampler::Reads)), (vec![], vec![]));
        assert!(!samplers.are_on());
    }
}
