//! A table's numbers at one time: what its shards have counted, and what its version says.

use halcyon_metrics::{Labels, Sample, Value};

use super::declared::NUMBERS;
use super::table::{Measure, TableMetrics};
use crate::version::Totals;

/// A table's metrics at one time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TableStats {
    pub keyspace: String,
    pub table: String,
    /// Since the start: local reads of partitions and of ranges, and mutations.
    pub reads: u64,
    pub scans: u64,
    pub writes: u64,
    pub flushes: u64,
    pub bytes_flushed: u64,
    pub pending_flushes: u64,
    pub memtable_bytes: u64,
    /// SSTables that reads opened.
    pub sstables_read: u64,
    pub sstables: usize,
    /// Bytes of all components of all live SSTables.
    pub disk_space: u64,
    pub max_sstable_size: u64,
    /// From the statistics of SSTables.
    pub max_partition_size: u64,
    /// Milliseconds between the oldest and the newest write of an SSTable.
    pub max_sstable_duration: u64,
    /// Compactions that are due.
    pub pending_compactions: u64,
    pub(crate) totals: Totals,
    pub(crate) partitions: u64,
    pub(crate) compaction_bytes_written: u64,
    pub(crate) filter_absent: u64,
    pub filter_false: u64,
    pub(crate) row_cache_hits: u64,
    pub(crate) row_cache_misses: u64,
}

impl TableStats {
    pub(crate) fn add(&mut self, shard: &TableMetrics) {
        self.reads += shard.count(Measure::LocalRead);
        self.scans += shard.count(Measure::LocalScan);
        self.writes += shard.count(Measure::LocalWrite);
        self.flushes += shard.flushes.get();
        self.bytes_flushed += shard.bytes_flushed.get();
        self.pending_flushes += shard.pending_flushes.get();
        self.memtable_bytes += shard.memtable_bytes.get();
        self.partitions += shard.active_partitions.get() + shard.frozen_partitions.get();
        self.sstables_read += shard.sstables_read.get();
        self.filter_absent += shard.filter_absent.get();
        self.filter_false += shard.filter_false.get();
        self.row_cache_hits += shard.row_cache_hits.get();
        self.row_cache_misses += shard.row_cache_misses.get();
    }

    /// Memory that open SSTables keep: filters, summaries, offsets of chunks.
    pub fn open_memory(&self) -> u64 {
        self.totals.memory()
    }

    /// Of all SSTables that reads considered by their Bloom filter, those that do not have the partition although the filter passes it.
    pub fn filter_false_ratio(&self) -> f64 {
        let all = self.filter_absent + self.filter_false + self.sstables_read;
        if all == 0 { 0.0 } else { self.filter_false as f64 / all as f64 }
    }

    /// Its numbers, in the order of their declarations.
    fn values(&self) -> [Value<'static>; NUMBERS.len()] {
        let of = &self.totals;
        let number = Value::Number;
        [
            number(self.flushes),
            number(self.pending_flushes),
            number(self.bytes_flushed),
            number(self.memtable_bytes),
            number(self.memtable_bytes),
            number(0),
            number(self.memtable_bytes),
            number(self.memtable_bytes),
            number(0),
            number(self.memtable_bytes),
            number(0),
            number(self.memtable_bytes),
            number(0),
            number(self.sstables_read),
            number(self.sstables as u64),
            number(self.disk_space),
            number(self.disk_space),
            number(self.max_sstable_size),
            number(self.max_sstable_duration),
            number(of.min_partition_size.unwrap_or(0)),
            number(self.max_partition_size),
            number(of.mean_partition_size),
            number(self.partitions),
            number(self.pending_compactions),
            number(self.compaction_bytes_written),
            Value::Fraction(of.compression_ratio()),
            Value::Fraction(of.percent_repaired()),
            number(self.filter_false),
            Value::Fraction(self.filter_false_ratio()),
            number(of.filter_memory),
            number(of.summary_memory),
            number(of.offsets_memory),
            number(0),
            number(self.row_cache_hits),
            number(self.row_cache_misses),
            number(0),
            number(0),
            number(0),
        ]
    }

    pub(crate) fn walk(&self, show: &mut dyn FnMut(Sample<'_>)) {
        let labels =
            Labels { keyspace: Some(&self.keyspace), scope: Some(&self.table), path: None };
        for (metric, value) in NUMBERS.iter().zip(self.values()) {
            show(Sample { metric, labels, value });
        }
    }
}
