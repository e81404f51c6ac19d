//! Settings that can be changed while the node runs: `UPDATE system_views.settings SET value = … WHERE name = …`.
//!
//! A change holds until the node stops; the file is the operator's own. A value means here what it means in the file.

use std::collections::BTreeMap;
use std::sync::Arc;

use halcyon_engine::{Engine, LatencyTarget};
use halcyon_io::Mutex;
use halcyon_model::units;
use halcyon_query::{RequestLimits, Timeout};

use super::guardrails::{self, GivenGuardrails};
use super::{Error, Result};
use super::{SavedCaches, Settings, value};
use crate::slow_queries::SlowQueries;

/// All settings as they are in force.
pub(crate) struct RunningSettings {
    listed: Mutex<BTreeMap<String, Option<String>>>,
    guardrails: Mutex<GivenGuardrails>,
    slow_queries: Arc<SlowQueries>,
    limits: RequestLimits,
    saved_caches: SavedCaches,
}

const CHANGEABLE: [&str; 18] = [
    "cas_contention_timeout",
    "compaction_latency_target",
    "compaction_throughput",
    "concurrent_compactors",
    "counter_cache_keys_to_save",
    "counter_write_request_timeout",
    "incremental_backups",
    "internode_streaming_tcp_user_timeout",
    "internode_tcp_connect_timeout",
    "internode_tcp_user_timeout",
    "key_cache_keys_to_save",
    "range_request_timeout",
    "read_request_timeout",
    "request_timeout",
    "row_cache_keys_to_save",
    "slow_query_log_timeout",
    "truncate_request_timeout",
    "write_request_timeout",
];

/// A timeout of `settimeout`, and what follows it. No request of this node waits for the others.
fn timeout_of<'a>(limits: &'a RequestLimits, name: &str) -> Option<&'a Timeout> {
    Some(match name {
        "cas_contention_timeout" => &limits.cas_contention_timeout,
        "counter_write_request_timeout" => &limits.counter_write_request_timeout,
        "range_request_timeout" => &limits.range_request_timeout,
        "read_request_timeout" => &limits.read_request_timeout,
        "write_request_timeout" => &limits.write_request_timeout,
        _ => return None,
    })
}

impl RunningSettings {
    pub(crate) fn of(
        settings: &Settings,
        slow_queries: Arc<SlowQueries>,
        limits: RequestLimits,
    ) -> RunningSettings {
        RunningSettings {
            slow_queries,
            limits,
            saved_caches: settings.saved_caches.clone(),
            listed: Mutex::new(settings.listed.iter().cloned().collect()),
            guardrails: Mutex::new(settings.given_guardrails.clone()),
        }
    }

    /// Puts a guardrail in force (`nodetool setguardrailsconfig`): its name without a level, and its values. Of a threshold, the one that
    /// fails is first.
    pub(crate) fn change_guardrail(&self, engine: &Engine, words: &[&str]) -> Result<()> {
        let mut given = self.guardrails.lock();
        let changed = guardrails::changed(&given, words, engine.options().default_keyspace_rf)?;
        let (roles, anonymous) = changed.configs()?;
        engine.options().guardrails.replace(roles, anonymous);
        self.listed.lock().extend(changed.listed(words));
        *given = changed;
        Ok(())
    }

    pub(crate) fn all(&self) -> BTreeMap<String, Option<String>> {
        self.listed.lock().clone()
    }

    /// Shows a value that is in force already.
    pub(crate) fn note(&self, name: &str, value: &str) {
        self.listed.lock().insert(name.to_owned(), Some(value.to_owned()));
    }

    /// Puts a value in force; `None` is null.
    pub(crate) fn change(&self, engine: &Engine, name: &str, text: Option<&str>) -> Result<()> {
        let mut settings = self.listed.lock();
        let Some(place) = settings.get_mut(name) else {
            return Err(Error::Refused(format!("there is no setting {name}")));
        };
        let wrong = |allowed: &str| Error::Wrong {
            key: name.to_owned(),
            value: text.unwrap_or("null").to_owned(),
            allowed: allowed.to_owned(),
        };
        match name {
            "compaction_throughput" => {
                let rate = text.and_then(units::settings::rate);
                let rate = rate.ok_or_else(|| wrong(&value::Kind::Rate.allowed()))?;
                engine.compactor().set_throughput(Some(rate).filter(|rate| *rate > 0));
            }
            "compaction_latency_target" => {
                let allowed = || wrong(&value::Kind::of("auto|us").allowed());
                let target = text.map(|text| value::latency_target(text).ok_or_else(allowed));
                let target = target.transpose()?.unwrap_or(LatencyTarget::Off);
                engine.compactor().set_latency_target(target);
            }
            "concurrent_compactors" => match text.and_then(|text| text.parse().ok()) {
                Some(count @ 1..=1024) => engine.compactor().set_limit(count),
                _ => return Err(wrong("1 or more")),
            },
            "key_cache_keys_to_save" | "row_cache_keys_to_save" | "counter_cache_keys_to_save" => {
                let most = text.and_then(|text| text.parse().ok());
                let most: i32 = most.filter(|most| *most >= 0).ok_or_else(|| wrong("0 or more"))?;
                // Counters have no cache.
                let saved = match name {
                    "key_cache_keys_to_save" => Some(&self.saved_caches.key_cache_keys_to_save),
                    "row_cache_keys_to_save" => Some(&self.saved_caches.row_cache_keys_to_save),
                    _ => None,
                };
                if let Some(saved) = saved {
                    saved.set(usize::try_from(most).unwrap_or_default());
                }
            }
            "incremental_backups" => match text.map(str::parse) {
                Some(Ok(enabled)) => engine.tables().set_incremental_backups(enabled),
                _ => return Err(wrong("true or false")),
            },
            name if CHANGEABLE.contains(&name) => {
                let kind = value::Kind::of("ms");
                let text = text.filter(|text| kind.check(text).is_ok());
                let timeout = text.and_then(units::settings::duration);
                let timeout = timeout.ok_or_else(|| wrong(&kind.allowed()))?;
                if name == "slow_query_log_timeout" {
                    self.slow_queries.set_timeout(timeout);
                }
                if let Some(limit) = timeout_of(&self.limits, name) {
                    limit.set(timeout);
                }
            }
            _ => {
                return Err(Error::Refused(format!(
                    "{name} cannot be changed while the node runs; what can: {}",
                    CHANGEABLE.join(", ")
                )));
            }
        }
        *place = text.map(str::to_owned);
        Ok(())
    }
}
