//! The entry of this crate: prepares statements, and executes them on the shards that own their data.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use halcyon_cql::plan::{self, Plan, Variables, Work};
use halcyon_io::clock::now;
use halcyon_model::access::Principal;
use halcyon_model::request::{BatchKind, Consistency, Value};
use halcyon_scan::pace::{self, Pace};
use halcyon_schema::catalog::Catalog;
use halcyon_syntax::Error as CqlError;

use crate::access::admit;
use crate::basis::Basis;
use crate::coordinator::Coordinator;
use crate::prepared::PreparedStatement;
use crate::request::Request;
use crate::{Error, Outcome, QueryOptions, Result, modify, schema, select};

/// The longest text that is prepared where it arrives.
const SHORT_TEXT: usize = 4 << 10;
/// How long a statement is prepared: Cassandra's `native_transport_timeout`.
const PREPARATION_MAX: Duration = Duration::from_secs(12);

/// One of a batch, with its own values in `values`.
pub struct BatchEntry<'a> {
    pub statement: Arc<PreparedStatement>,
    pub values: &'a [Value<'a>],
}

/// Parses and prepares against the current catalog. Synchronous, however long it takes: for texts of the server itself.
pub fn prepare(
    coordinator: &Coordinator,
    text: &str,
    keyspace: Option<&str>,
) -> Result<PreparedStatement> {
    let work = Work::while_there_is_time(&|| true);
    let catalog = coordinator.shard().tables().catalog();
    checked(prepared(text, &catalog, keyspace, &work)?, &catalog)
}

/// As `prepare`, for the text of a client: what is large is prepared apart, and refused if that takes too long.
pub fn prepare_in_time<'a>(
    coordinator: &'a Coordinator,
    text: &'a str,
    keyspace: Option<&'a str>,
) -> LocalBoxFuture<'a, Result<PreparedStatement>> {
    Box::pin(async move {
        let catalog = coordinator.shard().tables().catalog();
        if text.len() <= SHORT_TEXT {
            match prepared(text, &catalog, keyspace, &Work::small()) {
                Err(CqlError::Exhausted) => {}
                outcome => return checked(outcome?, &catalog),
            }
        }
        let (text, own, in_force) = (text.to_owned(), keyspace.map(str::to_owned), catalog.clone());
        let job = move |work: &Work<'_>| prepared(&text, &in_force, own.as_deref(), work);
        let done = Box::pin(pace::until(now() + PREPARATION_MAX, job)).await?;
        // Cassandra's words for a request that it takes up too late.
        let late = || Error::Overloaded("Query timed out before it could start".to_owned());
        checked(done.ok_or_else(late)?, &catalog)
    })
}

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
        admit(coordinator, &statement, options.keyspace, principal)?;
        let outcome = execute_admitted(coordinator, &statement, options).await;
        let shard = coordinator.shard().index();
        coordinator.requests().count(shard, (&statement.plan, options), began, &outcome);
        outcome
    })
}

async fn execute_admitted(
    coordinator: &Coordinator,
    statement: &PreparedStatement,
    options: &QueryOptions<'_>,
) -> Result<Outcome> {
    check_value_count(&statement.variables, options.values)?;
    if options.consistency == Consistency::NodeLocal {
        return Err(Error::Invalid(
            "NODE_LOCAL consistency level is highly dangerous and should be used only for debugging purposes"
                .to_owned(),
        ));
    }
    let request = Request::new(statement.text.len(), options.values, options, coordinator.uuids());
    let outcome = match &statement.plan {
        Plan::Select(plan) => select::execute_select(coordinator, plan, &request, options).await?,
        Plan::Modification(plan) => {
            modify::execute_modification(coordinator, plan, &request, options).await?
        }
        Plan::Batch(plan) => {
            Box::pin(modify::execute_batch(coordinator, plan, &request, options)).await?
        }
        Plan::Other(statement) => {
            Box::pin(schema::execute_schema(coordinator, statement, options)).await?
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
            admit(coordinator, &statement, options.keyspace, principal)?;
            check_value_count(&statement.variables, entry.values)?;
            let request =
                Request::new(statement.text.len(), entry.values, options, coordinator.uuids());
            statements.push((statement, request));
        }
        let outcome = modify::execute_batch_message(coordinator, kind, &statements, options).await;
        let shard = coordinator.shard().index();
        coordinator.requests().count_batch(shard, entries, began, &outcome);
        let slow = statements.iter().flat_map(|(_, request)| request.slow_calls().take());
        Ok(outcome?.warned(slow.collect()))
    })
}

/// The statement itself, or a new preparation of its text if what it was prepared against has changed.
async fn up_to_date(
    coordinator: &Coordinator,
    statement: &Arc<PreparedStatement>,
) -> Result<Arc<PreparedStatement>> {
    if statement.is_current(coordinator.shard().tables()) {
        return Ok(statement.clone());
    }
    let keyspace = statement.keyspace.as_deref();
    Ok(Arc::new(prepare_in_time(coordinator, &statement.text, keyspace).await?))
}

fn prepared(
    text: &str,
    catalog: &Catalog,
    keyspace: Option<&str>,
    work: &Work<'_>,
) -> Result<PreparedStatement, CqlError> {
    let statement = halcyon_syntax::parse_statement(text)?;
    let prepared = plan::prepare(&statement, catalog, keyspace, work)?;
    Ok(PreparedStatement {
        text: text.to_owned(),
        keyspace: keyspace.map(str::to_owned),
        variables: prepared.variables,
        columns: prepared.columns,
        warnings: prepared.warnings,
        basis: Basis::of(&prepared.plan, catalog),
        plan: prepared.plan,
        requires: prepared.requires,
    })
}

/// What of the schema a statement needs that has no plan.
fn checked(prepared: PreparedStatement, catalog: &Catalog) -> Result<PreparedStatement> {
    if let Plan::Other(statement) = &prepared.plan {
        schema::check(statement, catalog, prepared.keyspace.as_deref())?;
    }
    Ok(prepared)
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
