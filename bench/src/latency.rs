//! What became of single requests, and quantiles.

use std::time::{Duration, Instant};

use serde::Serialize;

use crate::record::Measurements;

/// Longer waits are not calm.
pub(super) const LONG: Duration = Duration::from_millis(10);

/// One request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// When it was due, after the start.
    pub(super) due: Duration,
    pub(super) nanos: u64,
    pub(super) class: u8,
    pub(super) outcome: Outcome,
}

impl Sample {
    pub(super) fn took(&self) -> Duration {
        Duration::from_nanos(self.nanos)
    }

    /// After the start.
    pub(super) fn answered(&self) -> Duration {
        self.due + self.took()
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    Rows,
    Empty,
    Failed,
}

/// In microseconds, as records call them.
#[derive(Clone, Copy, Default, Debug, PartialEq, Serialize)]
pub(super) struct Latencies {
    pub(super) count: u64,
    #[serde(rename = "mean_us")]
    pub(super) mean: f64,
    #[serde(rename = "p50_us")]
    pub(super) p50: f64,
    #[serde(rename = "p99_us")]
    pub(super) p99: f64,
    #[serde(rename = "p99.9_us")]
    pub(super) p999: f64,
    #[serde(rename = "max_us")]
    pub(super) max: f64,
}

impl Latencies {
    pub(super) fn of_samples<'a>(samples: impl IntoIterator<Item = &'a Sample>) -> Latencies {
        Latencies::of(samples.into_iter().map(|sample| sample.nanos).collect())
    }

    /// Of all that were measured, in nanoseconds; nothing is put into buckets.
    pub(super) fn of(mut nanos: Vec<u64>) -> Latencies {
        nanos.sort_unstable();
        let last = nanos.len().saturating_sub(1);
        let at = |share: f64| {
            let index = ((nanos.len() as f64 * share).ceil() as usize).saturating_sub(1);
            nanos.get(index.min(last)).map_or(0.0, |nanos| *nanos as f64 / 1000.0)
        };
        Latencies {
            count: nanos.len() as u64,
            mean: nanos.iter().sum::<u64>() as f64 / 1000.0 / nanos.len().max(1) as f64,
            p50: at(0.5),
            p99: at(0.99),
            p999: at(0.999),
            max: at(1.0),
        }
    }
}

/// Latencies, how many failed or found nothing, how many took long.
pub(super) fn about(to: Measurements, prefix: &str, samples: &[&Sample]) -> Measurements {
    let failed = samples.iter().filter(|sample| sample.outcome != Outcome::Rows).count();
    let long = samples.iter().filter(|sample| sample.took() > LONG).count();
    to.fields(prefix, &Latencies::of_samples(samples.iter().copied()))
        .with(&format!("{prefix}failed"), failed as f64)
        .with(&format!("{prefix}over_10ms"), long as f64)
}

pub(super) fn nanos_since(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// What became of a load.
pub(crate) struct Completed {
    pub(crate) operations: u64,
    pub(crate) seconds: f64,
    pub(crate) latencies: Latencies,
    pub(crate) client_cpu_seconds: f64,
}

impl Completed {
    pub(crate) fn measurements(&self, server_cpu_seconds: f64) -> Measurements {
        let by_operation = |seconds: f64| 1e6 * seconds / self.operations.max(1) as f64;
        Measurements::default()
            .with("per_second", self.operations as f64 / self.seconds.max(1e-9))
            .fields("", &self.latencies)
            .with("server_cpu_us", by_operation(server_cpu_seconds))
            .with("client_cpu_us", by_operation(self.client_cpu_seconds))
            .with("seconds", self.seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_that_were_measured() {
        let latencies = Latencies::of((1..=1000).rev().map(|n| n * 1000).collect());
        let expected = Latencies {
            count: 1000,
            mean: 500.5,
            p50: 500.0,
            p99: 990.0,
            p999: 999.0,
            max: 1000.0,
        };
        assert_eq!(latencies, expected);
        assert_eq!(Latencies::of(vec![7000]).p999, 7.0);
        assert_eq!(Latencies::of(Vec::new()), Latencies::default());
    }
}
