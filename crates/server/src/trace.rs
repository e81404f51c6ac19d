//! Tracing of one request: rows of `system_traces`, written before the answer, so that a client that has the id finds them.

use std::net::SocketAddr;
use std::rc::Rc;

use halcyon_io::Random;
use halcyon_io::clock::{Instant, now, unix_micros};
use halcyon_protocol::{BatchQuery, Consistency, QueryParameters, Request};
use halcyon_query::{OwnedValue, Result};

use crate::internal::{self, bytes};
use crate::shard::ShardServer;

pub(crate) struct Trace {
    pub(crate) id: [u8; 16],
    started_at: i64,
    began: Instant,
    client: SocketAddr,
    request: &'static str,
    parameters: Vec<(&'static str, String)>,
    events: Vec<(Instant, String)>,
}

/// 100 ns between the calendar of UUIDs and 1970.
const UUID_EPOCH: u64 = 0x01B2_1DD2_1381_4000;

/// Version 1: time order, and a random node.
fn time_uuid(random: &mut Random, micros: i64, step: u64) -> [u8; 16] {
    let time = (micros.max(0) as u64).wrapping_mul(10).wrapping_add(step).wrapping_add(UUID_EPOCH);
    let low =
        (time & 0xFFFF_FFFF) << 32 | ((time >> 32) & 0xFFFF) << 16 | (time >> 48) & 0x0FFF | 0x1000;
    // The variant's bits, and the mark of a random node.
    let high = random.next_u64() & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0100_0000_0000;
    (u128::from(low) << 64 | u128::from(high)).to_be_bytes()
}

impl Trace {
    pub(crate) fn begin(client: SocketAddr, request: &Request<'_>) -> Trace {
        let mut random = Random::from_system();
        let began = now();
        let mut trace = Trace {
            id: time_uuid(&mut random, unix_micros(), 0),
            started_at: unix_micros(),
            began,
            client,
            request: "",
            parameters: Vec::new(),
            events: Vec::new(),
        };
        match request {
            Request::Query { text, parameters } => {
                trace.request = "Execute CQL3 query";
                trace.parameters.push(("query", (*text).to_owned()));
                trace.describe(parameters);
                trace.events.push((began, format!("Parsing {text}")));
            }
            Request::Prepare { text, .. } => {
                trace.request = "Preparing CQL3 query";
                trace.parameters.push(("query", (*text).to_owned()));
                trace.events.push((began, format!("Parsing {text}")));
            }
            Request::Execute { parameters, .. } => {
                trace.request = "Execute CQL3 prepared query";
                trace.describe(parameters);
            }
            Request::Batch { entries, parameters, .. } => {
                trace.request = "Execute batch of CQL3 queries";
                if let Some((BatchQuery::Text(text), _)) = entries.first() {
                    trace.parameters.push(("query", (*text).to_owned()));
                }
                trace.describe(parameters);
            }
            _ => {}
        }
        trace
    }

    fn describe(&mut self, parameters: &QueryParameters<'_>) {
        self.parameters.push(("consistency_level", parameters.consistency.to_string()));
        if let Some(size) = parameters.page_size {
            self.parameters.push(("page_size", size.to_string()));
        }
        let serial = parameters.serial_consistency.unwrap_or(Consistency::Serial);
        self.parameters.push(("serial_consistency_level", serial.to_string()));
    }

    /// Writes the session and its events. A trace that cannot be written is none: the request has its own outcome.
    pub(crate) async fn write<T>(mut self, shard: &Rc<ShardServer>, outcome: &Result<T>) {
        let done = now();
        if let Err(error) = outcome {
            self.events.push((done, format!("Request failed: {error}")));
        }
        self.events.push((done, format!("Executed on shard {}", shard.index)));
        let ttl = shard.shared.transport.trace_ttl.as_secs();
        let _ = self.write_rows(shard, done, i32::try_from(ttl).unwrap_or(i32::MAX)).await;
    }

    async fn write_rows(&self, shard: &ShardServer, done: Instant, ttl: i32) -> Result<()> {
        let micros = |to: Instant| i32::try_from((to - self.began).as_micros()).unwrap_or(i32::MAX);
        let node = shard.shared.transport.address;
        let mut random = Random::from_system();
        for (step, (at, activity)) in self.events.iter().enumerate() {
            let time = self.started_at + i64::from(micros(*at));
            let values = vec![
                bytes(self.id),
                bytes(time_uuid(&mut random, time, step as u64)),
                bytes(activity.as_bytes()),
                bytes(inet(node)),
                int(i32::from(node.port())),
                int(micros(*at)),
                bytes(format!("shard {}", shard.index).into_bytes()),
                int(ttl),
            ];
            internal::execute(shard, INSERT_EVENT, values).await?;
        }
        let values = vec![
            bytes(self.id),
            bytes(inet(self.client)),
            bytes("QUERY"),
            bytes(inet(node)),
            int(i32::from(node.port())),
            int(micros(done)),
            OwnedValue::Bytes(text_map(&self.parameters)),
            bytes(self.request),
            bytes((self.started_at / 1000).to_be_bytes()),
            int(ttl),
        ];
        internal::execute(shard, INSERT_SESSION, values).await.map(drop)
    }
}

const INSERT_EVENT: &str = "INSERT INTO system_traces.events (session_id, event_id, activity, source, source_port, \
    source_elapsed, thread) VALUES (?, ?, ?, ?, ?, ?, ?) USING TTL ?";
const INSERT_SESSION: &str = "INSERT INTO system_traces.sessions (session_id, client, command, coordinator, \
    coordinator_port, duration, parameters, request, started_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) USING TTL ?";

fn int(value: i32) -> OwnedValue {
    bytes(value.to_be_bytes())
}

fn inet(address: SocketAddr) -> Vec<u8> {
    match address {
        SocketAddr::V4(address) => address.ip().octets().to_vec(),
        SocketAddr::V6(address) => address.ip().octets().to_vec(),
    }
}

/// `map<text, text>`, in the order of its keys.
fn text_map(members: &[(&'static str, String)]) -> Vec<u8> {
    let sorted: std::collections::BTreeMap<_, _> = members.iter().map(|(k, v)| (*k, v)).collect();
    let mut out = (sorted.len() as i32).to_be_bytes().to_vec();
    for text in sorted.iter().flat_map(|(key, value)| [key.as_bytes(), value.as_bytes()]) {
        out.extend((text.len() as i32).to_be_bytes());
        out.extend(text);
    }
    out
}
