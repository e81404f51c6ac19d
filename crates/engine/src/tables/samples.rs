//! Samplings of `nodetool profileload`: they begin on all shards of some tables, and end with what was most there.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use halcyon_metrics::Top;
use halcyon_stream::TableId;

use super::Tables;
use super::store::Store;
use crate::guardrails::key_text;
use crate::metrics::samplers::Sampler;
use crate::{Error, Result};

/// A partition, or a command, among the most frequent or largest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sampled {
    /// With its keyspace.
    pub table: String,
    /// A partition key, its components separated by colons, or a command.
    pub value: String,
    pub count: u64,
    /// `count` is too high by this at most.
    pub error: u64,
}

/// Samplers that run. They end with it.
pub struct Sampling {
    tables: Arc<Tables>,
    stores: Vec<Arc<Store>>,
    samplers: Vec<Sampler>,
}

impl Tables {
    /// Has samplers of tables keep up to `capacity` keys of each shard. Fails if one of them runs already; then none begins.
    pub fn begin_sampling(
        self: &Arc<Self>,
        tables: &[TableId],
        samplers: &[Sampler],
        capacity: usize,
    ) -> Result<Sampling> {
        let stores = self.stores.load();
        // Tables that were dropped meanwhile are not sampled.
        let stores: Vec<Arc<Store>> =
            tables.iter().filter_map(|table| stores.get(table).cloned()).collect();
        let mut running = self.samplings.lock();
        let runs = |store: &Arc<Store>| {
            let of = |sampler: &Sampler| store.metrics.iter().any(|m| m.samplers.is_on(*sampler));
            samplers.iter().any(of)
        };
        if stores.iter().any(runs) {
            return Err(Error::Invalid("Sampling already in progress".to_owned()));
        }
        for metrics in stores.iter().flat_map(|store| &store.metrics) {
            for sampler in samplers {
                metrics.samplers.begin(*sampler, capacity);
            }
        }
        *running += 1;
        self.samples.store(true, Relaxed);
        Ok(Sampling { tables: self.clone(), stores, samplers: samplers.to_vec() })
    }
}

impl Sampling {
    /// The most frequent or largest of each sampler, in its order.
    pub fn finish(mut self, most: usize) -> Vec<(Sampler, Vec<Sampled>)> {
        // Another sampling may begin as soon as these have ended.
        let samplers = std::mem::take(&mut self.samplers);
        let of = |sampler: &Sampler| {
            let mut found = Vec::new();
            for store in &self.stores {
                let table = store.table();
                let name = format!("{}.{}", table.schema.keyspace, table.schema.name);
                let tops = store.metrics.iter().flat_map(|of| of.samplers.end(*sampler, most));
                found.extend(tops.map(|Top { key, count, error }| Sampled {
                    table: name.clone(),
                    value: match sampler {
                        Sampler::LocalReadTime => String::from_utf8_lossy(&key).into_owned(),
                        _ => key_text(&table, &key),
                    },
                    count,
                    error,
                }));
            }
            found.sort_by_key(|sampled| std::cmp::Reverse(sampled.count));
            found.truncate(most);
            (*sampler, found)
        };
        samplers.iter().map(of).collect()
    }
}

impl Drop for Sampling {
    fn drop(&mut self) {
        let mut running = self.tables.samplings.lock();
        for metrics in self.stores.iter().flat_map(|store| &store.metrics) {
            for sampler in &self.samplers {
                metrics.samplers.end(*sampler, 0);
            }
        }
        *running = running.saturating_sub(1);
        self.tables.samples.store(*running > 0, Relaxed);
    }
}
