//! Statements about roles and permissions, answered like a Cassandra with AllowAllAuthenticator and AllowAllAuthorizer: every client is
//! anonymous, and anonymous clients are refused.

use halcyon_schema::change::keyspace_of;
use halcyon_syntax::ast::{AuthStatement, Resource, RoleOptions};

use crate::coordinator::Client;
use crate::{Error, Outcome, Result};

pub(super) fn execute(statement: &AuthStatement, client: &Client) -> Result<Outcome> {
    check(statement, client)?;
    Err(Error::Invalid("not supported yet: roles and permissions".to_owned()))
}

pub(super) fn check(statement: &AuthStatement, client: &Client) -> Result<()> {
    let unauthorized = |what: &str| Err(Error::Unauthorized(what.to_owned()));
    match statement {
        AuthStatement::CreateRole { options, .. } => {
            if options.superuser == Some(true) {
                return unauthorized("Only superusers can create a role with superuser status");
            }
            check_options(options)?;
        }
        AuthStatement::AlterRole { options, .. } => {
            if options.superuser.is_some() {
                return unauthorized("Only superusers are allowed to alter superuser status");
            }
            check_options(options)?;
            if !options.named {
                return Err(Error::Invalid("ALTER [ROLE|USER] can't be empty".to_owned()));
            }
        }
        AuthStatement::GrantPermissions { resource, .. } => check_keyspace(resource, client)?,
        _ => {}
    }
    if client.role.is_none() {
        return unauthorized("You have to be logged in and not anonymous to perform this request");
    }
    Ok(())
}

/// Validates names without a keyspace before the role, as Cassandra does.
fn check_keyspace(resource: &Resource, client: &Client) -> Result<()> {
    match resource {
        Resource::Table(name) => {
            keyspace_of(name, client.keyspace.as_deref())?;
            Ok(())
        }
        Resource::Function(name, _) if name.keyspace.is_none() => Err(Error::Invalid(
            "In this context function name must be explictly qualified by a keyspace".to_owned(),
        )),
        _ => Ok(()),
    }
}

/// Refuses passwords, because there is no authentication.
fn check_options(options: &RoleOptions) -> Result<()> {
    let refused = |option: &str| {
        Err(Error::Invalid(format!(
            "org.apache.cassandra.auth.CassandraRoleManager doesn't support {option}"
        )))
    };
    if options.password.is_some() {
        refused("PASSWORD")
    } else if options.hashed_password.is_some() {
        refused("HASHED_PASSWORD")
    } else if !options.custom.is_empty() {
        refused("OPTIONS")
    } else {
        Ok(())
    }
}
