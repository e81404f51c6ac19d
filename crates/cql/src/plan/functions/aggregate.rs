//! The native aggregates.

/// The kinds of aggregates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aggregate {
    /// `count(*)`
    CountRows,
    /// `count(c)`
    Count,
    Min,
    Max,
    Sum,
    Avg,
}
