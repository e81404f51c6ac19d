//! Reads in a stretch of time: what became of those that were due in it, and whether a core stood still meanwhile.
//!
//! ```text
//!   idle          │ full speed               │ afterwards
//!                 └ command                  └ the server says that it is done
//!                 │ switch included                        │
//! ```
//! The last one covers two others, because what comes with a compaction's end falls on either side of it.

use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use halcyon_oracle::Result;
use serde_json::{Value, json};

use crate::keys::{COLD, HOT, Keys};
use crate::latency::{Latencies, Outcome, Sample};
use crate::paced::{Asked, Paced};
use crate::record::{Contender, Measurements, Record, Spread, Turn};
use crate::standstill::{Standstill, since};
use crate::timeline::{self, Meter};

const SLOW_NANOS: u64 = 2_000_000;
const MIB: f64 = 1_048_576.0;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    Idle,
    FullSpeed,
    Afterwards,
    SwitchIncluded,
    Throttled,
}

impl Phase {
    pub(crate) const ALL: [Phase; 5] =
        [Phase::Idle, Phase::FullSpeed, Phase::Afterwards, Phase::SwitchIncluded, Phase::Throttled];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Phase::Idle => "idle",
            Phase::FullSpeed => "full speed",
            Phase::Afterwards => "afterwards",
            Phase::SwitchIncluded => "switch included",
            Phase::Throttled => "throttled",
        }
    }
}

/// A compaction's cost beyond that of the same time without a compaction: reads continue, and a slow compaction has more of them.
/// That is the less of before and afterwards: the JVM's compiler may be busy before, what was hot is read again afterwards.
pub(crate) fn added_by_compaction(
    record: &Record,
    who: &Contender,
    heading: impl Fn(Phase) -> String,
    of: &str,
) -> Option<f64> {
    let median = |phase, key| record.median(&heading(phase), who, key);
    let each_second = |phase| Some(median(phase, of)? / median(phase, "seconds")?);
    let at_rest = each_second(Phase::Idle)?.min(each_second(Phase::Afterwards)?);
    Some(median(Phase::FullSpeed, of)? - at_rest * median(Phase::FullSpeed, "seconds")?)
}

/// What a page's method says of the reads of turns.
pub(crate) fn about_reads(turns: &[&Turn]) -> Value {
    let all = |key: &'static str| turns.iter().filter_map(move |turn| turn.get(key));
    let empty = turns
        .iter()
        .filter_map(|turn| Some(turn.get("hot_empty")? / turn.get("hot_count")?.max(1.0)));
    json!({
        "ran_first": all("generator_ran_first").all(|first| first == 1.0),
        "generator_share": Spread::of(all("generator_cpu_share")).max,
        "failed": all("hot_failed").chain(all("cold_failed")).sum::<f64>(),
        "empty_share": Spread::of(empty).max,
    })
}

/// What is asked, and how long.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    pub(crate) keys: Keys,
    /// Reads per second, hot and cold.
    pub(crate) rate: f64,
    /// Begin with an empty page cache.
    pub(crate) cold: bool,
    pub(crate) idle: Duration,
    pub(crate) afterwards: Duration,
    /// Zero: no throttled compaction.
    pub(crate) throttled: Duration,
    /// Of a JVM.
    pub(crate) warm_up: Duration,
    /// Points of a timeline are so far apart.
    pub(crate) step: Duration,
}

/// Reads run for a moment before anything is measured.
const SETTLES: Duration = Duration::from_secs(1);

impl Schedule {
    /// The hot rows alone, in their order, and the time that takes twice: caches of all contenders take what is read more than once.
    pub(crate) fn all_hot_twice(&self) -> (Keys, Duration) {
        let hot = Keys { sweeps: true, cold_every: 0, ..self.keys };
        (hot, Duration::from_secs_f64(2.0 * self.keys.hot as f64 / self.rate))
    }
}

/// A stretch in which nothing is done but what is asked.
pub(crate) fn rest(time: Duration) -> Result<()> {
    sleep(time);
    Ok(())
}

/// The speed of a compaction, by its uncompressed bytes.
pub(crate) fn raw_mib_per_second(data_bytes: u64, time: Duration) -> f64 {
    data_bytes as f64 / MIB / time.as_secs_f64()
}

/// What was measured of a phase.
pub(crate) struct Stretch {
    pub(crate) phase: Phase,
    pub(crate) figures: Measurements,
    pub(crate) details: Value,
}

/// A stretch that was measured, on the clock of the loop.
pub(crate) struct Span {
    pub(crate) phase: Phase,
    pub(crate) from: Duration,
    pub(crate) until: Duration,
    /// Beside the reads.
    pub(crate) figures: Measurements,
    pub(crate) details: Value,
}

/// What is read while it compacts, and what is measured of it beside the reads.
pub(crate) trait Watched: Sized {
    /// Begins to read.
    fn reads(&self, keys: Keys, seed: u64) -> Result<Paced>;

    /// Measures a stretch in which some work is done.
    fn span(
        &mut self,
        paced: &Paced,
        phase: Phase,
        work: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<Span>;

    /// A major compaction, from its begin to its end.
    fn compact(&mut self) -> Result<()>;

    /// Uncompressed bytes that are compacted.
    fn data_bytes(&self) -> u64;

    /// Reads for a while, and waits for the answers.
    fn read_for(&self, keys: Keys, time: Duration) -> Result<()> {
        let paced = self.reads(keys, 7)?;
        sleep(time);
        paced.stop().map(drop)
    }

    /// Begins to read, after all hot rows were read twice.
    fn settled_reads(&self, schedule: &Schedule) -> Result<Paced> {
        let (hot, twice) = schedule.all_hot_twice();
        self.read_for(hot, twice)?;
        let paced = self.reads(schedule.keys, 1)?;
        sleep(SETTLES);
        Ok(paced)
    }

    /// The stretches around a compaction: idle, at full speed, afterwards, the last two as one. The second has the timeline, in steps,
    /// with what went through the device of the folder.
    fn course(&mut self, schedule: &Schedule, folder: &Path) -> Result<Vec<Stretch>> {
        let Schedule { idle, afterwards, step, .. } = *schedule;
        let meter = Meter::start(folder, step)?;
        let (paced, still) = (self.settled_reads(schedule)?, Standstill::watch());
        let spans = [
            self.span(&paced, Phase::Idle, |_| rest(idle))?,
            self.span(&paced, Phase::FullSpeed, Self::compact)?,
            self.span(&paced, Phase::Afterwards, |_| rest(afterwards))?,
        ];
        let start = paced.start;
        let gaps = since(start, still.stop());
        let (asked, moved) = (paced.stop()?, meter.stop(start)?);
        let [_, compaction, afterwards] = &spans;
        let (from, until) = (compaction.from, compaction.until);
        let whole = Span {
            phase: Phase::SwitchIncluded,
            from,
            until: afterwards.until,
            figures: Measurements::default(),
            details: Value::Null,
        };
        let points = timeline::points(&asked.samples, &moved, step, from);
        let [idle, mut compaction, afterwards] = spans.map(|span| stretch(span, &asked, &gaps));
        let speed = raw_mib_per_second(self.data_bytes(), until - from);
        compaction.figures.add("raw_mib_per_second", speed);
        compaction.details["timeline"] = json!(points);
        Ok(vec![idle, compaction, afterwards, stretch(whole, &asked, &gaps)])
    }
}

/// `gaps`: when a core stood still, on the clock of the loop.
pub(crate) fn stretch(span: Span, asked: &Asked, gaps: &[(Duration, Duration)]) -> Stretch {
    let Span { phase, from, until, mut figures, details } = span;
    let is_undisturbed = |sample: &Sample| {
        sample.class == HOT
            && !gaps.iter().any(|(from, until)| *from <= sample.answered() && sample.due <= *until)
    };
    let within: Vec<&Sample> = asked.between(from, until).collect();
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
        .with("unanswered", asked.unanswered.len() as f64);
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
