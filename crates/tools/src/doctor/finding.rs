//! A finding: a fault with its evidence, cost and cure.

/// In ascending order; the report starts with the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Information; no action is needed.
    Note,
    /// An avoidable cost.
    Warning,
    /// Data is lost or at risk.
    Critical,
}

impl Severity {
    pub fn name(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Critical => "critical",
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    pub severity: Severity,
    /// The rule's file name.
    pub kind: &'static str,
    /// The table, device or directory.
    pub of: String,
    pub what: String,
    /// Measurements, each with its source.
    pub evidence: Vec<String>,
    /// Bytes that one query reads from the device without need.
    pub bytes_per_query: Option<u64>,
    /// The cost in words.
    pub cost: String,
    /// Statements and commands (with comments after `#`), to be run in this order.
    pub cure: Vec<String>,
}

/// Sorts by severity, then by cost; stable.
pub(super) fn sort(findings: &mut [Finding]) {
    findings.sort_by_key(|finding| {
        std::cmp::Reverse((finding.severity, finding.bytes_per_query.unwrap_or(0)))
    });
}
