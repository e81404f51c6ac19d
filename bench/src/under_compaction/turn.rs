//! One turn of one server.
//!
//! 1. It is started in its cage and given the set. A JVM compacts half of it first and answers reads for a while.
//! 2. The page cache is dropped, the hot set is read twice in its order.
//! 3. The open loop runs from here on: an *idle* stretch, a major compaction at *full speed*, a stretch *afterwards*. The last two are
//!    looked at together as well, *switch included*: what comes with the compaction's end falls on either side of it.
//! 4. The server gets the set again, a throttle, and the loop once more: *throttled*. It is stopped in the middle of that compaction.

use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use halcyon_oracle::Result;

use super::modes::{Mode, THROTTLE_MIB};
use super::subject::{Making, Subject};
use crate::block_trace::BlockTrace;
use crate::gauge::Gauge;
use crate::keys::Keys;
use crate::machine::{self, drop_page_cache};
use crate::paced::Paced;
use crate::standstill::{Standstill, since};
use crate::stretch::{Phase, SETTLES, Schedule, Span, Stretch, course, rest, stretch};
use crate::timeline::Meter;

pub(super) fn run(making: &Making<'_>, mode: &Mode, schedule: &Schedule) -> Result<Vec<Stretch>> {
    let load = machine::load();
    let mut subject = started(making, mode, schedule)?;
    let was_cold = schedule.cold && drop_page_cache();
    let trace = BlockTrace::under(making.home);
    let trace = trace.inspect_err(|e| eprintln!("bench: no trace of the device: {e}")).ok();
    let mut watched =
        Watched { subject: &mut subject, home: making.home, trace: trace.as_ref(), schedule };
    let mut stretches = watched.at_full_speed()?;
    if !schedule.throttled.is_zero() {
        watched.subject.again(Some(THROTTLE_MIB))?;
        if schedule.cold {
            drop_page_cache();
        }
        stretches.extend(watched.throttled()?);
    }
    subject.stop()?;
    for Stretch { figures, .. } in &mut stretches {
        figures.add("cold", f64::from(u8::from(was_cold)));
        figures.add("load_before", load);
    }
    Ok(stretches)
}

/// A server with the set, its compiler, if it has one, warmed up.
pub(super) fn started<'a>(
    making: &'a Making<'_>,
    mode: &Mode,
    schedule: &Schedule,
) -> Result<Subject<'a>> {
    let mut subject = Subject::start(making, mode)?;
    if mode.version.is_some() {
        subject.rehearse(making.set.sstables() / 2)?;
        ask(&subject, Keys { cold_every: 0, ..schedule.keys }, schedule.rate, schedule.warm_up)?;
    }
    Ok(subject)
}

/// Reads for a while, and waits for the answers.
pub(super) fn ask(subject: &Subject<'_>, keys: Keys, rate: f64, time: Duration) -> Result<()> {
    let reads = keys.reads(&subject.table(), 7);
    let paced = Paced::start(subject.server()?.port, rate, reads)?;
    sleep(time);
    paced.stop().map(drop)
}

struct Watched<'a, 'b> {
    subject: &'a mut Subject<'b>,
    home: &'a Path,
    trace: Option<&'a BlockTrace>,
    schedule: &'a Schedule,
}

impl Watched<'_, '_> {
    fn begin(&self) -> Result<Paced> {
        let Schedule { keys, rate, .. } = *self.schedule;
        let (hot, twice) = self.schedule.all_hot_twice();
        ask(self.subject, hot, rate, twice)?;
        let reads = keys.reads(&self.subject.table(), 1);
        let paced = Paced::start(self.subject.server()?.port, rate, reads)?;
        sleep(SETTLES);
        Ok(paced)
    }

    fn stretch(
        &mut self,
        paced: &Paced,
        phase: Phase,
        work: impl FnOnce(&mut Subject<'_>) -> Result<()>,
    ) -> Result<Span> {
        let gauge = Gauge::begin(self.subject.server()?, self.home, self.trace)?;
        let from = paced.now();
        work(self.subject)?;
        let until = paced.now();
        let (mut figures, details) = gauge.end(self.subject.server()?, self.trace)?;
        if let Some((cached, all)) = self.subject.holds() {
            figures.add("cage_page_cache_bytes", cached as f64);
            figures.add("cage_bytes", all as f64);
        }
        Ok(Span { phase, from, until, figures, details })
    }

    fn at_full_speed(&mut self) -> Result<Vec<Stretch>> {
        let Schedule { idle, afterwards, step, .. } = *self.schedule;
        let meter = Meter::start(self.home, step)?;
        let (paced, still) = (self.begin()?, Standstill::watch());
        let spans = [
            self.stretch(&paced, Phase::Idle, |_| rest(idle))?,
            self.stretch(&paced, Phase::FullSpeed, |subject| subject.compact())?,
            self.stretch(&paced, Phase::Afterwards, |_| rest(afterwards))?,
        ];
        let (start, data_bytes) = (paced.start, self.subject.data_bytes());
        let gaps = since(start, still.stop());
        let asked = paced.stop()?;
        Ok(course(spans, data_bytes, &asked, &gaps, (&meter.stop(start)?, step)))
    }

    fn throttled(&mut self) -> Result<Option<Stretch>> {
        let time = self.schedule.throttled;
        let (paced, still) = (self.begin()?, Standstill::watch());
        let span = self.stretch(&paced, Phase::Throttled, |subject| {
            subject.begin()?;
            rest(time)
        })?;
        let gaps = since(paced.start, still.stop());
        let asked = paced.stop()?;
        Ok(Some(stretch(span, &asked, &gaps)))
    }
}
