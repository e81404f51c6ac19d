//! What statements about roles and permissions require.

use halcyon_model::CqlType;
use halcyon_model::access::{Permission, Resource};
use halcyon_schema::catalog::Catalog;
use halcyon_schema::change::keyspace_of;
use halcyon_syntax::ast::{AuthStatement, GrantedOn};

use super::requirement::Requirement;
use crate::plan::term::resolve_type;

pub(super) fn of(
    statement: &AuthStatement,
    catalog: &Catalog,
    keyspace: Option<&str>,
) -> Vec<Requirement> {
    let on = |permission, resource| Requirement::Permission(permission, resource);
    let role = |name: &String| Resource::Role(name.clone());
    match statement {
        AuthStatement::CreateRole { options, .. } => {
            let refusal = "Only superusers can create a role with superuser status";
            let superuser = options.superuser.filter(|is_wanted| *is_wanted);
            let superuser = superuser.map(|_| Requirement::SuperuserRole(refusal));
            [on(Permission::Create, Resource::AllRoles)].into_iter().chain(superuser).collect()
        }
        // A role may change some of its own options without ALTER.
        AuthStatement::AlterRole { name, options, .. } => {
            let refusal = "Only superusers are allowed to alter superuser status";
            let superuser = options.superuser.map(|_| Requirement::SuperuserRole(refusal));
            superuser.into_iter().chain([on(Permission::Alter, role(name))]).collect()
        }
        AuthStatement::DropRole { name, .. } => vec![on(Permission::Drop, role(name))],
        AuthStatement::GrantRole { role: name, .. } => vec![on(Permission::Authorize, role(name))],
        AuthStatement::GrantPermissions { permissions, resource, .. } => {
            let Some(resource) = resolved(resource, catalog, keyspace) else { return Vec::new() };
            let each = [Permission::Authorize].into_iter().chain(permissions.iter().copied());
            each.map(|permission| on(permission, resource.clone())).collect()
        }
        AuthStatement::AddIdentity { .. } => vec![on(Permission::Create, Resource::AllRoles)],
        // DROP on the role of the identity is enough.
        AuthStatement::DropIdentity { .. } => vec![on(Permission::Drop, Resource::AllRoles)],
        AuthStatement::ListPermissions { .. }
        | AuthStatement::ListRoles { .. }
        | AuthStatement::ListUsers => Vec::new(),
    }
}

/// The resource that a text names; `None`: it lacks its keyspace, or names types that are not there.
pub(super) fn resolved(
    granted: &GrantedOn,
    catalog: &Catalog,
    keyspace: Option<&str>,
) -> Option<Resource> {
    match granted {
        GrantedOn::Resource(resource) => Some(resource.clone()),
        GrantedOn::Table(name) => {
            let keyspace = keyspace_of(name, keyspace).ok()?.to_owned();
            Some(Resource::Table { keyspace, table: name.name.clone() })
        }
        GrantedOn::Function(name, arguments) => {
            let keyspace = name.keyspace.clone()?;
            let types = arguments.iter().map(|text| resolve_type(text, catalog, &keyspace));
            let arguments = types.map(|of| of.ok().map(CqlType::freeze)).collect::<Option<_>>()?;
            Some(Resource::Function { keyspace, name: name.name.clone(), arguments })
        }
    }
}
