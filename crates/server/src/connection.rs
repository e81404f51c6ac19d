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
use halcyon_io::{Notify, Socket, compute, contained, panic_point, spawn, start};
use halcyon_protocol::{
    Compression, Decoder, Encoder, Envelope, Error, ErrorKind, Event, EventType, Limits, Notes,
    Opcode, Outline, Packed, ProtocolError, ReplyTo, Response, Version,
};

use crate::admission::{ConnectionPermit, Permit};
use crate::client_state::ClientState;
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
/// Bytes of a body that is decompressed where it arrives.
const OPENED_AT_ONCE: usize = 128 << 10;
/// How long a request, or the rest of one, waits for memory.
const MEMORY_PATIENCE: Duration = Duration::from_secs(5);
/// Bytes that must have come for an incomplete request to count as a step forward: a client that sends it byte by byte is idle.
const STEP_FORWARD: usize = 4 << 10;
/// How long a connection may keep memory without a step forward, where memory is short.
const STALLED: Duration = Duration::from_secs(2);
/// Unsent bytes from which nothing more is read from a client, where memory is short.
const UNSENT_SHORT: usize = 64 << 10;

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
    /// Changed by a login and by USE; a request keeps the one with which it started.
    state: RefCell<Rc<ClientState>>,
    /// Whether it was told that prepared statements should not depend on USE.
    pub(crate) warned_of_use: Cell<bool>,
    encoder: RefCell<Encoder>,
    /// Wakes the writer: there are answers to send, or none will follow.
    to_send: Notify,
    /// Wakes the reader: answers were sent, or a request has ended.
    eased: Notify,
    /// Bytes in the write that is in flight, and of its buffer.
    sending: Cell<usize>,
    sending_held: Cell<usize>,
    /// When reads of single partitions arrived whose answers the writer will take next.
    answered_reads: RefCell<Vec<Instant>>,
    /// Bytes of the largest recent answer.
    large_answer: Cell<usize>,
    in_flight: Cell<usize>,
    /// No more requests are read.
    ended: Cell<bool>,
    broken: Cell<bool>,
    closed: Cell<bool>,
    /// Its next request waits for room, or is opened.
    waiting: Cell<bool>,
    /// Its client has begun a request and not completed it.
    incomplete: Cell<bool>,
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
            state: RefCell::default(),
            warned_of_use: Cell::new(false),
            encoder: RefCell::default(),
            to_send: Notify::default(),
            eased: Notify::default(),
            sending: Cell::new(0),
            sending_held: Cell::new(0),
            answered_reads: RefCell::default(),
            large_answer: Cell::new(ANSWER_FIRST),
            in_flight: Cell::new(0),
            ended: Cell::new(false),
            broken: Cell::new(false),
            closed: Cell::new(false),
            waiting: Cell::new(false),
            incomplete: Cell::new(false),
            last_active: Cell::new(now()),
        }
    }

    pub(crate) fn state(&self) -> Rc<ClientState> {
        self.state.borrow().clone()
    }

    pub(crate) fn use_keyspace(&self, keyspace: &str) {
        self.entry.info().keyspace = Some(keyspace.to_owned());
        let changed = self.state.borrow().in_keyspace(keyspace);
        *self.state.borrow_mut() = Rc::new(changed);
    }

    /// The time since the last step forward: a whole request, a part of a large one, a part of an answer that was sent.
    pub(crate) fn idle(&self) -> Duration {
        now() - self.last_active.get()
    }

    /// Whether it keeps memory without need: its client does not read its answers, or does not complete its request. One that owes
    /// nothing may be idle, whatever buffers this node has for it.
    pub(crate) fn is_stalled(&self) -> bool {
        let waits_for_client = self.unsent() > 0
            || self.incomplete.get() && self.in_flight.get() == 0 && !self.waiting.get();
        let is_stalled = waits_for_client && self.admitted.keeps_much() && self.idle() > STALLED;
        is_stalled && !self.closed.get()
    }

    /// Counts the latency of a read that has been answered. It ends when the writer takes the answer, after what else the shard does in
    /// this turn; behind a write that is in flight at once, for what follows is the client's doing.
    pub(crate) fn count_read(&self, shard: &ShardServer, arrived: Instant) {
        if self.sending.get() > 0 || self.encoder.borrow().is_empty() {
            shard.coordinator.shard().note_read(now() - arrived);
        } else {
            self.answered_reads.borrow_mut().push(arrived);
        }
    }

    fn count_answered_reads(&self, shard: &ShardServer) {
        let taken = now();
        for arrived in self.answered_reads.borrow_mut().drain(..) {
            shard.coordinator.shard().note_read(taken - arrived);
        }
    }

    /// Counts the memory of the answers on their way out.
    fn count_unsent(&self) {
        let unsent = self.encoder.borrow().held() + self.sending_held.get();
        self.admitted.keep_unsent(unsent as u64);
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
            && (unsent > UNSENT_MAX
                || unsent.saturating_add(under_way) > ANSWERS_MAX
                || unsent > UNSENT_SHORT && self.admitted.admission().memory().is_short())
    }

    /// Stops reading requests; those in flight are answered.
    pub(crate) fn finish(&self) {
        self.socket.shut_down_reads();
    }

    pub(crate) fn close(&self) {
        self.closed.set(true);
        self.socket.shut_down();
    }

    pub(crate) fn answer(&self, to: ReplyTo, response: &Response<'_>, notes: &Notes) {
        self.push(|encoder| {
            let before = encoder.len();
            encoder.push(to, response, notes);
            let bytes = encoder.len().saturating_sub(before);
            let large = self.large_answer.get();
            self.large_answer.set(bytes.max(large - large / 64).max(ANSWER_MIN));
        });
    }

    fn answer_malformed(&self, shard: &ShardServer, error: &ProtocolError) {
        shard.metrics().protocol_errors.up();
        self.push(|encoder| encoder.push_error(error));
    }

    /// Hands an answer to the writer.
    fn push(&self, push: impl FnOnce(&mut Encoder)) {
        if self.broken.get() {
            return;
        }
        if self.unsent() == 0 {
            // What the request took until now was not the client's time.
            self.last_active.set(now());
        }
        push(&mut self.encoder.borrow_mut());
        self.count_unsent();
        self.to_send.notify_one();
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
    let writing = spawn(write_answers(shard.clone(), connection.clone()));
    // A panic is the connection's end, and no other's.
    contained(receive(&shard, &connection)).await;
    while connection.in_flight.get() > 0 {
        connection.eased.notified().await;
    }
    connection.ended.set(true);
    connection.to_send.notify_one();
    writing.await;
    connection.close();
}

/// Sends answers until the connection ends. Without this task nothing reaches the client: then it is closed.
async fn write_answers(shard: Rc<ShardServer>, connection: Rc<Connection>) {
    if contained(send(shard, connection.clone())).await.is_none() {
        connection.broken.set(true);
        connection.close();
    }
}

/// The writer: each write sends all collected answers.
async fn send(shard: Rc<ShardServer>, connection: Rc<Connection>) {
    loop {
        if connection.encoder.borrow().is_empty() {
            if connection.ended.get() {
                return;
            }
            connection.to_send.notified().await;
            continue;
        }
        panic_point("the writer of a connection");
        let bytes = connection.encoder.borrow_mut().take();
        connection.count_answered_reads(&shard);
        connection.sending.set(bytes.len());
        connection.sending_held.set(bytes.capacity());
        let written = write(&connection, bytes).await;
        connection.sending.set(0);
        connection.sending_held.set(0);
        // After an error the client is disconnected: answers cannot reach it.
        connection.broken.set(written.is_none());
        connection.encoder.borrow_mut().reuse(written.unwrap_or_default());
        connection.count_unsent();
        connection.eased.notify_one();
        if connection.broken.get() {
            return connection.close();
        }
    }
}

/// Writes all, part by part; each part is a step forward. `None`: the client has gone.
async fn write(connection: &Connection, mut bytes: Vec<u8>) -> Option<Vec<u8>> {
    let mut sent = 0;
    while sent < bytes.len() {
        let (outcome, back) = connection.socket.write_some(bytes, sent).await;
        bytes = back;
        sent += outcome.ok().filter(|part| *part > 0)?;
        connection.last_active.set(now());
    }
    Some(bytes)
}

async fn receive(shard: &Rc<ShardServer>, connection: &Rc<Connection>) {
    let transport = &shard.shared.transport;
    let mut decoder = Decoder::new(Limits {
        max_frame_size: transport.max_frame_size,
        max_message_size: transport.max_message_size,
    });
    let mut buffer = Vec::with_capacity(READ_MIN);
    let mut since_step = 0;
    let mut read_at = now();
    loop {
        let (outcome, read, waited) = connection.socket.read_timed(buffer).await;
        panic_point("the reader of a connection");
        buffer = read;
        if !matches!(outcome, Ok(1..)) || connection.broken.get() {
            return;
        }
        // What was there before has been read then, whatever the calendar says.
        let since = std::mem::replace(&mut read_at, now());
        let arrived = read_at - waited.min(read_at - since);
        since_step += buffer.len();
        if since_step >= STEP_FORWARD {
            since_step = 0;
            connection.last_active.set(arrived);
        }
        decoder.feed(&buffer);
        let was_full = buffer.len() == buffer.capacity();
        buffer = fitted(buffer);
        loop {
            while connection.is_full() {
                connection.eased.notified().await;
            }
            if connection.broken.get() {
                // No client would get the answers.
                return;
            }
            match decoder.next() {
                Ok(Some(packed)) => {
                    since_step = 0;
                    connection.admitted.has_arrived(held(&decoder, &buffer));
                    take_in(shard, connection, &mut decoder, packed, arrived).await;
                }
                Ok(None) => break,
                Err(error) => {
                    connection.answer_malformed(shard, &error);
                    if error.close {
                        return;
                    }
                }
            }
        }
        decoder.rest();
        connection.incomplete.set(decoder.expected() > 0);
        if !was_full && !connection.incomplete.get() {
            buffer.shrink_to(READ_MIN); // It may be idle for long now.
        }
        if !make_room(shard, connection, &mut decoder, &buffer).await {
            return;
        }
    }
}

/// Waits until the rest of a request may be read, or refuses the request. Whether the connection stays.
async fn make_room(
    shard: &ShardServer,
    connection: &Rc<Connection>,
    decoder: &mut Decoder,
    buffer: &Vec<u8>,
) -> bool {
    loop {
        match room_for_the_rest(connection, decoder, held(decoder, buffer)).await {
            Rest::Room => return true,
            Rest::Left => return false,
            Rest::NoMemory => {}
        }
        let refusal = connection.admitted.admission().memory().refusal();
        if !decoder.refuse(Error::new(ErrorKind::Overloaded, refusal)) {
            let peer = connection.peer;
            let why = "its request would take more memory than native_transport_max_request_data_in_flight allows";
            shard.shared.log.warning(format_args!("{peer} is disconnected: {why}"));
            return false;
        }
        decoder.rest();
    }
}

/// The buffer for the next read: larger after one that was full, smaller after one that needed little of it.
fn fitted(mut buffer: Vec<u8>) -> Vec<u8> {
    let (used, capacity) = (buffer.len(), buffer.capacity());
    buffer.clear();
    if used == capacity && capacity < READ_MAX {
        buffer.reserve(2 * capacity);
    } else if used < capacity / 4 && capacity > READ_MIN {
        buffer.shrink_to(READ_MIN);
    }
    buffer
}

/// Memory of what has arrived, beside what every connection has.
fn held(decoder: &Decoder, buffer: &Vec<u8>) -> u64 {
    (decoder.held() + buffer.capacity().saturating_sub(READ_MIN)) as u64
}

/// What the rest of an incomplete request finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rest {
    Room,
    /// Memory for it is missing for long.
    NoMemory,
    /// The client waits for it no more.
    Left,
}

/// Counts an incomplete request with all that it will have and take: complete requests that wait for memory would keep it from each other.
/// Where it finds no room, the client must wait until others are done: nothing is read from it meanwhile. A client that hangs up gives its
/// turn to the next one.
async fn room_for_the_rest(connection: &Connection, decoder: &Decoder, held: u64) -> Rest {
    let admitted = &connection.admitted;
    let (expected, most) = (decoder.expected() as u64, admitted.admission().memory().limit());
    let taken = decoder.incomplete().map(|request| memory_of(&request));
    // One that takes more is refused when it is complete.
    let taken = taken.filter(|taken| *taken <= most).unwrap_or_default();
    let kept = expected.max(held) + taken;
    let fits = || admitted.hold_arriving(expected);
    if fits() && admitted.keep_arriving(kept) {
        return Rest::Room;
    }
    connection.waiting.set(true);
    let waiting = admitted.wait();
    let mut until = now() + MEMORY_PATIENCE;
    let found = loop {
        clock::sleep(10 * ROOM_CHECK).await;
        if connection.broken.get() || connection.socket.has_hung_up() {
            break Rest::Left;
        }
        if !fits() {
            until = now() + MEMORY_PATIENCE;
        } else if admitted.keep_arriving(kept) {
            break Rest::Room;
        } else if now() > until {
            break Rest::NoMemory;
        }
    };
    drop(waiting);
    connection.waiting.set(false);
    connection.last_active.set(now());
    found
}

/// Opens a body, a large one on a thread for computations.
async fn open(packed: Packed) -> Result<Envelope, ProtocolError> {
    let to = packed.reply_to();
    if !packed.is_compressed() || packed.body_len() <= OPENED_AT_ONCE {
        return packed.open();
    }
    let gone = |_| ProtocolError {
        reply_to: Some(to),
        error: Error::new(ErrorKind::Server, "an internal error stopped this request"),
        close: false,
    };
    Box::pin(compute(move || packed.open())).await.map_err(gone)?
}

async fn take_in(
    shard: &Rc<ShardServer>,
    connection: &Rc<Connection>,
    decoder: &mut Decoder,
    packed: Packed,
    arrived: Instant,
) {
    let to = packed.reply_to();
    connection.entry.count_request();
    shard.metrics().requests.up();
    if let Err(message) = expected(connection.stage.get(), packed.opcode()) {
        return connection.answer_error(to, Error::new(ErrorKind::Protocol, message));
    }
    let mut warnings = Vec::new();
    connection.waiting.set(true);
    let permit = permit(shard, connection, &packed, &mut warnings).await;
    // Not before there is room for what it becomes.
    let opened = match permit {
        Ok(permit) => Ok((permit, open(packed).await)),
        Err(message) => Err(Error::new(ErrorKind::Overloaded, message)),
    };
    connection.waiting.set(false);
    connection.last_active.set(arrived);
    let (permit, envelope) = match opened {
        Ok((permit, Ok(envelope))) => (permit, envelope),
        Ok((_, Err(error))) => return connection.answer_malformed(shard, &error),
        Err(error) => return connection.answer_error(to, error),
    };
    match envelope.opcode {
        Opcode::Query | Opcode::Execute | Opcode::Batch | Opcode::Prepare => {
            connection.in_flight.set(connection.in_flight.get() + 1);
            shard.metrics().in_flight.up();
            let leaving = InFlight {
                shard: shard.clone(),
                connection: connection.clone(),
                to,
                place: Cell::new(None),
            };
            start(Box::pin(async move {
                let (shard, connection) = (&leaving.shard.clone(), &leaving.connection.clone());
                let (began, envelope) = (now(), Rc::new(envelope));
                panic_point("a request");
                shard.metrics().waits.record_time(began - arrived);
                leaving.place.set(Some(shard.running.enter(envelope.clone(), arrived, began)));
                session::execute(shard, connection, (&*envelope, permit), warnings, arrived).await;
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
struct InFlight {
    shard: Rc<ShardServer>,
    connection: Rc<Connection>,
    to: ReplyTo,
    /// Among those that run.
    place: Cell<Option<usize>>,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let InFlight { shard, connection, to, place } = self;
        if std::thread::panicking() {
            let error = Error::new(ErrorKind::Server, "an internal error stopped this request");
            connection.answer_error(*to, error);
        }
        if let Some(place) = place.get() {
            shard.running.leave(place);
        }
        connection.in_flight.set(connection.in_flight.get() - 1);
        shard.metrics().in_flight.down();
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
    packed: &Packed,
    warnings: &mut Vec<String>,
) -> Result<Permit, String> {
    let bytes = packed.body_len() as u64;
    let taken = memory_of(&packed.outline());
    let (admitted, admission) = (&connection.admitted, connection.admitted.admission());
    if taken > admission.memory().limit() {
        return Err(admission.memory().refusal());
    }
    // What comes before STARTUP is not limited.
    let rate = admission.rate().filter(|_| connection.stage.get() == Stage::Ready);
    if connection.throw_on_overload.get() || shard.shared.transport.throw_on_overload {
        let mut permit = admitted.permit_whole(bytes)?;
        if !permit.keep(taken) {
            return Err(admission.memory().refusal());
        }
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
    let mut patience = None;
    loop {
        if let Some(mut permit) = admitted.permit(bytes) {
            if permit.keep(taken) {
                return Ok(permit);
            }
            // Cassandra's limits let clients wait for each other. Memory may be kept by what will not end soon.
            if now() > *patience.get_or_insert_with(|| now() + MEMORY_PATIENCE) {
                return Err(admission.memory().refusal());
            }
        }
        if warnings.is_empty() {
            warnings.push(admission.bytes_warning());
        }
        // Room is made on any shard: looking again costs less than to have every answer wake up others.
        clock::sleep(ROOM_CHECK).await;
    }
}

/// Memory that a request takes beside what its texts become: its bytes as sent and open, the copy in a mutation and in the commit log's
/// record, its decoded values, and its task.
fn memory_of(request: &Outline) -> u64 {
    /// The future of a request, and a small answer.
    const TASK: u64 = 4 << 10;
    /// Decoded values are some times as large as the smallest ones on the wire; one statement has at most 65,535 of them.
    const VALUES: u64 = 6;
    const VALUES_MAX: u64 = 2 << 20;
    let len = request.body_len as u64;
    let values = match request.opcode {
        Opcode::Query | Opcode::Execute => (VALUES * len).min(VALUES_MAX),
        Opcode::Batch => VALUES * len + (2 * VALUES * len).min(2 * VALUES_MAX),
        _ => 0,
    };
    TASK + request.bytes as u64 + 2 * len + values
}
