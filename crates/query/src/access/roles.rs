//! Checks of statements about roles and permissions that follow those of permissions (`CQLStatement.validate`).

use halcyon_model::access::Principal;
use halcyon_schema::change::keyspace_of;
use halcyon_syntax::ast::{AuthStatement, GrantedOn, RoleOptions};

use crate::{Error, Result};

pub(super) fn validate(
    statement: &AuthStatement,
    keyspace: Option<&str>,
    principal: &Principal,
) -> Result<()> {
    match statement {
        AuthStatement::CreateRole { options, .. } => check_options(options)?,
        AuthStatement::AlterRole { options, .. } => {
            check_options(options)?;
            if !options.named {
                return Err(Error::Invalid("ALTER [ROLE|USER] can't be empty".to_owned()));
            }
        }
        AuthStatement::GrantPermissions { resource, .. } => check_keyspace(resource, keyspace)?,
        _ => {}
    }
    match principal {
        Principal::Anonymous => Err(Error::Unauthorized(
            "You have to be logged in and not anonymous to perform this request".to_owned(),
        )),
        Principal::System | Principal::Role { .. } => Ok(()),
    }
}

/// Validates names without a keyspace before the role, as Cassandra does.
fn check_keyspace(granted: &GrantedOn, keyspace: Option<&str>) -> Result<()> {
    match granted {
        GrantedOn::Table(name) => {
            keyspace_of(name, keyspace)?;
            Ok(())
        }
        GrantedOn::Function(name, _) if name.keyspace.is_none() => Err(Error::Invalid(
            "In this context function name must be explictly qualified by a keyspace".to_owned(),
        )),
        GrantedOn::Function(..) | GrantedOn::Resource(_) => Ok(()),
    }
}

/// Refuses passwords: the node does not authenticate clients.
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
