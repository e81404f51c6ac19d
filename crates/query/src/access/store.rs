//! The rows of `system_auth`, read and written by statements of the node itself.
//!
//! Texts are Cassandra's own (`CassandraRoleManager`, `CassandraAuthorizer`, `CassandraNetworkAuthorizer`), so that a directory goes over.

use std::collections::BTreeSet;
use std::sync::Arc;

use halcyon_access::{Cidr, CidrGroups, Permissions, Role};
use halcyon_cql::plan::Plan;
use halcyon_model::access::Resource;
use halcyon_model::request::{Consistency, Value};
use halcyon_model::{Cursor, DecodeResult};

use crate::coordinator::Coordinator;
use crate::modify::execute_modification;
use crate::preparation::prepare;
use crate::request::Request;
use crate::select::execute_select;
use crate::{Error, Outcome, QueryOptions, Result};

/// A row: its values by column; `None` is null.
pub(super) type Row = Vec<Option<Vec<u8>>>;

/// Executes a statement of the node itself, which needs no permission. It is prepared once on each shard.
pub(super) async fn run(
    coordinator: &Coordinator,
    text: &'static str,
    values: &[Value<'_>],
) -> Result<Vec<Row>> {
    let statements = &coordinator.access().statements;
    let known = statements.borrow().get(text).cloned();
    let tables = coordinator.shard().tables();
    let statement = match known.filter(|statement| statement.is_current(tables)) {
        Some(statement) => statement,
        None => {
            let statement = Arc::new(prepare(coordinator, text, None)?);
            statements.borrow_mut().insert(text, statement.clone());
            statement
        }
    };
    let options = QueryOptions {
        consistency: Consistency::One,
        values,
        protocol_version: 5,
        ..QueryOptions::default()
    };
    let request = Request::new(text.len(), values, &options, coordinator.uuids());
    let outcome = match &statement.plan {
        Plan::Select(plan) => {
            Box::pin(execute_select(coordinator, plan, &request, &options)).await?
        }
        Plan::Modification(plan) => {
            let _running = coordinator.shard().writes().begin().await;
            Box::pin(execute_modification(coordinator, plan, &request, &options)).await?
        }
        Plan::Batch(_) | Plan::Other(_) => Outcome::Void,
    };
    let Outcome::Rows(rows) = outcome else { return Ok(Vec::new()) };
    let (mut cursor, columns) = (Cursor::new(&rows.content), rows.columns.len());
    let rows = (0..rows.count).map(|_| (0..columns).map(|_| value(&mut cursor)).collect());
    rows.collect::<DecodeResult<_>>().map_err(|_| Error::Server(format!("damaged rows of {text}")))
}

fn value(cursor: &mut Cursor<'_>) -> DecodeResult<Option<Vec<u8>>> {
    match usize::try_from(cursor.i32()?) {
        Ok(length) => Ok(Some(cursor.take(length)?.to_vec())),
        Err(_) => Ok(None),
    }
}

/// Has every shard forget what it has read. After each change, before it is acknowledged.
pub(super) fn changed(coordinator: &Coordinator) -> Result<Outcome> {
    coordinator.access().shared.begin_epoch();
    Ok(Outcome::Void)
}

pub(super) fn text(value: &str) -> Value<'_> {
    Value::Bytes(value.as_bytes())
}

/// A set or list of texts.
pub(super) fn texts<'a>(values: impl ExactSizeIterator<Item = &'a str>) -> Vec<u8> {
    let length = |count: usize| i32::try_from(count).unwrap_or(i32::MAX).to_be_bytes();
    let mut bytes = length(values.len()).to_vec();
    for value in values {
        bytes.extend(length(value.len()));
        bytes.extend(value.as_bytes());
    }
    bytes
}

fn sorted_set(texts: &[String]) -> Vec<u8> {
    let names: BTreeSet<&str> = texts.iter().map(String::as_str).collect();
    self::texts(names.into_iter())
}

/// The elements of a set or list.
fn elements(bytes: &[u8]) -> Vec<&[u8]> {
    let mut cursor = Cursor::new(bytes);
    let count = cursor.i32().unwrap_or(0);
    let element = |_| {
        let length = usize::try_from(cursor.i32().ok()?).ok()?;
        cursor.take(length).ok()
    };
    (0..count).map_while(element).collect()
}

fn names(bytes: &[u8]) -> Vec<String> {
    elements(bytes).into_iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect()
}

pub(super) fn string(value: Option<&Option<Vec<u8>>>) -> Option<String> {
    let bytes = value?.as_ref()?;
    Some(String::from_utf8_lossy(bytes).into_owned())
}

/// Null is false: a row without it was not made by CREATE ROLE.
fn boolean(value: Option<&Option<Vec<u8>>>) -> bool {
    value.and_then(Option::as_deref).is_some_and(|bytes| bytes == [1])
}

pub(super) async fn role(coordinator: &Coordinator, name: &str) -> Result<Option<Role>> {
    const SELECT: &str =
        "SELECT is_superuser, can_login, member_of FROM system_auth.roles WHERE role = ?";
    let rows = run(coordinator, SELECT, &[text(name)]).await?;
    Ok(rows.first().map(|row| Role {
        name: name.to_owned(),
        is_superuser: boolean(row.first()),
        can_login: boolean(row.get(1)),
        member_of: names(row.get(2).and_then(Option::as_deref).unwrap_or_default()),
    }))
}

pub(super) async fn exists(coordinator: &Coordinator, role: &str) -> Result<bool> {
    Ok(self::role(coordinator, role).await?.is_some())
}

/// Names of all roles.
pub(super) async fn all_roles(coordinator: &Coordinator) -> Result<Vec<String>> {
    let rows = run(coordinator, "SELECT role FROM system_auth.roles", &[]).await?;
    Ok(rows.iter().filter_map(|row| string(row.first())).collect())
}

/// The hash of a role's password.
pub(super) async fn salted_hash(coordinator: &Coordinator, role: &str) -> Result<Option<String>> {
    const SELECT: &str = "SELECT salted_hash FROM system_auth.roles WHERE role = ?";
    let rows = run(coordinator, SELECT, &[text(role)]).await?;
    Ok(rows.first().and_then(|row| string(row.first())).filter(|hash| !hash.is_empty()))
}

/// When the password was written, in microseconds since 1970.
pub(super) async fn password_time(coordinator: &Coordinator, role: &str) -> Result<Option<i64>> {
    const SELECT: &str = "SELECT writetime(salted_hash) FROM system_auth.roles WHERE role = ?";
    let rows = run(coordinator, SELECT, &[text(role)]).await?;
    let time = rows.first().and_then(|row| row.first()?.as_deref());
    Ok(time.and_then(|bytes| bytes.try_into().ok()).map(i64::from_be_bytes))
}

/// `IResource.getName` of a role, under which `network_permissions` has it.
fn network_name(role: &str) -> String {
    Resource::Role(role.to_owned()).name()
}

/// The data centers of a role; `None`: all.
pub(super) async fn datacenters(
    coordinator: &Coordinator,
    role: &str,
) -> Result<Option<Vec<String>>> {
    const SELECT: &str = "SELECT dcs FROM system_auth.network_permissions WHERE role = ?";
    let rows = run(coordinator, SELECT, &[text(&network_name(role))]).await?;
    let set = rows.first().and_then(|row| row.first()?.as_deref()).map(names);
    Ok(set.filter(|names| !names.is_empty()))
}

pub(super) async fn set_datacenters(
    coordinator: &Coordinator,
    role: &str,
    datacenters: &[String],
) -> Result<()> {
    const UPDATE: &str = "UPDATE system_auth.network_permissions SET dcs = ? WHERE role = ?";
    let set = sorted_set(datacenters);
    let name = network_name(role);
    run(coordinator, UPDATE, &[Value::Bytes(&set), text(&name)]).await.map(drop)
}

pub(super) async fn drop_datacenters(coordinator: &Coordinator, role: &str) -> Result<()> {
    const DELETE: &str = "DELETE FROM system_auth.network_permissions WHERE role = ?";
    run(coordinator, DELETE, &[text(&network_name(role))]).await.map(drop)
}

/// The groups of addresses that a role may come from; `None`: all.
pub(super) async fn cidr_groups_of(
    coordinator: &Coordinator,
    role: &str,
) -> Result<Option<Vec<String>>> {
    const SELECT: &str = "SELECT cidr_groups FROM system_auth.cidr_permissions WHERE role = ?";
    let rows = run(coordinator, SELECT, &[text(role)]).await?;
    let set = rows.first().and_then(|row| row.first()?.as_deref()).map(names);
    Ok(set.filter(|names| !names.is_empty()))
}

pub(super) async fn set_cidr_groups(
    coordinator: &Coordinator,
    role: &str,
    groups: &[String],
) -> Result<()> {
    const UPDATE: &str = "UPDATE system_auth.cidr_permissions SET cidr_groups = ? WHERE role = ?";
    let set = sorted_set(groups);
    run(coordinator, UPDATE, &[Value::Bytes(&set), text(role)]).await.map(drop)
}

pub(super) async fn drop_cidr_groups(coordinator: &Coordinator, role: &str) -> Result<()> {
    const DELETE: &str = "DELETE FROM system_auth.cidr_permissions WHERE role = ?";
    run(coordinator, DELETE, &[text(role)]).await.map(drop)
}

pub(super) async fn cidr_group_names(coordinator: &Coordinator) -> Result<Vec<String>> {
    let rows = run(coordinator, "SELECT cidr_group FROM system_auth.cidr_groups", &[]).await?;
    Ok(rows.iter().filter_map(|row| string(row.first())).collect())
}

/// All groups of addresses. What is not a range belongs to no group (`CIDRGroupsMappingLoader`).
pub(super) async fn cidr_groups(coordinator: &Coordinator) -> Result<CidrGroups> {
    const SELECT: &str = "SELECT cidr_group, cidrs FROM system_auth.cidr_groups";
    let mut groups = CidrGroups::default();
    for row in run(coordinator, SELECT, &[]).await? {
        let Some(name) = string(row.first()) else { continue };
        let set = row.get(1).and_then(Option::as_deref).unwrap_or_default();
        elements(set)
            .into_iter()
            .filter_map(Cidr::of_tuple)
            .for_each(|range| groups.add(&name, range));
    }
    Ok(groups)
}

/// What was granted to the role itself on any of the resources.
pub(super) async fn granted(
    coordinator: &Coordinator,
    role: &str,
    resources: &[Resource],
) -> Result<Permissions> {
    const SELECT: &str =
        "SELECT permissions FROM system_auth.role_permissions WHERE role = ? AND resource IN ?";
    let names: Vec<String> = resources.iter().map(Resource::name).collect();
    let names = texts(names.iter().map(String::as_str));
    let rows = run(coordinator, SELECT, &[text(role), Value::Bytes(&names)]).await?;
    let sets = rows.iter().filter_map(|row| row.first()?.as_deref());
    Ok(sets
        .map(|set| Permissions::of_names(elements(set)))
        .fold(Permissions::NONE, Permissions::union))
}

/// A grant: role, name of the resource, permissions.
pub(super) type Grant = (String, String, Permissions);

/// The grants of a role, or of all roles.
pub(super) async fn grants(coordinator: &Coordinator, role: Option<&str>) -> Result<Vec<Grant>> {
    const ALL: &str = "SELECT role, resource, permissions FROM system_auth.role_permissions";
    const OF_ROLE: &str =
        "SELECT role, resource, permissions FROM system_auth.role_permissions WHERE role = ?";
    let rows = match role {
        Some(role) => run(coordinator, OF_ROLE, &[text(role)]).await?,
        None => run(coordinator, ALL, &[]).await?,
    };
    let grant = |row: &Row| {
        let set = row.get(2)?.as_deref().unwrap_or_default();
        let permissions = Permissions::of_names(elements(set));
        Some((string(row.first())?, string(row.get(1))?, permissions))
    };
    Ok(rows.iter().filter_map(grant).collect())
}

pub(super) async fn role_of_identity(
    coordinator: &Coordinator,
    identity: &str,
) -> Result<Option<String>> {
    const SELECT: &str = "SELECT role FROM system_auth.identity_to_role WHERE identity = ?";
    let rows = run(coordinator, SELECT, &[text(identity)]).await?;
    Ok(rows.first().and_then(|row| string(row.first())))
}

pub(super) async fn identities(coordinator: &Coordinator, role: &str) -> Result<Vec<String>> {
    const SELECT: &str =
        "SELECT identity FROM system_auth.identity_to_role WHERE role = ? ALLOW FILTERING";
    let rows = run(coordinator, SELECT, &[text(role)]).await?;
    Ok(rows.iter().filter_map(|row| string(row.first())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a set of texts is read as it is written, and that a damaged one ends early.
    #[test]
    fn sets_round_trip() {
        let bytes = texts(["a", "", "ccc"].into_iter());
        assert_eq!(names(&bytes), ["a", "", "ccc"]);
        assert_eq!(names(&bytes[..bytes.len() - 1]), ["a", ""]);
        assert_eq!(names(&[0xff; 4]), [""; 0]);
    }
}
