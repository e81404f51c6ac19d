//! The debt of one version, kept until version or definition change.

use std::sync::{Arc, Weak};
use std::time::Duration;

use halcyon_compaction::strategy::Debt;
use halcyon_io::Mutex;
use halcyon_io::clock::Instant;

use crate::definition::Definition;
use crate::version::Version;

/// Windows close by themselves.
const AGE_MAX: Duration = Duration::from_secs(60);

#[derive(Default)]
pub(crate) struct DebtCache(Mutex<Option<CachedDebt>>);

struct CachedDebt {
    /// Weak, so that files which are obsolete are deleted meanwhile; its address is not used again as long as this is held.
    version: Weak<Version>,
    definition: Weak<Definition>,
    at: Instant,
    debt: Debt,
}

impl CachedDebt {
    fn holds(&self, version: &Arc<Version>, definition: &Arc<Definition>, now: Instant) -> bool {
        std::ptr::eq(self.version.as_ptr(), Arc::as_ptr(version))
            && std::ptr::eq(self.definition.as_ptr(), Arc::as_ptr(definition))
            && now.saturating_since(self.at) < AGE_MAX
    }
}

impl DebtCache {
    /// The debt of a version under a definition, computed again when one of them has changed, and once a minute.
    pub(super) fn of(
        &self,
        version: &Arc<Version>,
        definition: &Arc<Definition>,
        now: Instant,
        compute: impl FnOnce() -> Debt,
    ) -> Debt {
        let mut cached = self.0.lock();
        if let Some(cached) = cached.as_ref().filter(|c| c.holds(version, definition, now)) {
            return cached.debt;
        }
        let debt = compute();
        let (version, definition) = (Arc::downgrade(version), Arc::downgrade(definition));
        *cached = Some(CachedDebt { version, definition, at: now, debt });
        debt
    }
}
