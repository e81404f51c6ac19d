//! SSTables that could not be opened; the other rules ignore them.

use crate::doctor::facts::Facts;
use crate::doctor::finding::{Finding, Severity};

pub(super) fn examine(facts: &Facts) -> Vec<Finding> {
    let finding = |(of, why): &(String, String)| Finding {
        severity: Severity::Critical,
        kind: "unreadable",
        of: of.clone(),
        what: "cannot be read".to_owned(),
        evidence: vec![why.clone()],
        bytes_per_query: None,
        cost: "reads that need it fail".to_owned(),
        cure: vec![
            format!("halcyon sstable verify --extended {of}   # what is damaged"),
            "# then restore it from a backup or a replica".to_owned(),
        ],
    };
    facts.unreadable.iter().map(finding).collect()
}
