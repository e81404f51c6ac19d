//! How full a node's disk is, in four steps.

use crate::config::Bounds;

/// How much of its disk the node's data takes (`DiskUsageState`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DiskUsage {
    #[default]
    NotAvailable,
    Spacious,
    Stuffed,
    Full,
}

impl DiskUsage {
    const ALL: [DiskUsage; 4] =
        [DiskUsage::NotAvailable, DiskUsage::Spacious, DiskUsage::Stuffed, DiskUsage::Full];

    pub(crate) fn numbered(number: u8) -> DiskUsage {
        DiskUsage::ALL.get(usize::from(number)).copied().unwrap_or_default()
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            DiskUsage::NotAvailable => "Not Available",
            DiskUsage::Spacious => "Spacious",
            DiskUsage::Stuffed => "Stuffed",
            DiskUsage::Full => "Full",
        }
    }

    pub(crate) fn of(percent: i64, bounds: Bounds) -> DiskUsage {
        let exceeds = |bound: Option<i64>| bound.is_some_and(|bound| percent > bound);
        match (exceeds(bounds.fail), exceeds(bounds.warn)) {
            (true, _) => DiskUsage::Full,
            (false, true) => DiskUsage::Stuffed,
            (false, false) => DiskUsage::Spacious,
        }
    }
}
