//! Admission: limits on connections, requests per second, and bytes of requests in flight, in total and per address.
//!
//! 1. A connection gets a [`ConnectionPermit`] or is closed at once.
//! 2. A request gets a [`Permit`] for its bytes before it is decoded and holds it until it is answered. In v5 each connection has its own
//!    capacity (`native_transport_receive_queue_capacity`); the limits count only the bytes above it.
//! 3. Above a limit, clients that asked for it (THROW_ON_OVERLOAD) get Cassandra's error. From the others nothing is read until there is
//!    room, and they get a warning. A request is admitted if there is any room, whatever its size, so that none waits for ever.
//!    Small requests have limits of their own, as large again: a small request does not wait until large ones are done.
//! 4. A large request is counted with the length that it states before the rest of it is read, as in Cassandra: so those that have begun
//!    can also end. Others are not read until there is room, however long that takes.
//! 5. Beside Cassandra's limits, which are about the bytes that clients send, there is one budget for the memory that all of this takes
//!    ([`RequestMemory`]): incomplete requests, requests in flight with what their texts become, answers on their way out. A connection
//!    begins with what its small requests take, takes more in steps, and gives it back. Where there is no room, requests wait or are
//!    refused as in 3, and connections that keep memory without a step forward are closed (`ShardServer::shed`).

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use halcyon_io::Mutex;
use halcyon_io::clock::{Instant, nanos, now};
use halcyon_scan::{Held, RequestMemory, SMALL};

use crate::settings::Transport;

#[derive(Debug)]
pub(crate) struct Admission {
    max_connections: Option<usize>,
    max_connections_per_ip: Option<usize>,
    max_bytes: u64,
    max_bytes_per_ip: u64,
    receive_queue_capacity: u64,
    rate: Option<Rate>,
    memory: Arc<RequestMemory>,
    connections: AtomicUsize,
    bytes: InFlight,
    arriving: AtomicU64,
    /// Connections that wait for room to send the rest of a request.
    waiting: AtomicUsize,
    endpoints: Mutex<HashMap<IpAddr, Arc<Endpoint>>>,
}

/// Connections and bytes in flight of one address.
#[derive(Debug, Default)]
struct Endpoint {
    connections: AtomicUsize,
    bytes: InFlight,
    arriving: AtomicU64,
}

/// Bytes of requests in flight.
#[derive(Debug, Default)]
struct InFlight {
    small: AtomicU64,
    large: AtomicU64,
}

impl InFlight {
    fn all(&self) -> u64 {
        self.small.load(Relaxed) + self.large.load(Relaxed)
    }

    /// Bytes in flight that count against a request of `bytes`.
    fn before(&self, bytes: u64) -> u64 {
        if bytes <= SMALL { self.small.load(Relaxed) } else { self.all() }
    }

    fn of(&self, bytes: u64) -> &AtomicU64 {
        if bytes <= SMALL { &self.small } else { &self.large }
    }
}

/// The admission of a connection.
#[derive(Debug)]
pub(crate) struct ConnectionPermit {
    admission: Arc<Admission>,
    address: IpAddr,
    endpoint: Arc<Endpoint>,
    /// Bytes in flight within the connection's own capacity.
    own: Cell<u64>,
    own_most: Cell<u64>,
    arriving: Cell<u64>,
    kept: Kept,
}

/// What a connection keeps in memory.
#[derive(Debug)]
struct Kept {
    held: RefCell<Held>,
    arriving: Cell<u64>,
    requests: Cell<u64>,
    unsent: Cell<u64>,
}

/// The admission of a request.
#[derive(Debug)]
pub(crate) struct Permit {
    connection: Rc<ConnectionPermit>,
    own: u64,
    shared: u64,
    /// Of the budget.
    kept: u64,
}

/// Bytes of an incomplete request that are not counted.
const ARRIVING_FREE: u64 = 16 << 10;

/// What a connection takes of the budget from its beginning, and in what steps it takes more.
const CONNECTION: u64 = SMALL;
const STEP: u64 = 64 << 10;

impl Admission {
    pub(crate) fn new(transport: &Transport) -> Arc<Admission> {
        Arc::new(Admission {
            max_connections: transport.max_connections,
            max_connections_per_ip: transport.max_connections_per_ip,
            max_bytes: transport.max_request_data_in_flight,
            max_bytes_per_ip: transport.max_request_data_in_flight_per_ip,
            receive_queue_capacity: transport.receive_queue_capacity,
            rate: transport.max_requests_per_second.map(Rate::new),
            memory: RequestMemory::bounded(transport.request_memory),
            connections: AtomicUsize::new(0),
            bytes: InFlight::default(),
            arriving: AtomicU64::new(0),
            waiting: AtomicUsize::new(0),
            endpoints: Mutex::default(),
        })
    }

    pub(crate) fn memory(&self) -> &Arc<RequestMemory> {
        &self.memory
    }

    /// Whether one more connection would find memory.
    pub(crate) fn has_room(&self) -> bool {
        self.memory.held().saturating_add(CONNECTION) <= self.memory.limit()
    }

    /// Whether others would use what a connection keeps without need.
    pub(crate) fn is_wanted(&self) -> bool {
        self.memory.is_short() || self.waiting.load(Relaxed) > 0
    }

    pub(crate) fn rate(&self) -> Option<&Rate> {
        self.rate.as_ref()
    }

    /// The warning to a client from which nothing was read for a while.
    pub(crate) fn bytes_warning(&self) -> String {
        format!(
            "Request breached limit(s) on bytes in flight (Endpoint: {}, Global: {}) and triggered backpressure.",
            self.max_bytes_per_ip, self.max_bytes
        )
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Relaxed)
    }

    /// Admits a connection, if it is limited within the numbers of connections; `Err` is the reason of a refusal, for the log.
    pub(crate) fn enter(
        self: &Arc<Admission>,
        address: IpAddr,
        is_limited: bool,
    ) -> Result<Rc<ConnectionPermit>, String> {
        let mut endpoints = self.endpoints.lock();
        let (all, here) = (
            self.connections() + 1,
            endpoints.get(&address).map_or(0, |endpoint| endpoint.connections.load(Relaxed)) + 1,
        );
        let exceeds =
            |most: Option<usize>, used| is_limited && most.is_some_and(|most| used > most);
        if exceeds(self.max_connections, all) {
            return Err(format!(
                "Exceeded maximum native connection limit of {} by using {all} connections (see \
                 native_transport_max_concurrent_connections in cassandra.yaml)",
                all - 1
            ));
        }
        if exceeds(self.max_connections_per_ip, here) {
            return Err(format!(
                "Exceeded maximum native connection limit per ip of {} by using {here} connections (see \
                 native_transport_max_concurrent_connections_per_ip)",
                here - 1
            ));
        }
        let held = Held::small(&self.memory, CONNECTION).ok_or_else(|| self.memory.refusal())?;
        let endpoint = endpoints.entry(address).or_default().clone();
        self.connections.fetch_add(1, Relaxed);
        endpoint.connections.fetch_add(1, Relaxed);
        Ok(Rc::new(ConnectionPermit {
            admission: self.clone(),
            address,
            endpoint,
            own: Cell::new(0),
            own_most: Cell::new(0),
            arriving: Cell::new(0),
            kept: Kept {
                held: RefCell::new(held),
                arriving: Cell::new(0),
                requests: Cell::new(0),
                unsent: Cell::new(0),
            },
        }))
    }
}

impl ConnectionPermit {
    pub(crate) fn admission(&self) -> &Admission {
        &self.admission
    }

    /// To be called when the connection uses v5.
    pub(crate) fn framed(&self) {
        self.own_most.set(self.admission.receive_queue_capacity);
    }

    /// The part of `bytes` that exceeds the connection's own capacity.
    fn shared_part(&self, bytes: u64) -> u64 {
        bytes.saturating_sub(self.own_most.get().saturating_sub(self.own.get()))
    }

    /// A permit, if there is any room.
    pub(crate) fn permit(self: &Rc<Self>, bytes: u64) -> Option<Permit> {
        let shared = self.shared_part(bytes);
        let full = || {
            self.admission.bytes.before(shared) >= self.admission.max_bytes
                || self.endpoint.bytes.before(shared) >= self.admission.max_bytes_per_ip
        };
        (shared == 0 || !full()).then(|| self.take(bytes, shared))
    }

    /// A permit, if there is room for all bytes.
    pub(crate) fn permit_whole(self: &Rc<Self>, bytes: u64) -> Result<Permit, String> {
        let shared = self.shared_part(bytes);
        if shared == 0 {
            return Ok(self.take(bytes, 0));
        }
        let (all, here) = (self.admission.bytes.before(shared), self.endpoint.bytes.before(shared));
        let (most, most_here) = (self.admission.max_bytes, self.admission.max_bytes_per_ip);
        if all.saturating_add(shared) > most || here.saturating_add(shared) > most_here {
            // Cassandra's message has no blank here either.
            return Err(format!(
                "Request breached limit on bytes in flight. (Endpoint: {here}/{most_here} bytes, Global: {all}/{most} \
                 bytes.)Server is currently in an overloaded state and cannot accept more requests."
            ));
        }
        Ok(self.take(bytes, shared))
    }

    fn take(self: &Rc<Self>, bytes: u64, shared: u64) -> Permit {
        let own = bytes - shared;
        self.own.set(self.own.get() + own);
        if shared > 0 {
            self.admission.bytes.of(shared).fetch_add(shared, Relaxed);
            self.endpoint.bytes.of(shared).fetch_add(shared, Relaxed);
        }
        Permit { connection: self.clone(), own, shared, kept: 0 }
    }

    /// Sets the bytes that the connection's incomplete request has or will have; false, and nothing is changed, if that exceeds a limit.
    pub(crate) fn hold_arriving(&self, bytes: u64) -> bool {
        let bytes = bytes.saturating_sub(ARRIVING_FREE);
        let before = self.arriving.get();
        if bytes == before {
            return true;
        }
        // Wraps if the number has decreased.
        let more = bytes.wrapping_sub(before);
        let all = self.admission.arriving.fetch_add(more, Relaxed).wrapping_add(more);
        let here = self.endpoint.arriving.fetch_add(more, Relaxed).wrapping_add(more);
        // One request can always arrive.
        let fits = |all: u64, most: u64| all <= most || all == bytes;
        let admission = &self.admission;
        let held = bytes < before
            || fits(all, admission.max_bytes) && fits(here, admission.max_bytes_per_ip);
        if held {
            self.arriving.set(bytes);
        } else {
            admission.arriving.fetch_sub(more, Relaxed);
            self.endpoint.arriving.fetch_sub(more, Relaxed);
        }
        held
    }

    /// Counts the connection among those that wait for room, until that is dropped.
    pub(crate) fn wait(&self) -> Waiting<'_> {
        self.admission.waiting.fetch_add(1, Relaxed);
        Waiting(&self.admission)
    }
}

/// A connection that waits for room to send the rest of its request.
pub(crate) struct Waiting<'a>(&'a Admission);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Relaxed);
    }
}

impl Kept {
    fn bytes(&self) -> u64 {
        self.arriving.get() + self.requests.get() + self.unsent.get()
    }

    /// Takes what is missing, if there is room, and gives back what is not needed.
    fn adjust(&self) -> bool {
        let (bytes, mut held) = (self.bytes(), self.held.borrow_mut());
        if bytes > held.bytes() {
            let wanted = bytes.next_multiple_of(STEP);
            return match wanted - held.bytes() <= STEP {
                true => held.grow_small_to(wanted),
                false => held.grow_to(wanted),
            };
        }
        if bytes <= CONNECTION / 2 && held.bytes() > CONNECTION {
            held.become_bytes(CONNECTION);
        } else if held.bytes() - bytes > 2 * STEP {
            held.become_bytes(bytes.next_multiple_of(STEP).max(CONNECTION));
        }
        true
    }
}

impl ConnectionPermit {
    /// Reserves memory for an incomplete request in place of what it has reserved. Without room it changes nothing and returns false.
    pub(crate) fn keep_arriving(&self, bytes: u64) -> bool {
        let before = self.kept.arriving.replace(bytes);
        let fits = self.kept.adjust();
        if !fits {
            self.kept.arriving.set(before);
        }
        fits
    }

    /// Leaves what the incomplete request was to take to its permit, if that is taken next.
    pub(crate) fn has_arrived(&self, bytes: u64) {
        self.kept.arriving.set(bytes.min(self.kept.arriving.get()));
    }

    /// Sets the memory that answers on their way out take. They were counted while they were made, so that there is room for them.
    pub(crate) fn keep_unsent(&self, bytes: u64) {
        self.kept.unsent.set(bytes);
        if !self.kept.adjust() {
            self.kept.held.borrow_mut().become_bytes(self.kept.bytes().next_multiple_of(STEP));
        }
    }

    /// Whether it has more than every connection has.
    pub(crate) fn keeps_much(&self) -> bool {
        self.kept.held.borrow().bytes() > CONNECTION
    }
}

impl Permit {
    /// Sets the memory that the request takes; false if there is no room for it.
    pub(crate) fn keep(&mut self, bytes: u64) -> bool {
        let kept = &self.connection.kept;
        let before = kept.requests.get();
        kept.requests.set(before - self.kept + bytes);
        if !kept.adjust() && bytes > self.kept {
            kept.requests.set(before);
            return false;
        }
        self.kept = bytes;
        true
    }

    /// As `keep`, beside what it takes already.
    pub(crate) fn keep_more(&mut self, bytes: u64) -> bool {
        self.keep(self.kept.saturating_add(bytes))
    }

    pub(crate) fn memory(&self) -> &RequestMemory {
        self.connection.admission.memory()
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.keep(0);
        let connection = &self.connection;
        connection.own.set(connection.own.get().saturating_sub(self.own));
        if self.shared > 0 {
            connection.admission.bytes.of(self.shared).fetch_sub(self.shared, Relaxed);
            connection.endpoint.bytes.of(self.shared).fetch_sub(self.shared, Relaxed);
        }
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.hold_arriving(0);
        let mut endpoints = self.admission.endpoints.lock();
        self.admission.connections.fetch_sub(1, Relaxed);
        if self.endpoint.connections.fetch_sub(1, Relaxed) == 1 {
            endpoints.remove(&self.address);
        }
    }
}

/// `native_transport_max_requests_per_second`: each request reserves a slot in time, at equal distances. Unused slots of the last second
/// can still be taken.
#[derive(Debug)]
pub(crate) struct Rate {
    per_second: u64,
    began: Instant,
    /// Nanoseconds from `began` to the next slot.
    next: AtomicU64,
}

/// The time over which unused slots are kept.
const BURST: u64 = 1_000_000_000;

impl Rate {
    fn new(per_second: u32) -> Rate {
        Rate { per_second: u64::from(per_second.max(1)), began: now(), next: AtomicU64::new(0) }
    }

    /// Reserves a slot; returns the time until it.
    pub(crate) fn reserve(&self) -> Duration {
        self.reserve_at(self.elapsed())
    }

    /// Reserves a slot if one is due now.
    pub(crate) fn try_reserve(&self) -> bool {
        let at = self.elapsed();
        self.next.load(Relaxed) <= at && self.reserve_at(at).is_zero()
    }

    fn elapsed(&self) -> u64 {
        nanos(now() - self.began)
    }

    fn reserve_at(&self, at: u64) -> Duration {
        let first = |next: u64| next.max(at.saturating_sub(BURST));
        let behind = |next: u64| Some(first(next).saturating_add(BURST / self.per_second));
        let (Ok(next) | Err(next)) = self.next.fetch_update(Relaxed, Relaxed, behind);
        Duration::from_nanos(first(next).saturating_sub(at))
    }

    /// `OverloadedException`'s text.
    pub(crate) fn refusal(&self) -> String {
        format!(
            "Request breached global limit of {} requests/second. Server is currently in an overloaded state and cannot \
             accept more requests.",
            self.per_second
        )
    }

    /// The warning to a client whose request had to wait.
    pub(crate) fn warning(&self) -> String {
        format!(
            "Request breached global limit of {} requests/second and triggered backpressure.",
            self.per_second
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Machine, Overrides, Settings};

    fn admission(text: &str) -> Arc<Admission> {
        let machine = Machine { memory: 1 << 30, cores: 1 };
        let settings = Settings::load(Some(text), &Overrides::default(), machine).unwrap();
        Admission::new(&settings.transport)
    }

    fn ip(last: u8) -> IpAddr {
        IpAddr::from([127, 0, 0, last])
    }

    /// Proves the limits of connections, in total and per address, and that a closed connection frees its permit.
    #[test]
    fn connections_are_limited() {
        let admission = admission(
            "native_transport_max_concurrent_connections: 2\n\
             native_transport_max_concurrent_connections_per_ip: 1\n",
        );
        let first = admission.enter(ip(1), true).unwrap();
        assert!(admission.enter(ip(1), true).unwrap_err().contains("per ip of 1"));
        let second = admission.enter(ip(2), true).unwrap();
        assert!(admission.enter(ip(3), true).unwrap_err().contains("limit of 2"));
        drop(first);
        drop(admission.enter(ip(1), true).unwrap());
        drop(second);
        assert_eq!(admission.connections(), 0);
        assert!(admission.endpoints.lock().is_empty());
    }

    /// Proves both reactions to overload: wait for room, or return Cassandra's text with the numbers.
    #[test]
    fn bytes_are_limited() {
        let admission = admission(
            "native_transport_max_request_data_in_flight: 100B\n\
             native_transport_max_request_data_in_flight_per_ip: 80B\n",
        );
        let (one, two) =
            (admission.enter(ip(1), true).unwrap(), admission.enter(ip(2), true).unwrap());
        // Larger than the limit, but alone.
        let large = one.permit(90).unwrap();
        assert!(one.permit(1).is_none());
        assert!(two.permit(20).is_some_and(|permit| permit.shared == 20));
        assert_eq!(
            two.permit_whole(20).unwrap_err(),
            "Request breached limit on bytes in flight. (Endpoint: 0/80 bytes, Global: 90/100 bytes.)Server is \
             currently in an overloaded state and cannot accept more requests."
        );
        drop(large);
        assert!(one.permit_whole(80).is_ok());
    }

    /// Proves that in v5 a connection's own capacity is used first, and that only the bytes above it count towards the limits.
    #[test]
    fn a_connection_has_bytes_of_its_own() {
        let admission = admission(
            "native_transport_max_request_data_in_flight: 100B\nnative_transport_receive_queue_capacity: 50B\n",
        );
        let connection = admission.enter(ip(1), true).unwrap();
        connection.framed();
        let first = connection.permit_whole(40).unwrap();
        assert_eq!((first.own, first.shared), (40, 0));
        let second = connection.permit_whole(90).unwrap();
        assert_eq!((second.own, second.shared), (10, 80));
        assert!(connection.permit_whole(21).is_err());
        drop(first);
        assert_eq!(connection.permit_whole(60).map(|permit| permit.shared), Ok(20));
        drop(second);
        assert_eq!(admission.bytes.all(), 0);
    }

    /// Proves that small requests are limited by small ones alone, and large ones by all.
    #[test]
    fn small_requests_do_not_wait_for_large_ones() {
        let admission = admission("native_transport_max_request_data_in_flight: 40KiB\n");
        let connection = admission.enter(ip(1), true).unwrap();
        let large = connection.permit_whole(40 << 10).unwrap();
        assert!(connection.permit(SMALL + 1).is_none());
        let small = connection.permit_whole(SMALL).unwrap();
        let more: Vec<Permit> = (0..2).map(|_| connection.permit(SMALL).unwrap()).collect();
        assert!(connection.permit(1).is_none());
        drop(large);
        assert!(connection.permit(SMALL + 1).is_none());
        drop((small, more));
        assert!(connection.permit(SMALL + 1).is_some());
        assert_eq!(admission.bytes.all(), 0);
    }

    /// Proves that slowly arriving large requests are bounded in total, except for one.
    #[test]
    fn what_arrives_is_bounded() {
        let admission = admission("native_transport_max_request_data_in_flight: 1000B\n");
        let (one, two) =
            (admission.enter(ip(1), true).unwrap(), admission.enter(ip(2), true).unwrap());
        assert!(one.hold_arriving(ARRIVING_FREE) && one.hold_arriving(ARRIVING_FREE + 2000));
        assert!(two.hold_arriving(ARRIVING_FREE));
        // However often it is asked.
        assert!(!two.hold_arriving(ARRIVING_FREE + 1));
        assert!(!two.hold_arriving(ARRIVING_FREE + 1));
        drop(one);
        assert!(two.hold_arriving(ARRIVING_FREE + 2));
        drop(two);
        assert_eq!(admission.arriving.load(Relaxed), 0);
    }

    /// Proves that a connection takes memory in steps, is refused what does not fit, and gives all of it back.
    #[test]
    fn connections_take_memory_and_give_it_back() {
        let admission = admission("native_transport_max_request_data_in_flight: 1MiB\n");
        let limit = admission.memory().limit();
        assert_eq!(limit, (1 << 30) / 5);
        let connection = admission.enter(ip(1), true).unwrap();
        let mut permit = connection.permit(10).unwrap();
        assert!(permit.keep(CONNECTION) && !connection.keeps_much());
        assert!(permit.keep_more(1) && connection.keeps_much());
        assert!(!permit.keep(limit));
        connection.keep_unsent(limit);
        assert!(admission.memory().is_short() && !admission.has_room());
        assert!(admission.enter(ip(1), true).unwrap_err().contains("memory of requests in flight"));
        assert!(!connection.keep_arriving(1 << 20));
        connection.keep_unsent(0);
        assert!(connection.keep_arriving(0));
        drop(permit);
        assert_eq!(admission.memory().held(), CONNECTION);
        drop(connection);
        assert_eq!(admission.memory().held(), 0);
    }

    /// Proves the distances between requests, and that the slots of an idle second can still be taken.
    #[test]
    fn requests_a_second() {
        let rate = Rate::new(10);
        let ms = |at: u64| rate.reserve_at(at * 1_000_000).as_millis();
        assert_eq!([ms(0), ms(0), ms(50)], [0, 100, 150]);
        let burst: Vec<u128> = (0..12).map(|_| ms(5000)).collect();
        assert_eq!(burst, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 100]);
    }
}
