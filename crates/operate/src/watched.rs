//! What the endpoint shows of a node.

use std::sync::{Arc, OnceLock};

use halcyon_io::Mutex;
use halcyon_metrics::Registry;

use crate::console::Console;
use crate::exposition::{Names, NodeIdentity};

/// A node, from the start on.
pub struct Watched {
    names: Names,
    /// With the node's place, which some names show.
    registry: OnceLock<(Arc<Registry>, NodeIdentity)>,
    /// What the page asks.
    console: OnceLock<Arc<dyn Console>>,
    /// Why clients cannot connect; `None`: they can.
    not_ready: Mutex<Option<&'static str>>,
}

impl Watched {
    /// A node that starts. `names`: for requests that choose none.
    pub fn starting(names: Names) -> Watched {
        let not_ready =
            Mutex::new(Some("the node is starting: it opens its data and replays its commit log"));
        Watched { names, registry: OnceLock::new(), console: OnceLock::new(), not_ready }
    }

    pub(crate) fn names(&self) -> Names {
        self.names
    }

    /// Once, when the node has opened its data and joined its ring.
    pub fn show(&self, registry: Arc<Registry>, place: NodeIdentity) {
        // A node joins once.
        let _ = self.registry.set((registry, place));
    }

    pub(crate) fn console(&self) -> Option<&Arc<dyn Console>> {
        self.console.get()
    }

    /// Once, when statements can be executed.
    pub fn open_page(&self, console: Arc<dyn Console>) {
        // A node opens its data once.
        let _ = self.console.set(console);
    }

    /// From now on clients can connect, or cannot and why.
    pub fn become_ready(&self, not_ready: Option<&'static str>) {
        *self.not_ready.lock() = not_ready;
    }

    pub(crate) fn registry(&self) -> Option<&(Arc<Registry>, NodeIdentity)> {
        self.registry.get()
    }

    pub(crate) fn not_ready(&self) -> Option<&'static str> {
        *self.not_ready.lock()
    }
}
