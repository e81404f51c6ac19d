//! Commands about the node: what it does, its logs, its ports.

use super::super::arguments::Choice;
use halcyon_server::command::Command;

use super::super::{clients, histograms, request_logs, ring, settings, status};
use super::verb::{FORMAT, Verb, one, refused, some, verb};

/// By name.
pub(super) const VERBS: &[Verb] = &[
    verb(
        "clientstats",
        "Print information about connected clients",
        &[
            Choice::flag(&["--all"], "Lists all connections"),
            Choice::flag(
                &["--by-protocol"],
                "Lists most recent client connections by protocol version",
            ),
            Choice::flag(&["--clear-history"], "Clear the history of connected clients"),
            Choice::flag(&["--client-options"], "Lists all connections and the client options"),
        ],
        None,
        |call, node, out| Box::pin(clients::stats(call, node, out)),
    ),
    verb("disableauditlog", "Disable the audit log", &[], None, |_, node, _| {
        Box::pin(node.command(&Command::DisableAuditLog, ("", "")))
    }),
    verb("disablebackup", "Disable incremental backups", &[], None, |_, node, _| {
        Box::pin(settings::set_backups(node, false))
    }),
    verb(
        "disablebinary",
        "Close the port for CQL clients",
        &[Choice::flag(&["-f", "--force"], "Interrupt the requests that run")],
        None,
        |call, node, _| Box::pin(clients::close_port(call, node)),
    ),
    verb("disablefullquerylog", "Disable the full query log", &[], None, |_, node, _| {
        Box::pin(node.command(&Command::DisableFullQueryLog, ("", "")))
    }),
    verb(
        "disableoldprotocolversions",
        "Refuse connections of protocols older than 5",
        &[],
        None,
        |_, node, _| Box::pin(settings::allow_older_protocols(node, false)),
    ),
    verb(
        "drain",
        "Drain the node (stop accepting writes and flush all tables)",
        &[],
        None,
        |_, node, _| Box::pin(settings::drain(node)),
    ),
    verb(
        "enableauditlog",
        "Enable the audit log",
        request_logs::AUDIT_OPTIONS,
        None,
        |call, node, _| Box::pin(request_logs::enable_audit(call, node)),
    ),
    verb("enablebackup", "Enable incremental backups", &[], None, |_, node, _| {
        Box::pin(settings::set_backups(node, true))
    }),
    verb("enablebinary", "Open the port for CQL clients", &[], None, |_, node, _| {
        Box::pin(settings::open_ports(node))
    }),
    verb(
        "enablefullquerylog",
        "Enable full query logging, defaults for the options are configured in cassandra.yaml",
        request_logs::FULL_QUERY_LOG_OPTIONS,
        None,
        |call, node, _| Box::pin(request_logs::enable_full(call, node)),
    ),
    verb(
        "enableoldprotocolversions",
        "Accept connections of protocols older than 5",
        &[],
        None,
        |_, node, _| Box::pin(settings::allow_older_protocols(node, true)),
    ),
    refused(
        "gcstats",
        "Print statistics of garbage collections",
        &[],
        None,
        "Halcyon has no garbage collector; `nodetool info` shows its memory",
    ),
    verb(
        "getauditlog",
        "Print configuration of audit log if enabled, otherwise the configuration reflected in cassandra.yaml",
        &[],
        None,
        |_, node, out| Box::pin(request_logs::get_audit(node, out)),
    ),
    verb(
        "getfullquerylog",
        "Print configuration of fql if enabled, otherwise the configuration reflected in cassandra.yaml",
        &[],
        None,
        |_, node, out| Box::pin(request_logs::get_full(node, out)),
    ),
    verb("getlogginglevels", "Get the runtime logging levels", &[], None, |_, node, out| {
        Box::pin(settings::logging_levels(node, out))
    }),
    verb(
        "gettraceprobability",
        "Print the current trace probability value",
        &[],
        None,
        |_, node, out| Box::pin(settings::trace_probability(node, out)),
    ),
    verb(
        "info",
        "Print node information (uptime, load, ...)",
        &[
            Choice::flag(
                &["-O", "--out-of-range-ops"],
                "Display per-keyspace counts of operations for invalid tokens",
            ),
            Choice::flag(&["-T", "--tokens"], "Display all tokens"),
        ],
        None,
        |call, node, out| Box::pin(status::info(call, node, out)),
    ),
    verb(
        "loadpartitiondenylist",
        "Load the partitions that are denied from system_distributed.partition_denylist (StorageProxy.loadPartitionDenylist of JMX)",
        &[],
        None,
        |_, node, _| Box::pin(node.command(&Command::LoadPartitionDenylist, ("", ""))),
    ),
    verb(
        "proxyhistograms",
        "Print histograms of the requests that this node coordinates",
        &[],
        None,
        |_, node, out| Box::pin(histograms::of_node(node, out)),
    ),
    verb("reloadssl", "Signals Cassandra to reload SSL certificates", &[], None, |_, node, _| {
        Box::pin(settings::reload_certificates(node))
    }),
    verb(
        "resetfullquerylog",
        "Stop the full query log and clean files in the configured full query log directory from cassandra.yaml as well as JMX",
        &[],
        None,
        |_, node, _| Box::pin(node.command(&Command::ResetFullQueryLog, ("", ""))),
    ),
    verb(
        "setlogginglevel",
        "Set the log level of a component or class; without arguments, all as at the start",
        &[],
        some(
            "<component|class> <level>",
            "A component (bootstrap, compaction, repair, streaming, cql, ring) or a class, and its level",
        ),
        |call, node, _| Box::pin(settings::set_logging_level(call, node)),
    ),
    verb(
        "settraceprobability",
        "Sets the probability for tracing any given request to value. 0 disables, 1 enables for all requests, 0 is the default",
        &[],
        one("<value>", "Trace probability between 0 and 1 (ex: 0.2)"),
        |call, node, _| Box::pin(settings::set_trace_probability(call, node)),
    ),
    refused(
        "sjk",
        "Run a command of 'Swiss Java Knife'",
        &[],
        some("[<args>...]", "Arguments of 'Swiss Java Knife'"),
        "Halcyon runs in no JVM",
    ),
    verb(
        "status",
        "Print cluster information (state, load, IDs, ...)",
        &[Choice::flag(&["-r", "--resolve-ip"], "Show node domain names instead of IPs")],
        one("[<keyspace>]", "The keyspace name"),
        |call, node, out| Box::pin(status::status(call, node, out)),
    ),
    verb(
        "statusbackup",
        "Print whether incremental backups are made",
        &[],
        None,
        |_, node, out| Box::pin(settings::backup_status(node, out)),
    ),
    verb(
        "statusbinary",
        "Print whether the port for CQL clients is open",
        &[],
        None,
        |_, node, out| Box::pin(ring::binary_status(node, out)),
    ),
    verb("stopdaemon", "End the node", &[], None, |_, node, out| {
        Box::pin(settings::stop(node, out))
    }),
    verb("tpstats", "Print the thread pools", &[FORMAT], None, |call, node, out| {
        Box::pin(histograms::pools(call, node, out))
    }),
    verb(
        "version",
        "Print cassandra version",
        &[Choice::flag(&["-v", "--verbose"], "Include additional information")],
        None,
        |call, node, out| Box::pin(status::version(call, node, out)),
    ),
];
