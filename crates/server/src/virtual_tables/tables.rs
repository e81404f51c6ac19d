//! Figures by table: one row for each table that has storage, rounded as Cassandra rounds them.

use halcyon_engine::Measure;

use super::Views;
use super::rows::Rows;

/// What a table of `system_views` shows.
enum Shown {
    Latency(Measure),
    Histogram(Measure),
    Mebibytes(fn(&halcyon_engine::TableStats) -> u64),
    Duration,
}

fn shown(name: &str) -> Option<Shown> {
    Some(match name {
        "local_read_latency" => Shown::Latency(Measure::LocalRead),
        "local_scan_latency" => Shown::Latency(Measure::LocalScan),
        "local_write_latency" => Shown::Latency(Measure::LocalWrite),
        "coordinator_read_latency" => Shown::Latency(Measure::CoordinatorRead),
        "coordinator_scan_latency" => Shown::Latency(Measure::CoordinatorScan),
        "coordinator_write_latency" => Shown::Latency(Measure::CoordinatorWrite),
        "tombstones_per_read" => Shown::Histogram(Measure::TombstonesPerRead),
        "rows_per_read" => Shown::Histogram(Measure::RowsPerRead),
        "disk_usage" => Shown::Mebibytes(|stats| stats.disk_space),
        "max_partition_size" => Shown::Mebibytes(|stats| stats.max_partition_size),
        "max_sstable_size" => Shown::Mebibytes(|stats| stats.max_sstable_size),
        "max_sstable_duration" => Shown::Duration,
        _ => return None,
    })
}

fn thousandths(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

impl Views {
    pub(super) fn table_figures(&self, name: &str, rows: &mut Rows<'_>) {
        match shown(name) {
            Some(Shown::Latency(measure)) => self.latencies(measure, rows),
            Some(Shown::Histogram(measure)) => self.histograms(measure, rows),
            Some(Shown::Mebibytes(bytes)) => {
                for stats in self.engine.table_stats() {
                    rows.row()
                        .set("keyspace_name", stats.keyspace.as_str())
                        .set("table_name", stats.table.as_str())
                        .set("mebibytes", bytes(&stats).div_ceil(1 << 20))
                        .done();
                }
            }
            Some(Shown::Duration) => {
                for stats in self.engine.table_stats() {
                    rows.row()
                        .set("keyspace_name", stats.keyspace.as_str())
                        .set("table_name", stats.table.as_str())
                        .set("max_sstable_duration", stats.max_sstable_duration)
                        .done();
                }
            }
            None => {}
        }
    }

    fn latencies(&self, measure: Measure, rows: &mut Rows<'_>) {
        for (keyspace, table, summary) in self.engine.summaries(measure) {
            let ms = |ns: u64| thousandths(ns as f64 / 1e6);
            rows.row()
                .set("keyspace_name", keyspace)
                .set("table_name", table)
                .set("count", summary.count)
                .set("max_ms", ms(summary.max()))
                .set("p50th_ms", ms(summary.quantile(0.5)))
                .set("p99th_ms", ms(summary.quantile(0.99)))
                .set("per_second", thousandths(summary.per_second))
                .done();
        }
    }

    fn histograms(&self, measure: Measure, rows: &mut Rows<'_>) {
        for (keyspace, table, summary) in self.engine.summaries(measure) {
            rows.row()
                .set("keyspace_name", keyspace)
                .set("table_name", table)
                .set("count", summary.count)
                .set("max", summary.max() as f64)
                .set("p50th", summary.quantile(0.5) as f64)
                .set("p99th", summary.quantile(0.99) as f64)
                .done();
        }
    }
}
