//! How long the statements of clients took, and how they failed: Cassandra's `ClientRequest`.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use halcyon_cql::plan::Plan;
use halcyon_cql::plan::restrictions::Keys;
use halcyon_io::clock::{Instant, now};
use halcyon_metrics::{
    Counter, Counts, Histogram, Kind, Labels, Metric, Reservoir, Sample, Source, Summary, Unit,
    Value, buckets_below,
};

use halcyon_schema::catalog::TableKind;

use crate::{Error, QueryOptions, Result};

/// Quarters of powers of two of nanoseconds, up to eighteen minutes.
const BUCKETS: usize = buckets_below(4, 40);

/// The scopes of `ClientRequest`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    Read,
    RangeSlice,
    Write,
    CasRead,
    CasWrite,
}

const SCOPES: [(Scope, &str); 5] = [
    (Scope::Read, "Read"),
    (Scope::RangeSlice, "RangeSlice"),
    (Scope::Write, "Write"),
    (Scope::CasRead, "CASRead"),
    (Scope::CasWrite, "CASWrite"),
];

impl Scope {
    /// `None`: the statement reads and writes no rows.
    fn of(plan: &Plan, options: &QueryOptions<'_>) -> Option<Scope> {
        match plan {
            Plan::Select(select) if select.table.kind == TableKind::Virtual => None,
            Plan::Select(_) if options.consistency.is_serial() => Some(Scope::CasRead),
            Plan::Select(select) => Some(match select.restrictions.keys {
                Keys::All => Scope::RangeSlice,
                Keys::Columns(_) => Scope::Read,
            }),
            Plan::Modification(plan) => Some(Scope::of_writes(plan.has_conditions())),
            Plan::Batch(plan) => Some(Scope::of_writes(
                plan.statements.iter().any(|statement| statement.has_conditions()),
            )),
            Plan::Other(_) => None,
        }
    }

    fn of_writes(has_conditions: bool) -> Scope {
        if has_conditions { Scope::CasWrite } else { Scope::Write }
    }
}

/// One shard's, of one scope.
#[derive(Default)]
struct OfScope {
    /// Since the start, for histograms of which a client takes the difference.
    counts: Histogram<4, BUCKETS>,
    /// Of the last minutes.
    recent: Reservoir<4, BUCKETS>,
    timeouts: Counter,
    unavailables: Counter,
    failures: Counter,
}

#[derive(Default)]
#[repr(align(128))]
struct OfShard {
    scopes: [OfScope; SCOPES.len()],
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
        mut plans: impl Iterator<Item = &'a Plan>,
        began: Instant,
        outcome: &Result<T>,
    ) {
        let is_conditional =
            |plan: &Plan| matches!(plan, Plan::Modification(plan) if plan.has_conditions());
        let scope = Scope::of_writes(plans.any(is_conditional));
        self.count_one(shard, scope, began, outcome);
    }

    fn count_one<T>(&self, shard: usize, scope: Scope, began: Instant, outcome: &Result<T>) {
        let Some(OfShard { scopes, ended: last_ended }) = self.0.get(shard) else { return };
        let Some(of) = scopes.get(scope as usize) else { return };
        match outcome {
            Err(Error::ReadTimeout { .. } | Error::WriteTimeout { .. }) => of.timeouts.up(),
            Err(Error::Unavailable { .. }) => of.unavailables.up(),
            Err(Error::ReadFailure { .. } | Error::WriteFailure { .. }) => of.failures.up(),
            // Refused before anything was read or written.
            Err(_) => return,
            Ok(_) => {}
        }
        let ended = now();
        last_ended.store(ended.as_nanos(), Relaxed);
        let took = ended.as_nanos().saturating_sub(began.as_nanos());
        of.counts.record(took);
        of.recent.record(took, ended);
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

const DECLARED: [Metric; 5] = [
    LATENCY,
    COUNTED,
    meter("Timeouts", "Statements that were not completed in time."),
    meter("Unavailables", "Statements that wanted more replicas than live."),
    meter("Failures", "Statements that failed while they read or wrote."),
];

impl Source for ClientRequests {
    fn declared(&self) -> &'static [Metric] {
        &DECLARED
    }

    fn walk(&self, show: &mut dyn FnMut(Sample<'_>)) {
        let [latency, counted, timeouts, unavailables, failures] = &DECLARED;
        for (at, (_, scope)) in SCOPES.iter().enumerate() {
            let labels = Labels { scope: Some(scope), ..Labels::default() };
            let (mut recent, mut counts) = (Summary::<4, BUCKETS>::nothing(), Counts::default());
            let mut failed = [(timeouts, 0), (unavailables, 0), (failures, 0)];
            for of in self.0.iter().filter_map(|of| of.scopes.get(at)) {
                recent.add(&of.recent, now());
                counts.add_histogram(&of.counts);
                let shares = [of.timeouts.get(), of.unavailables.get(), of.failures.get()];
                failed.iter_mut().zip(shares).for_each(|((_, sum), share)| *sum += share);
            }
            show(Sample { metric: latency, labels, value: Value::Distribution(&recent) });
            show(Sample { metric: counted, labels, value: Value::Distribution(&counts) });
            for (metric, sum) in failed {
                show(Sample { metric, labels, value: Value::Number(sum) });
            }
        }
    }
}
