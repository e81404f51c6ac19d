//! Whether the ports of clients are open. They open and close while the node runs (`nodetool enablebinary`, `disablebinary`); the port of
//! `nodetool` stays open, so a node without one refuses to close the others.

use std::sync::Weak;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use futures_util::lock::{Mutex, MutexGuard};
use halcyon_operate::Watched;

const CLOSED: &str = "the ports for CQL clients are closed; nodetool enablebinary opens them";
const DRAINED: &str = "the node was drained, and its ports for CQL clients are closed; restart it";

#[derive(Default)]
pub(crate) struct NativeTransport {
    is_open: AtomicBool,
    /// The ports stay closed until the next start.
    is_drained: AtomicBool,
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

    pub(crate) fn is_drained(&self) -> bool {
        self.is_drained.load(Relaxed)
    }

    /// From now on the ports do not open.
    pub(crate) fn drain(&self) {
        self.is_drained.store(true, Relaxed);
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
        let why = if self.is_drained() { DRAINED } else { CLOSED };
        let not_ready = (!self.is_open()).then_some(why);
        self.watched.upgrade().iter().for_each(|watched| watched.become_ready(not_ready));
    }
}
