//! How long the statements of clients took, and how they failed: Cassandra's `ClientRequest`.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use halcyon_cql::plan::Plan;
use halcyon_cql::plan::restrictions::Keys;
use halcyon_io::clock::{Instant, now};
use halcyon_metrics::{
    Counter, Kind, Labels, Metric, Reservoir, Sample, Source, Summary, Unit, Value, buckets_below,
};
use halcyon_model::request::Consistency;

use halcyon_schema::catalog::TableKind;

use crate::{Error, QueryOptions, Result};

/// Quarters of powers of two of nanoseconds, up to eighteen minutes.
const BUCKETS: usize = buckets_below(4, 40);

/// The scopes of `ClientRequest`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    RangeSlice,
    CasRead,
    CasWrite,
    Read(Consistency),
    Write(Consistency),
}

/// Scopes without a consistency, in the order of their counters; those of reads and writes follow.
const ALONE: [(Scope, &str); 3] =
    [(Scope::RangeSlice, "RangeSlice"), (Scope::CasRead, "CASRead"), (Scope::CasWrite, "CASWrite")];

const LEVELS: usize = Consistency::ALL.len();

/// The sum of all consistencies, and the scope of each one.
const BY_LEVEL: [(usize, &str, [&str; LEVELS]); 2] = [
    (
        ALONE.len(),
        "Read",
        [
            "Read-ANY",
            "Read-ONE",
            "Read-TWO",
            "Read-THREE",
            "Read-QUORUM",
            "Read-ALL",
            "Read-LOCAL_QUORUM",
            "Read-EACH_QUORUM",
            "Read-SERIAL",
            "Read-LOCAL_SERIAL",
            "Read-LOCAL_ONE",
            "Read-NODE_LOCAL",
        ],
    ),
    (
        ALONE.len() + LEVELS,
        "Write",
        [
            "Write-ANY",
            "Write-ONE",
            "Write-TWO",
            "Write-THREE",
            "Write-QUORUM",
            "Write-ALL",
            "Write-LOCAL_QUORUM",
            "Write-EACH_QUORUM",
            "Write-SERIAL",
            "Write-LOCAL_SERIAL",
            "Write-LOCAL_ONE",
            "Write-NODE_LOCAL",
        ],
    ),
];

const SCOPES: usize = ALONE.len() + 2 * LEVELS;

impl Scope {
    /// `None`: the statement reads and writes no rows.
    fn of(plan: &Plan, options: &QueryOptions<'_>) -> Option<Scope> {
        let level = options.consistency;
        match plan {
            Plan::Select(select) if select.table.kind == TableKind::Virtual => None,
            Plan::Select(_) if level.is_serial() => Some(Scope::CasRead),
            Plan::Select(select) => Some(match select.restrictions.keys {
                Keys::All => Scope::RangeSlice,
                Keys::Columns(_) => Scope::Read(level),
            }),
            Plan::Modification(plan) => Some(Scope::of_writes(plan.has_conditions(), level)),
            Plan::Batch(plan) => Some(Scope::of_writes(
                plan.statements.iter().any(|statement| statement.has_conditions()),
                level,
            )),
            Plan::Other(_) => None,
        }
    }

    fn of_writes(has_conditions: bool, level: Consistency) -> Scope {
        if has_conditions { Scope::CasWrite } else { Scope::Write(level) }
    }

    fn index(self) -> usize {
        match self {
            Scope::RangeSlice => 0,
            Scope::CasRead => 1,
            Scope::CasWrite => 2,
            Scope::Read(level) => ALONE.len() + usize::from(level.code()),
            Scope::Write(level) => ALONE.len() + LEVELS + usize::from(level.code()),
        }
    }
}

/// One shard's, of one scope.
#[derive(Default)]
struct OfScope {
    latency: Reservoir<4, BUCKETS>,
    timeouts: Counter,
    unavailables: Counter,
    failures: Counter,
}

/// What became of a conditional write.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cas {
    /// Another one of the same partition ran.
    pub(crate) contended: bool,
    /// A condition did not hold.
    pub(crate) is_refused: bool,
}

#[derive(Default)]
#[repr(align(128))]
struct OfShard {
    scopes: [OfScope; SCOPES],
    contentions: Reservoir<4, BUCKETS>,
    refused: Counter,
    /// When the last statement ended: nanoseconds of the clock.
    ended: AtomicU64,
}

/// Of all shards; each writes its own.
pub struct ClientRequests(Box<[OfShard]>);

impl ClientRequests {
    pub fn new(shards: usize) -> ClientRequests {
        ClientRequests((0..shards).map(|_| OfShard::default()).collect())
    }

    /// When the last counted statement of a shard ended, in nanoseconds of the clock. Read in the turn in which a statement ends, it is
    /// the end of that statement, or an earlier time if that one was not counted.
    #[inline]
    pub fn last_ended(&self, shard: usize) -> u64 {
        self.0.get(shard).map_or(0, |of| of.ended.load(Relaxed))
    }

    /// Counts a statement or a batch that has ended now.
    pub(crate) fn count<T>(
        &self,
        shard: usize,
        (plan, options): (&Plan, &QueryOptions<'_>),
        began: Instant,
        outcome: &Result<T>,
    ) {
        if let Some(scope) = Scope::of(plan, options) {
            self.count_one(shard, scope, began, outcome);
        }
    }

    /// Counts a BATCH message that has ended now.
    pub(crate) fn count_batch<'a, T>(
        &self,
        shard: usize,
        (mut plans, level): (impl Iterator<Item = &'a Plan>, Consistency),
        began: Instant,
        outcome: &Result<T>,
    ) {
        let is_conditional =
            |plan: &Plan| matches!(plan, Plan::Modification(plan) if plan.has_conditions());
        let scope = Scope::of_writes(plans.any(is_conditional), level);
        self.count_one(shard, scope, began, outcome);
    }

    /// Counts a conditional write whose condition was compared.
    pub(crate) fn count_cas(&self, shard: usize, cas: Cas) {
        let Some(of) = self.0.get(shard) else { return };
        if cas.contended {
            of.contentions.record(1, now());
        }
        if cas.is_refused {
            of.refused.up();
        }
    }

    fn count_one<T>(&self, shard: usize, scope: Scope, began: Instant, outcome: &Result<T>) {
        let Some(own) = self.0.get(shard) else { return };
        let Some(of) = own.scopes.get(scope.index()) else { return };
        match outcome {
            Err(Error::ReadTimeout { .. } | Error::WriteTimeout { .. }) => of.timeouts.up(),
            Err(Error::Unavailable { .. }) => of.unavailables.up(),
            Err(Error::ReadFailure { .. } | Error::WriteFailure { .. }) => of.failures.up(),
            // Refused before anything was read or written.
            Err(_) => return,
            Ok(_) => {}
        }
        let ended = now();
        own.ended.store(ended.as_nanos(), Relaxed);
        let took = ended.as_nanos().saturating_sub(began.as_nanos());
        of.latency.record(took, ended);
    }
}

const fn timer(metric: Metric) -> Metric {
    metric.of(Kind::Timer, Unit::Nanoseconds)
}

const fn meter(name: &'static str, help: &'static str) -> Metric {
    Metric::cassandra("ClientRequest", name, help).of(Kind::Meter, Unit::Count)
}

const TIME: &str = "Statements of clients, from their admission to their outcome.";

const LATENCY: Metric = timer(Metric::cassandra("ClientRequest", "Latency", TIME));
const COUNTED: Metric = timer(Metric::own("ClientRequest", "Latency", TIME));

const DECLARED: [Metric; 8] = [
    LATENCY,
    COUNTED,
    meter("Timeouts", "Statements that were not completed in time."),
    meter("Unavailables", "Statements that wanted more replicas than live."),
    meter("Failures", "Statements that failed while they read or wrote."),
    Metric::cassandra(
        "ClientRequest",
        "ContentionHistogram",
        "Conditional writes that waited for another one.",
    )
    .of(Kind::Histogram, Unit::Count),
    Metric::cassandra(
        "ClientRequest",
        "ConditionNotMet",
        "Conditional writes that were not applied.",
    ),
    Metric::cassandra(
        "ClientRequest",
        "UnfinishedCommit",
        "Always 0: no proposal outlives its statement.",
    ),
];

/// The values of one scope, of all shards.
struct Sums {
    latency: Summary<4, BUCKETS>,
    /// Timeouts, unavailables, failures.
    failed: [u64; 3],
}

impl Sums {
    fn add(&mut self, other: &Sums) {
        self.latency.merge(&other.latency);
        self.failed.iter_mut().zip(other.failed).for_each(|(sum, share)| *sum += share);
    }

    fn show(&self, scope: &str, show: &mut dyn FnMut(Sample<'_>)) {
        let [latency, counted, failed @ ..] = &DECLARED;
        let labels = Labels { scope: Some(scope), ..Labels::default() };
        let value = Value::Distribution(&self.latency);
        show(Sample { metric: latency, labels, value });
        show(Sample { metric: counted, labels, value });
        for (metric, sum) in failed.iter().zip(self.failed) {
            show(Sample { metric, labels, value: Value::Number(sum) });
        }
    }
}

impl ClientRequests {
    fn sums(&self, at: usize) -> Sums {
        let mut sums = Sums { latency: Summary::nothing(), failed: [0; 3] };
        for of in self.0.iter().filter_map(|shard| shard.scopes.get(at)) {
            sums.latency.add(&of.latency, now());
            let shares = [of.timeouts.get(), of.unavailables.get(), of.failures.get()];
            sums.failed.iter_mut().zip(shares).for_each(|(sum, share)| *sum += share);
        }
        sums
    }

    /// Conditional reads take no lock here, and have no condition that could fail.
    fn show_conditional(&self, show: &mut dyn FnMut(Sample<'_>)) {
        let [.., contention, refused, unfinished] = &DECLARED;
        for scope in ["CASRead", "CASWrite"] {
            let labels = Labels { scope: Some(scope), ..Labels::default() };
            let (mut contentions, mut not_met) = (Summary::<4, BUCKETS>::nothing(), 0);
            for of in self.0.iter().filter(|_| scope == "CASWrite") {
                contentions.add(&of.contentions, now());
                not_met += of.refused.get();
            }
            show(Sample { metric: contention, labels, value: Value::Distribution(&contentions) });
            show(Sample { metric: refused, labels, value: Value::Number(not_met) });
            show(Sample { metric: unfinished, labels, value: Value::Number(0) });
        }
    }
}

impl Source for ClientRequests {
    fn declared(&self) -> &'static [Metric] {
        &DECLARED
    }

    fn walk(&self, show: &mut dyn FnMut(Sample<'_>)) {
        for (scope, name) in ALONE {
            self.sums(scope.index()).show(name, show);
        }
        for (first, name, levels) in BY_LEVEL {
            let mut all = Sums { latency: Summary::nothing(), failed: [0; 3] };
            for (level, scope) in levels.iter().enumerate() {
                let sums = self.sums(first + level);
                sums.show(scope, show);
                all.add(&sums);
            }
            all.show(name, show);
        }
        self.show_conditional(show);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that each scope of a consistency has the counters of that consistency.
    #[test]
    fn scopes_are_named_after_their_consistency() {
        for level in Consistency::ALL {
            let at = usize::from(level.code());
            for ((first, name, levels), scope) in
                BY_LEVEL.iter().zip([Scope::Read(level), Scope::Write(level)])
            {
                assert_eq!(levels[at], format!("{name}-{}", level.name()));
                assert_eq!(scope.index(), first + at);
            }
        }
    }

    /// Proves that the scope of all reads is the sum of its consistencies, and that other scopes do not count them.
    #[test]
    fn totals_are_sums() {
        let requests = ClientRequests::new(2);
        for (shard, level) in
            [(0, Consistency::One), (1, Consistency::One), (1, Consistency::Quorum)]
        {
            requests.count_one(shard, Scope::Read(level), now(), &Ok(()));
        }
        let mut shown = std::collections::BTreeMap::new();
        requests.walk(&mut |sample| {
            if let (Value::Distribution(values), Some(scope)) = (sample.value, sample.labels.scope)
                && sample.metric.is_same(&LATENCY)
            {
                shown.insert(scope.to_owned(), values.count());
            }
        });
        let counts = ["Read", "Read-ONE", "Read-QUORUM", "Read-ALL", "Write"].map(|of| shown[of]);
        assert_eq!(counts, [3, 2, 1, 0, 0]);
    }
}
