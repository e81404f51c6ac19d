//! Whether the ports of clients are open. They open and close while the node runs (`nodetool enablebinary`, `disablebinary`); the port of
//! `nodetool` stays open, so a node without one refuses to close the others.

use std::sync::Weak;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use futures_util::lock::{Mutex, MutexGuard};
use halcyon_operate::Watched;

const CLOSED: &str = "the ports for CQL clients are closed; nodetool enablebinary opens them";

#[derive(Default)]
pub(crate) struct NativeTransport {
    is_open: AtomicBool,
    changing: Mutex<()>,
    /// What shows it to machines, if there is an address for them. Weak: it shows the node, which has this.
    watched: Weak<Watched>,
}

impl NativeTransport {
    /// Closed.
    pub(crate) fn watched_by(watched: Weak<Watched>) -> NativeTransport {
        NativeTransport { watched, ..NativeTransport::default() }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.is_open.load(Relaxed)
    }

    /// Held while the ports open or close.
    pub(crate) async fn change(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().await
    }

    pub(crate) fn set(&self, is_open: bool) {
        self.is_open.store(is_open, Relaxed);
        self.tell();
    }

    /// Tells the watchers whether clients can connect.
    pub(crate) fn tell(&self) {
        let not_ready = (!self.is_open()).then_some(CLOSED);
        self.watched.upgrade().iter().for_each(|watched| watched.become_ready(not_ready));
    }
}
