//! What every row of a read needs beside its values, and when the read fails.

use halcyon_cql::plan::selection::{Evaluation, RowValues};
use halcyon_cql::plan::{Execution, Work};
use halcyon_io::clock::Instant;
use halcyon_model::request::Consistency;
use halcyon_model::uuid;

/// In bytes; `u64::MAX`: off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeBounds {
    pub warn: u64,
    pub fail: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadSizes {
    pub coordinator: SizeBounds,
    pub local: SizeBounds,
    pub row_index: SizeBounds,
}

const OFF: SizeBounds = SizeBounds { warn: u64::MAX, fail: u64::MAX };

impl ReadSizes {
    pub const OFF: ReadSizes = ReadSizes { coordinator: OFF, local: OFF, row_index: OFF };
}

/// When a read fails.
#[derive(Debug, Clone, Copy)]
pub struct ReadLimits {
    pub deadline: Instant,
    pub tombstone_warn_threshold: u64,
    pub tombstone_failure_threshold: u64,
    pub sizes: ReadSizes,
}

/// The part of a request that moves to other shards with its scan.
#[derive(Debug)]
pub struct ScanContext {
    pub now_micros: i64,
    pub now_seconds: u32,
    pub protocol_version: u8,
    pub uuids: uuid::Generator,
    pub consistency: Consistency,
    pub limits: ReadLimits,
}

impl ScanContext {
    /// Values for the selectors: of a row, or of a group's first row and its aggregates.
    pub(crate) fn evaluation<'a>(
        &'a self,
        terms: &'a [Option<Vec<u8>>],
        row: &'a RowValues,
        aggregates: &'a [Option<Vec<u8>>],
        work: &'a Work<'a>,
    ) -> Evaluation<'a> {
        let execution = Execution {
            values: &[],
            now_micros: self.now_micros,
            now_seconds: self.now_seconds,
            protocol_version: self.protocol_version,
            uuids: &self.uuids,
            json: &[],
            guard: None,
            work,
        };
        Evaluation { row, terms, aggregates, execution }
    }

    /// For an evaluation on another thread.
    pub(crate) fn fork(&self) -> ScanContext {
        ScanContext { uuids: self.uuids.fork(), ..*self }
    }
}
