//! What the samplers of `nodetool profileload` take of reads.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::store::Store;
use crate::metrics::samplers::{Sampler, Samplers};

/// Takes the samples of reads of a table on one shard.
#[derive(Clone)]
pub struct ReadSamples {
    store: Arc<Store>,
    shard: usize,
}

impl ReadSamples {
    /// `None`: no sampler of the table runs.
    pub(crate) fn of(store: &Arc<Store>, shard: usize) -> Option<ReadSamples> {
        let samples = ReadSamples { store: store.clone(), shard };
        samples.samplers().is_some_and(Samplers::are_on).then_some(samples)
    }

    fn samplers(&self) -> Option<&Samplers> {
        self.store.metrics.get(self.shard).map(|metrics| &metrics.samplers)
    }

    /// A read has found these live rows and tombstones of a partition.
    pub fn partition(&self, key: &[u8], rows: u64, tombstones: u64) {
        let Some(samplers) = self.samplers() else { return };
        samplers.add(Sampler::ReadRowCount, key, rows);
        samplers.add(Sampler::ReadTombstoneCount, key, tombstones);
    }

    /// A read took so long. `command` is made only if that is sampled.
    pub fn command(&self, took: Duration, command: impl FnOnce() -> String) {
        let Some(samplers) = self.samplers() else { return };
        if samplers.is_on(Sampler::LocalReadTime) {
            let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
            samplers.add(Sampler::LocalReadTime, command().as_bytes(), micros);
        }
    }
}

impl fmt::Debug for ReadSamples {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ReadSamples").field("shard", &self.shard).finish_non_exhaustive()
    }
}
