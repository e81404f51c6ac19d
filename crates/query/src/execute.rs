//! The entry of this crate: executes statements on the shards that own their data.

use std::sync::Arc;

use futures_util::future::LocalBoxFuture;
use halcyon_cql::plan::{Plan, Variables};
use halcyon_io::clock::now;
use halcyon_model::access::Principal;
use halcyon_model::request::{BatchKind, Consistency, Value};
use halcyon_scan::pace::Pace;

use crate::access::{self, admit};
use crate::coordinator::Coordinator;
use crate::guard::validate;
use crate::preparation::up_to_date;
use crate::prepared::{BatchEntry, PreparedStatement};
use crate::request::Request;
use crate::{Error, Outcome, QueryOptions, Result, modify, schema, select};

/// Executes a statement; prepares it again if the schema has changed.
pub fn execute<'a>(
    coordinator: &'a Coordinator,
    statement: &'a Arc<PreparedStatement>,
    options: &'a QueryOptions<'a>,
    principal: &'a Principal,
) -> LocalBoxFuture<'a, Result<Outcome>> {
    Box::pin(async move {
        let _running = match &statement.plan {
            Plan::Modification(_) | Plan::Batch(_) => {
                Some(coordinator.shard().writes().begin().await)
            }
            Plan::Select(_) | Plan::Other(_) => None,
        };
        let began = now();
        let statement = up_to_date(coordinator, statement).await?;
        admit(coordinator, &statement, options.keyspace, principal).await?;
        validate(coordinator, &statement, options.keyspace, options.guard)?;
        let outcome = execute_admitted(coordinator, &statement, options, principal).await;
        let shard = coordinator.shard().index();
        coordinator.requests().count(shard, (&statement.plan, options), began, &outcome);
        outcome
    })
}

async fn execute_admitted(
    coordinator: &Coordinator,
    statement: &PreparedStatement,
    options: &QueryOptions<'_>,
    principal: &Principal,
) -> Result<Outcome> {
    check_value_count(&statement.variables, options.values)?;
    if options.consistency == Consistency::NodeLocal {
        return Err(Error::Invalid(
            "NODE_LOCAL consistency level is highly dangerous and should be used only for debugging purposes"
                .to_owned(),
        ));
    }
    let request = Request::new(statement.text.len(), options.values, options, coordinator.uuids());
    let request = request.of(principal);
    let outcome = match &statement.plan {
        Plan::Select(plan) => {
            let masked = match plan.table.masks.is_empty() {
                true => None,
                false => Box::pin(access::seen(coordinator, plan, principal)).await?,
            };
            let plan = masked.as_ref().unwrap_or(plan);
            select::execute_select(coordinator, plan, &request, options).await?
        }
        Plan::Modification(plan) => {
            modify::execute_modification(coordinator, plan, &request, options).await?
        }
        Plan::Batch(plan) => {
            Box::pin(modify::execute_batch(coordinator, plan, &request, options)).await?
        }
        Plan::Other(statement) => {
            Box::pin(schema::execute_schema(coordinator, statement, options, principal)).await?
        }
    };
    Ok(outcome.warned(request.slow_calls().take()))
}

/// A BATCH message (a BATCH statement in CQL text goes through `execute`).
pub fn batch<'a>(
    coordinator: &'a Coordinator,
    kind: BatchKind,
    entries: &'a [BatchEntry<'a>],
    options: &'a QueryOptions<'a>,
    principal: &'a Principal,
) -> LocalBoxFuture<'a, Result<Outcome>> {
    Box::pin(async move {
        let _running = coordinator.shard().writes().begin().await;
        let began = now();
        let mut statements = Vec::with_capacity(entries.len());
        let mut pace = Pace::default();
        for entry in entries {
            if pace.step() {
                pace.pause().await;
            }
            let statement = up_to_date(coordinator, &entry.statement).await?;
            admit(coordinator, &statement, options.keyspace, principal).await?;
            check_value_count(&statement.variables, entry.values)?;
            let request =
                Request::new(statement.text.len(), entry.values, options, coordinator.uuids());
            statements.push((statement, request));
        }
        let outcome = modify::execute_batch_message(coordinator, kind, &statements, options).await;
        let shard = coordinator.shard().index();
        let plans = entries.iter().map(|entry| &entry.statement.plan);
        let plans = (plans, options.consistency);
        coordinator.requests().count_batch(shard, plans, began, &outcome);
        let slow = statements.iter().flat_map(|(_, request)| request.slow_calls().take());
        Ok(outcome?.warned(slow.collect()))
    })
}

fn check_value_count(variables: &Variables, values: &[Value<'_>]) -> Result<()> {
    if variables.specs.len() == values.len() {
        return Ok(());
    }
    Err(Error::Invalid(format!(
        "there were {} markers(?) in CQL but {} bound variables",
        variables.specs.len(),
        values.len()
    )))
}
