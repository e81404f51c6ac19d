//! The options and the outcome of an execution, in the form that the protocol encodes.

use halcyon_cql::plan::ResultColumns;
use halcyon_guardrails::Guard;
use halcyon_model::request::{Consistency, SchemaChange, Value};
use halcyon_scan::Held;

use crate::invalidated::Invalidated;

/// The options of a QUERY, EXECUTE or BATCH message.
#[derive(Debug, Clone, Copy, Default)]
pub struct QueryOptions<'a> {
    pub consistency: Consistency,
    pub serial_consistency: Option<Consistency>,
    /// By position: the server has turned named values into positions.
    pub values: &'a [Value<'a>],
    pub page_size: Option<i32>,
    /// As `Rows::paging_state` gave it.
    pub paging_state: Option<&'a [u8]>,
    /// The keyspace in force, which the message names or USE has set.
    pub keyspace: Option<&'a str>,
    /// Microseconds; the client's default timestamp.
    pub timestamp: Option<i64>,
    pub now_in_seconds: Option<u32>,
    pub protocol_version: u8,
    /// `None`: no guardrail holds for the request.
    pub guard: Option<&'a Guard>,
}

/// One page of a result set.
#[derive(Debug, Default)]
pub struct Rows {
    pub columns: ResultColumns,
    pub count: u32,
    /// Row by row, column by column: a big-endian `i32` length (−1: null) and the value. This is how every version of the
    /// protocol carries them.
    pub content: Vec<u8>,
    /// `None`: this is the last page.
    pub paging_state: Option<Vec<u8>>,
    /// The memory that `content` is counted with, and the copies of it that an answer takes; `None` if it is small.
    pub held: Option<Held>,
    /// What this execution warns of, beside the statement's own warnings.
    pub warnings: Vec<String>,
}

#[derive(Debug)]
pub enum Outcome {
    Void,
    /// Done, with a word to the client.
    Warned(Vec<String>),
    Rows(Rows),
    SetKeyspace(String),
    SchemaChange {
        change: SchemaChange,
        invalidated: Invalidated,
        warnings: Vec<String>,
    },
}

impl Outcome {
    /// The same, with more words to the client.
    pub(crate) fn warned(self, mut more: Vec<String>) -> Outcome {
        if more.is_empty() {
            return self;
        }
        match self {
            Outcome::Void => Outcome::Warned(more),
            Outcome::Warned(mut warnings) => {
                warnings.append(&mut more);
                Outcome::Warned(warnings)
            }
            Outcome::Rows(mut rows) => {
                rows.warnings.append(&mut more);
                Outcome::Rows(rows)
            }
            Outcome::SchemaChange { change, invalidated, mut warnings } => {
                warnings.append(&mut more);
                Outcome::SchemaChange { change, invalidated, warnings }
            }
            Outcome::SetKeyspace(_) => self,
        }
    }
}
