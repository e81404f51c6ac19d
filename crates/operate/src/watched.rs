//! What the endpoint shows of a node.

use std::sync::OnceLock;

use halcyon_io::Mutex;
use halcyon_metrics::Registry;

/// A node, from the start on.
pub struct Watched {
    registry: OnceLock<Registry>,
    /// Why clients cannot connect; `None`: they can.
    not_ready: Mutex<Option<&'static str>>,
}

impl Default for Watched {
    fn default() -> Watched {
        let not_ready =
            Mutex::new(Some("the node is starting: it opens its data and replays its commit log"));
        Watched { registry: OnceLock::new(), not_ready }
    }
}

impl Watched {
    /// Once, when the data is open.
    pub fn show(&self, registry: Registry) {
        // A node opens its data once.
        let _ = self.registry.set(registry);
    }

    /// From now on clients can connect, or cannot and why.
    pub fn become_ready(&self, not_ready: Option<&'static str>) {
        *self.not_ready.lock() = not_ready;
    }

    pub(crate) fn registry(&self) -> Option<&Registry> {
        self.registry.get()
    }

    pub(crate) fn not_ready(&self) -> Option<&'static str> {
        *self.not_ready.lock()
    }
}
