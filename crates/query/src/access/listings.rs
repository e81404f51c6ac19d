//! LIST of roles, users and permissions.

use std::collections::BTreeSet;

use halcyon_access::{Permissions, chain};
use halcyon_model::CqlType;
use halcyon_model::access::{Permission, Principal, Resource};
use halcyon_model::request::ColumnSpec;
use halcyon_syntax::ast::GrantedOn;

use super::asking::{has, is_superuser, not_anonymous};
use super::{grants, questions, store};
use crate::coordinator::Coordinator;
use crate::{Error, Outcome, Result, Rows};

/// Rows under construction.
struct Listing {
    rows: Rows,
}

impl Listing {
    fn new(table: &str, columns: &[(&str, CqlType)]) -> Listing {
        let column = |(name, cql_type): &(&str, CqlType)| ColumnSpec {
            keyspace: "system_auth".to_owned(),
            table: table.to_owned(),
            name: (*name).to_owned(),
            cql_type: cql_type.clone(),
        };
        let columns = columns.iter().map(column).collect();
        Listing { rows: Rows { columns, ..Rows::default() } }
    }

    fn row(&mut self, values: &[&[u8]]) {
        for value in values {
            let length = i32::try_from(value.len()).unwrap_or(i32::MAX);
            self.rows.content.extend(length.to_be_bytes());
            self.rows.content.extend(*value);
        }
        self.rows.count += 1;
    }
}

/// The answer of a statement with `GENERATED PASSWORD`. The password is shown only once.
pub(super) fn generated_password(password: &str) -> Outcome {
    let mut listing = Listing::new("roles", &[("generated_password", CqlType::Text)]);
    listing.row(&[password.as_bytes()]);
    Outcome::Rows(listing.rows)
}

/// Checks the role of a LIST … OF.
pub(super) async fn check_roles(
    coordinator: &Coordinator,
    of: Option<&str>,
    principal: &Principal,
) -> Result<()> {
    not_anonymous(principal)?;
    if let Some(of) = of
        && !store::exists(coordinator, of).await?
    {
        let role = Resource::Role(of.to_owned());
        return Err(Error::Invalid(format!("{role} doesn't exist")));
    }
    Ok(())
}

/// LIST ROLES
pub(super) async fn roles(
    coordinator: &Coordinator,
    (of, recursive): (Option<&str>, bool),
    principal: &Principal,
) -> Result<Outcome> {
    let names = visible(coordinator, of, recursive, principal).await?;
    if names.is_empty() {
        return Ok(Outcome::Void);
    }
    let options = CqlType::Map(Box::new(CqlType::Text), Box::new(CqlType::Text));
    let columns = [
        ("role", CqlType::Text),
        ("super", CqlType::Boolean),
        ("login", CqlType::Boolean),
        ("options", options),
        ("datacenters", CqlType::Text),
    ];
    let mut listing = Listing::new("roles", &columns);
    for name in names {
        let Some(role) = store::role(coordinator, &name).await? else { continue };
        let datacenters = datacenters(coordinator, &name).await?;
        let (superuser, login) = ([u8::from(role.is_superuser)], [u8::from(role.can_login)]);
        // No options: an empty map.
        listing.row(&[name.as_bytes(), &superuser, &login, &[0; 4], datacenters.as_bytes()]);
    }
    Ok(Outcome::Rows(listing.rows))
}

/// LIST USERS: the roles that can log in.
pub(super) async fn users(coordinator: &Coordinator, principal: &Principal) -> Result<Outcome> {
    let names = visible(coordinator, None, true, principal).await?;
    if names.is_empty() {
        return Ok(Outcome::Void);
    }
    let columns =
        [("name", CqlType::Text), ("super", CqlType::Boolean), ("datacenters", CqlType::Text)];
    let mut listing = Listing::new("users", &columns);
    for name in names {
        let facts = questions::role(coordinator, &name).await?;
        if facts.can_login {
            let datacenters = datacenters(coordinator, &name).await?;
            let superuser = [u8::from(facts.is_superuser)];
            listing.row(&[name.as_bytes(), &superuser, datacenters.as_bytes()]);
        }
    }
    Ok(Outcome::Rows(listing.rows))
}

/// The roles that the principal may see.
async fn visible(
    coordinator: &Coordinator,
    of: Option<&str>,
    recursive: bool,
    principal: &Principal,
) -> Result<BTreeSet<String>> {
    let own = principal.name();
    let sees_all = has(coordinator, principal, Permission::Describe, &Resource::AllRoles).await?;
    match of {
        None if sees_all => Ok(store::all_roles(coordinator).await?.into_iter().collect()),
        None => granted(coordinator, own, recursive).await,
        Some(of) if sees_all || granted(coordinator, own, true).await?.contains(of) => {
            granted(coordinator, of, recursive).await
        }
        Some(of) => Err(Error::Unauthorized(format!(
            "You are not authorized to view roles granted to {of} "
        ))),
    }
}

/// `CassandraRoleManager.getRoles`: the role itself too.
async fn granted(
    coordinator: &Coordinator,
    role: &str,
    recursive: bool,
) -> Result<BTreeSet<String>> {
    let roles = questions::closure(coordinator, role).await?;
    let direct = roles.first().map(|role| role.member_of.clone()).unwrap_or_default();
    let names = roles.into_iter().map(|role| role.name);
    Ok(names.filter(|name| recursive || name == role || direct.contains(name)).collect())
}

async fn datacenters(coordinator: &Coordinator, role: &str) -> Result<String> {
    let facts = questions::role(coordinator, role).await?;
    let restricts = coordinator.access().shared.settings().restricts_datacenters;
    Ok(match &facts.datacenters {
        _ if restricts && !facts.can_login => "n/a".to_owned(),
        Some(names) if !facts.is_superuser => names.join(", "),
        _ => "ALL".to_owned(),
    })
}

/// LIST PERMISSIONS, as it is written.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) permissions: &'a [Permission],
    pub(super) resource: Option<&'a GrantedOn>,
    pub(super) of: Option<&'a str>,
    pub(super) recursive: bool,
}

pub(super) async fn check_permissions(
    coordinator: &Coordinator,
    wanted: Wanted<'_>,
    keyspace: Option<&str>,
    principal: &Principal,
) -> Result<()> {
    wanted.resource.map_or(Ok(()), |named| grants::check_text(coordinator, named))?;
    not_anonymous(principal)?;
    let resource = wanted.resource.map(|named| grants::named(coordinator, named, keyspace));
    let resource = resource.transpose()?;
    if let Some(resource) = &resource
        && !grants::exists(coordinator, resource).await?
    {
        return Err(Error::Invalid(format!("{resource} doesn't exist")));
    }
    check_roles(coordinator, wanted.of, principal).await
}

pub(super) async fn permissions(
    coordinator: &Coordinator,
    wanted: Wanted<'_>,
    keyspace: Option<&str>,
    principal: &Principal,
) -> Result<Outcome> {
    let Wanted { permissions, resource, of, recursive } = wanted;
    let resource = resource.map(|named| grants::named(coordinator, named, keyspace)).transpose()?;
    if !coordinator.access().shared.settings().authorizes {
        let what = "LIST PERMISSIONS operation is not supported by AllowAllAuthorizer";
        return Err(Error::Invalid(what.to_owned()));
    }
    check_view(coordinator, of, principal).await?;
    let resources: Option<Vec<String>> = resource.map(|resource| match recursive {
        true => chain(&resource, false).iter().map(Resource::name).collect(),
        false => vec![resource.name()],
    });
    let wanted: Permissions = permissions.iter().copied().collect();
    let mut found = BTreeSet::new();
    for (role, name, granted) in all_grants(coordinator, of).await? {
        if resources.as_ref().is_none_or(|resources| resources.contains(&name)) {
            let granted = granted.iter().filter(|permission| wanted.contains(*permission));
            found.extend(granted.map(|permission| (role.clone(), name.clone(), permission)));
        }
    }
    if found.is_empty() {
        return Ok(Outcome::Void);
    }
    let columns = ["role", "username", "resource", "permission"].map(|name| (name, CqlType::Text));
    let mut listing = Listing::new("permissions", &columns);
    for (role, name, permission) in found {
        // A name that Cassandra could not read either is shown as it is stored.
        let resource = Resource::of_name(&name).map_or(name, |resource| resource.to_string());
        let (role, permission) = (role.as_bytes(), permission.name().as_bytes());
        listing.row(&[role, role, resource.as_bytes(), permission]);
    }
    Ok(Outcome::Rows(listing.rows))
}

async fn check_view(
    coordinator: &Coordinator,
    of: Option<&str>,
    principal: &Principal,
) -> Result<()> {
    if is_superuser(coordinator, principal).await? {
        return Ok(());
    }
    if let Some(of) = of
        && questions::role(coordinator, principal.name()).await?.includes(of)
    {
        return Ok(());
    }
    let role = of.map_or(Resource::AllRoles, |of| Resource::Role(of.to_owned()));
    match has(coordinator, principal, Permission::Describe, &role).await? {
        true => Ok(()),
        false => Err(Error::Unauthorized(format!(
            "You are not authorized to view {}'s permissions",
            of.unwrap_or("everyone")
        ))),
    }
}

/// The grants of a role and of all that it inherits, or of every role.
async fn all_grants(coordinator: &Coordinator, of: Option<&str>) -> Result<Vec<store::Grant>> {
    let Some(of) = of else { return store::grants(coordinator, None).await };
    let mut all = Vec::new();
    for role in granted(coordinator, of, true).await? {
        all.extend(store::grants(coordinator, Some(&role)).await?);
    }
    Ok(all)
}
