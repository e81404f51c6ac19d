//! One turn of one server.
//!
//! 1. It is started in its cage and given the set. A JVM compacts half of it first and answers reads for a while.
//! 2. The page cache is dropped, the hot set is read twice in its order.
//! 3. The open loop begins and goes on: an *idle* stretch, a major compaction at *full speed*, a stretch *afterwards*. The last two are
//!    looked at together as well, *switch included*: what comes with the compaction's end falls on either side of it.
//! 4. The server gets the set again, a throttle, and the loop once more: *throttled*. It is stopped in the middle of that compaction.

use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

use halcyon_oracle::Result;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::gauge::Gauge;
use super::keys::{COLD, HOT, Keys};
use super::modes::Mode;
use super::subject::{Making, Subject};
use crate::block_trace::BlockTrace;
use crate::latency::{Latencies, Outcome, Sample};
use crate::machine::{self, Device, drop_page_cache};
use crate::paced::{Asked, Paced};
use crate::record::Measurements;
use crate::standstill::{Gap, Standstill};

/// Reads go on for a moment before anything is measured.
const SETTLES: Duration = Duration::from_secs(1);
const SLOW_NANOS: u64 = 2_000_000;
const MIB: f64 = 1_048_576.0;

/// What is asked, and how long.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    pub(super) keys: Keys,
    /// Reads per second, hot and cold.
    pub(super) rate: f64,
    /// Begin with an empty page cache.
    pub(super) cold: bool,
    pub(super) idle: Duration,
    pub(super) afterwards: Duration,
    pub(super) throttled: Duration,
    /// Of a JVM.
    pub(super) warm_up: Duration,
    /// Points of a timeline are so far apart.
    pub(super) step: Duration,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    Idle,
    FullSpeed,
    Afterwards,
    SwitchIncluded,
    Throttled,
}

impl Phase {
    pub(super) const ALL: [Phase; 5] =
        [Phase::Idle, Phase::FullSpeed, Phase::Afterwards, Phase::SwitchIncluded, Phase::Throttled];

    pub(super) fn name(self) -> &'static str {
        match self {
            Phase::Idle => "idle",
            Phase::FullSpeed => "full speed",
            Phase::Afterwards => "afterwards",
            Phase::SwitchIncluded => "switch included",
            Phase::Throttled => "throttled",
        }
    }
}

/// What was measured of a phase.
pub(super) struct Stretch {
    pub(super) phase: Phase,
    pub(super) figures: Measurements,
    pub(super) details: Value,
}

/// One step of a timeline.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Point(
    /// Seconds since the compaction's begin.
    pub(super) f64,
    /// p99 of hot, of cold and of all reads, and the slowest: µs.
    pub(super) [f64; 4],
    /// Read and written at the device, MiB per second.
    pub(super) f64,
);

/// A stretch that was measured, on the clock of the loop.
struct Span {
    phase: Phase,
    from: Duration,
    until: Duration,
    /// Beside the reads.
    figures: Measurements,
    details: Value,
}

pub(super) fn run(making: &Making<'_>, mode: &Mode, schedule: &Schedule) -> Result<Vec<Stretch>> {
    let load = machine::load();
    let mut subject = Subject::start(making, mode)?;
    if mode.version.is_some() {
        subject.rehearse(making.set.sstables() / 2)?;
        ask(&subject, Keys { cold_every: 0, ..schedule.keys }, schedule.rate, schedule.warm_up)?;
    }
    let was_cold = schedule.cold && drop_page_cache();
    let trace = Device::of(making.home).and_then(|device| BlockTrace::of(&device));
    let trace = trace.inspect_err(|e| eprintln!("bench: no trace of the device: {e}")).ok();
    let mut watched =
        Watched { subject: &mut subject, home: making.home, trace: trace.as_ref(), schedule };
    let mut stretches = watched.at_full_speed()?;
    if !schedule.throttled.is_zero() {
        watched.subject.again_throttled()?;
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

/// Reads for a while, and waits for the answers.
fn ask(subject: &Subject<'_>, keys: Keys, rate: f64, time: Duration) -> Result<()> {
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
        // Caches of all contenders take what is read more than once.
        let twice = Duration::from_secs_f64(2.0 * keys.hot as f64 / rate);
        ask(self.subject, Keys { sweeps: true, cold_every: 0, ..keys }, rate, twice)?;
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
        let start = paced.start;
        let gaps = since(start, still.stop());
        let asked = paced.stop()?;
        let compaction = &spans[1];
        let whole = Span {
            phase: Phase::SwitchIncluded,
            from: compaction.from,
            until: spans[2].until,
            figures: Measurements::default(),
            details: Value::Null,
        };
        let seconds = (compaction.until - compaction.from).as_secs_f64();
        let timeline = timeline(&asked.samples, &meter.stop(start)?, step, compaction.from);
        let mut stretches: Vec<Stretch> =
            spans.into_iter().chain([whole]).map(|span| stretch(span, &asked, &gaps)).collect();
        let rate = self.subject.data_bytes() as f64 / MIB / seconds;
        let compaction = &mut stretches[1];
        compaction.figures.add("raw_mib_per_second", rate);
        compaction.details["timeline"] = json!(timeline);
        Ok(stretches)
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

fn since(start: Instant, gaps: Vec<Gap>) -> Vec<(Duration, Duration)> {
    let after = |moment: Instant| moment.saturating_duration_since(start);
    gaps.into_iter().map(|(from, until)| (after(from), after(until))).collect()
}

fn rest(time: Duration) -> Result<()> {
    sleep(time);
    Ok(())
}

/// `gaps`: when a core stood still, on the clock of the loop.
fn stretch(span: Span, asked: &Asked, gaps: &[(Duration, Duration)]) -> Stretch {
    let Span { phase, from, until, mut figures, details } = span;
    let is_undisturbed = |sample: &Sample| {
        let answered = sample.due + Duration::from_nanos(sample.nanos);
        sample.class == HOT
            && !gaps.iter().any(|(from, until)| *from <= answered && sample.due <= *until)
    };
    let within: Vec<&Sample> =
        asked.samples.iter().filter(|s| (from..until).contains(&s.due)).collect();
    let undisturbed = within.iter().copied().filter(|sample| is_undisturbed(sample));
    let gaps = gaps.iter().filter(|(begin, _)| (from..until).contains(begin));
    let stood_still = gaps.map(|(begin, end)| 1e3 * (*end - *begin).as_secs_f64());
    let seconds = asked.samples.last().map_or(1.0, |sample| sample.due.as_secs_f64());
    figures.add("seconds", (until - from).as_secs_f64());
    figures = answers(figures, "hot_", &within, HOT);
    figures = answers(figures, "cold_", &within, COLD);
    figures = figures
        .fields("all_", &Latencies::of_samples(within.iter().copied()))
        .fields("undisturbed_", &Latencies::of_samples(undisturbed))
        .with("core_stood_still_ms", stood_still.fold(0.0, f64::max))
        .with("generator_cpu_share", asked.cpu_seconds / seconds)
        .with("generator_ran_first", f64::from(u8::from(asked.first)))
        .with("unanswered", asked.unanswered as f64);
    Stretch { phase, figures, details }
}

fn answers(to: Measurements, prefix: &str, samples: &[&Sample], class: u8) -> Measurements {
    let of_class: Vec<&Sample> = samples.iter().copied().filter(|s| s.class == class).collect();
    let with = |outcome: Outcome| of_class.iter().filter(|s| s.outcome == outcome).count() as f64;
    let slow = of_class.iter().filter(|s| s.nanos > SLOW_NANOS).count() as f64;
    to.fields(prefix, &Latencies::of_samples(of_class.iter().copied()))
        .with(&format!("{prefix}share_over_2ms"), slow / of_class.len().max(1) as f64)
        .with(&format!("{prefix}failed"), with(Outcome::Failed))
        .with(&format!("{prefix}empty"), with(Outcome::Empty))
}

fn timeline(
    samples: &[Sample],
    moved: &[(Duration, f64)],
    step: Duration,
    zero: Duration,
) -> Vec<Point> {
    let rounded = |value: f64| (value * 10.0).round() / 10.0;
    let number = |at: Duration| (at.as_nanos() / step.as_nanos().max(1)) as usize;
    let count = samples.last().map_or(0, |sample| number(sample.due));
    let mut steps: Vec<[Vec<u64>; 2]> = vec![Default::default(); count];
    for sample in samples {
        if let Some(nanos) = steps.get_mut(number(sample.due)) {
            nanos[usize::from(sample.class == COLD)].push(sample.nanos);
        }
    }
    let mut points = Vec::new();
    for (number, [hot, cold]) in steps.into_iter().enumerate() {
        let at = (step * number as u32).as_secs_f64();
        let all = Latencies::of([hot.as_slice(), cold.as_slice()].concat());
        let (hot, cold) = (Latencies::of(hot), Latencies::of(cold));
        let device = moved.iter().rev().find(|(moment, _)| moment.as_secs_f64() <= at + 1e-6);
        let at = ((at - zero.as_secs_f64()) * 100.0).round() / 100.0;
        let reads = [hot.p99, cold.p99, all.p99, all.max].map(rounded);
        points.push(Point(at, reads, rounded(device.map_or(0.0, |(_, rate)| *rate))));
    }
    points
}

/// What goes through the device, step by step.
struct Meter {
    stop: Sender<()>,
    reading: JoinHandle<Vec<(Instant, f64)>>,
}

impl Meter {
    fn start(folder: &Path, step: Duration) -> Result<Meter> {
        let device = Device::of(folder)?;
        let (stop, stopped) = channel::<()>();
        let reading = std::thread::spawn(move || {
            let (mut rates, mut before) = (Vec::new(), device.counters());
            let mut at = Instant::now();
            while stopped.recv_timeout(step) == Err(RecvTimeoutError::Timeout) {
                let counters = device.counters();
                let moved = counters.since(&before);
                let bytes = moved.of("device_bytes_read") + moved.of("device_bytes_written");
                let mib = bytes as f64 / MIB;
                rates.push((at, mib / at.elapsed().as_secs_f64()));
                before = counters;
                at = Instant::now();
            }
            rates
        });
        Ok(Meter { stop, reading })
    }

    /// By the time since `start`.
    fn stop(self, start: Instant) -> Result<Vec<(Duration, f64)>> {
        let _ = self.stop.send(());
        let rates = self.reading.join().map_err(|_| "the meter panicked")?;
        Ok(rates
            .into_iter()
            .map(|(at, rate)| (at.saturating_duration_since(start), rate))
            .collect())
    }
}
