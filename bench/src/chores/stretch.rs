//! The reads of a stretch of time, all of them, and those that the host did not keep waiting.
//!
//! A read is *disturbed* if a core stood still in its time, and if it took 10 ms or less beside that: so a short gap within a long wait
//! excuses nothing.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::latency::{LONG, Sample, about};
use crate::machine;
use crate::paced::Asked;
use crate::record::Measurements;
use crate::standstill::met_by;
use crate::timeline::slowest;

/// Of a timeline.
pub(super) const STEP: Duration = Duration::from_millis(250);

/// When a core stood still, on the clock of the reads.
type Gaps = [(Duration, Duration)];

/// A stretch that was measured, on the clock of the reads.
pub(super) struct Stretch {
    pub(super) heading: &'static str,
    /// The command.
    pub(super) from: Duration,
    /// The answer.
    pub(super) done: Duration,
    pub(super) until: Duration,
    /// Beside the reads.
    pub(super) figures: Measurements,
    pub(super) details: Value,
}

fn is_undisturbed(sample: &Sample, gaps: &Gaps) -> bool {
    let met = met_by(sample, gaps);
    met.is_zero() || sample.took().saturating_sub(met) > LONG
}

/// From the begin of the first stretch to the end of the last one.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Timeline {
    /// The slowest read of each `STEP`, in ms.
    pub(super) slowest: Vec<f64>,
    pub(super) slowest_undisturbed: Vec<f64>,
    /// The headings, with the seconds at which the command came, and the answer.
    pub(super) stretches: Vec<(String, f64, f64)>,
}

impl Timeline {
    pub(super) fn of(stretches: &[Stretch], asked: &Asked, gaps: &Gaps) -> Timeline {
        let (Some(first), Some(last)) = (stretches.first(), stretches.last()) else {
            return Timeline::default();
        };
        let (from, until) = (first.from, last.until);
        let slowest =
            |samples: &[&Sample]| slowest(samples, from, (until - from).as_secs_f64(), STEP);
        let all: Vec<&Sample> = asked.between(from, until).collect();
        let undisturbed = all.iter().copied().filter(|sample| is_undisturbed(sample, gaps));
        let undisturbed: Vec<&Sample> = undisturbed.collect();
        let at = |moment: Duration| ((moment - from).as_secs_f64() * 1e3).round() / 1e3;
        let times = |of: &Stretch| (of.heading.to_owned(), at(of.from), at(of.done));
        Timeline {
            slowest_undisturbed: slowest(&undisturbed),
            slowest: slowest(&all),
            stretches: stretches.iter().map(times).collect(),
        }
    }
}

impl Stretch {
    pub(super) fn measured(self, asked: &Asked, gaps: &Gaps) -> (Measurements, Value) {
        let Stretch { from, done, until, figures, details, .. } = self;
        let within: Vec<&Sample> = asked.between(from, until).collect();
        let undisturbed: Vec<&Sample> =
            within.iter().copied().filter(|sample| is_undisturbed(sample, gaps)).collect();
        let disturbed = within.len() - undisturbed.len();
        let gaps = gaps.iter().filter(|(begin, _)| (from..until).contains(begin));
        let stood_still = gaps.map(|(begin, end)| 1e3 * (*end - *begin).as_secs_f64());
        let unanswered = asked.unanswered.iter().filter(|due| (from..until).contains(*due));
        let figures = figures
            .with("took_seconds", (done - from).as_secs_f64())
            .with("unanswered", unanswered.count() as f64)
            .with("cores_stood_still", stood_still.clone().count() as f64)
            .with("core_stood_still_ms", stood_still.fold(0.0, f64::max))
            .with("disturbed_share", disturbed as f64 / within.len().max(1) as f64)
            .with("load", machine::load())
            .with("generator_ran_first", f64::from(u8::from(asked.first)));
        let figures = about(figures, "read_", &within);
        (about(figures, "undisturbed_", &undisturbed), details)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::latency::Outcome;

    /// A gap excuses what it explains: a read that takes long beside it is undisturbed, as is one that met none.
    #[test]
    fn a_short_gap_does_not_excuse_a_long_wait() {
        let ms = Duration::from_millis;
        let gaps = [(ms(100), ms(103)), (ms(200), ms(230))];
        for (due, took, undisturbed) in
            [(90, 5, true), (99, 4, false), (95, 14, true), (199, 40, false), (199, 42, true)]
        {
            let nanos = took * 1_000_000;
            let sample = Sample { due: ms(due), nanos, class: 0, outcome: Outcome::Rows };
            assert_eq!(is_undisturbed(&sample, &gaps), undisturbed, "{due} for {took}");
        }
    }
}
