//! Prepares statements: where they arrive, or on another thread what takes long.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use halcyon_cql::plan::{self, Plan, Work, find_table};
use halcyon_io::clock::now;
use halcyon_scan::pace;
use halcyon_schema::catalog::Catalog;
use halcyon_syntax::Error as CqlError;
use halcyon_syntax::ast::StatementKind;

use crate::basis::Basis;
use crate::coordinator::Coordinator;
use crate::prepared::PreparedStatement;
use crate::{Error, Result};

/// The longest text that is prepared where it arrives.
const SHORT_TEXT: usize = 4 << 10;
/// How long a statement is prepared: Cassandra's `native_transport_timeout`.
const PREPARATION_MAX: Duration = Duration::from_secs(12);

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

/// The statement itself, or a new preparation of its text if what it was prepared against has changed.
pub(crate) async fn up_to_date(
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
    if let Plan::Other(statement) = &prepared.plan
        && let StatementKind::Truncate { name } = &statement.kind
    {
        find_table(name, catalog, prepared.keyspace.as_deref())?;
    }
    Ok(prepared)
}
