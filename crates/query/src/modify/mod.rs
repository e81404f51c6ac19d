//! Executes INSERT, UPDATE, DELETE and BATCH.
//!
//! 1. Statements are bound on the shard of the connection; consistency levels and batch rules are checked there.
//! 2. Changes that need no stored row become mutations at once, which go to the shards that own their partitions.
//! 3. Lists by index, counters (`write`) and conditions (`conditional`) are decided on the owning shard, under the
//!    partition's lock, from read to apply.
//! 4. A logged batch is one record, whichever shards its partitions belong to (`shards::apply_whole`).

mod batch;
mod changes;
mod conditional;
mod current;
mod make;
mod proposal;
mod stopwatch;
mod target;
mod write;

use std::sync::Arc;

use halcyon_cql::plan::modify::{BatchPlan, BoundModification, Company, ModifyPlan, check_batch};
use halcyon_cql::plan::{Execution, Plan, Work};
use halcyon_guardrails::Guard;
use halcyon_model::request::BatchKind;
use halcyon_scan::pace::{self, Pace};
use halcyon_scan::{Held, SMALL};
use halcyon_schema::catalog::{Catalog, TableKind};

use self::changes::Changes;
use self::conditional::{Conditions, Statement};
use self::stopwatch::Stopwatch;
use crate::consistency;
use crate::coordinator::Coordinator;
use crate::guard;
use crate::prepared::PreparedStatement;
use crate::request::Request;
use crate::{Error, Outcome, QueryOptions, Result};

fn default_timestamp(
    coordinator: &Coordinator,
    request: &Request<'_>,
    options: &QueryOptions<'_>,
) -> i64 {
    let timestamps = coordinator.shard().timestamps();
    options.timestamp.unwrap_or_else(|| timestamps.next(request.now_micros()))
}

/// What the mutations of a request take beyond its own bytes, which are counted with it: a short text can name values and keys very often.
struct Made {
    held: Held,
    bytes: u64,
    given: u64,
    company: Company,
}

impl Made {
    fn nothing(coordinator: &Coordinator) -> Made {
        let held = Held::nothing(coordinator.memory());
        Made { held, bytes: 0, given: 0, company: Company::None }
    }

    /// That of the statements of a batch.
    fn in_batch(self, plans: &[Arc<ModifyPlan>]) -> Made {
        match plans.iter().any(|plan| plan.has_conditions()) {
            true => Made { company: Company::Conditional(None), ..self },
            false => self,
        }
    }

    fn of(coordinator: &Coordinator, request: &Request<'_>) -> Made {
        Made { given: request.bytes(), ..Made::nothing(coordinator) }
    }

    fn count(&mut self, bound: &BoundModification) -> Result<()> {
        if let Company::Conditional(first @ None) = &mut self.company {
            *first = bound.keys.first().cloned();
        }
        self.bytes = self.bytes.saturating_add(bound.memory());
        let more = self.bytes.saturating_sub(2 * self.given);
        if more > SMALL {
            self.held.grow_or_refuse(more)?;
        }
        Ok(())
    }
}

/// Binds a statement; refuses an expiration time beyond the range of the SSTable format.
async fn bind(
    coordinator: &Coordinator,
    plan: &Arc<ModifyPlan>,
    timestamp: i64,
    request: &Request<'_>,
    watch: &Stopwatch,
    (made, guard): (&mut Made, Option<&Guard>),
) -> Result<BoundModification> {
    let (work, company) = (Work::small(), made.company.clone());
    let limits = guard.map(Guard::fresh);
    let bind = move |plan: &Arc<ModifyPlan>, execution: &Execution<'_>| {
        let bind = |execution: &Execution<'_>| plan.bind(timestamp, &company, execution);
        guard::bound(limits.as_ref(), execution, bind)
    };
    let within = (watch.deadline(), &**coordinator.memory(), request.slow_calls());
    let bound = pace::bind(plan, &request.execution(&work), within, bind).await?;
    let mut bound = guard::heard(guard, bound.ok_or_else(|| watch.too_late())?)?;
    let latest = coordinator.shard().tables().latest_expiration();
    bound.limit_expiration(latest, request.now_micros().div_euclid(1_000_000))?;
    made.count(&bound)?;
    Ok(bound)
}

/// The answer of a batch of which a statement was refused with `error`. Without conditions, Cassandra binds the partition keys of all
/// statements first, so the first refused key of `rest`, the statement and those after it, comes before `error`. So does what the
/// statements before, which are `bound`, refuse of stored rows. With conditions, it has compared those of the statements before with each
/// other.
async fn refusal<'a, 'v: 'a>(
    coordinator: &Coordinator,
    error: Error,
    rest: impl Iterator<Item = (&'a Arc<ModifyPlan>, &'a Request<'v>)>,
    watch: &Stopwatch,
    (bound, company): (&[Statement], &Company),
) -> Error {
    if matches!(company, Company::Conditional(_)) {
        return Conditions::of(bound).err().unwrap_or(error);
    }
    if watch.check().is_err() {
        return error;
    }
    let check = |plan: &Arc<ModifyPlan>, execution: &Execution<'_>| plan.check_keys(execution);
    let mut pace = Pace::default();
    for (plan, request) in rest {
        if pace.step() && pace.pause().await > watch.deadline() {
            return watch.too_late();
        }
        let work = Work::small();
        let within = (watch.deadline(), &**coordinator.memory(), request.slow_calls());
        match pace::bind(plan, &request.execution(&work), within, check).await {
            Ok(Some(())) => {}
            Ok(None) => return watch.too_late(),
            Err(of_key) => return of_key.into(),
        }
    }
    let reads = |bound: &BoundModification| bound.requires_read() && !bound.table.is_counter();
    let reading = bound.iter().map(|(_, bound)| bound).filter(|bound| reads(bound)).cloned();
    let made = Changes::make(coordinator, Vec::new(), reading.collect(), watch).await;
    made.err().map_or(error, |of_stored| watch.failed(of_stored))
}

/// Asks whether the timestamp that a statement gives is too far away.
fn check_timestamp(
    plan: &ModifyPlan,
    default: i64,
    request: &Request<'_>,
    guard: &Guard,
) -> Result<()> {
    let work = Work::small();
    match plan.own_timestamp(default, &request.execution(&work))? {
        Some(timestamp) => {
            let (now, table) = (request.now_micros(), &plan.table.schema.name);
            Ok(guard.check_timestamp(timestamp, now, table)?)
        }
        None => Ok(()),
    }
}

pub(crate) async fn execute_modification(
    coordinator: &Coordinator,
    plan: &Arc<ModifyPlan>,
    request: &Request<'_>,
    options: &QueryOptions<'_>,
) -> Result<Outcome> {
    let consistency = options.consistency;
    guard::check_write(Some(&plan.table), options)?;
    if !plan.has_conditions() {
        consistency::check_write(consistency, &plan.table)?;
    }
    let timestamp = default_timestamp(coordinator, request, options);
    if let Some(guard) = options.guard.filter(|_| !plan.has_conditions()) {
        check_timestamp(plan, timestamp, request, guard)?;
    }
    let limits = coordinator.limits();
    let (allowed, write_type) = match plan.table.is_counter() {
        true => (&limits.counter_write_request_timeout, "COUNTER"),
        false => (&limits.write_request_timeout, "SIMPLE"),
    };
    let watch = Stopwatch::start(allowed.get(), options.consistency, write_type);
    let mut made = Made::of(coordinator, request);
    let guarded = (&mut made, options.guard);
    let mut bound = bind(coordinator, plan, timestamp, request, &watch, guarded).await?;
    if plan.has_conditions() {
        let statements = vec![(plan.clone(), bound)];
        return Box::pin(conditional::execute(coordinator, statements, false, options)).await;
    }
    guard::hear_terms([&mut bound], options)?;
    if bound.is_nothing() {
        return Ok(Outcome::Void);
    }
    if plan.table.kind == TableKind::Virtual {
        Box::pin(write::apply_to_virtual(coordinator, bound, &watch)).await?;
        return Ok(Outcome::Void);
    }
    if !bound.reads.is_empty() {
        consistency::check_read_before_write(consistency)?;
    }
    let keyspace = &plan.table.schema.keyspace;
    let check = |catalog: &Catalog| consistency::check_replicas(consistency, catalog, keyspace);
    coordinator.shard().tables().with_catalog(check)?;
    if let Some(denylist) = coordinator.denylist() {
        let one = (&plan.table, &bound);
        let denied = Box::pin(batch::denied(denylist, std::iter::once(one))).await?;
        denied.map_or(Ok(()), Err)?;
    }
    write::execute(coordinator, bound, &watch).await.map_err(|error| watch.failed(error))?;
    watch.check()?;
    Ok(Outcome::Void)
}

/// A BATCH statement.
pub(crate) async fn execute_batch(
    coordinator: &Coordinator,
    plan: &Arc<BatchPlan>,
    request: &Request<'_>,
    options: &QueryOptions<'_>,
) -> Result<Outcome> {
    guard::check_write(None, options)?;
    let timestamp = {
        let (default, work) = (default_timestamp(coordinator, request, options), Work::small());
        plan.bind_timestamp(default, &request.execution(&work))?
    };
    let watch = batch::watch(coordinator, plan.kind, options);
    let mut pace = Pace::default();
    let mut made = Made::of(coordinator, request).in_batch(&plan.statements);
    let mut statements = Vec::with_capacity(plan.statements.len());
    for (place, statement) in plan.statements.iter().enumerate() {
        if pace.step() && pace.pause().await > watch.deadline() {
            return Err(watch.too_late());
        }
        let guarded = (&mut made, options.guard);
        let bound = match bind(coordinator, statement, timestamp, request, &watch, guarded).await {
            Ok(bound) => bound,
            Err(error) => {
                let rest = plan.statements.iter().skip(place).map(|plan| (plan, request));
                let refusal =
                    refusal(coordinator, error, rest, &watch, (&statements, &made.company));
                return Err(Box::pin(refusal).await);
            }
        };
        statements.push((statement.clone(), bound));
    }
    batch::execute(coordinator, plan.kind, statements, options, watch).await
}

/// A BATCH message: each statement with its own values.
pub(crate) async fn execute_batch_message(
    coordinator: &Coordinator,
    kind: BatchKind,
    entries: &[(Arc<PreparedStatement>, Request<'_>)],
    options: &QueryOptions<'_>,
) -> Result<Outcome> {
    let mut plans = Vec::with_capacity(entries.len());
    for (statement, _) in entries {
        let Plan::Modification(plan) = &statement.plan else {
            return Err(Error::Invalid(
                "Invalid statement in batch: only UPDATE, INSERT and DELETE statements are allowed."
                    .to_owned(),
            ));
        };
        plans.push(plan.clone());
    }
    check_batch(kind, false, &plans)?;
    plans.iter().try_for_each(|plan| guard::validate_modification(plan, options.guard))?;
    guard::check_write(None, options)?;
    let Some((_, first)) = entries.first() else { return Ok(Outcome::Void) };
    let timestamp = default_timestamp(coordinator, first, options);
    let watch = batch::watch(coordinator, kind, options);
    let mut pace = Pace::default();
    let mut made = Made::nothing(coordinator).in_batch(&plans);
    let mut statements = Vec::with_capacity(plans.len());
    for (place, (plan, (_, request))) in plans.iter().zip(entries).enumerate() {
        if pace.step() && pace.pause().await > watch.deadline() {
            return Err(watch.too_late());
        }
        made.given = made.given.saturating_add(request.bytes());
        let guarded = (&mut made, options.guard);
        let bound = match bind(coordinator, plan, timestamp, request, &watch, guarded).await {
            Ok(bound) => bound,
            Err(error) => {
                let rest = plans.iter().zip(entries).skip(place);
                let rest = rest.map(|(plan, (_, request))| (plan, request));
                let refusal =
                    refusal(coordinator, error, rest, &watch, (&statements, &made.company));
                return Err(Box::pin(refusal).await);
            }
        };
        statements.push((plan.clone(), bound));
    }
    batch::execute(coordinator, kind, statements, options, watch).await
}
