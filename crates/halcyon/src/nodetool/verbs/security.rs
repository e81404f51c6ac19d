//! Commands about caches of permissions and groups of addresses.

use super::super::arguments::{Arguments, Choice, Times};
use super::super::caches;
use super::verb::{Verb, one, refused, required, some, verb};

const ROLES: Option<Arguments> = some("[<role>...]", "The roles; all if none is named");
const NO_CIDR: &str = "Halcyon has no CIDR authorizer; allow addresses in the firewall";
const NO_REGIONS: &str = "Halcyon has no network authorizer, so there is no such cache";

/// By name.
pub(super) const VERBS: &[Verb] = &[
    refused("cidrfilteringstats", "Print statistics of the CIDR authorizer", &[], None, NO_CIDR),
    refused(
        "dropcidrgroup",
        "Drop a group of addresses",
        &[],
        required("<cidrGroup>", "The group", "cidrGroup"),
        NO_CIDR,
    ),
    verb(
        "getauthcacheconfig",
        "Print the settings of a cache of permissions",
        &[Choice::value(&["--cache-name"], "cache-name", "Name of the cache (required)")
            .times(Times::Required)],
        None,
        |call, node, out| Box::pin(caches::config(call, node, out)),
    ),
    refused(
        "getcidrgroupsofip",
        "Print the groups of an address",
        &[],
        one("<IP address>", "The address"),
        NO_CIDR,
    ),
    refused(
        "invalidatecidrpermissionscache",
        "Empty the cache of permitted addresses",
        &[],
        ROLES,
        NO_CIDR,
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
    refused(
        "invalidatenetworkpermissionscache",
        "Empty the cache of permitted data centers",
        &[],
        ROLES,
        NO_REGIONS,
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
    refused(
        "listcidrgroups",
        "List the groups of addresses",
        &[],
        one("[<cidrGroup>]", "The group; all if none is named"),
        NO_CIDR,
    ),
    refused("reloadcidrgroupscache", "Read the groups of addresses again", &[], None, NO_CIDR),
    refused(
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
        "change roles_…, permissions_… or credentials_… in the file and restart",
    ),
    refused(
        "updatecidrgroup",
        "Create or change a group of addresses",
        &[],
        some("[<cidrGroup> <cidr> ...]", "The group and its CIDRs"),
        NO_CIDR,
    ),
];
