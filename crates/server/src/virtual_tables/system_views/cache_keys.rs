//! What the caches of roles, permissions and credentials have entries of. A DELETE of an entry, or a TRUNCATE, empties all of these caches,
//! as the commands of nodetool do.

use std::collections::BTreeSet;

use halcyon_access::CacheKeys;
use halcyon_query::{Error, Result};

use crate::virtual_tables::rows::Rows;
use crate::virtual_tables::table::{Filled, Node, VirtualTable};
use crate::virtual_tables::write::Write;

pub(in crate::virtual_tables) const CREDENTIALS: VirtualTable = VirtualTable::gathered(
    "CREATE TABLE system_views.credentials_cache_keys (
    role text PRIMARY KEY
) WITH ID = 0ebf8d18-4035-38d6-8a2d-6518e5308cb1
    AND comment = 'keys in the credentials cache';",
    |node, rows| Box::pin(fill_roles(node, rows, |keys| keys.credentials)),
)
.writable(forget)
.truncated(forget_all);

/// A role's data centers are read with the role.
pub(in crate::virtual_tables) const NETWORK_PERMISSIONS: VirtualTable = VirtualTable::gathered(
    "CREATE TABLE system_views.network_permissions_cache_keys (
    role text PRIMARY KEY
) WITH ID = caa4f536-dad5-3e80-af4b-97e6840bbf4a
    AND comment = 'keys in the network permissions cache';",
    |node, rows| Box::pin(fill_roles(node, rows, |keys| keys.roles)),
)
.writable(forget)
.truncated(forget_all);

pub(in crate::virtual_tables) const PERMISSIONS: VirtualTable = VirtualTable::gathered(
    "CREATE TABLE system_views.permissions_cache_keys (
    role text,
    resource text,
    PRIMARY KEY ((role, resource))
) WITH ID = f951c92c-5198-31f5-9e02-183b47d400b0
    AND comment = 'keys in the permissions cache';",
    fill_permissions,
)
.writable(forget)
.truncated(forget_all);

pub(in crate::virtual_tables) const ROLES: VirtualTable = VirtualTable::gathered(
    "CREATE TABLE system_views.roles_cache_keys (
    role text PRIMARY KEY
) WITH ID = 98f349e9-0e71-3ab1-9c99-a0524ee6ecd8
    AND comment = 'keys in the roles cache';",
    |node, rows| Box::pin(fill_roles(node, rows, |keys| keys.roles)),
)
.writable(forget)
.truncated(forget_all);

/// Of all shards, each once. `None`: a shard has stopped, and the read fails.
async fn gathered<K: Ord>(
    node: &Node,
    rows: &mut Rows<'_>,
    keys: impl Fn(CacheKeys) -> Vec<K>,
) -> Option<BTreeSet<K>> {
    let mut all = BTreeSet::new();
    for of_shard in node.servers.access_keys().await {
        match of_shard {
            Ok(of_shard) => all.extend(keys(of_shard)),
            Err(gone) => {
                rows.fail(gone.to_string());
                return None;
            }
        }
    }
    Some(all)
}

async fn fill_roles(node: &Node, rows: &mut Rows<'_>, keys: impl Fn(CacheKeys) -> Vec<String>) {
    let Some(roles) = gathered(node, rows, keys).await else { return };
    let mut rows = rows.with(["role"]);
    roles.into_iter().for_each(|role| rows.push([role.into()]));
}

fn fill_permissions<'a>(node: &'a Node, rows: &'a mut Rows<'_>) -> Filled<'a> {
    Box::pin(async move {
        let names = |keys: CacheKeys| -> Vec<(String, String)> {
            keys.permissions.into_iter().map(|(role, of)| (role, of.name())).collect()
        };
        let Some(permissions) = gathered(node, rows, names).await else { return };
        let mut rows = rows.with(["role", "resource"]);
        for (role, resource) in permissions {
            rows.push([role.into(), resource.into()]);
        }
    })
}

fn forget(node: &Node, write: &Write<'_>) -> Result<()> {
    if !write.deletes_partition() {
        let name = write.table.full_name();
        return Err(Error::Invalid(format!(
            "Column modification is not supported by table {name}"
        )));
    }
    forget_all(node);
    Ok(())
}

fn forget_all(node: &Node) {
    node.servers.forget_access();
}
