//! `halcyon_views`, Halcyon's own tables: shards, how long requests wait, how and how fast files are read and written.

use halcyon_io::{AccessMode, BUCKETS};

use super::Views;
use super::rows::Rows;

impl Views {
    pub(super) fn fill_own(&self, table: &str, rows: &mut Rows<'_>) {
        match table {
            "shards" => self.shards(rows),
            "request_wait" => self.request_wait(rows),
            "io_modes" => self.io_modes(rows),
            "io_operations" => self.io_operations(rows),
            "io_latency" => self.io_latency(rows),
            "major_compactions" => self.major_compactions(rows),
            "compaction_backlog" => self.compaction_backlog(rows),
            "compaction_pace" => self.compaction_pace(rows),
            _ => {}
        }
    }

    fn request_wait(&self, rows: &mut Rows<'_>) {
        for (index, shard) in self.shared.figures.iter().enumerate() {
            for (below_ns, requests) in shard.waits.buckets() {
                rows.row()
                    .set("shard", i32::try_from(index).unwrap_or(i32::MAX))
                    .set("below_ns", below_ns)
                    .set("requests", requests)
                    .done();
            }
        }
    }

    fn shards(&self, rows: &mut Rows<'_>) {
        for (index, shard) in self.shared.figures.iter().enumerate() {
            let (first, last) = self.engine.tokens(index);
            rows.row()
                .set("shard", i32::try_from(index).unwrap_or(i32::MAX))
                .set("first_token", first)
                .set("last_token", last)
                .set("connections", shard.connections.get())
                .set("requests", shard.requests.get())
                .set("requests_in_flight", shard.in_flight.get())
                .set("protocol_errors", shard.protocol_errors.get())
                .done();
        }
    }

    fn io_modes(&self, rows: &mut Rows<'_>) {
        for (directory, purpose, asked, writing) in &self.shared.io_modes {
            let disk = &self.shared.disk;
            let choice = match writing {
                true => disk.resolve_write_mode(directory, *asked),
                false => disk.resolve_mode(directory, *asked),
            };
            let (mode, why) = match choice {
                Ok(choice) => (choice.mode, choice.why),
                Err(error) => (AccessMode::Standard, error.to_string()),
            };
            rows.row()
                .set("directory", directory.display().to_string())
                .set("purpose", *purpose)
                .set("asked", asked.to_string())
                .set("mode", mode.to_string())
                .set("reason", why)
                .done();
        }
    }

    fn io_operations(&self, rows: &mut Rows<'_>) {
        for stats in self.shared.disk.histograms() {
            let quantile = |at: f64| stats.quantile_ns(at);
            rows.row()
                .set("purpose", stats.purpose.to_string())
                .set("operations", stats.operations)
                .set("bytes", stats.bytes)
                .set("errors", stats.errors)
                .set("overlapped", stats.overlapped)
                .set("queue_depth", stats.queue_depth)
                .set("queue_depth_max", stats.queue_depth_max)
                .set("p50_ns", quantile(0.5))
                .set("p99_ns", quantile(0.99))
                .set("p999_ns", quantile(0.999))
                .done();
        }
    }

    fn io_latency(&self, rows: &mut Rows<'_>) {
        for stats in self.shared.disk.histograms() {
            for bucket in (0..BUCKETS).filter(|bucket| stats.latency[*bucket] > 0) {
                rows.row()
                    .set("purpose", stats.purpose.to_string())
                    .set("below_ns", 1u64 << (bucket + 1))
                    .set("operations", stats.latency[bucket])
                    .done();
            }
        }
    }
}
