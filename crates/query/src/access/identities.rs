//! ADD and DROP IDENTITY: which role a client certificate stands for.

use halcyon_model::access::Principal;

use super::asking::not_anonymous;
use super::store::{self, run, text};
use crate::coordinator::Coordinator;
use crate::{Error, Outcome, Result};

pub(super) async fn check_add(
    coordinator: &Coordinator,
    (identity, role): (&str, &str),
    if_not_exists: bool,
    principal: &Principal,
) -> Result<()> {
    not_anonymous(principal)?;
    if !store::exists(coordinator, role).await? {
        let text = format!("Can not add identity for non-existent role '{role}'");
        return Err(Error::Invalid(text));
    }
    if !if_not_exists && store::role_of_identity(coordinator, identity).await?.is_some() {
        return Err(Error::Invalid(format!("{identity} already exists")));
    }
    Ok(())
}

pub(super) async fn add(
    coordinator: &Coordinator,
    (identity, role): (&str, &str),
) -> Result<Outcome> {
    if store::role_of_identity(coordinator, identity).await?.is_some() {
        return Ok(Outcome::Void);
    }
    const INSERT: &str = "INSERT INTO system_auth.identity_to_role (identity, role) VALUES (?, ?)";
    run(coordinator, INSERT, &[text(identity), text(role)]).await?;
    store::changed(coordinator)
}

pub(super) async fn check_drop(
    coordinator: &Coordinator,
    identity: &str,
    if_exists: bool,
    principal: &Principal,
) -> Result<()> {
    not_anonymous(principal)?;
    if !if_exists && store::role_of_identity(coordinator, identity).await?.is_none() {
        return Err(Error::Invalid(format!("identity '{identity}' doesn't exist")));
    }
    Ok(())
}

pub(super) async fn drop_identity(coordinator: &Coordinator, identity: &str) -> Result<Outcome> {
    delete(coordinator, identity).await?;
    store::changed(coordinator)
}

/// Those of a role that is dropped.
pub(super) async fn drop_all(coordinator: &Coordinator, role: &str) -> Result<()> {
    for identity in store::identities(coordinator, role).await? {
        delete(coordinator, &identity).await?;
    }
    Ok(())
}

async fn delete(coordinator: &Coordinator, identity: &str) -> Result<()> {
    const DELETE: &str = "DELETE FROM system_auth.identity_to_role WHERE identity = ?";
    run(coordinator, DELETE, &[text(identity)]).await.map(drop)
}
