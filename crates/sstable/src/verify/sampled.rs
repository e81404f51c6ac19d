//! Summary.db against the entries of Index.db as they go by.

use crate::Component;
use crate::format::summary::{FULL_SAMPLING_LEVEL, Summary};

use super::report::VerifyReport;

pub(super) struct SummaryCheck<'s> {
    summary: &'s Summary,
    /// Number of the sample that comes next, and of the entry.
    next: usize,
    entries: u64,
    first_key: Vec<u8>,
    last_key: Vec<u8>,
}

impl<'s> SummaryCheck<'s> {
    pub(super) fn new(summary: &'s Summary) -> SummaryCheck<'s> {
        let (first_key, last_key) = (Vec::new(), Vec::new());
        SummaryCheck { summary, next: 0, entries: 0, first_key, last_key }
    }

    /// The next entry of Index.db.
    pub(super) fn entry(&mut self, offset: u64, key: &[u8], report: &mut VerifyReport) {
        while let Some(sample) = self.summary.get(self.next) {
            if sample.position > offset {
                break;
            }
            self.next += 1;
            if sample.position < offset {
                self.stray(sample.position, report);
            } else if sample.key != key {
                let what = format!("the entry at {offset} of Index.db has another key");
                report.problem(Component::Summary, None, what);
            } else {
                self.check_interval(offset, report);
                break;
            }
        }
        if self.entries == 0 {
            self.first_key.extend_from_slice(key);
        }
        self.entries += 1;
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
    }

    fn stray(&self, position: u64, report: &mut VerifyReport) {
        let what = format!("sample of an entry at {position} of Index.db: none begins there");
        report.problem(Component::Summary, None, what);
    }

    /// Thinned samples follow no simple rule; full ones do.
    fn check_interval(&self, offset: u64, report: &mut VerifyReport) {
        let interval = u64::from(self.summary.min_index_interval.max(1));
        let is_full = self.summary.sampling_level == FULL_SAMPLING_LEVEL;
        if is_full && self.entries != interval * (self.next as u64 - 1) {
            let what = format!("the entry at {offset} is number {}, not sampled", self.entries);
            report.remark(Component::Summary, None, what);
        }
    }

    pub(super) fn finish(self, report: &mut VerifyReport) {
        let summary = self.summary;
        for i in self.next..summary.len() {
            if let Some(sample) = summary.get(i) {
                self.stray(sample.position, report);
            }
        }
        let full = self.entries.div_ceil(u64::from(summary.min_index_interval.max(1)));
        if u64::from(summary.size_at_full_sampling) != full {
            let said = summary.size_at_full_sampling;
            let what = format!("size at full sampling is {said}, should be {full}");
            report.remark(Component::Summary, None, what);
        }
        let is_full = summary.sampling_level == FULL_SAMPLING_LEVEL;
        if is_full != (summary.len() as u64 == full) {
            let what = format!(
                "{} samples of {full} at sampling level {}",
                summary.len(),
                summary.sampling_level
            );
            report.remark(Component::Summary, None, what);
        }
        for (which, said, is) in [
            ("first", &summary.first_key, &self.first_key),
            ("last", &summary.last_key, &self.last_key),
        ] {
            if said != is {
                let what = format!("another {which} key than Index.db");
                report.problem(Component::Summary, None, what);
            }
        }
    }
}
