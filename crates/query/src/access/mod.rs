//! The one door to statements: whether a principal may execute one.
//!
//! Each execution passes it, of a prepared statement and of a text, alone and in a batch, on whichever shard: a permission may be revoked
//! after a statement was prepared. A statement says what it requires (`halcyon_cql::plan::requires`), and this module whether that is
//! granted. PREPARE asks too, so that a client learns of a refusal early.
//!
//! No node asks for a login yet. The answers are those of AllowAllAuthenticator and AllowAllAuthorizer: every client is anonymous and has
//! every permission, and what only roles can do is refused.

mod roles;

use halcyon_cql::plan::Plan;
use halcyon_cql::plan::requires::{Requirement, of_statement};
use halcyon_model::access::Principal;
use halcyon_syntax::ast::StatementKind;

use crate::coordinator::Coordinator;
use crate::prepared::PreparedStatement;
use crate::{Error, Result};

/// Refuses what the principal may not execute. `keyspace`: the one in force.
pub fn admit(
    coordinator: &Coordinator,
    statement: &PreparedStatement,
    keyspace: Option<&str>,
    principal: &Principal,
) -> Result<()> {
    match &statement.plan {
        Plan::Select(_) | Plan::Modification(_) | Plan::Batch(_) => {
            access(principal, &statement.requires)
        }
        Plan::Other(statement) => {
            let catalog = coordinator.shard().tables().catalog();
            access(principal, &of_statement(&statement.kind, &catalog, keyspace))?;
            match &statement.kind {
                StatementKind::Auth(statement) => roles::validate(statement, keyspace, principal),
                _ => Ok(()),
            }
        }
    }
}

fn access(principal: &Principal, requires: &[Requirement]) -> Result<()> {
    requires.iter().try_for_each(|requirement| match requirement {
        Requirement::SuperuserRole(refusal) if !principal.is_superuser() => {
            Err(Error::Unauthorized((*refusal).to_owned()))
        }
        Requirement::SuperuserRole(_)
        | Requirement::Superuser(_)
        | Requirement::Permission(..)
        | Requirement::Unmasked { .. } => Ok(()),
    })
}
