//! The report of a verification.

use std::fmt;

use crate::{Component, Error};

/// More findings than this are only counted.
const MAX_FINDINGS: usize = 1000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The SSTable is sound: what differs is a hint, a statistic, or something that is made again when missing.
    Remark,
    /// The bytes have changed, data is lost, or reads fail or go wrong.
    Problem,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub component: Component,
    /// In the component; in the uncompressed data where it is about rows of Data.db.
    pub offset: Option<u64>,
    pub severity: Severity,
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Remark => "remark",
            Severity::Problem => "problem",
        };
        match self.offset {
            Some(offset) => {
                write!(f, "{severity}: {} at offset {offset}: {}", self.component, self.what)
            }
            None => write!(f, "{severity}: {}: {}", self.component, self.what),
        }
    }
}

/// The number of checked items.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Checked {
    /// Of Data.db, as stored.
    pub bytes: u64,
    /// Checksums of chunks.
    pub chunks: u64,
    pub partitions: u64,
    /// Static rows included.
    pub rows: u64,
    pub cells: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VerifyReport {
    pub findings: Vec<Finding>,
    /// Findings beyond those that are listed.
    pub omitted: u64,
    /// The system refused to read a part of it, which may or may not be sound.
    pub unreadable: bool,
    pub checked: Checked,
}

impl VerifyReport {
    /// The gravest finding; `None`: nothing was found.
    pub fn severity(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }

    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    pub fn has_problems(&self) -> bool {
        self.severity() == Some(Severity::Problem)
    }

    pub(super) fn problem(
        &mut self,
        component: Component,
        offset: impl Into<Option<u64>>,
        what: impl Into<String>,
    ) {
        self.add(Severity::Problem, component, offset.into(), what.into());
    }

    pub(super) fn remark(
        &mut self,
        component: Component,
        offset: impl Into<Option<u64>>,
        what: impl Into<String>,
    ) {
        self.add(Severity::Remark, component, offset.into(), what.into());
    }

    /// What stopped the reading of `component`; the error knows better if it names another.
    pub(super) fn failed(&mut self, component: Component, error: &Error) {
        match error {
            Error::Corrupt { component, offset, what, .. } => {
                self.problem(*component, *offset, what.clone());
            }
            Error::Missing { component, why, .. } => {
                self.problem(*component, None, format!("missing: {why}"));
            }
            Error::Io(error) => self.unreadable(component, error),
            other => self.problem(component, None, other.to_string()),
        }
    }

    pub(super) fn unreadable(&mut self, component: Component, error: &halcyon_io::Error) {
        self.unreadable = true;
        self.problem(component, None, error.to_string());
    }

    /// The same is not said twice: several checks may meet one damage.
    fn add(&mut self, severity: Severity, component: Component, offset: Option<u64>, what: String) {
        let finding = Finding { component, offset, severity, what };
        if self.findings.contains(&finding) {
            return;
        }
        if self.findings.len() < MAX_FINDINGS {
            return self.findings.push(finding);
        }
        self.omitted += 1;
        let remark = self.findings.iter_mut().rfind(|found| found.severity < severity);
        if let Some(remark) = remark {
            *remark = finding;
        }
    }
}
