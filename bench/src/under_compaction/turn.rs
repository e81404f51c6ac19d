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
use crate::stretch::{Phase, Schedule, Span, Stretch, Watched, rest, stretch};

pub(super) fn run(making: &Making<'_>, mode: &Mode, schedule: &Schedule) -> Result<Vec<Stretch>> {
    let load = machine::load();
    let mut subject = started(making, mode, schedule)?;
    let was_cold = schedule.cold && drop_page_cache();
    let trace = BlockTrace::under(making.home);
    let trace = trace.inspect_err(|e| eprintln!("bench: no trace of the device: {e}")).ok();
    let mut watched = WatchedServer {
        subject: &mut subject,
        home: making.home,
        trace: trace.as_ref(),
        rate: schedule.rate,
    };
    let mut stretches = watched.course(schedule, making.home)?;
    if !schedule.throttled.is_zero() {
        watched.subject.again(Some(THROTTLE_MIB))?;
        if schedule.cold {
            drop_page_cache();
        }
        stretches.push(watched.throttled(schedule)?);
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
    let paced = reads(subject, keys, rate, 7)?;
    sleep(time);
    paced.stop().map(drop)
}

fn reads(subject: &Subject<'_>, keys: Keys, rate: f64, seed: u64) -> Result<Paced> {
    Paced::start(subject.server()?.port, rate, keys.reads(&subject.table(), seed))
}

struct WatchedServer<'a, 'b> {
    subject: &'a mut Subject<'b>,
    home: &'a Path,
    trace: Option<&'a BlockTrace>,
    /// Reads a second.
    rate: f64,
}

impl Watched for WatchedServer<'_, '_> {
    fn reads(&self, keys: Keys, seed: u64) -> Result<Paced> {
        reads(self.subject, keys, self.rate, seed)
    }

    fn span(
        &mut self,
        paced: &Paced,
        phase: Phase,
        work: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<Span> {
        let gauge = Gauge::begin(self.subject.server()?, self.home, self.trace)?;
        let from = paced.now();
        work(self)?;
        let until = paced.now();
        let (mut figures, details) = gauge.end(self.subject.server()?, self.trace)?;
        if let Some((cached, all)) = self.subject.holds() {
            figures.add("cage_page_cache_bytes", cached as f64);
            figures.add("cage_bytes", all as f64);
        }
        Ok(Span { phase, from, until, figures, details })
    }

    fn compact(&mut self) -> Result<()> {
        self.subject.compact()
    }

    fn data_bytes(&self) -> u64 {
        self.subject.data_bytes()
    }
}

impl WatchedServer<'_, '_> {
    fn throttled(&mut self, schedule: &Schedule) -> Result<Stretch> {
        let (paced, still) = (self.settled_reads(schedule)?, Standstill::watch());
        let span = self.span(&paced, Phase::Throttled, |watched| {
            watched.subject.begin()?;
            rest(schedule.throttled)
        })?;
        let gaps = since(paced.start, still.stop());
        let asked = paced.stop()?;
        Ok(stretch(span, &asked, &gaps))
    }
}
