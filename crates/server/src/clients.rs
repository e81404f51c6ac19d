//! The connected clients, for `system_views.clients`; any shard can read them. A connection rarely writes to its entry, except for one
//! counter, which only its own shard writes.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use halcyon_io::Mutex;

#[derive(Debug, Default)]
pub(crate) struct Clients(Mutex<BTreeMap<SocketAddr, Arc<Entry>>>);

/// One connection.
#[derive(Debug, Default)]
pub(crate) struct Entry {
    requests: AtomicU64,
    info: Mutex<ClientInfo>,
}

/// The facts that a client has sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ClientInfo {
    pub(crate) protocol_version: Option<u8>,
    pub(crate) keyspace: Option<String>,
    /// Protocol and cipher suite of TLS.
    pub(crate) encryption: Option<(&'static str, &'static str)>,
    /// Of the principal, once the connection is ready.
    pub(crate) username: Option<String>,
    /// The options of STARTUP.
    pub(crate) options: Vec<(String, String)>,
}

impl Clients {
    pub(crate) fn enter(&self, address: SocketAddr) -> Arc<Entry> {
        let entry = Arc::<Entry>::default();
        self.0.lock().insert(address, entry.clone());
        entry
    }

    pub(crate) fn leave(&self, address: SocketAddr) {
        self.0.lock().remove(&address);
    }

    pub(crate) fn all(&self) -> Vec<(SocketAddr, u64, ClientInfo)> {
        let clients = self.0.lock();
        let entries = clients
            .iter()
            .map(|(address, entry)| (*address, entry.requests.load(Relaxed), entry.info().clone()));
        entries.collect()
    }
}

impl Entry {
    /// A plain store is enough, because only one thread writes.
    pub(crate) fn count_request(&self) {
        self.requests.store(self.requests.load(Relaxed) + 1, Relaxed);
    }

    pub(crate) fn info(&self) -> std::sync::MutexGuard<'_, ClientInfo> {
        self.info.lock()
    }
}
