//! Which resources decide about one, and what is special about the system's keyspaces.

use halcyon_model::access::{Permission, Resource};

/// Keyspaces that each node has for itself.
const LOCAL: [&str; 2] = ["system", "system_schema"];
const REPLICATED: [&str; 3] = ["system_traces", "system_auth", "system_distributed"];
/// Halcyon's own count as Cassandra's.
const VIRTUAL: [&str; 4] =
    ["system_metrics", "system_views", "system_virtual_schema", "halcyon_views"];
/// Every role reads them: drivers need them (`ClientState.READABLE_SYSTEM_RESOURCES`).
const READABLE: [(&str, &str); 7] = [
    ("system", "local"),
    ("system", "peers"),
    ("system", "peers_v2"),
    ("system", "size_estimates"),
    ("system", "table_estimates"),
    ("system_traces", "events"),
    ("system_traces", "sessions"),
];
const READABLE_KEYSPACES: [&str; 2] = ["system_schema", "system_virtual_schema"];

/// The resource and those that contain it, from the smallest: a permission on one of them is enough.
///
/// For an ordinary role the chain of a system keyspace ends below ALL KEYSPACES: MODIFY ON ALL KEYSPACES must not write `system_auth`
/// (CVE-2025-23015).
pub fn chain(resource: &Resource, is_ordinary: bool) -> Vec<Resource> {
    let mut chain = vec![resource.clone()];
    while let Some(parent) = chain.last().and_then(Resource::parent) {
        chain.push(parent);
    }
    let is_limited = is_ordinary && keyspace_of_data(resource).is_some_and(is_system);
    if is_limited {
        chain.retain(|resource| *resource != Resource::AllKeyspaces);
    }
    chain
}

/// What holds for a statement on data whatever was granted.
#[derive(Debug, PartialEq, Eq)]
pub enum SystemRule {
    /// Nothing: the permissions decide.
    None,
    Allowed,
    /// The words of the refusal.
    Refused(String),
}

/// `ClientState.ensurePermission(String, Permission, DataResource)`: no role changes the definitions of the system's tables, and each
/// reads what drivers need.
pub fn of_system(permission: Permission, resource: &Resource) -> SystemRule {
    let Some(keyspace) = keyspace_of_data(resource) else { return SystemRule::None };
    let changes = matches!(permission, Permission::Alter | Permission::Drop | Permission::Create);
    if changes && LOCAL.contains(&keyspace) {
        return SystemRule::Refused(format!("{keyspace} keyspace is not user-modifiable."));
    }
    if changes && REPLICATED.contains(&keyspace) {
        let is_keyspace = matches!(resource, Resource::Keyspace(_));
        return match permission {
            Permission::Alter if is_keyspace => SystemRule::None,
            _ => SystemRule::Refused(format!("Cannot {} {resource}", permission.name())),
        };
    }
    match resource {
        Resource::Table { keyspace, table } if permission == Permission::Select => {
            let is_readable = READABLE_KEYSPACES.contains(&keyspace.as_str())
                || READABLE.contains(&(keyspace.as_str(), table.as_str()));
            if is_readable { SystemRule::Allowed } else { SystemRule::None }
        }
        _ => SystemRule::None,
    }
}

/// Whether GRANT may give the permission on the resource, also if a superuser grants it (`Permission.INVALID_FOR_SYSTEM_KEYSPACES`).
pub fn is_grantable_in(permission: Permission, resource: &Resource) -> bool {
    let harmless = [Permission::Select, Permission::Describe, Permission::Alter];
    let is_stored = |keyspace: &str| LOCAL.contains(&keyspace) || REPLICATED.contains(&keyspace);
    harmless.contains(&permission) || !keyspace_of_data(resource).is_some_and(is_stored)
}

fn is_system(keyspace: &str) -> bool {
    LOCAL.contains(&keyspace) || REPLICATED.contains(&keyspace) || VIRTUAL.contains(&keyspace)
}

fn keyspace_of_data(resource: &Resource) -> Option<&str> {
    match resource {
        Resource::Keyspace(keyspace)
        | Resource::AllTables(keyspace)
        | Resource::Table { keyspace, .. } => Some(keyspace),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(keyspace: &str, table: &str) -> Resource {
        Resource::Table { keyspace: keyspace.to_owned(), table: table.to_owned() }
    }

    fn names(resource: &Resource, is_ordinary: bool) -> Vec<String> {
        chain(resource, is_ordinary).iter().map(Resource::name).collect()
    }

    /// Proves that what was granted on all keyspaces does not reach a table of the system, except for a superuser.
    #[test]
    fn cve_2025_23015_the_chain_of_a_system_table_ends_below_all_keyspaces() {
        for keyspace in LOCAL.iter().chain(&REPLICATED).chain(&VIRTUAL) {
            let of = |is_ordinary| names(&table(keyspace, "t"), is_ordinary);
            let own = [
                format!("data/{keyspace}/t"),
                format!("data/{keyspace}/*"),
                format!("data/{keyspace}"),
            ];
            assert_eq!(of(true), own);
            assert_eq!(of(false).last().map(String::as_str), Some("data"));
        }
        assert_eq!(names(&table("ks", "t"), true), ["data/ks/t", "data/ks/*", "data/ks", "data"]);
        assert_eq!(names(&Resource::AllKeyspaces, true), ["data"]);
        assert_eq!(names(&Resource::Role("r".to_owned()), true), ["roles/r", "roles"]);
    }

    /// Proves that definitions of system tables cannot be changed, and that every role reads what drivers need and no more.
    #[test]
    fn rules_of_the_system_go_before_permissions() {
        let refused = |text: &str| SystemRule::Refused(text.to_owned());
        let keyspace = |name: &str| Resource::Keyspace(name.to_owned());
        for (permission, resource, rule) in [
            (
                Permission::Alter,
                table("system", "local"),
                refused("system keyspace is not user-modifiable."),
            ),
            (
                Permission::Create,
                keyspace("system_schema"),
                refused("system_schema keyspace is not user-modifiable."),
            ),
            (
                Permission::Drop,
                table("system_auth", "roles"),
                refused("Cannot DROP <table system_auth.roles>"),
            ),
            (
                Permission::Alter,
                table("system_auth", "roles"),
                refused("Cannot ALTER <table system_auth.roles>"),
            ),
            (Permission::Alter, keyspace("system_auth"), SystemRule::None),
            (
                Permission::Drop,
                keyspace("system_auth"),
                refused("Cannot DROP <keyspace system_auth>"),
            ),
            (Permission::Select, table("system", "peers_v2"), SystemRule::Allowed),
            (Permission::Select, table("system_schema", "tables"), SystemRule::Allowed),
            (Permission::Select, keyspace("system_schema"), SystemRule::None),
            (Permission::Modify, table("system", "local"), SystemRule::None),
            (Permission::Select, table("system", "prepared_statements"), SystemRule::None),
            (Permission::Select, table("system_auth", "roles"), SystemRule::None),
            (Permission::Select, table("halcyon_views", "node"), SystemRule::None),
            (Permission::Drop, table("ks", "local"), SystemRule::None),
        ] {
            assert_eq!(of_system(permission, &resource), rule, "{permission:?} {resource}");
        }
    }

    /// Proves that what would write stored system keyspaces cannot be granted on them.
    #[test]
    fn cve_2025_23015_grants_on_system_keyspaces_are_limited() {
        for permission in Permission::ALL {
            let is_harmless =
                matches!(permission, Permission::Select | Permission::Describe | Permission::Alter);
            assert_eq!(is_grantable_in(permission, &table("system_auth", "roles")), is_harmless);
            assert!(is_grantable_in(permission, &table("system_views", "settings")));
            assert!(is_grantable_in(permission, &Resource::AllKeyspaces));
            assert!(is_grantable_in(permission, &Resource::FunctionsOf("system".to_owned())));
        }
    }
}
