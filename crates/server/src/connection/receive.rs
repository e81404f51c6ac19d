//! The reader of a connection: bytes, frames, requests.

use std::cell::Cell;
use std::rc::Rc;

use halcyon_io::clock::{Instant, now};
use halcyon_io::{compute, panic_point, start};
use halcyon_model::access::Principal;
use halcyon_protocol::{
    Decoder, Envelope, Error, ErrorKind, Limits, Notes, Opcode, Packed, ProtocolError, ReplyTo,
    Request, Response,
};
use halcyon_query::watched;

use super::Connection;
use super::handshake::{Handshake, Reply, check_startup};
use super::room::{Rest, permit, room_for_the_rest};
use crate::login::Roles;
use crate::session;
use crate::shard::ShardServer;

/// Buffer sizes of a read.
const READ_MIN: usize = 16 << 10;
const READ_MAX: usize = 256 << 10;
/// Bytes of a body that is decompressed where it arrives.
const OPENED_AT_ONCE: usize = 128 << 10;
/// Bytes that must have come for an incomplete request to count as a step forward: a client that sends it byte by byte is idle.
const STEP_FORWARD: usize = 4 << 10;

pub(super) async fn receive(shard: &Rc<ShardServer>, connection: &Rc<Connection>) {
    let transport = &shard.shared.transport;
    let mut decoder = Decoder::new(Limits {
        max_frame_size: transport.max_frame_size,
        max_message_size: transport.max_message_size,
    });
    let mut handshake = Handshake::default();
    let mut buffer = Vec::with_capacity(READ_MIN);
    let mut since_step = 0;
    let mut read_at = now();
    loop {
        let (outcome, read, waited) = connection.transport.read_timed(buffer).await;
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
                    let reader = (&mut decoder, &mut handshake);
                    take_in(shard, connection, reader, packed, arrived).await;
                }
                Ok(None) => break,
                Err(error) => {
                    shard.metrics().protocol_errors.up();
                    connection.answer_malformed(&error);
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
    (decoder, handshake): (&mut Decoder, &mut Handshake),
    packed: Packed,
    arrived: Instant,
) {
    let to = packed.reply_to();
    connection.entry.count_request();
    shard.metrics().requests.up();
    if let Err(message) = handshake.expects(packed.opcode()) {
        return connection.answer_error(to, Error::new(ErrorKind::Protocol, message));
    }
    let mut warnings = Vec::new();
    connection.waiting.set(true);
    let permit = permit(shard, connection, &packed, handshake.is_ready(), &mut warnings).await;
    // Not before there is room for what it becomes.
    let opened = match permit {
        Ok(permit) => Ok((permit, open(packed).await)),
        Err(message) => {
            shard.metrics().discarded.up();
            Err(Error::new(ErrorKind::Overloaded, message))
        }
    };
    connection.waiting.set(false);
    connection.last_active.set(arrived);
    let (permit, envelope) = match opened {
        Ok((permit, Ok(envelope))) => (permit, envelope),
        Ok((_, Err(error))) => {
            shard.metrics().protocol_errors.up();
            return connection.answer_malformed(&error);
        }
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
                let times = (arrived, began);
                session::execute(shard, connection, (&*envelope, permit), warnings, times).await;
            }));
        }
        Opcode::Startup => start_up(shard, connection, (decoder, handshake), &envelope),
        Opcode::AuthResponse if !handshake.is_ready() => {
            Box::pin(log_in(shard, connection, handshake, &envelope)).await;
        }
        _ => session::answer_at_once(shard, connection, &envelope),
    }
}

/// Answers a STARTUP, after which both directions may have another form.
fn start_up(
    shard: &Rc<ShardServer>,
    connection: &Connection,
    (decoder, handshake): (&mut Decoder, &mut Handshake),
    envelope: &Envelope,
) {
    let to = envelope.reply_to();
    let refuse = |message| connection.answer_error(to, Error::new(ErrorKind::Protocol, message));
    let startup = match Request::decode(envelope).map(|body| body.request) {
        Ok(Request::Startup(startup)) => startup,
        Ok(_) => return,
        Err(error) => return refuse(error.to_string()),
    };
    let transport = &shard.shared.transport;
    match check_startup(envelope.version, &startup, transport.allow_older_protocols.get()) {
        Ok(compression) => {
            tell_identity(shard, connection);
            connection.throw_on_overload.set(startup.get("THROW_ON_OVERLOAD") == Some("1"));
            connection.entry.info().options = startup.options;
            connection.start(decoder, envelope.version, compression);
            let certificates = connection.transport.certificates();
            let verifier = Roles { shard: shard.clone(), address: connection.peer.ip() };
            let login = shard.shared.authenticator.begin(Rc::new(verifier), certificates);
            let reply = handshake.begin(login);
            answer(connection, to, reply);
        }
        Err(message) => refuse(message),
    }
}

/// Logs the certificate that a client has shown, for debugging.
fn tell_identity(shard: &ShardServer, connection: &Connection) {
    let certificates = connection.transport.certificates();
    let Some(subject) = certificates.first().and_then(|leaf| halcyon_tls::identity::subject(leaf))
    else {
        return;
    };
    shard
        .shared
        .log
        .debug(format_args!("{} presents the certificate of {subject}", connection.peer));
}

/// Logs where a role comes from, in the words of `CassandraCIDRAuthorizer`.
async fn tell_origin(shard: &ShardServer, principal: &Principal) {
    let Principal::Role { name, address } = principal else { return };
    let Some(origin) = watched(&shard.coordinator, principal).await else { return };
    let (log, groups) = (&shard.shared.log, origin.groups.join(", "));
    match origin.is_allowed {
        true => {
            log.say(format_args!("Role {name} accessed from IP {address}, CIDR group [{groups}]"))
        }
        false => log.warning(format_args!(
            "Role {name} accessed from unauthorized IP {address}, CIDR group [{groups}]"
        )),
    }
}

/// Answers an AUTH_RESPONSE of a client that logs in.
async fn log_in(
    shard: &ShardServer,
    connection: &Connection,
    handshake: &mut Handshake,
    envelope: &Envelope,
) {
    let to = envelope.reply_to();
    let token = match Request::decode(envelope).map(|body| body.request) {
        Ok(Request::AuthResponse(token)) => token,
        Ok(_) => return,
        Err(error) => return connection.answer_error(to, error.error),
    };
    let logs = &shard.shared.request_logs;
    match handshake.proceed(token).await {
        Ok(reply) => {
            if let Reply::Success(principal) = &reply {
                shard.metrics().logins.up();
                logs.login(connection.peer, Ok(principal)).await;
                tell_origin(shard, principal).await;
            }
            answer(connection, to, reply);
        }
        Err(error) => {
            shard.metrics().refused_logins.up();
            logs.login(connection.peer, Err(&error.message)).await;
            connection.answer_error(to, error);
        }
    }
}

fn answer(connection: &Connection, to: ReplyTo, reply: Reply) {
    let notes = Notes::default();
    match reply {
        Reply::Ready => {
            connection.log_in(Principal::Anonymous);
            connection.answer(to, &Response::Ready, &notes);
        }
        Reply::Authenticate(name) => connection.answer(to, &Response::Authenticate(name), &notes),
        Reply::Challenge(token) => {
            connection.answer(to, &Response::AuthChallenge(Some(&token)), &notes);
        }
        Reply::Success(principal) => {
            connection.log_in(principal);
            connection.answer(to, &Response::AuthSuccess(None), &notes);
        }
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
