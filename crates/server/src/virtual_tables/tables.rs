//! Figures by table: one row for each table that has storage.

use halcyon_engine::TableStats;

use super::Views;
use super::rows::Rows;

/// Means and quantiles of what is only counted: a client finds the row that it looks for, and no number that is made up.
const NOT_MEASURED: Option<f64> = None;

impl Views {
    pub(super) fn table_figures(&self, name: &str, rows: &mut Rows<'_>) {
        for stats in self.engine.table_stats() {
            let row = rows
                .row()
                .set("keyspace_name", stats.keyspace.as_str())
                .set("table_name", stats.table.as_str());
            match name {
                "disk_usage" => row.set("mebibytes", stats.disk_space.div_ceil(1 << 20)).done(),
                _ => {
                    let Some(count) = count(name, &stats) else { return };
                    row.set("count", count)
                        .set("max_ms", NOT_MEASURED)
                        .set("p50th_ms", NOT_MEASURED)
                        .set("p99th_ms", NOT_MEASURED)
                        .set("per_second", NOT_MEASURED)
                        .done();
                }
            }
        }
    }
}

fn count(name: &str, stats: &TableStats) -> Option<u64> {
    match name {
        "local_read_latency" | "coordinator_read_latency" => Some(stats.reads),
        "local_write_latency" | "coordinator_write_latency" => Some(stats.writes),
        _ => None,
    }
}
