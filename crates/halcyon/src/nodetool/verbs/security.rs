//! Commands about caches of permissions and groups of addresses.

use super::super::arguments::{Arguments, Choice, Times};
use super::super::{caches, cidr};
use super::verb::{Verb, one, refused, required, some, verb};

const ROLES: Option<Arguments> = some("[<role>...]", "The roles; all if none is named");

/// By name.
pub(super) const VERBS: &[Verb] = &[
    verb(
        "cidrfilteringstats",
        "Print statistics of the CIDR authorizer",
        &[],
        None,
        |_, node, out| Box::pin(cidr::statistics(node, out)),
    ),
    verb(
        "dropcidrgroup",
        "Drop a group of addresses",
        &[],
        required("<cidrGroup>", "The group", "cidrGroup"),
        |call, node, out| Box::pin(cidr::drop_group(call, node, out)),
    ),
    verb(
        "getauthcacheconfig",
        "Print the settings of a cache of permissions",
        &[Choice::value(&["--cache-name"], "cache-name", "Name of the cache (required)")
            .times(Times::Required)],
        None,
        |call, node, out| Box::pin(caches::config(call, node, out)),
    ),
    verb(
        "getcidrgroupsofip",
        "Print the groups of an address",
        &[],
        one("<IP address>", "The address"),
        |call, node, out| Box::pin(cidr::groups_of(call, node, out)),
    ),
    verb(
        "invalidatecidrpermissionscache",
        "Empty the cache of permitted addresses",
        &[],
        ROLES,
        |call, node, out| Box::pin(cidr::forget(call, node, out)),
    ),
    verb(
        "invalidatecredentialscache",
        "Empty the cache of passwords",
        &[],
        ROLES,
        |call, node, _| Box::pin(caches::forget_access(call, node)),
    ),
    refused(
        "invalidatejmxpermissionscache",
        "Empty the cache of permissions of JMX",
        &[],
        ROLES,
        "Halcyon has no JMX; invalidatepermissionscache empties the one cache of permissions",
    ),
    verb(
        "invalidatenetworkpermissionscache",
        "Empty the cache of permitted data centers",
        &[],
        ROLES,
        |call, node, _| Box::pin(caches::forget_access(call, node)),
    ),
    verb(
        "invalidatepermissionscache",
        "Empty the cache of permissions",
        &[
            Choice::flag(&["--all-functions"], "Permissions on ALL FUNCTIONS"),
            Choice::flag(&["--all-keyspaces"], "Permissions on ALL KEYSPACES"),
            Choice::flag(&["--all-mbeans"], "Permissions on ALL MBEANS"),
            Choice::flag(&["--all-roles"], "Permissions on ALL ROLES"),
            Choice::flag(&["--all-tables"], "Permissions on ALL TABLES"),
            Choice::value(
                &["--function"],
                "function",
                "With --functions-in-keyspace: permissions on a function, e.g. foo[Int32Type^DoubleType]",
            ),
            Choice::value(
                &["--functions-in-keyspace"],
                "functions-in-keyspace",
                "Permissions on the functions of a keyspace",
            ),
            Choice::value(&["--keyspace"], "keyspace", "Permissions on a keyspace"),
            Choice::value(&["--mbean"], "mbean", "Permissions on an MBean"),
            Choice::value(&["--role"], "role", "Permissions on a role"),
            Choice::value(&["--table"], "table", "With --keyspace: permissions on a table"),
        ],
        one("[<role>]", "The role whose permissions are forgotten"),
        |call, node, _| Box::pin(caches::forget_access(call, node)),
    ),
    verb("invalidaterolescache", "Empty the cache of roles", &[], ROLES, |call, node, _| {
        Box::pin(caches::forget_access(call, node))
    }),
    verb(
        "listcidrgroups",
        "List the groups of addresses",
        &[],
        one("[<cidrGroup>]", "The group; all if none is named"),
        |call, node, out| Box::pin(cidr::list(call, node, out)),
    ),
    verb(
        "reloadcidrgroupscache",
        "Read the groups of addresses again",
        &[],
        None,
        |_, node, out| Box::pin(cidr::reload(node, out)),
    ),
    verb(
        "setauthcacheconfig",
        "Change the settings of a cache of permissions",
        &[
            Choice::value(&["--cache-name"], "cache-name", "Name of the cache (required)")
                .times(Times::Required),
            Choice::flag(&["--disable-active-update"], "Refresh entries when they are used"),
            Choice::flag(&["--enable-active-update"], "Refresh entries in the background"),
            Choice::value(&["--max-entries"], "max-entries", "The most entries"),
            Choice::value(
                &["--update-interval"],
                "update-interval",
                "Milliseconds between refreshes",
            ),
            Choice::value(
                &["--validity-period"],
                "validity-period",
                "Milliseconds for which an entry holds",
            ),
        ],
        None,
        |call, node, out| Box::pin(caches::set_config(call, node, out)),
    ),
    verb(
        "updatecidrgroup",
        "Create or change a group of addresses",
        &[],
        some("[<cidrGroup> <cidr> ...]", "The group and its CIDRs"),
        |call, node, _| Box::pin(cidr::update(call, node)),
    ),
];
