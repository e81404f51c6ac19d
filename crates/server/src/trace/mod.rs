//! The tracing session of one request: rows of `system_traces`, written before the answer, so that the client finds them; and the spans
//! of a request that is sampled for a collector (`spans.rs`).

pub(crate) mod probability;
pub(crate) mod spans;

use std::net::SocketAddr;
use std::rc::Rc;

use halcyon_io::clock::{Instant, now, unix_micros};
use halcyon_io::random;
use halcyon_model::request::{Consistency, Value};
use halcyon_model::uuid;
use halcyon_operate::Span;
use halcyon_protocol::{BatchQuery, QueryParameters, Request};
use halcyon_query::{Error, Result, password};

use spans::{attribute, bounded};

use crate::internal;
use crate::request_log::{OBSCURED, mentions_password};
use crate::shard::ShardServer;

pub(crate) struct Trace {
    pub(crate) id: [u8; 16],
    started_at: i64,
    began: Instant,
    client: SocketAddr,
    request: &'static str,
    parameters: Vec<(&'static str, String)>,
    events: Vec<(Instant, String)>,
    /// Its error may quote a password.
    mentions_password: bool,
    arrived: Instant,
    is_stored: bool,
    is_sent: bool,
}

impl Trace {
    pub(crate) fn begin(
        uuids: &uuid::Generator,
        client: SocketAddr,
        request: &Request<'_>,
        arrived: Instant,
    ) -> Trace {
        let began = now();
        let started_at = unix_micros();
        let mut trace = Trace {
            id: uuids.time_based(started_at),
            started_at,
            began,
            client,
            request: "",
            parameters: Vec::new(),
            events: Vec::new(),
            mentions_password: mentions_password(request),
            arrived,
            is_stored: false,
            is_sent: false,
        };
        match request {
            Request::Query { text, parameters } => {
                trace.request = "Execute CQL3 query";
                let text = password::hidden(text);
                trace.events.push((began, format!("Parsing {text}")));
                trace.parameters.push(("query", text.into_owned()));
                trace.describe(parameters);
            }
            Request::Prepare { text, .. } => {
                trace.request = "Preparing CQL3 query";
                let text = password::hidden(text);
                trace.events.push((began, format!("Parsing {text}")));
                trace.parameters.push(("query", text.into_owned()));
            }
            Request::Execute { parameters, .. } => {
                trace.request = "Execute CQL3 prepared query";
                trace.describe(parameters);
            }
            Request::Batch { entries, parameters, .. } => {
                trace.request = "Execute batch of CQL3 queries";
                if let Some((BatchQuery::Text(text), _)) = entries.first() {
                    trace.parameters.push(("query", password::hidden(text).into_owned()));
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

    /// Whether its rows are written, and whether its spans are sent.
    pub(crate) fn kept(self, is_stored: bool, is_sent: bool) -> Trace {
        Trace { is_stored, is_sent, ..self }
    }

    /// Writes the session and its events, and hands its spans over. A failure is ignored: it must not change the outcome of the request.
    pub(crate) async fn write<T>(mut self, shard: &Rc<ShardServer>, outcome: &Result<T>) {
        let done = now();
        let mut failure = None;
        if let Err(error) = outcome {
            let shown = match error {
                Error::Syntax(_) if self.mentions_password => OBSCURED.to_owned(),
                error => password::hidden(&error.to_string()).into_owned(),
            };
            self.events.push((done, format!("Request failed: {shown}")));
            failure = Some(shown);
        }
        self.events.push((done, format!("Executed on shard {}", shard.index)));
        if let Some(sender) = shard.shared.spans.as_ref().filter(|_| self.is_sent) {
            sender.offer(spans(&self, (shard.index, done), failure));
        }
        if !self.is_stored {
            return;
        }
        let ttl = shard.shared.transport.trace_ttl.as_secs();
        let _ = self.write_rows(shard, done, i32::try_from(ttl).unwrap_or(i32::MAX)).await;
    }

    async fn write_rows(&self, shard: &ShardServer, done: Instant, ttl: i32) -> Result<()> {
        let micros = |to: Instant| i32::try_from((to - self.began).as_micros()).unwrap_or(i32::MAX);
        let node = shard.shared.transport.address;
        let thread = format!("shard {}", shard.index);
        let uuids = shard.coordinator.uuids();
        let stamp = |(step, (at, _)): (u64, &(Instant, String))| {
            let elapsed = micros(*at);
            // The time of the event, not of the write; `step` keeps the order of events within a microsecond.
            let ticks = uuid::ticks_at(self.started_at + i64::from(elapsed)).wrapping_add(step);
            (uuids.with_ticks(ticks), elapsed.to_be_bytes())
        };
        let stamps: Vec<_> = (0..).zip(&self.events).map(stamp).collect();
        let (address, port, ttl) =
            (inet(node), i32::from(node.port()).to_be_bytes(), ttl.to_be_bytes());
        let events = self.events.iter().zip(&stamps).map(|((_, activity), (id, elapsed))| {
            let (activity, thread) = (activity.as_bytes(), thread.as_bytes());
            [&self.id[..], id, activity, &address, &port, elapsed, thread, &ttl]
                .map(Value::Bytes)
                .to_vec()
        });
        let events: Vec<_> = events.collect();
        internal::execute_all(&shard.coordinator, INSERT_EVENT, &events).await?;
        let values = [
            Value::Bytes(&self.id),
            Value::Bytes(&inet(self.client)),
            Value::Bytes(b"QUERY"),
            Value::Bytes(&address),
            Value::Bytes(&port),
            Value::Bytes(&micros(done).to_be_bytes()),
            Value::Bytes(&text_map(&self.parameters)),
            Value::Bytes(self.request.as_bytes()),
            Value::Bytes(&(self.started_at / 1000).to_be_bytes()),
            Value::Bytes(&ttl),
        ];
        internal::execute(&shard.coordinator, INSERT_SESSION, &values).await.map(drop)
    }
}

/// The spans of a request that has ended: the whole, its wait for its core, its execution.
fn spans(trace: &Trace, (shard, done): (usize, Instant), error: Option<String>) -> Vec<Span> {
    let unix = |at: Instant| {
        let began = u64::try_from(trace.started_at).unwrap_or_default().saturating_mul(1000);
        (began + at.as_nanos()).saturating_sub(trace.began.as_nanos())
    };
    let mut attributes = vec![
        ("db.system.name".to_owned(), "cassandra".to_owned()),
        ("network.peer.address".to_owned(), trace.client.ip().to_string()),
        ("network.peer.port".to_owned(), trace.client.port().to_string()),
        ("halcyon.shard".to_owned(), shard.to_string()),
    ];
    let parameters = trace.parameters.iter();
    attributes.extend(parameters.map(|(name, value)| (attribute(name).to_owned(), bounded(value))));
    let mut random = random();
    let mut id = || random.next_u64().to_be_bytes();
    let whole = Span {
        trace: trace.id,
        id: id(),
        parent: None,
        name: trace.request.to_owned(),
        began: unix(trace.arrived),
        ended: unix(done),
        attributes,
        events: Vec::new(),
        error: error.as_deref().map(bounded),
    };
    let mut part = |name: &str, began, ended| Span {
        id: id(),
        parent: Some(whole.id),
        name: name.to_owned(),
        began: unix(began),
        ended: unix(ended),
        attributes: Vec::new(),
        error: None,
        ..whole.clone()
    };
    let waited = part("wait for the core", trace.arrived, trace.began);
    let mut executed = part("execute", trace.began, done);
    let events = trace.events.iter();
    executed.events = events.map(|(at, text)| (unix(*at), bounded(text))).collect();
    vec![whole, waited, executed]
}

const INSERT_EVENT: &str = "INSERT INTO system_traces.events (session_id, event_id, activity, source, source_port, \
    source_elapsed, thread) VALUES (?, ?, ?, ?, ?, ?, ?) USING TTL ?";
const INSERT_SESSION: &str = "INSERT INTO system_traces.sessions (session_id, client, command, coordinator, \
    coordinator_port, duration, parameters, request, started_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) USING TTL ?";

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
