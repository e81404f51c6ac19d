//! Roles and permissions, as a Cassandra with AllowAllAuthenticator and AllowAllAuthorizer answers them: whoever asks is
//! anonymous, and the anonymous may not.

use halcyon_cql::ast::{AuthStatement, RoleOptions};

use crate::coordinator::Client;
use crate::{Error, Outcome, Result};

pub(super) fn execute(statement: &AuthStatement, client: &Client) -> Result<Outcome> {
    if let AuthStatement::CreateRole { options, .. } | AuthStatement::AlterRole { options, .. } =
        statement
    {
        check_options(options)?;
    }
    if client.role.is_none() {
        let what = "You have to be logged in and not anonymous to perform this request";
        return Err(Error::Unauthorized(what.to_owned()));
    }
    Err(Error::Invalid("not supported yet: roles and permissions".to_owned()))
}

/// Without authentication there are no passwords.
fn check_options(options: &RoleOptions) -> Result<()> {
    let refused = |option: &str| {
        Err(Error::Invalid(format!(
            "org.apache.cassandra.auth.CassandraRoleManager doesn't support {option}"
        )))
    };
    if options.password.is_some() {
        refused("PASSWORD")
    } else if options.hashed_password.is_some() {
        refused("HASHED PASSWORD")
    } else if !options.custom.is_empty() {
        refused("OPTIONS")
    } else {
        Ok(())
    }
}
