//! One client's connection, on the shard that accepted it.
//!
//! ```text
//!  socket ─► read ─► Decoder ─► permit ─┬─► STARTUP, OPTIONS, REGISTER: answered at once
//!                                       └─► QUERY, EXECUTE, BATCH, PREPARE: a task each ─┐
//!  socket ◄─ write ◄──────────────── Encoder ◄───────────────────────────────────────────┘  in the order of completion
//! ```
//! 1. A request gets its permit before the next one is decoded, so the requests in flight of a client are bounded.
//! 2. While a write is in flight, answers collect in the encoder; the next write sends all of them.
//! 3. Nothing is read from a client that does not read its answers, once `UNSENT_MAX` bytes wait for it. Nor from one whose requests in
//!    flight could have more than `ANSWERS_MAX` bytes of answers, if each were as large as the largest recent one.
//! 4. A read ends by shutting the socket down, because an I/O future must not be dropped. Requests in flight are then answered.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use halcyon_io::clock::{self, Instant, now};
use halcyon_io::{Notify, Socket, spawn, start};
use halcyon_protocol::{
    Compression, Decoder, Encoder, Envelope, Error, ErrorKind, Event, EventType, Limits, Notes,
    Opcode, ReplyTo, Response, Version,
};
use halcyon_query::Client;

use crate::admission::{ConnectionPermit, Permit};
use crate::clients::Entry;
use crate::session;
use crate::shard::ShardServer;

/// Buffer sizes of a read.
const READ_MIN: usize = 16 << 10;
const READ_MAX: usize = 256 << 10;
/// Bytes of unsent answers from which nothing more is read from the client.
const UNSENT_MAX: usize = 1 << 20;
/// Bytes of answers that may wait for it or be on their way.
const ANSWERS_MAX: usize = 8 << 20;
/// The smallest estimate of an answer's size, and the first one: a new client can send many requests with large answers at once.
const ANSWER_MIN: usize = 32 << 10;
const ANSWER_FIRST: usize = 1 << 20;
/// How often a client that may send no more is looked at again.
const ROOM_CHECK: Duration = Duration::from_millis(1);

/// The messages that a client can send next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// STARTUP or OPTIONS.
    Established,
    Ready,
}

pub(crate) struct Connection {
    pub(crate) peer: SocketAddr,
    socket: Socket,
    admitted: Rc<ConnectionPermit>,
    pub(crate) stage: Cell<Stage>,
    pub(crate) version: Cell<Option<Version>>,
    pub(crate) compression: Cell<Compression>,
    pub(crate) throw_on_overload: Cell<bool>,
    /// For `system_views.clients`.
    pub(crate) entry: Arc<Entry>,
    pub(crate) events: RefCell<Vec<EventType>>,
    /// Changed by USE; a request keeps the one with which it started.
    client: RefCell<Rc<Client>>,
    encoder: RefCell<Encoder>,
    /// Wakes the writer: there are answers to send, or none will follow.
    to_send: Notify,
    /// Wakes the reader: answers were sent, or a request has ended.
    eased: Notify,
    /// Bytes in the write that is in flight.
    sending: Cell<usize>,
    /// Bytes of the largest recent answer.
    large_answer: Cell<usize>,
    in_flight: Cell<usize>,
    /// No more requests are read.
    ended: Cell<bool>,
    broken: Cell<bool>,
    last_active: Cell<Instant>,
}

impl Connection {
    pub(crate) fn new(
        socket: Socket,
        peer: SocketAddr,
        admitted: Rc<ConnectionPermit>,
        entry: Arc<Entry>,
    ) -> Connection {
        Connection {
            peer,
            socket,
            admitted,
            stage: Cell::new(Stage::Established),
            version: Cell::new(None),
            compression: Cell::new(Compression::None),
            throw_on_overload: Cell::new(false),
            entry,
            events: RefCell::default(),
            client: RefCell::default(),
            encoder: RefCell::default(),
            to_send: Notify::default(),
            eased: Notify::default(),
            sending: Cell::new(0),
            large_answer: Cell::new(ANSWER_FIRST),
            in_flight: Cell::new(0),
            ended: Cell::new(false),
            broken: Cell::new(false),
            last_active: Cell::new(now()),
        }
    }

    pub(crate) fn client(&self) -> Rc<Client> {
        self.client.borrow().clone()
    }

    pub(crate) fn use_keyspace(&self, keyspace: &str) {
        let role = self.client.borrow().role.clone();
        self.entry.info().keyspace = Some(keyspace.to_owned());
        *self.client.borrow_mut() = Rc::new(Client { keyspace: Some(keyspace.to_owned()), role });
    }

    /// The time since the last read or write.
    pub(crate) fn idle(&self) -> Duration {
        now() - self.last_active.get()
    }

    fn unsent(&self) -> usize {
        self.sending.get() + self.encoder.borrow().len()
    }

    /// Whether to stop reading requests for now.
    fn is_full(&self) -> bool {
        let unsent = self.unsent();
        let under_way = self.in_flight.get().saturating_mul(self.large_answer.get());
        let busy = unsent > 0 || self.in_flight.get() > 0;
        !self.broken.get()
            && busy
            && (unsent > UNSENT_MAX || unsent.saturating_add(under_way) > ANSWERS_MAX)
    }

    /// Stops reading requests; those in flight are answered.
    pub(crate) fn finish(&self) {
        self.socket.shut_down_reads();
    }

    pub(crate) fn close(&self) {
        self.socket.shut_down();
    }

    pub(crate) fn answer(&self, to: ReplyTo, response: &Response<'_>, notes: &Notes) {
        if !self.broken.get() {
            let mut encoder = self.encoder.borrow_mut();
            let before = encoder.len();
            encoder.push(to, response, notes);
            let bytes = encoder.len().saturating_sub(before);
            let large = self.large_answer.get();
            self.large_answer.set(bytes.max(large - large / 64).max(ANSWER_MIN));
            self.to_send.notify_one();
        }
    }

    pub(crate) fn answer_error(&self, to: ReplyTo, error: Error) {
        self.answer(to, &Response::Error(error), &Notes::default());
    }

    /// Sets version and compression of both directions, before the answer to STARTUP.
    fn start(&self, decoder: &mut Decoder, version: Version, compression: Compression) {
        decoder.start(version, compression);
        self.encoder.borrow_mut().start(version, compression);
        self.version.set(Some(version));
        self.compression.set(compression);
        if version.is_framed() {
            self.admitted.framed();
        }
        self.entry.info().protocol_version = Some(version.number());
        self.stage.set(Stage::Ready);
    }

    /// Sends an event, if the client has registered for its kind.
    pub(crate) fn announce(&self, kind: EventType, event: Event<'_>) {
        let Some(version) = self.version.get() else { return };
        if !self.events.borrow().contains(&kind) {
            return;
        }
        if self.unsent() > UNSENT_MAX {
            // The client does not read: it would miss the event, or events would pile up.
            return self.close();
        }
        self.answer(ReplyTo::event(version), &Response::Event(event), &Notes::default());
    }
}

/// Serves a connection to its end.
pub(crate) async fn serve(shard: Rc<ShardServer>, connection: Rc<Connection>) {
    let writing = spawn(send(connection.clone()));
    receive(&shard, &connection).await;
    while connection.in_flight.get() > 0 {
        connection.eased.notified().await;
    }
    connection.ended.set(true);
    connection.to_send.notify_one();
    writing.await;
    connection.close();
}

/// The writer: each write sends all collected answers.
async fn send(connection: Rc<Connection>) {
    loop {
        if connection.encoder.borrow().is_empty() {
            if connection.ended.get() {
                return;
            }
            connection.to_send.notified().await;
            continue;
        }
        let bytes = connection.encoder.borrow_mut().take();
        connection.sending.set(bytes.len());
        let (outcome, bytes) = connection.socket.write(bytes).await;
        connection.sending.set(0);
        connection.last_active.set(now());
        connection.encoder.borrow_mut().reuse(bytes);
        // After an error the client is gone: answers cannot reach it.
        connection.broken.set(outcome.is_err());
        connection.eased.notify_one();
        if connection.broken.get() {
            return connection.close();
        }
    }
}

async fn receive(shard: &Rc<ShardServer>, connection: &Rc<Connection>) {
    let transport = &shard.shared.transport;
    let mut decoder = Decoder::new(Limits {
        max_frame_size: transport.max_frame_size,
        max_message_size: transport.max_message_size,
    });
    let mut buffer = Vec::with_capacity(READ_MIN);
    loop {
        let (outcome, read) = connection.socket.read(buffer).await;
        buffer = read;
        if !matches!(outcome, Ok(1..)) || connection.broken.get() {
            return;
        }
        let arrived = now();
        connection.last_active.set(arrived);
        decoder.feed(&buffer);
        let full = buffer.len() == buffer.capacity() && buffer.capacity() < READ_MAX;
        buffer.clear();
        if full {
            buffer.reserve(2 * buffer.capacity());
        }
        loop {
            while connection.is_full() {
                connection.eased.notified().await;
            }
            if connection.broken.get() {
                // No client would get the answers.
                return;
            }
            match decoder.next() {
                Ok(Some(envelope)) => {
                    take_in(shard, connection, &mut decoder, envelope, arrived).await;
                }
                Ok(None) => break,
                Err(error) => {
                    shard.figures().protocol_errors.up();
                    connection.encoder.borrow_mut().push_error(&error);
                    connection.to_send.notify_one();
                    if error.close {
                        return;
                    }
                }
            }
        }
        if !connection.admitted.hold_arriving(decoder.held() as u64) {
            let peer = connection.peer;
            let why = "its request would take more memory than native_transport_max_request_data_in_flight allows";
            return shard.shared.log.warning(format_args!("{peer} is disconnected: {why}"));
        }
    }
}

async fn take_in(
    shard: &Rc<ShardServer>,
    connection: &Rc<Connection>,
    decoder: &mut Decoder,
    envelope: Envelope,
    arrived: Instant,
) {
    let to = envelope.reply_to();
    connection.entry.count_request();
    shard.figures().requests.up();
    if let Err(message) = expected(connection.stage.get(), envelope.opcode) {
        return connection.answer_error(to, Error::new(ErrorKind::Protocol, message));
    }
    let mut warnings = Vec::new();
    let permit = match permit(shard, connection, &envelope, &mut warnings).await {
        Ok(permit) => permit,
        Err(message) => {
            return connection.answer_error(to, Error::new(ErrorKind::Overloaded, message));
        }
    };
    match envelope.opcode {
        Opcode::Query | Opcode::Execute | Opcode::Batch | Opcode::Prepare => {
            connection.in_flight.set(connection.in_flight.get() + 1);
            shard.figures().in_flight.up();
            let (shard, connection) = (shard.clone(), connection.clone());
            start(Box::pin(async move {
                shard.figures().waits.record(now() - arrived);
                let _leaving = InFlight(shard.clone(), connection.clone(), to);
                session::execute(&shard, &connection, &envelope, warnings, arrived).await;
                drop(permit);
            }));
        }
        Opcode::Startup => {
            if let Some((version, compression)) = session::startup(shard, connection, &envelope) {
                connection.start(decoder, version, compression);
                connection.answer(to, &Response::Ready, &Notes::default());
            }
        }
        _ => session::answer_at_once(shard, connection, &envelope),
    }
}

/// Ends a request in flight when it is dropped. If the request's task panics, it sends an error; other requests continue.
struct InFlight(Rc<ShardServer>, Rc<Connection>, ReplyTo);

impl Drop for InFlight {
    fn drop(&mut self) {
        let InFlight(shard, connection, to) = self;
        if std::thread::panicking() {
            let error = Error::new(ErrorKind::Server, "an internal error stopped this request");
            connection.answer_error(*to, error);
        }
        connection.in_flight.set(connection.in_flight.get() - 1);
        shard.figures().in_flight.down();
        connection.eased.notify_one();
    }
}

fn expected(stage: Stage, opcode: Opcode) -> Result<(), String> {
    match (stage, opcode) {
        (Stage::Established, Opcode::Startup | Opcode::Options) => Ok(()),
        (Stage::Established, _) => {
            Err(format!("Unexpected message {opcode}, expecting STARTUP or OPTIONS"))
        }
        (Stage::Ready, Opcode::Startup) => {
            Err("Unexpected message STARTUP, the connection is already initialized".to_owned())
        }
        (Stage::Ready, _) => Ok(()),
    }
}

/// Waits for room and warns, or refuses, as the client asked in STARTUP.
async fn permit(
    shard: &ShardServer,
    connection: &Connection,
    envelope: &Envelope,
    warnings: &mut Vec<String>,
) -> Result<Permit, String> {
    let bytes = envelope.body.len() as u64;
    let (admitted, admission) = (&connection.admitted, connection.admitted.admission());
    // What comes before STARTUP is not limited.
    let rate = admission.rate().filter(|_| connection.stage.get() == Stage::Ready);
    if connection.throw_on_overload.get() || shard.shared.transport.throw_on_overload {
        let permit = admitted.permit_whole(bytes)?;
        return match rate {
            Some(rate) if !rate.try_reserve() => Err(rate.refusal()),
            _ => Ok(permit),
        };
    }
    if let Some(rate) = rate {
        let wait = rate.reserve();
        if !wait.is_zero() {
            warnings.push(rate.warning());
            clock::sleep(wait).await;
        }
    }
    loop {
        if let Some(permit) = admitted.permit(bytes) {
            return Ok(permit);
        }
        if warnings.is_empty() {
            warnings.push(admission.bytes_warning());
        }
        // Room is made on any shard: looking again costs less than to have every answer wake up others.
        clock::sleep(ROOM_CHECK).await;
    }
}
