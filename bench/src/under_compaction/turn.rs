//! One turn of one server.
//!
//! 1. It is started in its cage and given the set. A JVM compacts half of it first and answers reads for a while.
//! 2. The page cache is dropped, the hot set is read twice in its order.
//! 3. The open loop begins and goes on: an *idle* stretch, a major compaction at *full speed*, a stretch *afterwards*.
//! 4. The server gets the set again, a throttle, and the loop once more: *throttled*. It is stopped in the middle of that compaction.

use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

use super::gauge::{Gauge, Measured};
use super::keys::{COLD, HOT, Keys};
use super::modes::Mode;
use super::subject::{Making, Subject};
use crate::Result;
use crate::block_trace::BlockTrace;
use crate::contender::Contender;
use crate::latency::Latencies;
use crate::machine::{self, Device, drop_page_cache};
use crate::paced::{Asked, Outcome, Paced, Sample};
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
    Throttled,
}

impl Phase {
    pub(super) const ALL: [Phase; 4] =
        [Phase::Idle, Phase::FullSpeed, Phase::Afterwards, Phase::Throttled];

    pub(super) fn name(self) -> &'static str {
        match self {
            Phase::Idle => "idle",
            Phase::FullSpeed => "full speed",
            Phase::Afterwards => "afterwards",
            Phase::Throttled => "throttled",
        }
    }
}

/// Reads of one kind in a stretch of time.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Answers {
    pub(super) latencies: Latencies,
    /// The share that took longer than 2 ms.
    pub(super) slow: f64,
    pub(super) failed: u64,
    pub(super) empty: u64,
}

pub(super) struct Stretch {
    pub(super) phase: Phase,
    pub(super) seconds: f64,
    pub(super) hot: Answers,
    pub(super) cold: Answers,
    /// Hot and cold.
    pub(super) all: Latencies,
    /// Hot reads that no core's standing still kept waiting.
    pub(super) undisturbed: Latencies,
    /// Milliseconds that a core stood still, at the longest.
    pub(super) standstill: f64,
    pub(super) measured: Measured,
    /// In the cage at the end: page cache, and everything.
    pub(super) held: Option<(u64, u64)>,
}

/// One step of a timeline.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    /// Seconds since the compaction's begin.
    pub(super) at: f64,
    pub(super) hot_p99: f64,
    pub(super) cold_p99: f64,
    pub(super) all_p99: f64,
    pub(super) max: f64,
    /// Read and written at the device, MiB per second.
    pub(super) device: f64,
}

pub(super) struct Turn {
    pub(super) contender: Contender,
    pub(super) memory: Option<u64>,
    pub(super) stretches: Vec<Stretch>,
    pub(super) timeline: Vec<Point>,
    /// Uncompressed.
    pub(super) bytes: u64,
    /// CPU seconds of the generator for each second.
    pub(super) generator_cpu: f64,
    pub(super) generator_first: bool,
    pub(super) unanswered: u64,
    pub(super) was_cold: bool,
    pub(super) load: f64,
}

impl Turn {
    pub(super) fn of(&self, phase: Phase) -> Option<&Stretch> {
        self.stretches.iter().find(|stretch| stretch.phase == phase)
    }

    /// MiB of raw rows by second, of the compaction that came to its end.
    pub(super) fn rate(&self) -> f64 {
        let seconds = self.of(Phase::FullSpeed).map_or(f64::INFINITY, |stretch| stretch.seconds);
        self.bytes as f64 / MIB / seconds
    }
}

/// A stretch that was measured, on the clock of the loop.
struct Span {
    phase: Phase,
    from: Duration,
    until: Duration,
    measured: Measured,
    held: Option<(u64, u64)>,
}

pub(super) fn run(making: &Making<'_>, mode: &Mode, schedule: &Schedule) -> Result<Turn> {
    let load = machine::load();
    let making = &Making { memory: making.memory.map(|bytes| bytes / mode.share), ..*making };
    let mut subject = Subject::start(making, mode)?;
    if mode.version.is_some() {
        subject.rehearse(making.set.sstables() / 2)?;
        ask(&subject, Keys { cold_every: 0, ..schedule.keys }, schedule.rate, schedule.warm_up)?;
    }
    let was_cold = schedule.cold && drop_page_cache();
    let mut turn = Turn {
        contender: mode.contender.clone(),
        memory: making.memory,
        stretches: Vec::new(),
        timeline: Vec::new(),
        bytes: making.set.data_bytes(),
        generator_cpu: 0.0,
        generator_first: true,
        unanswered: 0,
        was_cold,
        load,
    };
    let trace = Device::of(making.home).and_then(|device| BlockTrace::of(&device));
    let trace = trace.inspect_err(|e| eprintln!("bench: no trace of the device: {e}")).ok();
    let mut watched =
        Watched { subject: &mut subject, home: making.home, trace: trace.as_ref(), schedule };
    watched.at_full_speed(&mut turn)?;
    if !schedule.throttled.is_zero() {
        watched.subject.again_throttled()?;
        if schedule.cold {
            drop_page_cache();
        }
        watched.throttled(&mut turn)?;
    }
    subject.stop()?;
    Ok(turn)
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
        // Everybody's caches take what is read again and again; twice is again.
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
        let measured = gauge.end(self.subject.server()?, self.trace)?;
        Ok(Span { phase, from, until, measured, held: self.subject.holds() })
    }

    fn at_full_speed(&mut self, turn: &mut Turn) -> Result<()> {
        let Schedule { idle, afterwards, .. } = *self.schedule;
        let meter = Meter::start(self.home, self.schedule.step)?;
        let (paced, still) = (self.begin()?, Standstill::watch());
        let spans = [
            self.stretch(&paced, Phase::Idle, |_| rest(idle))?,
            self.stretch(&paced, Phase::FullSpeed, |subject| subject.compact())?,
            self.stretch(&paced, Phase::Afterwards, |_| rest(afterwards))?,
        ];
        let start = paced.start;
        let gaps = since(start, still.stop());
        let asked = paced.stop()?;
        let zero = spans[1].from;
        let moved = meter.stop(start)?;
        turn.timeline = timeline(&asked.samples, &moved, self.schedule.step, zero);
        turn.take(asked, spans, &gaps);
        Ok(())
    }

    fn throttled(&mut self, turn: &mut Turn) -> Result<()> {
        let time = self.schedule.throttled;
        let (paced, still) = (self.begin()?, Standstill::watch());
        let span = self.stretch(&paced, Phase::Throttled, |subject| {
            subject.begin()?;
            rest(time)
        })?;
        let gaps = since(paced.start, still.stop());
        let asked = paced.stop()?;
        turn.take(asked, [span], &gaps);
        Ok(())
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

impl Turn {
    /// `gaps`: when a core stood still, on the clock of the loop.
    fn take(
        &mut self,
        asked: Asked,
        spans: impl IntoIterator<Item = Span>,
        gaps: &[(Duration, Duration)],
    ) {
        let is_undisturbed = |sample: &&&Sample| {
            let answered = sample.due + Duration::from_nanos(sample.nanos);
            sample.class == HOT
                && !gaps.iter().any(|(from, until)| *from <= answered && sample.due <= *until)
        };
        let seconds = asked.samples.last().map_or(1.0, |sample| sample.due.as_secs_f64());
        self.generator_cpu = self.generator_cpu.max(asked.cpu_seconds / seconds);
        self.generator_first &= asked.first;
        self.unanswered += asked.unanswered;
        for Span { phase, from, until, measured, held } in spans {
            let within: Vec<&Sample> =
                asked.samples.iter().filter(|s| (from..until).contains(&s.due)).collect();
            self.stretches.push(Stretch {
                phase,
                seconds: (until - from).as_secs_f64(),
                hot: answers(&within, HOT),
                cold: answers(&within, COLD),
                all: Latencies::of(within.iter().map(|sample| sample.nanos).collect()),
                undisturbed: Latencies::of(
                    within.iter().filter(is_undisturbed).map(|sample| sample.nanos).collect(),
                ),
                standstill: gaps
                    .iter()
                    .filter(|(begin, _)| (from..until).contains(begin))
                    .map(|(begin, end)| 1e3 * (*end - *begin).as_secs_f64())
                    .fold(0.0, f64::max),
                measured,
                held,
            });
        }
    }
}

fn answers(samples: &[&Sample], class: u8) -> Answers {
    let of_class: Vec<&&Sample> = samples.iter().filter(|s| s.class == class).collect();
    let with = |outcome: Outcome| of_class.iter().filter(|s| s.outcome == outcome).count() as u64;
    let slow = of_class.iter().filter(|s| s.nanos > SLOW_NANOS).count();
    Answers {
        slow: slow as f64 / of_class.len().max(1) as f64,
        failed: with(Outcome::Failed),
        empty: with(Outcome::Empty),
        latencies: Latencies::of(of_class.iter().map(|sample| sample.nanos).collect()),
    }
}

fn timeline(
    samples: &[Sample],
    moved: &[(Duration, f64)],
    step: Duration,
    zero: Duration,
) -> Vec<Point> {
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
        points.push(Point {
            at: at - zero.as_secs_f64(),
            hot_p99: hot.p99,
            cold_p99: cold.p99,
            all_p99: all.p99,
            max: all.max,
            device: device.map_or(0.0, |(_, rate)| *rate),
        });
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
                let moved = counters.since(before);
                let mib = (moved.bytes_read + moved.bytes_written) as f64 / MIB;
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
