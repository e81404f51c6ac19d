//! The native aggregates.

/// What an aggregate gathers.
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
