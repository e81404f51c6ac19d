//! What the shards share.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::AcqRel, Ordering::Acquire};

use halcyon_io::Mutex;
use halcyon_io::clock::{Instant, now};

use crate::attempts::Attempts;
use crate::cache_settings::InForce;
use crate::cidr_metrics::CidrMetrics;
use crate::passwords::Hashers;
use crate::settings::{AuthCache, CacheSettings, Settings};

/// The role that a node without roles gets, and its password (`CassandraRoleManager`).
pub const DEFAULT_SUPERUSER: &str = "cassandra";

#[derive(Debug)]
pub struct Access {
    settings: Settings,
    /// By [`AuthCache`].
    caches: [InForce; 3],
    epoch: AtomicU64,
    hashers: Hashers,
    attempts: Attempts,
    /// When the passwords of roles were last changed; only recent changes.
    password_updates: Mutex<BTreeMap<String, Instant>>,
    changes: futures_util::lock::Mutex<()>,
    /// Of each shard.
    cidr_metrics: Mutex<Vec<Arc<CidrMetrics>>>,
}

/// Of a node that allows everything.
impl Default for Access {
    fn default() -> Access {
        Access::new(Settings::default())
    }
}

impl Access {
    pub fn new(settings: Settings) -> Access {
        let hashers = Hashers::new(settings.auth_threads, settings.hash_rounds);
        let attempts = Attempts::new(hashers.places() / 2);
        Access {
            caches: AuthCache::ALL.map(|cache| InForce::of(settings.cache(cache))),
            settings,
            epoch: AtomicU64::new(0),
            hashers,
            attempts,
            password_updates: Mutex::default(),
            changes: Default::default(),
            cidr_metrics: Mutex::default(),
        }
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    fn in_force(&self, cache: AuthCache) -> &InForce {
        let [roles, permissions, credentials] = &self.caches;
        match cache {
            AuthCache::Roles => roles,
            AuthCache::Permissions => permissions,
            AuthCache::Credentials => credentials,
        }
    }

    /// The settings of a cache as they are in force.
    pub fn cache(&self, cache: AuthCache) -> CacheSettings {
        self.in_force(cache).get()
    }

    /// Changes them; what shards have read before is forgotten, as in Cassandra.
    pub fn set_cache(&self, cache: AuthCache, settings: CacheSettings) {
        self.in_force(cache).set(settings);
        self.begin_epoch();
    }

    pub fn hashers(&self) -> &Hashers {
        &self.hashers
    }

    pub fn attempts(&self) -> &Attempts {
        &self.attempts
    }

    /// What a new shard counts of addresses.
    pub fn new_cidr_metrics(&self) -> Arc<CidrMetrics> {
        let metrics = Arc::new(CidrMetrics::default());
        self.cidr_metrics.lock().push(metrics.clone());
        metrics
    }

    /// Those of all shards.
    pub fn cidr_metrics(&self) -> Vec<Arc<CidrMetrics>> {
        self.cidr_metrics.lock().clone()
    }

    /// Held while a statement checks and changes roles or permissions: of two that make one role, the second one finds it.
    pub async fn change(&self) -> impl Drop + '_ {
        self.changes.lock().await
    }

    pub fn epoch(&self) -> u64 {
        self.epoch.load(Acquire)
    }

    /// Has every shard forget what it has read. Called after a change of roles or permissions, before it is acknowledged.
    pub fn begin_epoch(&self) {
        self.epoch.fetch_add(1, AcqRel);
    }

    /// Whether the password of a role may be changed now; then the next change has to wait. Not a moment passes in between: of two
    /// concurrent changes one is refused.
    pub fn claims_password_update(&self, role: &str) -> bool {
        let interval = self.settings.password_update_min_interval;
        let (mut updates, now) = (self.password_updates.lock(), now());
        let is_recent = |at: &Instant| now - *at < interval;
        if updates.get(role).is_some_and(is_recent) {
            return false;
        }
        // Now and then: a flood of changes has many recent ones.
        if updates.len().is_power_of_two() {
            updates.retain(|_, at| is_recent(at));
        }
        if !interval.is_zero() {
            updates.insert(role.to_owned(), now);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use halcyon_io::{SimRuntime, clock};

    use super::*;

    /// Proves that a role's password changes at most once in the interval, those of others independently of it, and that zero allows all.
    #[test]
    fn cve_2026_32588_a_password_changes_once_in_five_seconds() {
        SimRuntime::seeded(1).block_on(async {
            let access = Access::new(Settings::default());
            assert!(access.claims_password_update("r") && access.claims_password_update("s"));
            assert!(!access.claims_password_update("r"));
            clock::sleep(Duration::from_millis(4_999)).await;
            assert!(!access.claims_password_update("r"));
            clock::sleep(Duration::from_millis(2)).await;
            assert!(access.claims_password_update("r"));
            let password_update_min_interval = Duration::ZERO;
            let access =
                Access::new(Settings { password_update_min_interval, ..Settings::default() });
            assert!(access.claims_password_update("r") && access.claims_password_update("r"));
        });
    }
}
