//! Logins with a password (`PasswordAuthenticator`), and the role that a node without roles gets.

use std::net::IpAddr;

use halcyon_access::{DEFAULT_SUPERUSER, Full};
use halcyon_io::clock;
use halcyon_model::access::Principal;
use halcyon_model::request::Value;

use super::questions;
use super::store::{self, run, text};
use crate::coordinator::Coordinator;
use crate::{Error, Result};

/// The principal of a role and its password, which are sent from an address. The password is compared on another thread.
pub async fn log_in(
    coordinator: &Coordinator,
    role: String,
    password: String,
    address: IpAddr,
) -> Result<Principal> {
    let attempts = coordinator.access().shared.attempts();
    let Some(attempt) = attempts.begin(address) else {
        return Err(Error::Overloaded(format!(
            "too many logins from {address} at once; try again later"
        )));
    };
    let login = compare(coordinator, &role, password).await;
    drop(attempt);
    match login {
        Ok(()) => Ok(Principal::Role { name: role, address }),
        Err(refused @ Error::BadCredentials(_)) => {
            clock::sleep(attempts.refuse(address, &role)).await;
            Err(refused)
        }
        Err(other) => Err(other),
    }
}

async fn compare(coordinator: &Coordinator, role: &str, password: String) -> Result<()> {
    let wrong = || {
        let text = format!("Provided username {role} and/or password are incorrect");
        Error::BadCredentials(text)
    };
    let unable = |error: Error| match error {
        Error::Overloaded(text) => Error::Overloaded(text),
        error => Error::BadCredentials(format!("Unable to perform authentication: {error}")),
    };
    let Some(hash) = credentials(coordinator, role).await.map_err(unable)? else {
        let hashers = coordinator.access().shared.hashers();
        hashers.pretend(password).await.map_err(unhashed)?;
        return Err(wrong());
    };
    if !verify(coordinator, password, hash).await? {
        return Err(wrong());
    }
    match questions::role(coordinator, role).await.map_err(unable)?.can_login {
        true => Ok(()),
        false => Err(Error::BadCredentials(format!("{role} is not permitted to log in"))),
    }
}

/// The principal that a certificate's identity stands for (`MutualTlsAuthenticator`).
pub async fn log_in_as(
    coordinator: &Coordinator,
    identity: &str,
    address: IpAddr,
) -> Result<Principal> {
    let refused = |text: String| Error::BadCredentials(text);
    let unable = |error: Error| refused(format!("Unable to perform authentication: {error}"));
    let role = store::role_of_identity(coordinator, identity).await.map_err(unable)?;
    let role =
        role.ok_or_else(|| refused(format!("Certificate identity '{identity}' not authorized")))?;
    if !questions::role(coordinator, &role).await.map_err(unable)?.can_login {
        return Err(refused(format!("{role} is not permitted to log in")));
    }
    Ok(Principal::Role { name: role, address })
}

async fn verify(coordinator: &Coordinator, password: String, hash: String) -> Result<bool> {
    let verified = coordinator.access().shared.hashers().verify(password, hash).await;
    verified.map_err(unhashed)
}

fn unhashed(full: Full) -> Error {
    match full {
        Full::Full => Error::Overloaded(full.to_string()),
        Full::Failed(_) => Error::Server(full.to_string()),
    }
}

/// The hash of a role's password, from memory or from its row.
async fn credentials(coordinator: &Coordinator, role: &str) -> Result<Option<String>> {
    let state = coordinator.access();
    if let Some(known) = state.cache.borrow_mut().credentials(&state.shared, role) {
        return Ok(known);
    }
    fresh_credentials(coordinator, role).await
}

/// From its row; it is kept.
pub(super) async fn fresh_credentials(
    coordinator: &Coordinator,
    role: &str,
) -> Result<Option<String>> {
    let state = coordinator.access();
    let shared = &state.shared;
    let epoch = shared.epoch();
    let hash = store::salted_hash(coordinator, role).await?;
    if hash.is_some() {
        // Names that are not roles are not kept: clients choose them.
        state.cache.borrow_mut().put_credentials(shared, epoch, role, hash.clone());
    }
    Ok(hash)
}

/// What a start finds of the default superuser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefaultSuperuser {
    Created,
    /// Its password is the one that everybody knows.
    HasDefaultPassword,
    /// It is absent, or its password is another one.
    IsSafe,
}

/// Makes the default superuser if no role exists (`CassandraRoleManager.setupDefaultRole`).
pub async fn default_superuser(coordinator: &Coordinator) -> Result<DefaultSuperuser> {
    const INSERT: &str = "INSERT INTO system_auth.roles (role, is_superuser, can_login, salted_hash) VALUES (?, true, true, ?) USING TIMESTAMP 0";
    let name = DEFAULT_SUPERUSER;
    if store::all_roles(coordinator).await?.is_empty() {
        let hash = coordinator.access().shared.hashers().hash(name.to_owned()).await;
        let hash = hash.map_err(|full| Error::Server(full.to_string()))?;
        run(coordinator, INSERT, &[text(name), Value::Bytes(hash.as_bytes())]).await?;
        store::changed(coordinator)?;
        return Ok(DefaultSuperuser::Created);
    }
    let hash = store::salted_hash(coordinator, name).await?;
    let can_login = store::role(coordinator, name).await?.is_some_and(|role| role.can_login);
    let has_default = match hash.filter(|_| can_login) {
        Some(hash) => verify(coordinator, name.to_owned(), hash).await?,
        None => false,
    };
    Ok(if has_default { DefaultSuperuser::HasDefaultPassword } else { DefaultSuperuser::IsSafe })
}
