//! CREATE, ALTER, DROP of roles, and GRANT and REVOKE of roles (`CassandraRoleManager`): checks in the order of Cassandra's statements, and
//! the rows that follow. Users are roles.

use halcyon_access::{Judgement, generated, hash_is_readable};
use halcyon_io::clock::unix_micros;
use halcyon_model::access::{Principal, Resource};
use halcyon_model::options::hash_order;
use halcyon_model::request::Value;
use halcyon_syntax::ast::RoleOptions;

use super::asking::not_anonymous;
use super::store::{self, run, text, texts};
use super::{grants, identities, listings, questions};
use crate::coordinator::Coordinator;
use crate::{Error, Outcome, Result};

fn invalid<T>(text: String) -> Result<T> {
    Err(Error::Invalid(text))
}

pub(super) async fn check_create(
    coordinator: &Coordinator,
    (name, if_not_exists): (&str, bool),
    options: &RoleOptions,
    principal: &Principal,
) -> Result<()> {
    check_options(coordinator, options)?;
    if name.is_empty() {
        return invalid("Role name can't be an empty string".to_owned());
    }
    check_datacenters(coordinator, options)?;
    check_cidrs(coordinator, options).await?;
    not_anonymous(principal)?;
    if !if_not_exists && store::exists(coordinator, name).await? {
        return invalid(format!("{name} already exists"));
    }
    Ok(())
}

pub(super) async fn create(
    coordinator: &Coordinator,
    (name, if_not_exists): (&str, bool),
    options: &RoleOptions,
    principal: &Principal,
) -> Result<Outcome> {
    if store::exists(coordinator, name).await? {
        return Ok(Outcome::Void);
    }
    let secret = secret(coordinator, options)?;
    let hash = hash(coordinator, options, secret.password.as_deref()).await?;
    let _change = coordinator.access().shared.change().await;
    // Another statement may have made it meanwhile.
    if store::exists(coordinator, name).await? {
        return match if_not_exists {
            true => Ok(Outcome::Void),
            false => invalid(format!("{name} already exists")),
        };
    }
    if !store::identities(coordinator, name).await?.is_empty() {
        return Err(Error::Server(format!(
            "java.lang.IllegalStateException: Cannot create a role '{name}' when identities already exists for it"
        )));
    }
    const INSERT: &str = "INSERT INTO system_auth.roles (role, is_superuser, can_login, salted_hash) VALUES (?, ?, ?, ?)";
    let flags = [options.superuser, options.login].map(|flag| [u8::from(flag == Some(true))]);
    let [superuser, login] = flags.each_ref().map(|flag| Value::Bytes(flag));
    let hash = hash.as_deref().map_or(Value::Unset, text);
    run(coordinator, INSERT, &[text(name), superuser, login, hash]).await?;
    let settings = coordinator.access().shared.settings();
    if settings.restricts_datacenters {
        let datacenters = options.datacenters.as_deref().unwrap_or_default();
        store::set_datacenters(coordinator, name, datacenters).await?;
    }
    // Also of a node that asks for no addresses, as in Cassandra.
    let groups = options.cidrs.as_deref().unwrap_or_default();
    store::set_cidr_groups(coordinator, name, groups).await?;
    if settings.authorizes && matches!(principal, Principal::Role { .. }) {
        let resource = Resource::Role(name.to_owned());
        let all = resource.kind().applicable();
        grants::add(coordinator, principal.name(), &resource, all).await?;
    }
    store::changed(coordinator)?;
    Ok(secret.outcome())
}

pub(super) async fn check_alter(
    coordinator: &Coordinator,
    (name, if_exists): (&str, bool),
    options: &RoleOptions,
    principal: &Principal,
) -> Result<()> {
    check_options(coordinator, options)?;
    if !options.named {
        return invalid("ALTER [ROLE|USER] can't be empty".to_owned());
    }
    check_datacenters(coordinator, options)?;
    check_cidrs(coordinator, options).await?;
    not_anonymous(principal)?;
    if !if_exists && !store::exists(coordinator, name).await? {
        return invalid(format!("Role {name} doesn't exist"));
    }
    Ok(())
}

pub(super) async fn alter(
    coordinator: &Coordinator,
    name: &str,
    options: &RoleOptions,
) -> Result<Outcome> {
    if !store::exists(coordinator, name).await? {
        return Ok(Outcome::Void);
    }
    let settings = coordinator.access().shared.settings();
    if options.datacenters.is_some() && !settings.restricts_datacenters {
        let what = "ACCESS TO DATACENTERS operations not supported by AllowAllNetworkAuthorizer";
        return invalid(what.to_owned());
    }
    let secret = secret(coordinator, options)?;
    if secret.password.is_some() {
        limit_password_changes(coordinator, name).await?;
    }
    const UPDATE: &str = "UPDATE system_auth.roles SET is_superuser = ?, can_login = ?, salted_hash = ? WHERE role = ?";
    let hash = hash(coordinator, options, secret.password.as_deref()).await?;
    let _change = coordinator.access().shared.change().await;
    // Another statement may have dropped it meanwhile.
    if !store::exists(coordinator, name).await? {
        return invalid(format!("Role {name} doesn't exist"));
    }
    let flags = [options.superuser, options.login].map(|flag| flag.map(|flag| [u8::from(flag)]));
    let flag = |flag: &Option<[u8; 1]>| flag.is_some();
    if flags.iter().any(flag) || hash.is_some() {
        let [superuser, login] = flags.each_ref().map(|flag| match flag {
            Some(flag) => Value::Bytes(flag),
            None => Value::Unset,
        });
        let hash = hash.as_deref().map_or(Value::Unset, text);
        run(coordinator, UPDATE, &[superuser, login, hash, text(name)]).await?;
    }
    if let Some(datacenters) = &options.datacenters {
        store::set_datacenters(coordinator, name, datacenters).await?;
    }
    if let Some(groups) = &options.cidrs {
        store::set_cidr_groups(coordinator, name, groups).await?;
    }
    store::changed(coordinator)?;
    Ok(secret.outcome())
}

pub(super) async fn check_drop(
    coordinator: &Coordinator,
    (name, if_exists): (&str, bool),
    principal: &Principal,
) -> Result<()> {
    not_anonymous(principal)?;
    if !if_exists && !store::exists(coordinator, name).await? {
        return invalid(format!("{name} doesn't exist"));
    }
    if matches!(principal, Principal::Role { name: own, .. } if own == name) {
        return invalid("Cannot DROP primary role for current login".to_owned());
    }
    Ok(())
}

pub(super) async fn drop_role(coordinator: &Coordinator, name: &str) -> Result<Outcome> {
    if !store::exists(coordinator, name).await? {
        return Ok(Outcome::Void);
    }
    run(coordinator, "DELETE FROM system_auth.roles WHERE role = ?", &[text(name)]).await?;
    const MEMBERS: &str = "SELECT member FROM system_auth.role_members WHERE role = ?";
    for row in run(coordinator, MEMBERS, &[text(name)]).await? {
        if let Some(member) = store::string(row.first()) {
            set_membership(coordinator, false, (name, &member)).await?;
        }
    }
    run(coordinator, "DELETE FROM system_auth.role_members WHERE role = ?", &[text(name)]).await?;
    identities::drop_all(coordinator, name).await?;
    grants::revoke_all_from(coordinator, name).await?;
    grants::revoke_all_on(coordinator, &Resource::Role(name.to_owned())).await?;
    store::drop_datacenters(coordinator, name).await?;
    store::drop_cidr_groups(coordinator, name).await?;
    store::changed(coordinator)
}

pub(super) async fn check_grant(
    coordinator: &Coordinator,
    names: [&str; 2],
    principal: &Principal,
) -> Result<()> {
    not_anonymous(principal)?;
    for name in names {
        if !store::exists(coordinator, name).await? {
            return invalid(format!("{name} doesn't exist"));
        }
    }
    Ok(())
}

/// GRANT and REVOKE of a role.
pub(super) async fn grant(
    coordinator: &Coordinator,
    is_grant: bool,
    [role, grantee]: [&str; 2],
) -> Result<Outcome> {
    let inherits = async |of: &str, other: &str| -> Result<bool> {
        let closure = questions::closure(coordinator, of).await?;
        Ok(closure.iter().any(|role| role.name == other))
    };
    if is_grant {
        if inherits(grantee, role).await? {
            return invalid(format!("{grantee} is a member of {role}"));
        }
        if inherits(role, grantee).await? {
            return invalid(format!("{role} is a member of {grantee}"));
        }
    } else {
        let row = store::role(coordinator, grantee).await?;
        let is_direct = row.is_some_and(|row| row.member_of.iter().any(|of| of == role));
        if !is_direct && role != grantee {
            return invalid(format!("{grantee} is not a member of {role}"));
        }
    }
    set_membership(coordinator, is_grant, (role, grantee)).await?;
    const INSERT: &str = "INSERT INTO system_auth.role_members (role, member) VALUES (?, ?)";
    const DELETE: &str = "DELETE FROM system_auth.role_members WHERE role = ? AND member = ?";
    let statement = if is_grant { INSERT } else { DELETE };
    run(coordinator, statement, &[text(role), text(grantee)]).await?;
    store::changed(coordinator)
}

/// `modifyRoleMembership`
async fn set_membership(
    coordinator: &Coordinator,
    is_member: bool,
    (role, member): (&str, &str),
) -> Result<()> {
    const ADD: &str = "UPDATE system_auth.roles SET member_of = member_of + ? WHERE role = ?";
    const REMOVE: &str = "UPDATE system_auth.roles SET member_of = member_of - ? WHERE role = ?";
    let set = texts([role].into_iter());
    let statement = if is_member { ADD } else { REMOVE };
    run(coordinator, statement, &[Value::Bytes(&set), text(member)]).await.map(drop)
}

/// A password that is named or generated, and what the policy says of it.
#[derive(Default)]
struct Secret {
    password: Option<String>,
    is_generated: bool,
    warning: Option<String>,
}

impl Secret {
    fn outcome(self) -> Outcome {
        let warnings: Vec<String> = self.warning.into_iter().collect();
        match self.password.filter(|_| self.is_generated) {
            Some(password) => listings::generated_password(&password),
            None if warnings.is_empty() => Outcome::Void,
            None => Outcome::Warned(warnings),
        }
    }
}

fn secret(coordinator: &Coordinator, options: &RoleOptions) -> Result<Secret> {
    let policy = coordinator.access().shared.settings().password_policy.as_ref();
    match (&options.generated_password, &options.password, policy) {
        (Some(_), _, Some(policy)) => {
            let none = || Error::Configuration("no password satisfies the policy".to_owned());
            let password = Some(generated(policy).ok_or_else(none)?);
            Ok(Secret { password, is_generated: true, ..Secret::default() })
        }
        (None, Some(password), Some(policy)) => {
            let warning = match policy.judge(password) {
                Judgement::Refused(why) => return invalid(why),
                Judgement::Weak(why) => Some(format!("Guardrail password_policy violated: {why}")),
                Judgement::Good => None,
            };
            let password = Some(password.clone());
            Ok(Secret { password, warning, ..Secret::default() })
        }
        _ => Ok(Secret { password: options.password.clone(), ..Secret::default() }),
    }
}

/// Without a generator, `GENERATED PASSWORD` is a syntax error, as in Cassandra 5.0.
pub(super) fn check_text(coordinator: &Coordinator, options: &RoleOptions) -> Result<()> {
    let policy = coordinator.access().shared.settings().password_policy.as_ref();
    match &options.generated_password {
        Some(unknown) if !policy.is_some_and(|policy| policy.generates) => {
            Err(unknown.clone().into())
        }
        _ => Ok(()),
    }
}

/// `RoleOptions.validate`
fn check_options(coordinator: &Coordinator, options: &RoleOptions) -> Result<()> {
    check_text(coordinator, options)?;
    let settings = coordinator.access().shared.settings();
    let refused = |option: &str| {
        invalid(format!("org.apache.cassandra.auth.CassandraRoleManager doesn't support {option}"))
    };
    if options.password.is_some() && !settings.takes_passwords() {
        return refused("PASSWORD");
    }
    if options.generated_password.is_some() && !settings.takes_passwords() {
        return refused("GENERATED_PASSWORD");
    }
    if options.hashed_password.is_some() && !settings.takes_passwords() {
        return refused("HASHED_PASSWORD");
    }
    if !options.custom.is_empty() {
        return refused("OPTIONS");
    }
    match &options.hashed_password {
        Some(hash) => hash_is_readable(hash).map_err(Error::Invalid),
        None => Ok(()),
    }
}

/// `DCPermissions.validate`
fn check_datacenters(coordinator: &Coordinator, options: &RoleOptions) -> Result<()> {
    let catalog = coordinator.shard().tables().catalog();
    let named = options.datacenters.as_deref().unwrap_or_default();
    match named.iter().all(|name| name == catalog.data_center()) {
        true => Ok(()),
        false => invalid(format!(
            "Invalid value(s) for DATACENTERS '[{}]',All values must be valid datacenters",
            named.join(", ")
        )),
    }
}

/// `CIDRPermissions.validate`
async fn check_cidrs(coordinator: &Coordinator, options: &RoleOptions) -> Result<()> {
    let named = options.cidrs.as_deref().unwrap_or_default();
    if named.is_empty() {
        return Ok(());
    }
    let known = store::cidr_group_names(coordinator).await?;
    let unknown: Vec<&str> =
        named.iter().filter(|name| !known.contains(name)).map(String::as_str).collect();
    match unknown.is_empty() {
        true => Ok(()),
        false => {
            // In the order of a Java HashSet, which grows beyond its first size with the thirteenth.
            let mut names: Vec<&str> = known.iter().map(String::as_str).collect();
            hash_order(&mut names, if known.len() <= 12 { 11 } else { known.len() });
            invalid(format!(
                "Invalid CIDR group(s): [{}]. Available CIDR Groups are: [{}]",
                unknown.join(", "),
                names.join(", ")
            ))
        }
    }
}

/// What is stored of the password, if one is named.
async fn hash(
    coordinator: &Coordinator,
    options: &RoleOptions,
    password: Option<&str>,
) -> Result<Option<String>> {
    match (&options.hashed_password, password) {
        (Some(hash), _) => Ok(Some(hash.clone())),
        (None, Some(password)) => {
            let hashers = coordinator.access().shared.hashers();
            let hash = hashers.hash(password.to_owned()).await;
            hash.map(Some).map_err(|full| Error::Overloaded(full.to_string()))
        }
        (None, None) => Ok(None),
    }
}

/// `enforcePasswordUpdateRateLimit` (CVE-2026-32588)
async fn limit_password_changes(coordinator: &Coordinator, role: &str) -> Result<()> {
    let shared = &coordinator.access().shared;
    let interval = shared.settings().password_update_min_interval;
    if interval.is_zero() {
        return Ok(());
    }
    let written = store::password_time(coordinator, role).await?;
    let interval_micros = i64::try_from(interval.as_micros()).unwrap_or(i64::MAX);
    let is_recent = |written: i64| unix_micros().saturating_sub(written) < interval_micros;
    if written.is_some_and(is_recent) || !shared.claims_password_update(role) {
        return Err(Error::Overloaded(format!(
            "Password for role {role} can only be changed every {}ms.",
            interval.as_millis()
        )));
    }
    Ok(())
}
