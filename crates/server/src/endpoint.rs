//! The address at which machines watch the node: open from the start on, so that they see a long replay.

use std::io::ErrorKind::AddrInUse;
use std::sync::{Arc, Weak};

use halcyon_metrics::Registry;
use halcyon_operate::{Endpoint, NodeIdentity, Watched};

use crate::console::Console;
use crate::log::Log;
use crate::settings::MetricsAddress;
use crate::shard::Shared;

pub(crate) struct Watch {
    endpoint: Endpoint,
    watched: Arc<Watched>,
}

/// Listens. `None`: the settings say so, or another process has the default port, which does not prevent a start.
pub(crate) fn open(settings: &MetricsAddress, log: &Log) -> Result<Option<Watch>, String> {
    let Some(address) = settings.address else { return Ok(None) };
    let watched = Arc::new(Watched::starting(settings.names));
    match Endpoint::open(address, watched.clone()) {
        Ok(endpoint) => {
            let address = endpoint.address();
            log.say(format_args!(
                "metrics are on http://{address}/metrics, the page on http://{address}/"
            ));
            Ok(Some(Watch { endpoint, watched }))
        }
        Err(e) if e.kind() == AddrInUse && settings.is_default => {
            log.say(format_args!(
                "no metrics: another process listens on {address}; choose another with metrics_port, or set metrics_enabled to false"
            ));
            Ok(None)
        }
        Err(e) => Err(format!(
            "cannot listen on {address} for metrics: {e}; choose another with metrics_address and metrics_port, or set metrics_enabled to false"
        )),
    }
}

impl Watch {
    pub(crate) fn show(&self, registry: Arc<Registry>, place: NodeIdentity) {
        self.watched.show(registry, place);
    }

    /// From now on the page shows what virtual tables say.
    pub(crate) fn open_page(&self, shared: Arc<Shared>) {
        self.watched.open_page(Arc::new(Console::of(shared)));
    }

    pub(crate) fn watched(&self) -> Weak<Watched> {
        Arc::downgrade(&self.watched)
    }

    pub(crate) fn drain(&self) {
        self.watched.become_ready(Some("the node is draining"));
    }

    /// Ends what reads the node.
    pub(crate) fn close(self) {
        self.endpoint.close();
    }
}
