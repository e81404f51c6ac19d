//! GRANT and REVOKE of permissions (`CassandraAuthorizer`).

use halcyon_access::{Permissions, is_grantable_in};
use halcyon_cql::plan::requires::{applicable, resource};
use halcyon_model::access::{Permission, Principal, Resource};
use halcyon_model::request::Value;
use halcyon_schema::catalog::Catalog;
use halcyon_schema::function::signature;
use halcyon_syntax::ast::GrantedOn;

use super::asking::not_anonymous;
use super::object_name;
use super::store::{self, run, text, texts};
use crate::coordinator::Coordinator;
use crate::{Error, Outcome, Result};

/// GRANT or REVOKE of permissions, as it is written.
#[derive(Clone, Copy)]
pub(super) struct Granting<'a> {
    pub(super) is_grant: bool,
    pub(super) permissions: &'a [Permission],
    pub(super) resource: &'a GrantedOn,
    pub(super) grantee: &'a str,
}

pub(super) async fn check(
    coordinator: &Coordinator,
    granting: Granting<'_>,
    keyspace: Option<&str>,
    principal: &Principal,
) -> Result<()> {
    let Granting { is_grant, permissions, resource, grantee } = granting;
    check_text(coordinator, resource)?;
    not_anonymous(principal)?;
    if !store::exists(coordinator, grantee).await? {
        return Err(Error::Invalid(format!("Role {grantee} doesn't exist")));
    }
    let resource = named(coordinator, resource, keyspace)?;
    if !exists(coordinator, &resource).await? {
        return Err(Error::Invalid(format!("Resource {resource} doesn't exist")));
    }
    let permissions = applicable(permissions, &resource);
    if is_grant && !permissions.iter().all(|of| is_grantable_in(*of, &resource)) {
        let what = "Granting permissions on system keyspaces is strictly limited, this operation is not permitted";
        return Err(Error::Unauthorized(what.to_owned()));
    }
    Ok(())
}

pub(super) async fn execute(
    coordinator: &Coordinator,
    granting: Granting<'_>,
    keyspace: Option<&str>,
) -> Result<Outcome> {
    let Granting { is_grant, permissions, resource, grantee } = granting;
    let resource = named(coordinator, resource, keyspace)?;
    let permissions = applicable(permissions, &resource);
    if !coordinator.access().shared.settings().authorizes {
        let verb = if is_grant { "GRANT" } else { "REVOKE" };
        return Err(Error::Server(format!(
            "java.lang.UnsupportedOperationException: {verb} operation is not supported by AllowAllAuthorizer"
        )));
    }
    let without_effect = match is_grant {
        true => add(coordinator, grantee, &resource, &permissions).await?,
        false => revoke(coordinator, grantee, &resource, &permissions).await?,
    };
    store::changed(coordinator)?;
    if without_effect.is_empty() {
        return Ok(Outcome::Void);
    }
    let names: Vec<&str> = without_effect.iter().map(|of| of.name()).collect();
    let done = if is_grant { "already granted" } else { "not granted" };
    let warning = format!("Role '{grantee}' was {done} {} on {resource}", names.join(", "));
    Ok(Outcome::Warned(vec![warning]))
}

/// Refuses what Cassandra refuses while it parses the statement, before it asks for a login.
pub(super) fn check_text(coordinator: &Coordinator, granted: &GrantedOn) -> Result<()> {
    match granted {
        GrantedOn::Function(..) => named(coordinator, granted, None).map(drop),
        GrantedOn::Resource(Resource::MBean(name)) => object_name::check(name),
        GrantedOn::Table(_) | GrantedOn::Resource(_) => Ok(()),
    }
}

/// The resource that a statement names.
pub(super) fn named(
    coordinator: &Coordinator,
    granted: &GrantedOn,
    keyspace: Option<&str>,
) -> Result<Resource> {
    let catalog = coordinator.shard().tables().catalog();
    Ok(resource(granted, &catalog, keyspace)?)
}

/// `IResource.exists`
pub(super) async fn exists(coordinator: &Coordinator, resource: &Resource) -> Result<bool> {
    if let Resource::Role(role) = resource {
        return store::exists(coordinator, role).await;
    }
    Ok(coordinator.shard().tables().with_catalog(|catalog| is_in(catalog, resource)))
}

fn is_in(catalog: &Catalog, resource: &Resource) -> bool {
    match resource {
        Resource::Keyspace(keyspace)
        | Resource::AllTables(keyspace)
        | Resource::FunctionsOf(keyspace) => catalog.keyspace(keyspace).is_some(),
        Resource::Table { keyspace, table } => catalog.table(keyspace, table).is_some(),
        Resource::Function { keyspace, name, arguments } => {
            let signature = signature(name, arguments);
            catalog.keyspace(keyspace).is_some_and(|keyspace| {
                let functions = &keyspace.functions;
                functions.scalars.contains_key(&signature)
                    || functions.aggregates.contains_key(&signature)
            })
        }
        Resource::MBean(name) => object_name::is_valid(name),
        Resource::Role(_) => false,
        Resource::AllKeyspaces
        | Resource::AllFunctions
        | Resource::AllRoles
        | Resource::AllMBeans => true,
    }
}

/// Grants; which the role had already.
pub(super) async fn add(
    coordinator: &Coordinator,
    role: &str,
    resource: &Resource,
    permissions: &[Permission],
) -> Result<Vec<Permission>> {
    const UPDATE: &str = "UPDATE system_auth.role_permissions SET permissions = permissions + ? WHERE role = ? AND resource = ?";
    const INDEX: &str =
        "INSERT INTO system_auth.resource_role_permissons_index (resource, role) VALUES (?, ?)";
    let before = own(coordinator, role, resource).await?;
    let (had, new): (Vec<Permission>, Vec<_>) =
        permissions.iter().partition(|permission| before.contains(**permission));
    if !new.is_empty() {
        let name = resource.name();
        let set = texts(new.iter().map(|of| of.name()));
        // First, so that no grant is without its entry, which DROP needs.
        run(coordinator, INDEX, &[text(&name), text(role)]).await?;
        run(coordinator, UPDATE, &[Value::Bytes(&set), text(role), text(&name)]).await?;
    }
    Ok(had)
}

/// Revokes; which the role did not have.
async fn revoke(
    coordinator: &Coordinator,
    role: &str,
    resource: &Resource,
    permissions: &[Permission],
) -> Result<Vec<Permission>> {
    const UPDATE: &str = "UPDATE system_auth.role_permissions SET permissions = permissions - ? WHERE role = ? AND resource = ?";
    const INDEX: &str =
        "DELETE FROM system_auth.resource_role_permissons_index WHERE resource = ? AND role = ?";
    let before = own(coordinator, role, resource).await?;
    let (had, lacked): (Vec<Permission>, Vec<_>) =
        permissions.iter().partition(|permission| before.contains(**permission));
    if !had.is_empty() {
        let name = resource.name();
        let set = texts(had.iter().map(|of| of.name()));
        run(coordinator, UPDATE, &[Value::Bytes(&set), text(role), text(&name)]).await?;
        // Cassandra removes it with the first permission; a DROP of the resource would then leave the others.
        if before.iter().all(|of| had.contains(&of)) {
            run(coordinator, INDEX, &[text(&name), text(role)]).await?;
        }
    }
    Ok(lacked)
}

/// What the role was granted on this very resource.
async fn own(coordinator: &Coordinator, role: &str, resource: &Resource) -> Result<Permissions> {
    store::granted(coordinator, role, std::slice::from_ref(resource)).await
}

/// Of a role that is dropped.
pub(super) async fn revoke_all_from(coordinator: &Coordinator, role: &str) -> Result<()> {
    const INDEX: &str =
        "DELETE FROM system_auth.resource_role_permissons_index WHERE resource = ? AND role = ?";
    for (_, resource, _) in store::grants(coordinator, Some(role)).await? {
        run(coordinator, INDEX, &[text(&resource), text(role)]).await?;
    }
    const DELETE: &str = "DELETE FROM system_auth.role_permissions WHERE role = ?";
    run(coordinator, DELETE, &[text(role)]).await.map(drop)
}

/// On what is dropped.
pub(super) async fn revoke_all_on(coordinator: &Coordinator, resource: &Resource) -> Result<()> {
    const ROLES: &str =
        "SELECT role FROM system_auth.resource_role_permissons_index WHERE resource = ?";
    const DELETE: &str = "DELETE FROM system_auth.role_permissions WHERE role = ? AND resource = ?";
    const INDEX: &str = "DELETE FROM system_auth.resource_role_permissons_index WHERE resource = ?";
    let name = resource.name();
    let rows = run(coordinator, ROLES, &[text(&name)]).await?;
    if rows.is_empty() {
        return Ok(());
    }
    for role in rows.iter().filter_map(|row| store::string(row.first())) {
        run(coordinator, DELETE, &[text(&role), text(&name)]).await?;
    }
    run(coordinator, INDEX, &[text(&name)]).await.map(drop)
}
