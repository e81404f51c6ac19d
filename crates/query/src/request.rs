//! The inputs of one request's terms.

use halcyon_cql::plan::{Execution, Work};
use halcyon_functions::SlowCalls;
use halcyon_io::clock::unix_micros;
use halcyon_model::access::Principal;
use halcyon_model::request::{Consistency, Value};
use halcyon_model::time::MAX_DELETION_TIME;
use halcyon_model::uuid;
use halcyon_scan::{ReadLimits, ScanContext};

use crate::QueryOptions;

/// The inputs of one request's terms: its values, time and source of UUIDs.
pub(crate) struct Request<'a> {
    values: &'a [Value<'a>],
    /// The statement's text.
    text: usize,
    now_micros: i64,
    now_seconds: u32,
    protocol_version: u8,
    uuids: &'a uuid::Generator,
    /// While it was bound.
    slow: SlowCalls,
    /// Not the node's own.
    is_of_client: bool,
}

impl<'a> Request<'a> {
    /// The inputs of one statement, read from the clock now. `text`: bytes of the statement.
    pub(crate) fn new(
        text: usize,
        values: &'a [Value<'a>],
        options: &QueryOptions<'_>,
        uuids: &'a uuid::Generator,
    ) -> Request<'a> {
        let now_micros = unix_micros();
        let now_seconds = now_micros.div_euclid(1_000_000);
        Request {
            values,
            text,
            now_micros,
            now_seconds: options
                .now_in_seconds
                .unwrap_or_else(|| u32::try_from(now_seconds).unwrap_or(MAX_DELETION_TIME)),
            protocol_version: options.protocol_version,
            uuids,
            slow: SlowCalls::default(),
            is_of_client: false,
        }
    }

    /// The same, whose reads have a client's limits, unless the node itself asks.
    pub(crate) fn of(self, principal: &Principal) -> Request<'a> {
        Request { is_of_client: *principal != Principal::System, ..self }
    }

    pub(crate) fn is_of_client(&self) -> bool {
        self.is_of_client
    }

    /// Bytes of text and values, which are counted with the request. A value that has a name stands for each marker of that name, and is
    /// counted once: those that stand behind each other in the message are.
    pub(crate) fn bytes(&self) -> u64 {
        let (mut end, mut bytes) = (0, self.text);
        for value in self.values {
            if let Value::Bytes(value) = value
                && value.as_ptr().addr() >= end
            {
                end = value.as_ptr().addr() + value.len();
                bytes += value.len();
            }
        }
        bytes as u64
    }

    pub(crate) fn now_micros(&self) -> i64 {
        self.now_micros
    }

    pub(crate) fn slow_calls(&self) -> &SlowCalls {
        &self.slow
    }

    pub(crate) fn execution<'w>(&'w self, work: &'w Work<'w>) -> Execution<'w> {
        Execution {
            values: self.values,
            now_micros: self.now_micros,
            now_seconds: self.now_seconds,
            protocol_version: self.protocol_version,
            uuids: self.uuids,
            json: &[],
            guard: None,
            work,
        }
    }

    pub(crate) fn scan_context(&self, consistency: Consistency, limits: ReadLimits) -> ScanContext {
        ScanContext {
            limits,
            now_micros: self.now_micros,
            now_seconds: self.now_seconds,
            protocol_version: self.protocol_version,
            uuids: self.uuids.fork(),
            consistency,
        }
    }
}
