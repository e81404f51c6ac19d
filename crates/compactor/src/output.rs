//! Outputs that Cassandra names and publishes.

use std::path::Path;
use std::sync::Arc;

use halcyon_compaction::{Error, Outputs, Result};
use halcyon_sstable::{Descriptor, Error as SSTableError, Version};

use crate::exchange::Exchange;

/// Stored bytes between two ticks.
const TICK: u64 = 1 << 20;

pub(crate) struct Granted {
    pub(crate) exchange: Arc<Exchange>,
    pub(crate) version: Version,
    /// Read since the last tick.
    pub(crate) stored: u64,
}

impl Granted {
    pub(crate) fn tick(&mut self) -> Result<()> {
        self.exchange.tick(std::mem::take(&mut self.stored))
    }
}

impl Outputs for Granted {
    async fn grant(&mut self, first: i64) -> Result<Descriptor> {
        let path = self.exchange.ask_output(first)?;
        match Descriptor::of_path(Path::new(&path)) {
            Ok((descriptor, _)) if descriptor.version == self.version => Ok(descriptor),
            Ok(_) => {
                Err(Error::Invalid(format!("{path} is not a name for version {}", self.version)))
            }
            Err(what) => Err(Error::Invalid(what)),
        }
    }

    fn create_failed(&mut self, _descriptor: &Descriptor, _error: &SSTableError) {}

    async fn pace(&mut self, read: u64) -> Result<()> {
        self.stored += read;
        if self.stored >= TICK || self.exchange.is_quiet() { self.tick() } else { Ok(()) }
    }
}
