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

mod handshake;
mod receive;
mod room;
mod send;
pub(crate) mod serve;
mod tls;
mod transport;

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use halcyon_engine::Shard;
use halcyon_io::Notify;
use halcyon_io::clock::{Instant, now};
use halcyon_model::access::Principal;
use halcyon_protocol::{
    Compression, Decoder, Encoder, Error, Event, EventType, Notes, ProtocolError, ReplyTo,
    Response, Version,
};

use crate::admission::ConnectionPermit;
use crate::client_state::ClientState;
use crate::clients::Entry;

pub(crate) use handshake::{AllowAll, Authenticator, Exchange, Login, Verifier};
pub(crate) use tls::Tls;
pub(crate) use transport::Transport;

/// Bytes of unsent answers from which nothing more is read from the client.
const UNSENT_MAX: usize = 1 << 20;
/// Bytes of answers that may wait for it or be on their way.
const ANSWERS_MAX: usize = 8 << 20;
/// The smallest estimate of an answer's size, and the first one: a new client can send many requests with large answers at once.
const ANSWER_MIN: usize = 32 << 10;
const ANSWER_FIRST: usize = 1 << 20;
/// How long a connection may keep memory without a step forward, where memory is short.
const STALLED: Duration = Duration::from_secs(2);
/// Unsent bytes from which nothing more is read from a client, where memory is short.
const UNSENT_SHORT: usize = 64 << 10;

pub(crate) struct Connection {
    pub(crate) peer: SocketAddr,
    transport: Transport,
    admitted: Rc<ConnectionPermit>,
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
        transport: Transport,
        peer: SocketAddr,
        admitted: Rc<ConnectionPermit>,
        entry: Arc<Entry>,
    ) -> Connection {
        Connection {
            peer,
            transport,
            admitted,
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

    /// The client is who it says to be.
    fn log_in(&self, principal: Principal) {
        self.entry.info().username = Some(principal.name().to_owned());
        let keyspace = self.state.borrow().keyspace.clone();
        *self.state.borrow_mut() = Rc::new(ClientState { principal, keyspace });
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

    /// Whether its handshake of TLS takes too long.
    pub(crate) fn is_late(&self) -> bool {
        !self.closed.get() && self.transport.is_late()
    }

    /// Counts the latency of a read that has been answered. It ends when the writer takes the answer, after what else the shard does in
    /// this turn; behind a write that is in flight at once, for what follows is the client's doing.
    pub(crate) fn count_read(&self, shard: &Shard, arrived: Instant) {
        if self.sending.get() > 0 || self.encoder.borrow().is_empty() {
            shard.note_read(now() - arrived);
        } else {
            self.answered_reads.borrow_mut().push(arrived);
        }
    }

    fn count_answered_reads(&self, shard: &Shard) {
        let taken = now();
        for arrived in self.answered_reads.borrow_mut().drain(..) {
            shard.note_read(taken - arrived);
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
        self.transport.shut_down_reads();
    }

    pub(crate) fn close(&self) {
        self.closed.set(true);
        self.transport.shut_down();
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

    fn answer_malformed(&self, error: &ProtocolError) {
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
