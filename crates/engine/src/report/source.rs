//! The engine's metrics, for the registry of its node: of each table, of each keyspace, which is the sum of its tables, and of batches.

use std::collections::BTreeMap;

use halcyon_metrics::{Labels, Metric, Sample, Source, Value};

use crate::engine::Engine;
use crate::metrics::table::{
    BATCH_KINDS, DECLARED, Measure, OF_BATCHES, OF_KEYSPACES, OF_TABLES, Summary,
};

impl Source for Engine {
    fn declared(&self) -> &'static [Metric] {
        &DECLARED
    }

    fn walk(&self, show: &mut dyn FnMut(Sample<'_>)) {
        for ((metric, of_keyspace), measure) in
            OF_TABLES.iter().zip(&OF_KEYSPACES).zip(Measure::ALL)
        {
            let mut keyspaces = BTreeMap::new();
            for (keyspace, table, summary) in self.tables.summaries(measure) {
                let labels = Labels { keyspace: Some(&keyspace), scope: Some(&table), path: None };
                show(Sample { metric, labels, value: Value::Distribution(&summary) });
                keyspaces.entry(keyspace).or_insert_with(Summary::nothing).merge(&summary);
            }
            for (keyspace, summary) in &keyspaces {
                let labels = Labels { keyspace: Some(keyspace), ..Labels::default() };
                show(Sample { metric: of_keyspace, labels, value: Value::Distribution(summary) });
            }
        }
        self.tables.stats().iter().for_each(|stats| stats.walk(show));
        for (metric, kind) in OF_BATCHES.iter().zip(BATCH_KINDS) {
            let now = self.disk().clock().now();
            let (sizes, labels) = (self.metrics.batch_sizes(kind, now), Labels::default());
            show(Sample { metric, labels, value: Value::Distribution(&sizes) });
        }
    }
}
