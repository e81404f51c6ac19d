//! The engine's metrics, for the registry of its node: those of each table, then those of batches.

use halcyon_metrics::{Labels, Metric, Sample, Source, Value};

use crate::engine::Engine;
use crate::metrics::table::{BATCH_KINDS, DECLARED, Measure};

impl Source for Engine {
    fn declared(&self) -> &'static [Metric] {
        &DECLARED
    }

    fn walk(&self, show: &mut dyn FnMut(Sample<'_>)) {
        for (metric, measure) in DECLARED.iter().zip(Measure::ALL) {
            for (keyspace, table, summary) in self.tables.summaries(measure) {
                let labels = Labels { keyspace: Some(&keyspace), scope: Some(&table) };
                show(Sample { metric, labels, value: Value::Distribution(&summary) });
            }
        }
        self.tables.stats().iter().for_each(|stats| stats.walk(show));
        let of_batches = DECLARED[DECLARED.len() - BATCH_KINDS.len()..].iter();
        for (metric, kind) in of_batches.zip(BATCH_KINDS) {
            let now = self.disk().clock().now();
            let (sizes, labels) = (self.metrics.batch_sizes(kind, now), Labels::default());
            show(Sample { metric, labels, value: Value::Distribution(&sizes) });
        }
    }
}
