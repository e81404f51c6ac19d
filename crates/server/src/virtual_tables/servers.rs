//! What virtual tables ask of the shards' servers.

use futures_util::future::LocalBoxFuture;
use halcyon_access::CacheKeys;
use halcyon_client::Rows;
use halcyon_io::JobLost;
use halcyon_query::Result;

use crate::running::Shown;

/// The servers of all shards, which are asked on their threads.
pub(crate) trait Servers: Send + Sync {
    /// The requests that each shard executes now.
    fn running(&self) -> LocalBoxFuture<'_, Vec<Result<Vec<Shown>, JobLost>>>;

    /// What each shard keeps of roles, permissions and credentials.
    fn access_keys(&self) -> LocalBoxFuture<'_, Vec<Result<CacheKeys, JobLost>>>;

    /// The rows of a statement that the node itself executes.
    fn select(&self, statement: String) -> LocalBoxFuture<'_, Result<Rows>>;

    /// Loads the denied partitions now.
    fn load_denylist(&self) -> LocalBoxFuture<'_, Result<()>>;

    /// Has all shards forget what they know of roles, permissions and credentials.
    fn forget_access(&self);

    /// Whether the ports of clients are open.
    fn has_native_transport(&self) -> bool;

    fn open_native_transport(&self) -> LocalBoxFuture<'_, Result<()>>;

    /// A node that `nodetool` could not reach then refuses.
    fn close_native_transport(&self, interrupts: bool) -> LocalBoxFuture<'_, Result<()>>;

    /// Closes the ports of clients until the next start, or leaves them open if `nodetool` has no other. Whether they are closed.
    fn drain_native_transport(&self) -> LocalBoxFuture<'_, bool>;

    /// Estimates the sizes of tables now.
    fn refresh_size_estimates(&self) -> LocalBoxFuture<'_, Result<()>>;
}
