//! What virtual tables show of a node beside its engine.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use halcyon_access::Access;
use halcyon_io::clock::Instant;
use halcyon_io::{AccessMode, Disk};
use halcyon_metrics::Registry;
use halcyon_query::{ClientRequests, Denylist};

use crate::cache_rates::CacheRates;
use crate::clients::Clients;
use crate::encryption::Encryption;
use crate::findings::Findings;
use crate::log::Log;
use crate::metrics::ClientMetrics;
use crate::prepared::PreparedStatements;
use crate::profiles::Profiles;
use crate::request_log::RequestLogs;
use crate::settings::RunningSettings;
use crate::slow_queries::SlowQueries;
use crate::trace::probability::TraceProbability;

pub(crate) struct Facts {
    pub(crate) log: Log,
    pub(crate) clients: Arc<Clients>,
    pub(crate) prepared: Arc<PreparedStatements>,
    /// `None`: no port has TLS.
    pub(crate) encryption: Option<Arc<Encryption>>,
    /// By shard.
    pub(crate) metrics: Arc<[ClientMetrics]>,
    /// How long statements took.
    pub(crate) requests: Arc<ClientRequests>,
    /// All metrics, once the node has joined its ring.
    pub(crate) registry: OnceLock<Arc<Registry>>,
    pub(crate) findings: Findings,
    pub(crate) cache_rates: Arc<CacheRates>,
    pub(crate) trace_probability: Arc<TraceProbability>,
    pub(crate) request_logs: Arc<RequestLogs>,
    pub(crate) slow_queries: Arc<SlowQueries>,
    pub(crate) profiles: Arc<Profiles>,
    /// The node drains and ends once it is set.
    pub(crate) is_to_stop: Arc<AtomicBool>,
    /// `None`: it is off.
    pub(crate) denylist: Option<Arc<Denylist>>,
    pub(crate) access: Arc<Access>,
    /// The values of `system_views.settings`.
    pub(crate) settings: RunningSettings,
    pub(crate) data_dir: PathBuf,
    pub(crate) began: Instant,
    pub(crate) disk: Disk,
    /// Directory, purpose, configured mode, and whether it is for writes.
    pub(crate) io_modes: Vec<(PathBuf, &'static str, AccessMode, bool)>,
}
