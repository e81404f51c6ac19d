//! Where a request meets guardrails: at its preparation, before its execution, and as it is bound.
//!
//! What a plan counts of its values is asked as it is bound (`bound`), which may be on another thread: it has a guard of its own there, and
//! what that says is handed over to the request's.

use halcyon_cql::plan::modify::{BoundModification, ModifyPlan, Terms};
use halcyon_cql::plan::select::SelectPlan;
use halcyon_cql::plan::{Execution, Plan, find_table};
use halcyon_guardrails::{Flag, Guard, Said, Threshold, Values, Violation};
use halcyon_model::request::Consistency;
use halcyon_schema::catalog::{Catalog, Table, TableKind};
use halcyon_schema::{is_local, is_replicated_system};
use halcyon_syntax::Error as CqlError;
use halcyon_syntax::ast::{QualifiedName, StatementKind};

use crate::consistency::has_one_replica;
use crate::coordinator::Coordinator;
use crate::prepared::PreparedStatement;
use crate::{Error, QueryOptions, Result};

/// A result with what guardrails said meanwhile.
pub(crate) type Guarded<T> = (Result<T, CqlError>, Vec<Said>);

impl From<Violation> for Error {
    fn from(violation: Violation) -> Error {
        Error::Invalid(violation.0)
    }
}

/// Binds under a guard with the limits of `guard`.
pub(crate) fn bound<T>(
    guard: Option<&Guard>,
    execution: &Execution<'_>,
    bind: impl FnOnce(&Execution<'_>) -> Result<T, CqlError>,
) -> Result<Guarded<T>, CqlError> {
    let Some(guard) = guard else { return Ok((Ok(bind(execution)?), Vec::new())) };
    let guard = guard.fresh();
    match bind(&Execution { guard: Some(&guard), ..*execution }) {
        // It is bound again, where there is more time.
        Err(CqlError::Exhausted) => Err(CqlError::Exhausted),
        done => Ok((done, guard.take_said())),
    }
}

/// The result of what was bound, after the request's guard has heard what was said.
pub(crate) fn heard<T>(guard: Option<&Guard>, (done, said): Guarded<T>) -> Result<T> {
    if let Some(guard) = guard {
        guard.say(said);
    }
    Ok(done?)
}

/// The checks of a statement at each preparation and execution (`CQLStatement.validate`).
pub(crate) fn validate(
    coordinator: &Coordinator,
    statement: &PreparedStatement,
    keyspace: Option<&str>,
    guard: Option<&Guard>,
) -> Result<()> {
    check_use(coordinator, &statement.plan)?;
    let Some(guard) = guard.filter(|guard| guard.is_on()) else { return Ok(()) };
    match &statement.plan {
        Plan::Select(plan) => match plan.allow_filtering && !is_system(&plan.table) {
            true => Ok(guard.allow(Flag::AllowFiltering)?),
            false => Ok(()),
        },
        Plan::Modification(plan) => validate_modification(plan, Some(guard)),
        Plan::Batch(plan) => {
            let mut statements = plan.statements.iter();
            statements.try_for_each(|plan| validate_modification(plan, Some(guard)))
        }
        // A change of the schema is validated as it is made, of a copy.
        Plan::Other(statement) => match &statement.kind {
            StatementKind::Truncate { name } => truncates(coordinator, name, keyspace, guard),
            _ => Ok(()),
        },
    }
}

/// A setting, not a guardrail: it holds for superusers, too.
pub(crate) fn check_use(coordinator: &Coordinator, plan: &Plan) -> Result<()> {
    match plan {
        Plan::Other(statement)
            if matches!(statement.kind, StatementKind::Use { .. })
                && !coordinator.engine().options().allows_use =>
        {
            let what = "USE statements prohibited. (see use_statements_enabled in cassandra.yaml)";
            Err(Error::Invalid(what.to_owned()))
        }
        _ => Ok(()),
    }
}

fn is_system(table: &Table) -> bool {
    let keyspace = &table.schema.keyspace;
    table.kind == TableKind::Virtual || is_local(keyspace) || is_replicated_system(keyspace)
}

/// Of a TRUNCATE.
pub(crate) fn truncates(
    coordinator: &Coordinator,
    name: &QualifiedName,
    keyspace: Option<&str>,
    guard: &Guard,
) -> Result<()> {
    find_table(name, &coordinator.shard().tables().catalog(), keyspace)?;
    Ok(guard.allow(Flag::DropTruncateTable)?)
}

pub(crate) fn validate_modification(plan: &ModifyPlan, guard: Option<&Guard>) -> Result<()> {
    match guard {
        Some(guard) if plan.attributes.timestamp.is_some() => {
            Ok(guard.allow(Flag::UserTimestamps)?)
        }
        _ => Ok(()),
    }
}

/// What guardrails say of the terms of all statements, when they are bound.
pub(crate) fn hear_terms<'a>(
    bound: impl IntoIterator<Item = &'a mut BoundModification>,
    options: &QueryOptions<'_>,
) -> Result<()> {
    let Some(guard) = options.guard else { return Ok(()) };
    for bound in bound {
        let Terms { said, refused } = std::mem::take(&mut bound.terms);
        guard.say(said);
        if let Some(refused) = refused {
            return Err(refused.into());
        }
    }
    Ok(())
}

/// The level, and that of conditions, of a write, and whether there is room for it.
pub(crate) fn check_write(table: Option<&Table>, options: &QueryOptions<'_>) -> Result<()> {
    let Some(guard) = options.guard else { return Ok(()) };
    if guard.spares_system() && table.is_some_and(is_system) {
        return Ok(());
    }
    let serial = options.serial_consistency.unwrap_or(Consistency::Serial);
    let mut levels = vec![options.consistency, serial];
    levels.sort_by_key(|level| level.code());
    levels.dedup();
    let names: Vec<&str> = levels.into_iter().map(Consistency::name).collect();
    guard.check_values(Values::WriteConsistencyLevels, &names)?;
    // Of a conditional write too, which Cassandra does not ask.
    match table.is_some_and(|table| table.kind == TableKind::Virtual) {
        true => Ok(()),
        false => Ok(guard.check_disk()?),
    }
}

/// The checks of a SELECT before it is bound.
pub(crate) fn check_select(
    coordinator: &Coordinator,
    plan: &SelectPlan,
    options: &QueryOptions<'_>,
) -> Result<()> {
    let Some(guard) = options.guard else { return Ok(()) };
    if !(guard.spares_system() && is_system(&plan.table)) {
        guard.check_values(Values::ReadConsistencyLevels, &[options.consistency.name()])?;
    }
    let (restrictions, keyspace) = (&plan.restrictions, &plan.table.schema.keyspace);
    let reconciles = !matches!(
        options.consistency,
        Consistency::One | Consistency::LocalOne | Consistency::NodeLocal
    );
    if reconciles
        && restrictions.needs_filtering
        && plan.table.kind != TableKind::Virtual
        && restrictions.intersects()
    {
        let is_alone = |catalog: &Catalog| has_one_replica(catalog, keyspace);
        if !coordinator.shard().tables().with_catalog(is_alone) {
            guard.allow(Flag::IntersectFilteringQuery)?;
        }
    }
    if restrictions.key_range && restrictions.uses_index && !is_local(keyspace) {
        guard.allow(Flag::NonPartitionRestrictedIndexQuery)?;
    }
    Ok(())
}

/// `limit`: rows that the statement may return. What is read at once has no pages.
pub(crate) fn check_page_size(
    plan: &SelectPlan,
    limit: u32,
    options: &QueryOptions<'_>,
) -> Result<()> {
    let (Some(guard), Some(size)) = (options.guard, options.page_size) else { return Ok(()) };
    let is_one_page = i64::from(limit) <= i64::from(size) || plan.nearest.is_some();
    if is_one_page && !plan.is_aggregate() {
        return Ok(());
    }
    Ok(guard.check(Threshold::PageSize, size.into(), &plan.table.schema.name)?)
}
