//! The time limit of a write.

use std::pin::pin;
use std::time::Duration;

use futures_util::future::{Either, select};
use halcyon_engine::{PartitionLock, Shard};
use halcyon_io::clock::{Instant, now, sleep};
use halcyon_model::request::Consistency;
use halcyon_stream::{PartitionKey, TableId};

use crate::{Error, Result};

/// A running write and its time limit. A write that takes longer is completed nevertheless, but the client gets
/// Cassandra's timeout error: the write may or may not be visible.
#[derive(Clone, Copy)]
pub(super) struct Stopwatch {
    began: Instant,
    allowed: Duration,
    consistency: Consistency,
    write_type: &'static str,
}

impl Stopwatch {
    pub(super) fn start(
        allowed: Duration,
        consistency: Consistency,
        write_type: &'static str,
    ) -> Stopwatch {
        Stopwatch { began: now(), allowed, consistency, write_type }
    }

    /// The write's failure as the error for the client.
    pub(super) fn failed(&self, error: Error) -> Error {
        error.of_write(self.consistency, self.write_type)
    }

    pub(super) fn check(&self) -> Result<()> {
        if now() - self.began <= self.allowed {
            return Ok(());
        }
        Err(self.too_late())
    }

    pub(super) fn deadline(&self) -> Instant {
        self.began + self.allowed
    }

    /// A partition's lock. A write that could not be finished may hold it for long.
    pub(super) async fn lock(
        &self,
        shard: &Shard,
        table: TableId,
        key: &PartitionKey,
    ) -> Result<PartitionLock> {
        let late = pin!(sleep(self.deadline().saturating_since(now())));
        match select(pin!(shard.lock(table, key)), late).await {
            Either::Left((lock, _)) => Ok(lock),
            Either::Right(_) => Err(self.too_late()),
        }
    }

    pub(super) fn too_late(&self) -> Error {
        let (consistency, write_type) = (self.consistency, self.write_type);
        Error::WriteTimeout { consistency, received: 0, required: 1, write_type }
    }
}
