//! Load profiles (`nodetool profileload`, Cassandra's `SamplingManager`): samplings of tables that a client waits for, and jobs that sample
//! again and again.
//!
//! 1. What a sampling finds is kept under the id that the client chose, until [`KEPT`] later ones; `halcyon_views.load_profiles` shows it.
//! 2. A job samples for `duration` at the beginning of each `interval`. At the end of the interval the log tells what it found.
//! 3. A job that is stopped ends with its interval; until then it is listed.

pub mod report;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use halcyon_engine::{Sampler, Tables};
use halcyon_io::clock::sleep;
use halcyon_io::{Mutex, spawn};
use halcyon_query::{Error, Result};
use halcyon_stream::TableId;

use crate::command::ProfileLoad;
use crate::log::{Level, Log};
use report::Found;

/// Profiles that wait for being read. Chosen: with 1,024 keys of each sampler they take some megabytes.
const KEPT: usize = 16;
/// `SamplingManager`
const CAPACITY_MAX: usize = 1024;
const LOGGER: &str = "server.profiles";

/// What a job samples; `None`: all.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Job {
    pub(crate) keyspace: Option<String>,
    pub(crate) table: Option<String>,
}

impl Job {
    /// Empty names stand for all.
    pub(crate) fn of(keyspace: &str, table: &str) -> Job {
        let named = |name: &str| (!name.is_empty()).then(|| name.to_owned());
        Job { keyspace: named(keyspace), table: named(table) }
    }
}

impl fmt::Display for Job {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |name: &Option<String>| name.clone().unwrap_or_else(|| "*".to_owned());
        write!(out, "{}.{}", name(&self.keyspace), name(&self.table))
    }
}

/// A sampling, with what it was asked for checked.
struct Plan {
    tables: Vec<TableId>,
    samplers: Vec<Sampler>,
    capacity: usize,
    most: usize,
    duration: Duration,
}

impl Plan {
    fn of(asked: &ProfileLoad, tables: &[TableId]) -> Result<Plan> {
        let refuse = |why: String| Err(Error::Invalid(why));
        let (capacity, most) = (asked.capacity as usize, asked.most as usize);
        if !(1..=CAPACITY_MAX).contains(&capacity) {
            return refuse(format!(
                "Sampling capacity {capacity} must be positive and the max value is 1024 (inclusive)."
            ));
        }
        if !(1..capacity).contains(&most) {
            return refuse(format!(
                "Sampling count {most} must be positive and smaller than capacity {capacity}."
            ));
        }
        let mut samplers = Vec::new();
        for name in &asked.samplers {
            match Sampler::ALL.into_iter().find(|sampler| sampler.name() == name) {
                Some(sampler) if samplers.contains(&sampler) => {}
                Some(sampler) => samplers.push(sampler),
                None => return refuse(format!("unknown sampler '{name}'")),
            }
        }
        if samplers.is_empty() {
            return refuse("Samplers cannot be empty.".to_owned());
        }
        let duration = Duration::from_millis(asked.duration_ms.into());
        Ok(Plan { tables: tables.to_vec(), samplers, capacity, most, duration })
    }

    /// Samples for the plan's duration.
    async fn sample(&self, tables: &Arc<Tables>) -> Result<Found> {
        let sampling = tables.begin_sampling(&self.tables, &self.samplers, self.capacity)?;
        sleep(self.duration).await;
        Ok(sampling.finish(self.most))
    }
}

#[derive(Default)]
pub(crate) struct Profiles {
    found: Mutex<VecDeque<(String, Found)>>,
    /// Whether each is being stopped.
    jobs: Mutex<BTreeMap<Job, bool>>,
}

impl Profiles {
    /// Samples, and returns when the profile is there.
    pub(crate) async fn profile(
        &self,
        tables: &Arc<Tables>,
        asked: &ProfileLoad,
        of: &[TableId],
    ) -> Result<()> {
        let profile = Plan::of(asked, of)?.sample(tables).await?;
        let mut found = self.found.lock();
        if found.len() >= KEPT {
            found.pop_front();
        }
        found.push_back((asked.id.clone(), profile));
        Ok(())
    }

    pub(crate) fn found(&self, id: &str) -> Option<Found> {
        let found = self.found.lock();
        found.iter().find(|(of, _)| of == id).map(|(_, profile)| profile.clone())
    }

    /// All jobs, and whether each is being stopped.
    pub(crate) fn jobs(&self) -> Vec<(Job, bool)> {
        self.jobs.lock().iter().map(|(job, stopping)| (job.clone(), *stopping)).collect()
    }

    /// Begins a job that samples at each `interval`.
    pub(crate) fn schedule(
        self: &Arc<Self>,
        (tables, log): (&Arc<Tables>, &Log),
        job: Job,
        (asked, interval_ms): (&ProfileLoad, u32),
        of: &[TableId],
    ) -> Result<()> {
        let plan = Plan::of(asked, of)?;
        let (duration, interval) = (asked.duration_ms, interval_ms);
        if interval < duration {
            return Err(Error::Invalid(format!(
                "Sampling interval {interval} should be greater then or equals to duration {duration} if defined."
            )));
        }
        if !self.enter(&job) {
            return Err(Error::Invalid(format!("{}{job}", ProfileLoad::SCHEDULED)));
        }
        let pause = Duration::from_millis((interval - duration).into());
        let (profiles, tables, log) = (self.clone(), tables.clone(), log.clone());
        spawn(async move {
            while profiles.is_wanted(&job) {
                let found = plan.sample(&tables).await;
                sleep(pause).await;
                match found {
                    Ok(found) => {
                        let lines = report::report(&found).lines().map(str::to_owned).collect();
                        log.list(Level::Info, LOGGER, &format!("profile of {job}:"), lines);
                    }
                    Err(why) => {
                        log.warning(format_args!("{job} is not profiled any more: {why}"));
                        break;
                    }
                }
            }
            profiles.jobs.lock().remove(&job);
        })
        .detach();
        Ok(())
    }

    /// `SamplingManager.canSchedule`: a job of all tables is alone, one of a keyspace keeps its tables from having their own.
    fn enter(&self, job: &Job) -> bool {
        let mut jobs = self.jobs.lock();
        let (all, of_keyspace) =
            (Job::of("", ""), Job { keyspace: job.keyspace.clone(), table: None });
        let is_barred = [&all, job, &of_keyspace].into_iter().any(|other| jobs.contains_key(other));
        if is_barred || (*job == all && !jobs.is_empty()) {
            return false;
        }
        jobs.insert(job.clone(), false);
        true
    }

    fn is_wanted(&self, job: &Job) -> bool {
        self.jobs.lock().get(job) == Some(&false)
    }

    /// Stops a job, or all of them; fails if it is not running.
    pub(crate) fn stop(&self, job: &Job) -> Result<()> {
        let mut jobs = self.jobs.lock();
        if *job == Job::of("", "") {
            jobs.values_mut().for_each(|stopping| *stopping = true);
            return Ok(());
        }
        match jobs.get_mut(job).filter(|stopping| !**stopping) {
            Some(stopping) => {
                *stopping = true;
                Ok(())
            }
            None => Err(Error::Invalid(format!("{}{job}", ProfileLoad::NOT_SCHEDULED))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves which jobs run beside each other, and that one that is being stopped still is in the way of another.
    #[test]
    fn jobs_bar_each_other() {
        let profiles = Profiles::default();
        for (keyspace, table, enters) in [
            ("k", "t", true),
            ("k", "t", false),
            ("", "", false),
            ("k", "", true),
            ("k", "u", false),
            ("l", "u", true),
        ] {
            assert_eq!(profiles.enter(&Job::of(keyspace, table)), enters, "{keyspace}.{table}");
        }
        assert!(profiles.stop(&Job::of("k", "nope")).is_err());
        assert!(profiles.stop(&Job::of("k", "t")).is_ok());
        assert!(profiles.stop(&Job::of("k", "t")).is_err());
        assert!(!profiles.enter(&Job::of("k", "t")));
        assert!(profiles.stop(&Job::of("", "")).is_ok());
        assert!(profiles.jobs().iter().all(|(_, stopping)| *stopping));
        assert_eq!(profiles.jobs()[0].0.to_string(), "k.*");
    }

    /// Proves what is refused before anything is sampled.
    #[test]
    fn wrong_plans_are_refused() {
        let asked = |capacity, most, sampler: &str| ProfileLoad {
            id: String::new(),
            samplers: vec![sampler.to_owned()],
            capacity,
            most,
            duration_ms: 1,
            interval_ms: None,
        };
        let is_right = |asked: ProfileLoad| Plan::of(&asked, &[]).is_ok();
        assert!(is_right(asked(256, 10, "READS")) && is_right(asked(1024, 1023, "WRITE_SIZE")));
        assert!(!is_right(asked(0, 0, "READS")) && !is_right(asked(1025, 1, "READS")));
        assert!(!is_right(asked(10, 10, "READS")) && !is_right(asked(10, 1, "NOPE")));
    }
}
