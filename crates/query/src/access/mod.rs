//! The one door to statements: whether a principal may execute one.
//!
//! Each execution passes it, of a prepared statement and of a text, alone and in a batch, on whichever shard: a permission may be revoked
//! after a statement was prepared. A statement says what it requires (`halcyon_cql::plan::requires`), and this module whether that is
//! granted. PREPARE needs no permission, as in Cassandra.
//!
//! 1. The node's own statements pass. An anonymous client (AllowAllAuthenticator) has every permission, and none of what only roles can do.
//! 2. Of a role, [`judge`] decides by what this shard keeps in memory, without a lock and without waiting.
//! 3. What it lacks is read from `system_auth` ([`questions`]), and the judge asked again. What cannot be read is not granted.
//!
//! `roles`, `grants`, `listings` and `identities` execute the statements about all that.

mod asking;
mod changed;
mod grants;
mod identities;
mod judge;
mod listings;
mod login;
mod object_name;
mod questions;
mod refresh;
mod roles;
mod store;

use std::sync::Arc;

use halcyon_cql::plan::Plan;
use halcyon_cql::plan::requires::{Requirement, of_statement};
use halcyon_cql::plan::select::SelectPlan;
use halcyon_model::access::{Permission, Principal, Resource};
use halcyon_syntax::ast::{AuthStatement, StatementKind};

use self::asking::{has, permit};
use self::grants::Granting;
use self::listings::Wanted;
use crate::coordinator::Coordinator;
use crate::prepared::PreparedStatement;
use crate::{Outcome, QueryOptions, Result};

pub use asking::{guard_of, may_execute, may_stay, watched};
pub(crate) use changed::{Changed, follow};
pub use judge::Origin;
pub use login::{DefaultSuperuser, default_superuser, log_in, log_in_as};
pub use refresh::{cache_keys, refresh, warm};

/// Refuses what the principal may not execute. `keyspace`: the one in force.
pub(crate) async fn admit(
    coordinator: &Coordinator,
    statement: &PreparedStatement,
    keyspace: Option<&str>,
    principal: &Principal,
) -> Result<()> {
    if *principal == Principal::System {
        return Ok(());
    }
    match &statement.plan {
        Plan::Select(_) | Plan::Modification(_) | Plan::Batch(_) => {
            permit(coordinator, &statement.requires, principal).await
        }
        Plan::Other(other) => {
            let catalog = coordinator.shard().tables().catalog();
            check_text(coordinator, &other.kind, keyspace)?;
            let requires = of_statement(&other.kind, &catalog, keyspace);
            permit(coordinator, &requires, principal).await?;
            validate(coordinator, statement, keyspace, principal).await
        }
    }
}

/// What Cassandra refuses before it asks for permissions.
fn check_text(
    coordinator: &Coordinator,
    kind: &StatementKind,
    keyspace: Option<&str>,
) -> Result<()> {
    match kind {
        StatementKind::Auth(AuthStatement::GrantPermissions { resource, .. }) => {
            grants::check_text(coordinator, resource)?;
            grants::named(coordinator, resource, keyspace).map(drop)
        }
        StatementKind::Auth(
            AuthStatement::CreateRole { options, .. } | AuthStatement::AlterRole { options, .. },
        ) => roles::check_text(coordinator, options),
        _ => Ok(()),
    }
}

/// Refuses a statement about roles that names what is not there. PREPARE asks this and not for permissions, as in Cassandra.
pub async fn validate(
    coordinator: &Coordinator,
    statement: &PreparedStatement,
    keyspace: Option<&str>,
    principal: &Principal,
) -> Result<()> {
    match &statement.plan {
        Plan::Other(other) if *principal != Principal::System => match &other.kind {
            StatementKind::Auth(statement) => {
                Box::pin(check(coordinator, statement, keyspace, principal)).await
            }
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

/// What a change of the schema requires by the present catalog, which was granted; `None`: nothing was asked for.
///
/// What it requires depends on names (the table of an index, the base of a view), and others may change these until the schema is locked:
/// it is computed again then, and must be the same.
pub(crate) async fn permit_change(
    coordinator: &Coordinator,
    kind: &StatementKind,
    keyspace: Option<&str>,
    principal: &Principal,
) -> Result<Option<Vec<Requirement>>> {
    let authorizes = coordinator.access().shared.settings().authorizes;
    if !authorizes || *principal == Principal::System {
        return Ok(None);
    }
    let catalog = coordinator.shard().tables().catalog();
    let requires = of_statement(kind, &catalog, keyspace);
    permit(coordinator, &requires, principal).await?;
    Ok(Some(requires))
}

/// The plan of a SELECT as the principal may see its rows; `None`: as it is.
pub(crate) async fn seen(
    coordinator: &Coordinator,
    plan: &SelectPlan,
    principal: &Principal,
) -> Result<Option<Arc<SelectPlan>>> {
    let authorizes = coordinator.access().shared.settings().authorizes;
    if plan.table.masks.is_empty() || !authorizes || *principal == Principal::System {
        return Ok(None);
    }
    let (keyspace, table) = (plan.table.schema.keyspace.clone(), plan.table.schema.name.clone());
    let table = Resource::Table { keyspace, table };
    if has(coordinator, principal, Permission::Unmask, &table).await? {
        return Ok(None);
    }
    Ok(plan.masked(&coordinator.shard().tables().catalog())?)
}

/// Checks a statement about roles or permissions after what it requires (`CQLStatement.validate`).
async fn check(
    coordinator: &Coordinator,
    statement: &AuthStatement,
    keyspace: Option<&str>,
    principal: &Principal,
) -> Result<()> {
    match statement {
        AuthStatement::CreateRole { name, if_not_exists, options } => {
            roles::check_create(coordinator, (name, *if_not_exists), options, principal).await
        }
        AuthStatement::AlterRole { name, if_exists, options } => {
            roles::check_alter(coordinator, (name, *if_exists), options, principal).await
        }
        AuthStatement::DropRole { name, if_exists } => {
            roles::check_drop(coordinator, (name, *if_exists), principal).await
        }
        AuthStatement::GrantRole { role, grantee, .. } => {
            roles::check_grant(coordinator, [role, grantee], principal).await
        }
        AuthStatement::GrantPermissions { is_grant, permissions, resource, grantee } => {
            let granting = Granting { is_grant: *is_grant, permissions, resource, grantee };
            grants::check(coordinator, granting, keyspace, principal).await
        }
        AuthStatement::ListPermissions { permissions, resource, of, recursive } => {
            let (resource, of, recursive) = (resource.as_ref(), of.as_deref(), *recursive);
            let wanted = Wanted { permissions, resource, of, recursive };
            listings::check_permissions(coordinator, wanted, keyspace, principal).await
        }
        AuthStatement::ListRoles { of, .. } => {
            listings::check_roles(coordinator, of.as_deref(), principal).await
        }
        AuthStatement::ListUsers => listings::check_roles(coordinator, None, principal).await,
        AuthStatement::AddIdentity { identity, role, if_not_exists } => {
            identities::check_add(coordinator, (identity, role), *if_not_exists, principal).await
        }
        AuthStatement::DropIdentity { identity, if_exists } => {
            identities::check_drop(coordinator, identity, *if_exists, principal).await
        }
    }
}

/// Executes a statement about roles or permissions, which has been admitted.
pub(crate) async fn execute(
    coordinator: &Coordinator,
    statement: &AuthStatement,
    options: &QueryOptions<'_>,
    principal: &Principal,
) -> Result<Outcome> {
    let keyspace = options.keyspace;
    // A password is hashed before a change begins.
    let hashes =
        matches!(statement, AuthStatement::CreateRole { .. } | AuthStatement::AlterRole { .. });
    let _change = match hashes {
        true => None,
        false => Some(coordinator.access().shared.change().await),
    };
    match statement {
        AuthStatement::CreateRole { name, if_not_exists, options } => {
            let role = (name.as_str(), *if_not_exists);
            roles::create(coordinator, role, options, principal).await
        }
        AuthStatement::AlterRole { name, options, .. } => {
            roles::alter(coordinator, name, options).await
        }
        AuthStatement::DropRole { name, .. } => roles::drop_role(coordinator, name).await,
        AuthStatement::GrantRole { is_grant, role, grantee } => {
            roles::grant(coordinator, *is_grant, [role, grantee]).await
        }
        AuthStatement::GrantPermissions { is_grant, permissions, resource, grantee } => {
            let granting = Granting { is_grant: *is_grant, permissions, resource, grantee };
            grants::execute(coordinator, granting, keyspace).await
        }
        AuthStatement::ListPermissions { permissions, resource, of, recursive } => {
            let (resource, of, recursive) = (resource.as_ref(), of.as_deref(), *recursive);
            let wanted = Wanted { permissions, resource, of, recursive };
            listings::permissions(coordinator, wanted, keyspace, principal).await
        }
        AuthStatement::ListRoles { of, recursive } => {
            listings::roles(coordinator, (of.as_deref(), *recursive), principal).await
        }
        AuthStatement::ListUsers => listings::users(coordinator, principal).await,
        AuthStatement::AddIdentity { identity, role, .. } => {
            identities::add(coordinator, (identity, role)).await
        }
        AuthStatement::DropIdentity { identity, .. } => {
            identities::drop_identity(coordinator, identity).await
        }
    }
}
