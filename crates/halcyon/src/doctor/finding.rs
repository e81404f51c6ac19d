//! A finding: a fault with its evidence, cost and cure.

use serde_json::{Value, json};

/// In ascending order; the report starts with the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Severity {
    /// Information; no action is needed.
    Note,
    /// An avoidable cost.
    Warning,
    /// Data is lost or at risk.
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
    /// The rule's file name.
    pub(super) kind: &'static str,
    /// The table, device or directory.
    pub(super) of: String,
    pub(super) what: String,
    /// Measurements, each with its source.
    pub(super) evidence: Vec<String>,
    /// Bytes that one query reads from the device without need.
    pub(super) bytes_per_query: Option<u64>,
    /// The cost in words.
    pub(super) cost: String,
    /// Statements and commands (with comments after `#`), to be run in this order.
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

/// Sorts by severity, then by cost; stable.
pub(super) fn sort(findings: &mut [Finding]) {
    findings.sort_by_key(|finding| {
        std::cmp::Reverse((finding.severity, finding.bytes_per_query.unwrap_or(0)))
    });
}
