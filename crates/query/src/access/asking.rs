//! Asks the judge, and learns what it lacks.

use halcyon_access::CidrMode;
use halcyon_cql::plan::requires::Requirement;
use halcyon_guardrails::Guard;
use halcyon_model::access::{Permission, Principal, Resource};

use super::judge::{Judge, Origin, Stop};
use super::questions::Learnt;
use crate::coordinator::Coordinator;
use crate::prepared::PreparedStatement;
use crate::{Error, Result};

/// Asks for what a statement requires: what is in memory first.
pub(super) async fn permit(
    coordinator: &Coordinator,
    requires: &[Requirement],
    principal: &Principal,
) -> Result<()> {
    match Judge::new(coordinator, principal, &Learnt::default()).all(requires) {
        Ok(()) => Ok(()),
        Err(Stop::Refused(error)) => Err(error),
        // Boxed: it is rare, and every request copies its future.
        Err(Stop::Unknown(_)) => Box::pin(ask(coordinator, requires, principal)).await,
    }
}

/// Whether a principal may execute a statement that reads or writes rows.
pub async fn may_execute(
    coordinator: &Coordinator,
    statement: &PreparedStatement,
    principal: &Principal,
) -> bool {
    permit(coordinator, &statement.requires, principal).await.is_ok()
}

/// Whether a client may stay connected: not if its role was dropped, or may not log in any more.
pub async fn may_stay(coordinator: &Coordinator, principal: &Principal) -> bool {
    !matches!(Box::pin(ask(coordinator, &[], principal)).await, Err(Error::Unauthorized(_)))
}

/// Where a role comes from that is watched and not refused (`CIDRAuthorizerMode.MONITOR`).
pub async fn watched(coordinator: &Coordinator, principal: &Principal) -> Option<Origin> {
    let settings = coordinator.access().shared.settings();
    let is_on = settings.cidrs.is_some_and(|cidrs| cidrs.mode == CidrMode::Monitor);
    match principal {
        Principal::Role { name, address } if is_on => {
            decide(coordinator, principal, |judge| judge.origin(name, *address)).await.ok()
        }
        _ => None,
    }
}

async fn ask(
    coordinator: &Coordinator,
    requires: &[Requirement],
    principal: &Principal,
) -> Result<()> {
    decide(coordinator, principal, |judge| judge.all(requires)).await
}

/// A decision of the judge, after all that it lacks has been read.
async fn decide<T>(
    coordinator: &Coordinator,
    principal: &Principal,
    decision: impl Fn(&Judge<'_>) -> std::result::Result<T, Stop>,
) -> Result<T> {
    let mut learnt = Learnt::default();
    loop {
        match decision(&Judge::new(coordinator, principal, &learnt)) {
            Ok(decided) => return Ok(decided),
            Err(Stop::Refused(error)) => return Err(error),
            Err(Stop::Unknown(question)) => learnt.learn(coordinator, question).await?,
        }
    }
}

/// Whether the principal is a superuser.
pub(super) async fn is_superuser(coordinator: &Coordinator, who: &Principal) -> Result<bool> {
    decide(coordinator, who, |judge| judge.is_superuser()).await
}

/// The guard of a new request. Superusers are exempt from guardrails; a role that cannot be looked up is not.
pub async fn guard_of(coordinator: &Coordinator, who: &Principal) -> Guard {
    let is_exempt = match who {
        Principal::Role { .. } => {
            match Judge::new(coordinator, who, &Learnt::default()).is_superuser() {
                Ok(is_superuser) => is_superuser,
                Err(Stop::Refused(_)) => false,
                // Boxed, as in `permit`.
                Err(Stop::Unknown(_)) => {
                    matches!(Box::pin(is_superuser(coordinator, who)).await, Ok(true))
                }
            }
        }
        Principal::System | Principal::Anonymous => false,
    };
    coordinator.guardrails().guard_of(who, is_exempt)
}

/// Whether the principal has a permission on a resource itself or what contains it.
pub(super) async fn has(
    coordinator: &Coordinator,
    principal: &Principal,
    permission: Permission,
    resource: &Resource,
) -> Result<bool> {
    decide(coordinator, principal, |judge| judge.has(permission, resource)).await
}

/// `ClientState.ensureNotAnonymous`
pub(super) fn not_anonymous(principal: &Principal) -> Result<()> {
    match principal {
        Principal::Anonymous => Err(Error::Unauthorized(
            "You have to be logged in and not anonymous to perform this request".to_owned(),
        )),
        Principal::System | Principal::Role { .. } => Ok(()),
    }
}
