//! What compacts, and what was asked to.

use std::time::Duration;

use halcyon_engine::MajorState;

use super::Views;
use super::rows::{Rows, Timestamp};

impl Views {
    pub(super) fn major_compactions(&self, rows: &mut Rows<'_>) {
        for major in self.engine.major_compactions() {
            let (state, failure) = match &major.state {
                MajorState::Running => ("running", None),
                MajorState::Done => ("done", None),
                MajorState::Stopped => ("stopped", None),
                MajorState::Failed(why) => ("failed", Some(why.as_str())),
            };
            let done = major.state == MajorState::Done;
            let count = |n: usize| done.then(|| i32::try_from(n).unwrap_or(i32::MAX));
            rows.row()
                .set("keyspace_name", major.keyspace.as_str())
                .set("table_name", major.table.as_str())
                .set("state", state)
                .set("failure", failure)
                .set("started_at", Timestamp(major.started_ms))
                .set("ended_at", major.ended_ms.map(Timestamp))
                .set("sstables_in", count(major.sstables_in))
                .set("sstables_out", count(major.sstables_out))
                .set("bytes_in", done.then_some(major.bytes_in))
                .set("bytes_out", done.then_some(major.bytes_out))
                .done();
        }
    }

    /// `nodetool compactionstats`
    pub(super) fn sstable_tasks(&self, rows: &mut Rows<'_>) {
        for task in self.engine.compactions() {
            let (done, total) = (task.progress.data_read, task.progress.data_total);
            let ratio = if total == 0 { 1.0 } else { done as f64 / total as f64 };
            rows.row()
                .set("keyspace_name", task.keyspace.as_str())
                .set("table_name", task.table.as_str())
                .set("task_id", task.id.to_vec())
                .set("completion_ratio", ratio)
                .set("kind", task.kind.name().to_lowercase())
                .set("progress", done)
                .set("sstables", i32::try_from(task.sstables).unwrap_or(i32::MAX))
                .set("target_directory", task.directory.as_str())
                .set("total", total)
                .set("total_compressed", task.bytes)
                .set("unit", "bytes")
                .done();
        }
    }

    pub(super) fn compaction_backlog(&self, rows: &mut Rows<'_>) {
        let count = |n: usize| i32::try_from(n).unwrap_or(i32::MAX);
        for backlog in self.engine.compaction_backlog() {
            rows.row()
                .set("keyspace_name", backlog.keyspace.as_str())
                .set("table_name", backlog.table.as_str())
                .set("sstables", count(backlog.sstables))
                .set("pending_tasks", count(backlog.debt.tasks))
                .set("pending_bytes", backlog.debt.bytes)
                .set("excess_sstables", count(backlog.debt.excess))
                .set("write_wait_us", micros(backlog.write_wait))
                .done();
        }
    }

    pub(super) fn compaction_pace(&self, rows: &mut Rows<'_>) {
        let pace = self.engine.compaction_pace();
        let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        for (name, value) in [
            ("bytes_per_second", pace.rate),
            ("compaction_throughput", pace.throughput),
            ("compaction_latency_target_us", pace.latency_target.map(micros)),
            ("read_p99_us", pace.read_p99.map(micros)),
            ("concurrent_compactors", Some(count(pace.compactors))),
            ("running", Some(count(self.engine.compactions().len()))),
            ("waiting", Some(count(pace.waiting))),
            ("urgent", Some(u64::from(pace.urgent))),
        ] {
            rows.row().set("name", name).set("value", value).done();
        }
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
