//! Stalls, each by its cause.
//!
//! ```text
//!   requests     ──   ─   ─────────       ─── ─      under way, of those that took over 5 ms
//!   stalls            [───────────]       [───]      their union
//!   evidence              ▒▒▒ device       ▒ core    what else was seen in that time
//! ```
//! 1. Where a core stood still, the host took it away: all programs that were to run there waited.
//! 2. Else, where the device had a request for 4 ms or longer, it was the device: because of a discard where it worked on one.
//! 3. Else it was the server itself (a garbage collector, a queue of its own), or a throttle before the device.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::latency::Sample;
use crate::record::Measurements;

/// Requests that take longer stall.
const SLOW: Duration = Duration::from_millis(5);

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Cause {
    Core,
    Discard,
    Device,
    Server,
}

impl Cause {
    pub(super) const ALL: [Cause; 4] = [Cause::Core, Cause::Discard, Cause::Device, Cause::Server];

    /// In records.
    fn name(self) -> &'static str {
        match self {
            Cause::Core => "core",
            Cause::Discard => "discard",
            Cause::Device => "device",
            Cause::Server => "server",
        }
    }
}

/// On the clock of the requests: from when to when.
pub(super) struct Evidence {
    pub(super) cores: Vec<(Duration, Duration)>,
    pub(super) device: Vec<(Duration, Duration)>,
    pub(super) discards: Vec<(Duration, Duration)>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Stall {
    /// Since the measured time began.
    pub(super) at_s: f64,
    pub(super) ms: f64,
    pub(super) requests: u64,
    pub(super) cause: Cause,
}

impl Stall {
    /// In the order of their beginnings.
    pub(super) fn all(samples: &[&Sample], zero: Duration, evidence: &Evidence) -> Vec<Stall> {
        let slow = samples.iter().filter(|sample| Duration::from_nanos(sample.nanos) > SLOW);
        let mut times: Vec<(Duration, Duration, u64)> = Vec::new();
        // Samples lie in the order in which they were due.
        for Sample { due, nanos, .. } in slow {
            let until = *due + Duration::from_nanos(*nanos);
            match times.last_mut() {
                Some((_, last, requests)) if due <= last => {
                    *last = until.max(*last);
                    *requests += 1;
                }
                _ => times.push((*due, until, 1)),
            }
        }
        let stalls = times.into_iter().map(|(from, until, requests)| Stall {
            at_s: rounded(from.saturating_sub(zero).as_secs_f64(), 1e3),
            ms: rounded(1e3 * (until - from).as_secs_f64(), 1e2),
            requests,
            cause: evidence.of(from, until),
        });
        stalls.collect()
    }
}

fn rounded(value: f64, by: f64) -> f64 {
    (value * by).round() / by
}

impl Evidence {
    fn of(&self, from: Duration, until: Duration) -> Cause {
        let meets = |times: &[(Duration, Duration)]| {
            times.iter().any(|(begin, end)| *begin <= until && from <= *end)
        };
        match (meets(&self.cores), meets(&self.device)) {
            (true, _) => Cause::Core,
            (false, true) if meets(&self.discards) => Cause::Discard,
            (false, true) => Cause::Device,
            (false, false) => Cause::Server,
        }
    }
}

/// How many there were, and of each cause how many and the longest.
pub(super) fn counted(to: Measurements, prefix: &str, stalls: &[Stall]) -> Measurements {
    let mut figures = to.with(&format!("{prefix}stalls"), stalls.len() as f64);
    for cause in Cause::ALL {
        let of = stalls.iter().filter(|stall| stall.cause == cause).map(|stall| stall.ms);
        figures.add(&format!("{prefix}stalls_{}", cause.name()), of.clone().count() as f64);
        figures.add(&format!("{prefix}longest_{}_ms", cause.name()), of.fold(0.0, f64::max));
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::latency::Outcome;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn sample(due: u64, took: u64) -> Sample {
        let nanos = took * 1_000_000;
        Sample { due: ms(due), nanos, class: 0, outcome: Outcome::Rows }
    }

    /// What overlaps is one stall, and its cause is the first that was seen in its time.
    #[test]
    fn stalls_have_causes() {
        let samples = [
            sample(1010, 6),
            sample(1012, 30),
            sample(1013, 1),
            sample(1100, 8),
            sample(1200, 7),
            sample(1300, 5),
            sample(1400, 20),
        ];
        let evidence = Evidence {
            cores: vec![(ms(1040), ms(1043))],
            device: vec![(ms(1000), ms(1041)), (ms(1050), ms(1100)), (ms(1403), ms(1419))],
            discards: vec![(ms(1204), ms(1206)), (ms(1402), ms(1418))],
        };
        let stall = |at_s, ms, requests, cause| Stall { at_s, ms, requests, cause };
        let expected = [
            stall(0.01, 32.0, 2, Cause::Core),
            stall(0.1, 8.0, 1, Cause::Device),
            stall(0.2, 7.0, 1, Cause::Server),
            stall(0.4, 20.0, 1, Cause::Discard),
        ];
        let samples: Vec<&Sample> = samples.iter().collect();
        assert_eq!(Stall::all(&samples, ms(1000), &evidence), expected);
    }
}
