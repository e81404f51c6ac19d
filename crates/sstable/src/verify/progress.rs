//! How far a verification is.

/// What is being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Bytes of Data.db as stored.
    Checksums,
    /// Bytes of the uncompressed data.
    Content,
}

/// How much of a step is done, in its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    pub step: Step,
    pub done: u64,
    pub total: u64,
}
