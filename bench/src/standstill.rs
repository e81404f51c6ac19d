//! When a core stood still: on each core a thread that goes before all others sleeps for a millisecond and looks how late it wakes up.
//!
//! On a virtual machine the host takes cores away, and the guest's own accounts (`steal` in `/proc/stat`) need not say so. Whatever
//! wanted to run there has waited, whosever program it is. Without the right to go before others nothing is seen.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{JoinHandle, available_parallelism, sleep};
use std::time::{Duration, Instant};

use super::latency::Sample;
use super::process::{own_thread_id, run_first};

const NAP: Duration = Duration::from_millis(1);
/// Timers and interrupts explain less than this.
const LEAST: Duration = Duration::from_millis(2);

/// From when to when.
pub(super) type Gap = (Instant, Instant);

pub(super) struct Standstill {
    stop: Arc<AtomicBool>,
    watching: Vec<JoinHandle<Vec<Gap>>>,
}

impl Standstill {
    pub(super) fn watch() -> Standstill {
        let stop = Arc::new(AtomicBool::new(false));
        let cores = available_parallelism().map_or(1, usize::from);
        let watching = (0..cores).map(|core| {
            let stop = stop.clone();
            std::thread::spawn(move || watch(core, &stop))
        });
        Standstill { watching: watching.collect(), stop }
    }

    /// Of any core, in the order of their beginnings.
    pub(super) fn stop(self) -> Vec<Gap> {
        self.stop.store(true, Relaxed);
        let seen = self.watching.into_iter().flat_map(|thread| thread.join().unwrap_or_default());
        let mut gaps: Vec<Gap> = seen.collect();
        gaps.sort_unstable();
        gaps
    }
}

/// On the clock of a loop.
pub(super) fn since(start: Instant, gaps: Vec<Gap>) -> Vec<(Duration, Duration)> {
    let after = |moment: Instant| moment.saturating_duration_since(start);
    gaps.into_iter().map(|(from, until)| (after(from), after(until))).collect()
}

/// For how long of a request's time any core stood still; `gaps`: in the order of their beginnings, on the clock of the loop.
pub(super) fn met_by(sample: &Sample, gaps: &[(Duration, Duration)]) -> Duration {
    let (mut counted, answered) = (sample.due, sample.answered());
    let mut met = Duration::ZERO;
    for (begin, end) in gaps.iter().take_while(|(begin, _)| *begin < answered) {
        let end = (*end).min(answered);
        met += end.saturating_sub((*begin).max(counted));
        // What two cores share counts once.
        counted = counted.max(end);
    }
    met
}

/// Zero if there was none.
pub(super) fn longest(gaps: &[Gap]) -> Duration {
    gaps.iter().map(|(from, until)| until.duration_since(*from)).max().unwrap_or_default()
}

fn watch(core: usize, stop: &AtomicBool) -> Vec<Gap> {
    let mut gaps = Vec::new();
    if !(stay_on(core) && run_first()) {
        return gaps;
    }
    while !stop.load(Relaxed) {
        let due = Instant::now() + NAP;
        sleep(NAP);
        let now = Instant::now();
        if now.saturating_duration_since(due) >= LEAST {
            gaps.push((due, now));
        }
    }
    gaps
}

fn stay_on(core: usize) -> bool {
    let Some(id) = own_thread_id() else { return false };
    let mut taskset = Command::new("taskset");
    taskset.args(["--cpu-list", "--pid", &core.to_string()]).arg(id);
    taskset.output().is_ok_and(|output| output.status.success())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::latency::Outcome;

    /// What two cores share counts once, and what lies outside of a request's time not at all.
    #[test]
    fn gaps_of_all_cores_are_one_time() {
        let ms = Duration::from_millis;
        let sample = |due, took: u64| Sample {
            due: ms(due),
            nanos: took * 1_000_000,
            class: 0,
            outcome: Outcome::Rows,
        };
        let gaps = [(ms(0), ms(5)), (ms(10), ms(20)), (ms(12), ms(15)), (ms(18), ms(24))];
        for (due, took, met) in [(4, 30, 15), (5, 5, 0), (14, 2, 2), (19, 4, 4), (24, 9, 0)] {
            assert_eq!(met_by(&sample(due, took), &gaps), ms(met), "{due} for {took}");
        }
    }

    /// What is seen lies in the time of the watch, and in order.
    #[test]
    fn gaps_lie_within_the_watch() {
        let began = Instant::now();
        let watch = Standstill::watch();
        sleep(Duration::from_millis(30));
        let gaps = watch.stop();
        assert!(gaps.is_sorted());
        assert!(
            gaps.iter().all(|(from, until)| *from >= began && until.duration_since(*from) >= LEAST)
        );
    }
}
