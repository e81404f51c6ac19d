//! Whose the outputs of a compaction are until they are published: a transaction of ours, or another program's.

use std::path::PathBuf;
use std::sync::Arc;

use halcyon_io::{Disk, RateLimiter};
use halcyon_sstable::{Descriptor, Error as SSTableError, SSTable, SSTableId, Version};

use crate::txn_log::Transaction;
use crate::{Result, identity};

/// Names the outputs of one compaction, and sets its pace.
#[allow(async_fn_in_trait, reason = "a compaction stays on one thread")]
pub trait Outputs {
    /// A new output, recorded before its first file exists; `first` is the token of its first partition.
    async fn grant(&mut self, first: i64) -> Result<Descriptor>;

    /// The first file of a granted output could not be created.
    fn create_failed(&mut self, descriptor: &Descriptor, error: &SSTableError);

    /// `read` bytes of stored data have been read since the last call. Waits while that is too fast; fails if the compaction is to stop.
    async fn pace(&mut self, read: u64) -> Result<()>;
}

/// Outputs in a transaction log of ours.
pub(crate) struct Own<'a> {
    pub(crate) disk: &'a Disk,
    pub(crate) ids: Option<&'a (dyn Fn() -> SSTableId + Send + Sync)>,
    pub(crate) version: Version,
    pub(crate) limiter: &'a RateLimiter,
    pub(crate) inputs: &'a [Arc<SSTable>],
    pub(crate) directory: PathBuf,
    pub(crate) transaction: Transaction,
}

impl Outputs for Own<'_> {
    async fn grant(&mut self, _first: i64) -> Result<Descriptor> {
        let Own { disk, ids, version, inputs, directory, transaction, .. } = self;
        let fresh = async || {
            let id = match ids {
                Some(ids) => ids(),
                None => identity::fresh_id(disk, inputs, directory).await?,
            };
            Ok(Descriptor::new(&*directory, *version, id))
        };
        transaction.add_fresh(fresh).await
    }

    fn create_failed(&mut self, descriptor: &Descriptor, error: &SSTableError) {
        self.transaction.create_failed(descriptor, error);
    }

    async fn pace(&mut self, read: u64) -> Result<()> {
        self.limiter.acquire(read).await;
        Ok(())
    }
}
