//! Settings that can be changed while the node runs: `UPDATE system_views.settings SET value = … WHERE name = …`.
//!
//! A change holds until the node stops; the file is the operator's own. A value means here what it means in the file.

use std::collections::BTreeMap;
use std::sync::Arc;

use halcyon_engine::{Engine, LatencyTarget};
use halcyon_io::Mutex;
use halcyon_model::units;

use super::guardrails::{self, GivenGuardrails};
use super::{Error, Result};
use super::{Settings, value};
use crate::slow_queries::SlowQueries;

/// All settings as they are in force.
pub(crate) struct RunningSettings {
    listed: Mutex<BTreeMap<String, Option<String>>>,
    guardrails: Mutex<GivenGuardrails>,
    slow_queries: Arc<SlowQueries>,
}

const CHANGEABLE: [&str; 5] = [
    "compaction_latency_target",
    "compaction_throughput",
    "concurrent_compactors",
    "incremental_backups",
    "slow_query_log_timeout",
];

impl RunningSettings {
    pub(crate) fn of(settings: &Settings, slow_queries: Arc<SlowQueries>) -> RunningSettings {
        RunningSettings {
            slow_queries,
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
            "incremental_backups" => match text.map(str::parse) {
                Some(Ok(enabled)) => engine.tables().set_incremental_backups(enabled),
                _ => return Err(wrong("true or false")),
            },
            "slow_query_log_timeout" => {
                let kind = value::Kind::of("ms");
                let text = text.filter(|text| kind.check(text).is_ok());
                let timeout = text.and_then(units::settings::duration);
                self.slow_queries.set_timeout(timeout.ok_or_else(|| wrong(&kind.allowed()))?);
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
