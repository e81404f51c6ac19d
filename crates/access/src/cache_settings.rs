//! Settings of a cache as they are in force: they can change while the node runs (`nodetool setauthcacheconfig`), and every request reads
//! them.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use halcyon_metrics::nanos;

use crate::settings::CacheSettings;

#[derive(Debug)]
pub(crate) struct InForce {
    /// Nanoseconds.
    validity: AtomicU64,
    max_entries: AtomicUsize,
    /// Nanoseconds; zero: `None`.
    active_update: AtomicU64,
}

impl InForce {
    pub(crate) fn of(settings: CacheSettings) -> InForce {
        let shared = InForce {
            validity: AtomicU64::new(0),
            max_entries: AtomicUsize::new(0),
            active_update: AtomicU64::new(0),
        };
        shared.set(settings);
        shared
    }

    pub(crate) fn get(&self) -> CacheSettings {
        let every = Duration::from_nanos(self.active_update.load(Relaxed));
        CacheSettings {
            validity: Duration::from_nanos(self.validity.load(Relaxed)),
            max_entries: self.max_entries.load(Relaxed),
            active_update: Some(every).filter(|every| !every.is_zero()),
        }
    }

    pub(crate) fn set(&self, settings: CacheSettings) {
        self.validity.store(nanos(settings.validity), Relaxed);
        self.max_entries.store(settings.max_entries, Relaxed);
        self.active_update.store(settings.active_update.map_or(0, nanos), Relaxed);
    }
}
