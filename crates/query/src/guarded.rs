//! Preparation under guardrails: of the texts of clients, not of the node's own.

use std::sync::Arc;

use halcyon_cql::plan::Plan;
use halcyon_cql::plan::restrictions::{CANNOT_FILTER, NEEDS_FILTERING};
use halcyon_guardrails::{Flag, Guard};

use crate::coordinator::Coordinator;
use crate::preparation::prepare_in_time;
use crate::prepared::PreparedStatement;
use crate::{Error, Result, guard, schema};

/// Prepares the text of a client that guardrails hold for.
pub async fn prepare_guarded(
    coordinator: &Coordinator,
    text: &str,
    keyspace: Option<&str>,
    guard: &Guard,
) -> Result<PreparedStatement> {
    let statement = match prepare_in_time(coordinator, text, keyspace).await {
        Err(Error::Invalid(what))
            if what == NEEDS_FILTERING && !guard.allows(Flag::AllowFiltering) =>
        {
            return Err(Error::Invalid(CANNOT_FILTER.to_owned()));
        }
        // Cassandra asks before it looks at the columns.
        Err(Error::Invalid(what)) if what.starts_with("Group by") => {
            guard.allow(Flag::GroupBy)?;
            return Err(Error::Invalid(what));
        }
        prepared => prepared?,
    };
    if let Plan::Select(plan) = &statement.plan
        && plan.grouping.is_some()
    {
        guard.allow(Flag::GroupBy)?;
    }
    Ok(statement)
}

/// The checks of a statement at each preparation (`CQLStatement.validate`). Removes the options that guardrails ignore.
pub fn check_prepared(
    coordinator: &Coordinator,
    statement: &mut PreparedStatement,
    keyspace: Option<&str>,
    guard: &Guard,
) -> Result<()> {
    guard::check_use(coordinator, &statement.plan)?;
    let Plan::Other(other) = &mut statement.plan else {
        return guard::validate(coordinator, statement, keyspace, Some(guard));
    };
    if guard.is_on() {
        let kind = &mut Arc::make_mut(other).kind;
        return schema::validate(coordinator, kind, keyspace, guard);
    }
    Ok(())
}
