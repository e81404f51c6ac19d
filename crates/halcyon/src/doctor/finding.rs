//! A finding: what is wrong, how it is known, what it costs, what cures it.

use serde_json::{Value, json};

/// The worst is told first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Severity {
    /// Worth knowing; nothing has to be done.
    Note,
    /// Costs something that it need not.
    Warning,
    /// Loses data, or will.
    Critical,
}

impl Severity {
    pub(super) fn name(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Critical => "critical",
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Finding {
    pub(super) severity: Severity,
    /// Which rule found it: the name of its file.
    pub(super) kind: &'static str,
    /// A table, a device, a directory.
    pub(super) of: String,
    pub(super) what: String,
    /// Each a measured thing and where it was read.
    pub(super) evidence: Vec<String>,
    /// Bytes that one query reads from the device in vain.
    pub(super) bytes_per_query: Option<u64>,
    /// The cost in words.
    pub(super) cost: String,
    /// Statements and commands (anything after `#` is for people), to be done in this order.
    pub(super) cure: Vec<String>,
}

impl Finding {
    pub(super) fn to_json(&self) -> Value {
        json!({
            "severity": self.severity.name(),
            "kind": self.kind,
            "of": self.of,
            "what": self.what,
            "evidence": self.evidence,
            "bytes_per_query": self.bytes_per_query,
            "cost": self.cost,
            "cure": self.cure,
        })
    }
}

/// The worst first; among equals what costs most, then as they were found.
pub(super) fn sort(findings: &mut [Finding]) {
    findings.sort_by_key(|finding| {
        std::cmp::Reverse((finding.severity, finding.bytes_per_query.unwrap_or(0)))
    });
}
