//! Who may come in, and how much may be under way: connections, and bytes of requests, of all clients and of each address.
//!
//! 1. A connection takes a [`Place`] or is closed at once.
//! 2. A request takes a [`Permit`] for its bytes before it is decoded, and holds it until it is answered.
//! 3. Above a limit, clients that asked for it (THROW_ON_OVERLOAD) get Cassandra's error; the others are not read from until
//!    there is room. A request that finds room goes in whatever its size, so that none waits for ever.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use crate::settings::Transport;

#[derive(Debug)]
pub(crate) struct Admission {
    max_connections: Option<usize>,
    max_connections_per_ip: Option<usize>,
    max_bytes: u64,
    max_bytes_per_ip: u64,
    connections: AtomicUsize,
    bytes: AtomicU64,
    endpoints: Mutex<HashMap<IpAddr, Arc<Endpoint>>>,
}

/// What one address has under way.
#[derive(Debug, Default)]
struct Endpoint {
    connections: AtomicUsize,
    bytes: AtomicU64,
}

/// A connection that is let in.
#[derive(Debug)]
pub(crate) struct Place {
    admission: Arc<Admission>,
    address: IpAddr,
    endpoint: Arc<Endpoint>,
}

/// A request that is let in.
#[derive(Debug)]
pub(crate) struct Permit {
    admission: Arc<Admission>,
    endpoint: Arc<Endpoint>,
    bytes: u64,
}

impl Admission {
    pub(crate) fn new(transport: &Transport) -> Arc<Admission> {
        Arc::new(Admission {
            max_connections: transport.max_connections,
            max_connections_per_ip: transport.max_connections_per_ip,
            max_bytes: transport.max_request_data_in_flight,
            max_bytes_per_ip: transport.max_request_data_in_flight_per_ip,
            connections: AtomicUsize::new(0),
            bytes: AtomicU64::new(0),
            endpoints: Mutex::default(),
        })
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Relaxed)
    }

    /// `Err`: why not, for the log.
    pub(crate) fn enter(self: &Arc<Admission>, address: IpAddr) -> Result<Place, String> {
        let mut endpoints = self.endpoints.lock().unwrap_or_else(PoisonError::into_inner);
        let (all, here) = (
            self.connections() + 1,
            endpoints.get(&address).map_or(0, |endpoint| endpoint.connections.load(Relaxed)) + 1,
        );
        if self.max_connections.is_some_and(|most| all > most) {
            return Err(format!(
                "Exceeded maximum native connection limit of {} by using {all} connections (see \
                 native_transport_max_concurrent_connections in cassandra.yaml)",
                all - 1
            ));
        }
        if self.max_connections_per_ip.is_some_and(|most| here > most) {
            return Err(format!(
                "Exceeded maximum native connection limit per ip of {} by using {here} connections (see \
                 native_transport_max_concurrent_connections_per_ip)",
                here - 1
            ));
        }
        let endpoint = endpoints.entry(address).or_default().clone();
        self.connections.fetch_add(1, Relaxed);
        endpoint.connections.fetch_add(1, Relaxed);
        Ok(Place { admission: self.clone(), address, endpoint })
    }
}

impl Place {
    /// A permit if there is room.
    pub(crate) fn permit(&self, bytes: u64) -> Option<Permit> {
        let (all, here) = (&self.admission.bytes, &self.endpoint.bytes);
        let full = all.load(Relaxed) >= self.admission.max_bytes
            || here.load(Relaxed) >= self.admission.max_bytes_per_ip;
        (!full).then(|| self.take(bytes))
    }

    /// A permit if there is room for all of it.
    pub(crate) fn permit_whole(&self, bytes: u64) -> Result<Permit, String> {
        let (all, here) = (self.admission.bytes.load(Relaxed), self.endpoint.bytes.load(Relaxed));
        let (most, most_here) = (self.admission.max_bytes, self.admission.max_bytes_per_ip);
        if all.saturating_add(bytes) > most || here.saturating_add(bytes) > most_here {
            // The words run together in Cassandra too.
            return Err(format!(
                "Request breached limit on bytes in flight. (Endpoint: {here}/{most_here} bytes, Global: {all}/{most} \
                 bytes.)Server is currently in an overloaded state and cannot accept more requests."
            ));
        }
        Ok(self.take(bytes))
    }

    fn take(&self, bytes: u64) -> Permit {
        self.admission.bytes.fetch_add(bytes, Relaxed);
        self.endpoint.bytes.fetch_add(bytes, Relaxed);
        Permit { admission: self.admission.clone(), endpoint: self.endpoint.clone(), bytes }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.admission.bytes.fetch_sub(self.bytes, Relaxed);
        self.endpoint.bytes.fetch_sub(self.bytes, Relaxed);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let endpoints = self.admission.endpoints.lock();
        let mut endpoints = endpoints.unwrap_or_else(PoisonError::into_inner);
        self.admission.connections.fetch_sub(1, Relaxed);
        if self.endpoint.connections.fetch_sub(1, Relaxed) == 1 {
            endpoints.remove(&self.address);
        }
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

    /// Proves the limits of connections, in all and by address, and that a place is free again when its holder leaves.
    #[test]
    fn connections_are_limited() {
        let admission = admission(
            "native_transport_max_concurrent_connections: 2\n\
             native_transport_max_concurrent_connections_per_ip: 1\n",
        );
        let first = admission.enter(ip(1)).unwrap();
        assert!(admission.enter(ip(1)).unwrap_err().contains("per ip of 1"));
        let second = admission.enter(ip(2)).unwrap();
        assert!(admission.enter(ip(3)).unwrap_err().contains("limit of 2"));
        drop(first);
        drop(admission.enter(ip(1)).unwrap());
        drop(second);
        assert_eq!(admission.connections(), 0);
        assert!(admission.endpoints.lock().unwrap().is_empty());
    }

    /// Proves both answers to overload: wait for room, or Cassandra's text with the figures.
    #[test]
    fn bytes_are_limited() {
        let admission = admission(
            "native_transport_max_request_data_in_flight: 100B\n\
             native_transport_max_request_data_in_flight_per_ip: 80B\n",
        );
        let (one, two) = (admission.enter(ip(1)).unwrap(), admission.enter(ip(2)).unwrap());
        // Larger than the limit, but alone.
        let large = one.permit(90).unwrap();
        assert!(one.permit(1).is_none());
        assert!(two.permit(20).is_some_and(|permit| permit.bytes == 20));
        assert_eq!(
            two.permit_whole(20).unwrap_err(),
            "Request breached limit on bytes in flight. (Endpoint: 0/80 bytes, Global: 90/100 bytes.)Server is \
             currently in an overloaded state and cannot accept more requests."
        );
        drop(large);
        assert!(one.permit_whole(80).is_ok());
    }
}
