//! Settings that can be changed while the node runs: `UPDATE system_views.settings SET value = … WHERE name = …`.
//!
//! A change holds until the node stops; the file is the operator's own. A value means here what it means in the file.

use std::sync::Arc;
use std::time::Duration;

use halcyon_access::{Access, AuthCache, CacheSettings};
use halcyon_engine::{Engine, LatencyTarget};
use halcyon_io::Mutex;
use halcyon_model::units;
use halcyon_query::{RequestLimits, Timeout};

use super::guardrails::{self, GivenGuardrails};
use super::keys::Listed;
use super::listed::{present_name, with_older_names};
use super::{Error, Result};
use super::{SavedCaches, Settings, Switch, value};
use crate::slow_queries::SlowQueries;

/// All settings as they are in force.
pub(crate) struct RunningSettings {
    listed: Mutex<Listed>,
    guardrails: Mutex<GivenGuardrails>,
    slow_queries: Arc<SlowQueries>,
    limits: RequestLimits,
    saved_caches: SavedCaches,
    access: Arc<Access>,
    allow_older_protocols: Switch,
}

/// Beside those of the caches of roles.
const CHANGEABLE: [&str; 22] = [
    "cas_contention_timeout",
    "column_index_size",
    "compaction_latency_target",
    "compaction_throughput",
    "concurrent_compactors",
    "counter_cache_keys_to_save",
    "counter_write_request_timeout",
    "default_keyspace_rf",
    "incremental_backups",
    "internode_streaming_tcp_user_timeout",
    "internode_tcp_connect_timeout",
    "internode_tcp_user_timeout",
    "key_cache_keys_to_save",
    "native_transport_allow_older_protocols",
    "range_request_timeout",
    "read_request_timeout",
    "request_timeout",
    "row_cache_keys_to_save",
    "slow_query_log_timeout",
    "snapshot_links_per_second",
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
        access: Arc<Access>,
    ) -> RunningSettings {
        RunningSettings {
            access,
            slow_queries,
            limits,
            saved_caches: settings.saved_caches.clone(),
            allow_older_protocols: settings.transport.allow_older_protocols.clone(),
            listed: Mutex::new(settings.listed.clone()),
            guardrails: Mutex::new(settings.given_guardrails.clone()),
        }
    }

    /// Puts a guardrail in force (`nodetool setguardrailsconfig`): its name without a level, and its values. Of a threshold, the one that
    /// fails is first.
    pub(crate) fn change_guardrail(&self, engine: &Engine, words: &[&str]) -> Result<()> {
        let mut given = self.guardrails.lock();
        let factor = engine.options().default_keyspace_rf.get();
        let factor = u32::try_from(factor).unwrap_or(u32::MAX);
        let changed = guardrails::changed(&given, words, factor)?;
        let (roles, anonymous) = changed.configs()?;
        engine.options().guardrails.replace(roles, anonymous);
        self.listed.lock().extend(changed.listed(words));
        *given = changed;
        Ok(())
    }

    /// Under present names and older ones.
    pub(crate) fn all(&self) -> Listed {
        with_older_names(&self.listed.lock())
    }

    /// Shows a value that is in force already.
    pub(crate) fn note(&self, name: &str, value: &str) {
        self.listed.lock().insert(name.to_owned(), Some(value.to_owned()));
    }

    /// Puts a value in force; `None` is null.
    pub(crate) fn change(&self, engine: &Engine, name: &str, text: Option<&str>) -> Result<()> {
        // In the order of `change_guardrail`.
        let limits = self.guardrails.lock();
        let mut settings = self.listed.lock();
        if !settings.contains_key(name) {
            return Err(Error::Refused(match present_name(name) {
                Some(present) => format!("the setting {name} is called {present} now"),
                None => format!("there is no setting {name}"),
            }));
        }
        let (cache, given) =
            (AuthCache::ALL.into_iter().find(|of| is_of(*of, name)), Given { name, text });
        match (name, cache) {
            (_, Some(cache)) => self.change_auth_cache(cache, &settings, given)?,
            (
                "key_cache_keys_to_save" | "row_cache_keys_to_save" | "counter_cache_keys_to_save",
                _,
            ) => self.change_saved(given)?,
            ("default_keyspace_rf", _) => {
                let factor = given.number(1, "1 or more")?;
                guardrails::check_default_factor(&limits, factor)?;
                engine.options().default_keyspace_rf.set(factor.into());
            }
            ("native_transport_allow_older_protocols", _) => {
                let allowed = text.and_then(value::boolean);
                let allowed = allowed.ok_or_else(|| given.wrong("true or false"))?;
                self.allow_older_protocols.set(allowed);
            }
            (name, _) if CHANGEABLE.contains(&name) => match given.of_engine(engine)? {
                true => {}
                false => self.change_timeout(given)?,
            },
            _ => {
                return Err(Error::Refused(format!(
                    "{name} cannot be changed while the node runs; what can: {}, and what begins with roles_, permissions_ or credentials_",
                    CHANGEABLE.join(", ")
                )));
            }
        }
        settings.insert(name.to_owned(), text.map(str::to_owned));
        Ok(())
    }

    fn change_timeout(&self, given: Given<'_>) -> Result<()> {
        let kind = value::Kind::of("ms");
        let text = given.text.filter(|text| kind.check(text).is_ok());
        let timeout = text.and_then(units::settings::duration);
        let timeout = timeout.ok_or_else(|| given.wrong(&kind.allowed()))?;
        if given.name == "slow_query_log_timeout" {
            self.slow_queries.set_timeout(timeout);
        }
        if let Some(limit) = timeout_of(&self.limits, given.name) {
            limit.set(timeout);
        }
        Ok(())
    }

    fn change_saved(&self, given: Given<'_>) -> Result<()> {
        let most = given.number(0, "0 or more")?;
        // Counters have no cache.
        let saved = match given.name {
            "key_cache_keys_to_save" => Some(&self.saved_caches.key_cache_keys_to_save),
            "row_cache_keys_to_save" => Some(&self.saved_caches.row_cache_keys_to_save),
            _ => None,
        };
        if let Some(saved) = saved {
            saved.set(usize::try_from(most).unwrap_or_default());
        }
        Ok(())
    }

    /// One setting of a cache; the others stay.
    fn change_auth_cache(
        &self,
        cache: AuthCache,
        settings: &Listed,
        given: Given<'_>,
    ) -> Result<()> {
        let [validity, interval, entries, active] =
            OF_AUTH_CACHE.map(|ending| format!("{}{ending}", cache.prefix()));
        let text_of = |name: &str| match name == given.name {
            true => given.text,
            false => settings.get(name).and_then(Option::as_deref),
        };
        let millis = value::Kind::of("ms");
        let time = |name: &str| -> Result<Option<Duration>> {
            let Some(text) = text_of(name) else { return Ok(None) };
            let checked = millis.check(text).ok().and_then(|()| units::settings::duration(text));
            checked.map(Some).ok_or_else(|| given.wrong(&millis.allowed()))
        };
        let is_active = match text_of(&active) {
            Some(text) => value::boolean(text).ok_or_else(|| given.wrong("true or false"))?,
            None => false,
        };
        let most = match text_of(&entries).map(str::parse) {
            Some(Ok(most @ 0..=10_000_000)) => most,
            None => 1000,
            Some(_) => return Err(given.wrong("0 to 10000000")),
        };
        let validity = time(&validity)?.ok_or_else(|| given.wrong(&millis.allowed()))?;
        self.access
            .set_cache(cache, CacheSettings::of(validity, time(&interval)?, most, is_active));
        Ok(())
    }
}

/// How the names of the settings of a cache of roles end.
const OF_AUTH_CACHE: [&str; 4] =
    ["_validity", "_update_interval", "_cache_max_entries", "_cache_active_update"];

fn is_of(cache: AuthCache, name: &str) -> bool {
    name.strip_prefix(cache.prefix()).is_some_and(|ending| OF_AUTH_CACHE.contains(&ending))
}

/// A setting, and the value that it is to have.
#[derive(Clone, Copy)]
struct Given<'a> {
    name: &'a str,
    text: Option<&'a str>,
}

impl Given<'_> {
    fn wrong(&self, allowed: &str) -> Error {
        Error::Wrong {
            key: self.name.to_owned(),
            value: self.text.unwrap_or("null").to_owned(),
            allowed: allowed.to_owned(),
        }
    }

    /// An `int` of Cassandra.
    fn number(&self, least: u32, allowed: &str) -> Result<u32> {
        let number = self.text.and_then(|text| text.parse::<i32>().ok());
        let number = number.and_then(|number| u32::try_from(number).ok());
        number.filter(|number| *number >= least).ok_or_else(|| self.wrong(allowed))
    }

    /// Puts a setting of the engine in force; `false`: it is another one's.
    fn of_engine(&self, engine: &Engine) -> Result<bool> {
        match self.name {
            "compaction_throughput" => {
                let rate = self.text.and_then(units::settings::rate);
                let rate = rate.ok_or_else(|| self.wrong(&value::Kind::Rate.allowed()))?;
                engine.compactor().set_throughput(Some(rate).filter(|rate| *rate > 0));
            }
            "compaction_latency_target" => {
                let allowed = || self.wrong(&value::Kind::of("auto|us").allowed());
                let target = self.text.map(|text| value::latency_target(text).ok_or_else(allowed));
                let target = target.transpose()?.unwrap_or(LatencyTarget::Off);
                engine.compactor().set_latency_target(target);
            }
            "concurrent_compactors" => match self.text.and_then(|text| text.parse().ok()) {
                Some(count @ 1..=1024) => engine.compactor().set_limit(count),
                _ => return Err(self.wrong("1 or more")),
            },
            "column_index_size" => {
                let kind = value::Kind::of("KiB");
                let size = |text: &str| {
                    let checked = kind.check(text).ok().and_then(|()| units::settings::size(text));
                    checked.ok_or_else(|| self.wrong(&kind.allowed()))
                };
                let bytes = self.text.map(size).transpose()?.unwrap_or(u64::MAX);
                engine.options().column_index_size.set(bytes);
            }
            "snapshot_links_per_second" => {
                let links = self.text.and_then(|text| text.parse().ok());
                let links = links.ok_or_else(|| self.wrong("0 or more"))?;
                engine.snapshots().set_links_per_second(links);
            }
            "incremental_backups" => match self.text.map(str::parse) {
                Some(Ok(enabled)) => engine.tables().set_incremental_backups(enabled),
                _ => return Err(self.wrong("true or false")),
            },
            _ => return Ok(false),
        }
        Ok(true)
    }
}
