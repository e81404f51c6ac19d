//! What statements about roles and permissions require.

use halcyon_model::CqlType;
use halcyon_model::access::{Permission, Resource};
use halcyon_schema::catalog::Catalog;
use halcyon_schema::change::keyspace_of;
use halcyon_syntax::ast::{AuthStatement, GrantedOn, RoleOptions};
use halcyon_syntax::{Error, Result};

use super::requirement::Requirement;
use crate::plan::term::resolve_type;

pub(super) fn of(
    statement: &AuthStatement,
    catalog: &Catalog,
    keyspace: Option<&str>,
) -> Vec<Requirement> {
    let privilege = |permission, resource| Requirement::Privilege(permission, resource);
    let role = |name: &String| Resource::Role(name.clone());
    match statement {
        AuthStatement::CreateRole { options, .. } => {
            let refusal = "Only superusers can create a role with superuser status";
            let superuser = options.superuser.filter(|is_wanted| *is_wanted);
            let superuser = superuser.map(|_| Requirement::SuperuserRole(refusal));
            let create = privilege(Permission::Create, Resource::AllRoles);
            [create].into_iter().chain(superuser).collect()
        }
        AuthStatement::AlterRole { name, options, .. } => altered(name, options),
        AuthStatement::DropRole { name, .. } => {
            let refusal = "Only superusers can drop a role with superuser status";
            let over = Requirement::SuperuserOver(name.clone(), refusal);
            vec![privilege(Permission::Drop, role(name)), over]
        }
        AuthStatement::GrantRole { role: name, .. } => {
            vec![privilege(Permission::Authorize, role(name))]
        }
        AuthStatement::GrantPermissions { permissions, resource: granted, .. } => {
            let Ok(resource) = resource(granted, catalog, keyspace) else { return Vec::new() };
            let granted = applicable(permissions, &resource);
            let each = [Permission::Authorize].into_iter().chain(granted);
            each.map(|permission| Requirement::Grantable(permission, resource.clone())).collect()
        }
        AuthStatement::AddIdentity { role, .. } => {
            let refusal = "Only superusers can bind identities to a role with superuser status";
            let over = Requirement::SuperuserOver(role.clone(), refusal);
            vec![privilege(Permission::Create, Resource::AllRoles), over]
        }
        AuthStatement::DropIdentity { identity, .. } => {
            let refusal =
                "Only superusers can remove identity bindings from a role with superuser status";
            vec![Requirement::DropIdentity(identity.clone(), refusal)]
        }
        AuthStatement::ListPermissions { .. }
        | AuthStatement::ListRoles { .. }
        | AuthStatement::ListUsers => Vec::new(),
    }
}

/// In the order of `AlterRoleStatement.authorize`.
fn altered(name: &str, options: &RoleOptions) -> Vec<Requirement> {
    let own =
        "You aren't allowed to alter your own superuser status or that of a role granted to you";
    let superuser = "Only superusers are allowed to alter superuser status";
    let datacenters = "Only superusers are allowed to alter access to datacenters.";
    let cidrs = "Only superusers are allowed to alter access from CIDR groups.";
    let mut requires = Vec::new();
    if options.superuser.is_some() {
        requires.push(Requirement::OtherRole(name.to_owned(), own));
        requires.push(Requirement::SuperuserRole(superuser));
    }
    if options.datacenters.is_some() {
        requires.push(Requirement::SuperuserRole(datacenters));
    }
    if options.cidrs.is_some() {
        requires.push(Requirement::SuperuserRole(cidrs));
    }
    let named = [("LOGIN", options.login.is_some()), ("OPTIONS", !options.custom.is_empty())];
    let not_own = named.into_iter().filter(|(_, is_named)| *is_named).map(|(name, _)| name);
    requires.push(Requirement::Alter { role: name.to_owned(), not_own: not_own.collect() });
    requires
}

/// What of these can be granted on the resource, once each and in their order; others are ignored.
pub fn applicable(permissions: &[Permission], resource: &Resource) -> Vec<Permission> {
    let of_kind = resource.kind().applicable().iter().copied();
    of_kind.filter(|permission| permissions.contains(permission)).collect()
}

/// The resource that a text names.
pub fn resource(
    granted: &GrantedOn,
    catalog: &Catalog,
    keyspace: Option<&str>,
) -> Result<Resource> {
    match granted {
        GrantedOn::Resource(resource) => Ok(resource.clone()),
        GrantedOn::Table(name) => {
            let keyspace = keyspace_of(name, keyspace)?.to_owned();
            Ok(Resource::Table { keyspace, table: name.name.clone() })
        }
        GrantedOn::Function(name, arguments) => {
            let keyspace = name.keyspace.clone().ok_or_else(|| {
                let what =
                    "In this context function name must be explictly qualified by a keyspace";
                Error::invalid_request(what)
            })?;
            if catalog.keyspace(&keyspace).is_none() {
                return Err(Error::Configuration(format!("Keyspace {keyspace} doesn't exist")));
            }
            let types = arguments.iter().map(|text| resolve_type(text, catalog, &keyspace));
            let arguments = types.map(|of| of.map(CqlType::freeze)).collect::<Result<_>>()?;
            Ok(Resource::Function { keyspace, name: name.name.clone(), arguments })
        }
    }
}
