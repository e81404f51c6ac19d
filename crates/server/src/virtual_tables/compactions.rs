//! What compacts, and what was asked to.

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
}
