//! A turn in which `latte` reads: hot rows only, at the rate of our own loop.
//!
//! ```text
//!   latte: idle        latte: switch included
//!   ├──────────────┤   ├──────────────────────────┬──────────────┤ SIGINT
//!                      └ command                  └ compacted    └ some seconds later
//! ```
//! 1. Each stretch is one run of latte and counts as a whole. The second begins with the command, a few reads before it: latte says when
//!    it begins. Its end is not known before, so latte runs until it is stopped.
//! 2. *Warm*: all hot rows were read twice before the first stretch, and the second follows it. *Half-warm*: half of them were, before
//!    each stretch. Before that the server gets the set again, because the first stretch, and the warm-up of a JVM, read the other half
//!    too: a server that is idle and one that compacts meet the same rows for the first time.
//! 3. Latte runs before all others, as our own loop does. Where more than a second's reads wait it asks no more until answers come.

use std::time::{Duration, Instant};

use halcyon_oracle::Result;
use serde_json::{Value, json};

use super::modes::Mode;
use super::subject::{Making, Subject};
use super::turn::{ask, started};
use crate::keys::Keys;
use crate::latte::{Latte, Report, Running, Work};
use crate::machine::{self, drop_page_cache};
use crate::record::Measurements;
use crate::standstill::{Standstill, longest};
use crate::stretch::{Phase, Schedule, Stretch, raw_mib_per_second, rest};
use crate::timeline::Point;

const SCRIPT: &str = include_str!("by_latte.rn");

/// How many of the hot rows were read before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Warmth {
    All,
    Half,
}

impl Warmth {
    pub(super) const ALL: [Warmth; 2] = [Warmth::All, Warmth::Half];

    pub(super) fn name(self) -> &'static str {
        match self {
            Warmth::All => "warm",
            Warmth::Half => "half-warm",
        }
    }

    /// Behind the phase, in headings.
    pub(super) fn suffix(self) -> &'static str {
        match self {
            Warmth::All => ", latte",
            Warmth::Half => ", latte, half-warm",
        }
    }
}

pub(super) fn run(
    making: &Making<'_>,
    mode: &Mode,
    schedule: &Schedule,
    latte: &Latte,
    warmth: Warmth,
) -> Result<Vec<Stretch>> {
    let load = machine::load();
    let mut asked = Asked { subject: started(making, mode, schedule)?, schedule, latte, warmth };
    asked.warm()?;
    let mut idle = asked.idle()?;
    if warmth == Warmth::Half {
        asked.warm()?;
    }
    let mut whole = asked.switch_included()?;
    asked.subject.stop()?;
    // Drawn before the command.
    let before = idle.figures.get("seconds").unwrap_or(0.0);
    idle.points.iter_mut().for_each(|point| point.0 -= before);
    let points: Vec<Point> = idle.points.into_iter().chain(whole.points).collect();
    whole.figures.add("load_before", load);
    Ok(vec![
        Stretch { phase: Phase::Idle, figures: idle.figures, details: Value::Null },
        Stretch {
            phase: Phase::SwitchIncluded,
            figures: whole.figures,
            details: json!({ "timeline": points }),
        },
    ])
}

struct Asked<'a, 'b> {
    subject: Subject<'b>,
    schedule: &'a Schedule,
    latte: &'a Latte,
    warmth: Warmth,
}

/// One run of latte.
struct Counted {
    figures: Measurements,
    points: Vec<Point>,
}

impl Asked<'_, '_> {
    fn warm(&mut self) -> Result<()> {
        if self.warmth == Warmth::Half {
            self.subject.again(None)?;
        }
        if self.schedule.cold {
            drop_page_cache();
        }
        let keys = self.schedule.keys;
        let hot = if self.warmth == Warmth::Half { keys.hot / 2 } else { keys.hot };
        let half = Schedule { keys: Keys { hot, ..keys }, ..self.schedule.clone() };
        let (hot, twice) = half.all_hot_twice();
        ask(&self.subject, hot, half.rate, twice)
    }

    /// Latte, once it reads, and whether it runs before all others.
    fn reading(&self, time: Option<Duration>) -> Result<(Running, bool)> {
        let Schedule { keys, rate, step, .. } = *self.schedule;
        let statement = Keys::statement(&self.subject.table());
        let parameters =
            vec![("statement", format!("\"{statement}\"")), ("hot", keys.hot.to_string())];
        let mut running = self.latte.start(&Work {
            server: self.subject.server()?,
            script: SCRIPT,
            function: "read",
            parameters,
            // A second's: if the server stands still for less, no read waits unsent and uncounted.
            in_flight: rate.ceil() as usize,
            rate: Some(rate),
            time,
            step,
        })?;
        let first = running.put_first();
        running.wait_for_begin()?;
        Ok((running, first))
    }

    fn idle(&self) -> Result<Counted> {
        let still = Standstill::watch();
        let (running, first) = self.reading(Some(self.schedule.idle))?;
        Ok(counted(&running.report()?, first, still))
    }

    fn switch_included(&mut self) -> Result<Counted> {
        let still = Standstill::watch();
        let (running, first) = self.reading(None)?;
        let began = Instant::now();
        self.subject.compact()?;
        let compacted = began.elapsed();
        rest(self.schedule.afterwards)?;
        let mut counted = counted(&running.stop()?, first, still);
        let speed = raw_mib_per_second(self.subject.data_bytes(), compacted);
        counted.figures.add("compaction_seconds", compacted.as_secs_f64());
        counted.figures.add("raw_mib_per_second", speed);
        Ok(counted)
    }
}

fn counted(report: &Report, first: bool, still: Standstill) -> Counted {
    let Report { completed, rows, intervals } = report;
    let seconds = completed.seconds.max(1e-9);
    let figures = Measurements::default()
        .fields("hot_", &completed.latencies)
        .with("hot_empty", completed.operations.saturating_sub(*rows) as f64)
        .with("seconds", completed.seconds)
        .with("per_second", completed.operations as f64 / seconds)
        .with("client_cpu_share", completed.client_cpu_seconds / seconds)
        .with("generator_ran_first", f64::from(u8::from(first)))
        .with("core_stood_still_ms", 1e3 * longest(&still.stop()).as_secs_f64());
    // No cold reads, and no figures of the device.
    let point = |at, p99, max| Point(at, [p99, 0.0, p99, max], 0.0);
    // An interval without an answer has no latency, and not one of zero.
    let answered = intervals.iter().filter(|one| one.max > 0.0);
    let points = answered.map(|one| point(one.at, one.p99, one.max)).collect();
    Counted { figures, points }
}
