//! What virtual tables show of a node beside its engine.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use futures_util::future::LocalBoxFuture;
use halcyon_access::Access;
use halcyon_io::clock::Instant;
use halcyon_io::{AccessMode, Disk, JobLost};
use halcyon_metrics::Registry;
use halcyon_query::{Denylist, Result};

use crate::cache_rates::CacheRates;
use crate::clients::Clients;
use crate::encryption::Encryption;
use crate::log::Log;
use crate::metrics::ClientMetrics;
use crate::prepared::PreparedStatements;
use crate::request_log::RequestLogs;
use crate::running::Shown;
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
    /// All metrics, once the node has joined its ring.
    pub(crate) registry: OnceLock<Arc<Registry>>,
    pub(crate) cache_rates: Arc<CacheRates>,
    pub(crate) trace_probability: Arc<TraceProbability>,
    pub(crate) request_logs: Arc<RequestLogs>,
    pub(crate) slow_queries: Arc<SlowQueries>,
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

/// The servers of all shards, which are asked on their threads.
pub(crate) trait Servers {
    /// The requests that each shard executes now.
    fn running(&self) -> LocalBoxFuture<'_, Vec<Result<Vec<Shown>, JobLost>>>;

    /// Loads the denied partitions now.
    fn load_denylist(&self) -> LocalBoxFuture<'_, Result<()>>;

    /// Has all shards forget what they know of roles, permissions and credentials.
    fn forget_access(&self);

    /// Estimates the sizes of tables now.
    fn refresh_size_estimates(&self) -> LocalBoxFuture<'_, Result<()>>;
}
