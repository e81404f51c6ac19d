//! The engine's metrics, for the registry of its node: of each table, of each keyspace, which is the sum of its tables, of batches,
//! compactions and the commit log.

use std::collections::BTreeMap;
use std::time::Duration;

use halcyon_metrics::{Labels, Metric, Sample, Source, Value};

use crate::engine::Engine;
use crate::metrics::declared::{
    DECLARED, OF_BATCHES, OF_COMPACTIONS, OF_KEYSPACES, OF_LOG, OF_MEMTABLES, OF_PACE, OF_TABLES,
    SUMS,
};
use crate::metrics::stats::TableStats;
use crate::metrics::table::{BATCH_KINDS, Measure, Summary};

type Show<'a> = dyn FnMut(Sample<'_>) + 'a;

impl Source for Engine {
    fn declared(&self) -> &'static [Metric] {
        &DECLARED
    }

    fn walk(&self, show: &mut dyn FnMut(Sample<'_>)) {
        self.walk_of(&self.table_stats(), show);
    }
}

impl Engine {
    /// The numbers of all tables, by keyspace and name. They and the distributions are summed once for each walk, so a walk has them from
    /// its caller.
    pub fn table_stats(&self) -> Vec<TableStats> {
        let mut all = self.tables.stats_with_partitions();
        let mut due: BTreeMap<(String, String), u64> = BTreeMap::new();
        for of in self.compactor.backlog() {
            due.insert((of.keyspace, of.table), of.debt.tasks as u64);
        }
        for stats in &mut all {
            let name = (stats.keyspace.clone(), stats.table.clone());
            stats.pending_compactions = due.get(&name).copied().unwrap_or(0);
        }
        all
    }

    /// As [`Source::walk`], with the numbers of tables that its caller has.
    pub fn walk_of(&self, stats: &[TableStats], show: &mut Show<'_>) {
        self.show_distributions(show);
        stats.iter().for_each(|of_table| of_table.walk(show));
        for of_keyspace in stats.chunk_by(|a, b| a.keyspace == b.keyspace) {
            show_sums(of_keyspace, show);
        }
        for (metric, kind) in OF_BATCHES.iter().zip(BATCH_KINDS) {
            let now = self.disk().clock().now();
            let (sizes, labels) = (self.metrics.batch_sizes(kind, now), Labels::default());
            show(Sample { metric, labels, value: Value::Distribution(&sizes) });
        }
        let waits = self.metrics.memtable_waits(self.disk().clock().now());
        let (labels, value) = (Labels::default(), Value::Distribution(&waits));
        show(Sample { metric: &OF_MEMTABLES[0], labels, value });
        self.show_compactions(stats, show);
        self.show_pace(show);
        self.show_log(show);
    }

    fn show_distributions(&self, show: &mut Show<'_>) {
        for ((metric, of_keyspace), measure) in
            OF_TABLES.iter().zip(&OF_KEYSPACES).zip(Measure::ALL)
        {
            let mut keyspaces = BTreeMap::new();
            for (keyspace, table, summary) in self.tables.summaries(measure) {
                let labels = Labels { keyspace: Some(&keyspace), scope: Some(&table), path: None };
                show(Sample { metric, labels, value: Value::Distribution(&summary) });
                keyspaces.entry(keyspace).or_insert_with(Summary::nothing).merge(&summary);
            }
            let of_keyspaces = keyspaces.iter().filter(|_| measure.is_of_keyspaces());
            for (keyspace, summary) in of_keyspaces {
                let labels = Labels { keyspace: Some(keyspace), ..Labels::default() };
                show(Sample { metric: of_keyspace, labels, value: Value::Distribution(summary) });
            }
        }
    }

    fn show_compactions(&self, stats: &[TableStats], show: &mut Show<'_>) {
        let pending = stats.iter().map(|of| of.pending_compactions).sum();
        let (ended, bytes) = self.compactor.ended();
        for (metric, value) in OF_COMPACTIONS.iter().zip([pending, ended, ended, bytes]) {
            show(Sample { metric, labels: Labels::default(), value: Value::Number(value) });
        }
    }

    /// What is unknown, or not limited, is not a number.
    fn show_pace(&self, show: &mut Show<'_>) {
        let pace = self.compactor.pace();
        let nanos = |time: Option<Duration>| time.map_or(f64::NAN, |time| time.as_secs_f64() * 1e9);
        let rate = pace.rate.map_or(f64::NAN, |rate| rate as f64);
        let times = [pace.latency_target, pace.read_p99, pace.read_p99_at_rest].map(nanos);
        for (metric, value) in OF_PACE.iter().zip([rate].into_iter().chain(times)) {
            show(Sample { metric, labels: Labels::default(), value: Value::Fraction(value) });
        }
    }

    fn show_log(&self, show: &mut Show<'_>) {
        let now = self.disk().clock().now();
        let (mut numbers, mut commits, mut segments) =
            ([0; 3], Summary::nothing(), Summary::nothing());
        for log in self.metrics.logs() {
            for (sum, of) in
                numbers.iter_mut().zip([log.pending.get(), log.appended.get(), log.bytes.get()])
            {
                *sum += of;
            }
            commits.add(&log.commit_waits, now);
            segments.add(&log.segment_waits, now);
        }
        let [pending, appended, bytes] = numbers.map(Value::Number);
        let distributions = [Value::Distribution(&commits), Value::Distribution(&segments)];
        let values = [pending, appended, bytes].into_iter().chain(distributions);
        for (metric, value) in OF_LOG.iter().zip(values) {
            show(Sample { metric, labels: Labels::default(), value });
        }
    }
}

/// Of one keyspace, in the order of [`SUMS`].
fn show_sums(tables: &[TableStats], show: &mut Show<'_>) {
    let Some(first) = tables.first() else { return };
    let labels = Labels { keyspace: Some(&first.keyspace), ..Labels::default() };
    let sum = |of: fn(&TableStats) -> u64| tables.iter().map(of).sum();
    let values = [
        sum(|of| of.disk_space),
        sum(|of| of.disk_space),
        sum(|of| of.memtable_bytes),
        sum(|of| of.pending_flushes),
        sum(|of| of.pending_compactions),
    ];
    for (metric, value) in SUMS.iter().zip(values) {
        show(Sample { metric, labels, value: Value::Number(value) });
    }
}
