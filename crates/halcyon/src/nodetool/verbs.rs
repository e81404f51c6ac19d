//! The one list of commands, with their options and arguments: what is parsed, what help prints, what runs.

use std::future::Future;
use std::pin::Pin;

use super::arguments::{Arguments, Call, Choice, Syntax};
use super::failure::Result;
use super::node::Node;
use super::{
    clients, compaction, guardrails, request_logs, settings, snapshots, status, tables, tablestats,
};

pub(super) type Running<'a> = Pin<Box<dyn Future<Output = Result<()>> + 'a>>;

pub(super) struct Verb {
    pub(super) syntax: Syntax,
    pub(super) run: for<'a> fn(&'a Call, &'a mut Node, &'a mut String) -> Running<'a>,
}

const fn some(usage: &'static str, about: &'static str) -> Option<Arguments> {
    Some(Arguments { usage, about, most: usize::MAX })
}

const fn one(usage: &'static str, about: &'static str) -> Option<Arguments> {
    Some(Arguments { usage, about, most: 1 })
}

const TABLES: Option<Arguments> =
    some("[<keyspace> <tables>...]", "The keyspace followed by one or many tables");
const HUMAN: Choice = Choice::flag(
    &["-H", "--human-readable"],
    "Display bytes in human readable form, i.e. KiB, MiB, GiB, TiB",
);

/// By name.
pub(super) const VERBS: &[Verb] = &[
    Verb {
        syntax: Syntax {
            name: "clearsnapshot",
            about: "Remove the snapshot with the given name from the given keyspaces",
            options: &[
                Choice::flag(&["--all"], "Removes all snapshots"),
                Choice::value(
                    &["--older-than"],
                    "older_than",
                    "Clear snapshots older than specified time period.",
                ),
                Choice::value(
                    &["--older-than-timestamp"],
                    "older_than_timestamp",
                    "Clear snapshots older than specified timestamp. It has to be a string in ISO format, for example '2022-12-03T10:15:30Z'",
                ),
                Choice::value(&["-t"], "snapshot_name", "Remove the snapshot with a given name"),
            ],
            arguments: some("[<keyspaces>...] ", "Remove snapshots from the given keyspaces"),
        },
        run: |call, node, out| Box::pin(snapshots::clear(call, node, out)),
    },
    Verb {
        syntax: Syntax {
            name: "clientstats",
            about: "Print information about connected clients",
            options: &[
                Choice::flag(&["--all"], "Lists all connections"),
                Choice::flag(
                    &["--by-protocol"],
                    "Lists most recent client connections by protocol version",
                ),
                Choice::flag(&["--clear-history"], "Clear the history of connected clients"),
                Choice::flag(&["--client-options"], "Lists all connections and the client options"),
            ],
            arguments: None,
        },
        run: |call, node, out| Box::pin(clients::stats(call, node, out)),
    },
    Verb {
        syntax: Syntax {
            name: "compact",
            about: "Force a (major) compaction on one or more tables or user-defined compaction on given SSTables",
            options: &[
                Choice::value(
                    &["-et", "--end-token"],
                    "end_token",
                    "Use -et to specify a token at which compaction range ends (inclusive)",
                ),
                Choice::value(
                    &["--partition"],
                    "partition_key",
                    "String representation of the partition key",
                ),
                Choice::flag(&["-s", "--split-output"], "Use -s to not create a single big file"),
                Choice::value(
                    &["-st", "--start-token"],
                    "start_token",
                    "Use -st to specify a token at which the compaction range starts (inclusive)",
                ),
                Choice::flag(
                    &["--user-defined"],
                    "Use --user-defined to submit listed files for user-defined compaction",
                ),
            ],
            arguments: some(
                "[<keyspace> <tables>...] or <SSTable file>...",
                "The keyspace followed by one or many tables or list of SSTable data files when using --user-defined",
            ),
        },
        run: |call, node, _| Box::pin(compaction::compact(call, node)),
    },
    Verb {
        syntax: Syntax {
            name: "compactionstats",
            about: "Print statistics on compactions",
            options: &[
                HUMAN,
                Choice::flag(&["-V", "--vtable"], "Display fields matching vtable output"),
            ],
            arguments: None,
        },
        run: |call, node, out| Box::pin(compaction::stats(call, node, out)),
    },
    Verb {
        syntax: Syntax {
            name: "disableauditlog",
            about: "Disable the audit log",
            options: &[],
            arguments: None,
        },
        run: |_, node, _| Box::pin(request_logs::plain("disableauditlog", node)),
    },
    Verb {
        syntax: Syntax {
            name: "disableautocompaction",
            about: "Disable autocompaction for the given keyspace and table",
            options: &[],
            arguments: TABLES,
        },
        run: |call, node, _| Box::pin(compaction::set_automatic(call, node, false)),
    },
    Verb {
        syntax: Syntax {
            name: "disablefullquerylog",
            about: "Disable the full query log",
            options: &[],
            arguments: None,
        },
        run: |_, node, _| Box::pin(request_logs::plain("disablefullquerylog", node)),
    },
    Verb {
        syntax: Syntax {
            name: "drain",
            about: "Drain the node (stop accepting writes and flush all tables)",
            options: &[],
            arguments: None,
        },
        run: |_, node, _| Box::pin(settings::drain(node)),
    },
    Verb {
        syntax: Syntax {
            name: "enableauditlog",
            about: "Enable the audit log",
            options: request_logs::AUDIT_OPTIONS,
            arguments: None,
        },
        run: |call, node, _| Box::pin(request_logs::enable_audit(call, node)),
    },
    Verb {
        syntax: Syntax {
            name: "enableautocompaction",
            about: "Enable autocompaction for the given keyspace and table",
            options: &[],
            arguments: TABLES,
        },
        run: |call, node, _| Box::pin(compaction::set_automatic(call, node, true)),
    },
    Verb {
        syntax: Syntax {
            name: "enablefullquerylog",
            about: "Enable full query logging, defaults for the options are configured in cassandra.yaml",
            options: request_logs::FULL_QUERY_LOG_OPTIONS,
            arguments: None,
        },
        run: |call, node, _| Box::pin(request_logs::enable_full(call, node)),
    },
    Verb {
        syntax: Syntax {
            name: "flush",
            about: "Flush one or more tables",
            options: &[],
            arguments: TABLES,
        },
        run: |call, node, _| Box::pin(tables::flush(call, node)),
    },
    Verb {
        syntax: Syntax {
            name: "getauditlog",
            about: "Print configuration of audit log if enabled, otherwise the configuration reflected in cassandra.yaml",
            options: &[],
            arguments: None,
        },
        run: |_, node, out| Box::pin(request_logs::get_audit(node, out)),
    },
    Verb {
        syntax: Syntax {
            name: "getcompactionthroughput",
            about: "Print the MiB/s throughput cap for compaction in the system as a rounded number",
            options: &[Choice::flag(
                &["-d", "--precise-mib"],
                "Print the MiB/s throughput cap for compaction in the system as a precise number (double)",
            )],
            arguments: None,
        },
        run: |call, node, out| Box::pin(compaction::throughput(call, node, out)),
    },
    Verb {
        syntax: Syntax {
            name: "getconcurrentcompactors",
            about: "Get the number of concurrent compactors in the system.",
            options: &[],
            arguments: None,
        },
        run: |_, node, out| Box::pin(compaction::compactors(node, out)),
    },
    Verb {
        syntax: Syntax {
            name: "getfullquerylog",
            about: "Print configuration of fql if enabled, otherwise the configuration reflected in cassandra.yaml",
            options: &[],
            arguments: None,
        },
        run: |_, node, out| Box::pin(request_logs::get_full(node, out)),
    },
    Verb {
        syntax: Syntax {
            name: "getguardrailsconfig",
            about: "Print runtime configuration of guardrails.",
            options: &[
                Choice::value(
                    &["-c", "--category"],
                    "guardrailCategory",
                    "Category of guardrails to filter, can be one of 'values', 'thresholds', 'flags', 'others'.",
                ),
                Choice::flag(
                    &["--expand"],
                    "Expand all guardrail names so they reflect their counterparts in cassandra.yaml",
                ),
            ],
            arguments: one("[<args>...]", "Specific name of a guardrail to get configuration of."),
        },
        run: |call, node, out| Box::pin(guardrails::show(call, node, out)),
    },
    Verb {
        syntax: Syntax {
            name: "getlogginglevels",
            about: "Get the runtime logging levels",
            options: &[],
            arguments: None,
        },
        run: |_, node, out| Box::pin(settings::logging_levels(node, out)),
    },
    Verb {
        syntax: Syntax {
            name: "gettraceprobability",
            about: "Print the current trace probability value",
            options: &[],
            arguments: None,
        },
        run: |_, node, out| Box::pin(settings::trace_probability(node, out)),
    },
    Verb {
        syntax: Syntax {
            name: "info",
            about: "Print node information (uptime, load, ...)",
            options: &[
                Choice::flag(
                    &["-O", "--out-of-range-ops"],
                    "Display per-keyspace counts of operations for invalid tokens",
                ),
                Choice::flag(&["-T", "--tokens"], "Display all tokens"),
            ],
            arguments: None,
        },
        run: |call, node, out| Box::pin(status::info(call, node, out)),
    },
    Verb {
        syntax: Syntax {
            name: "listsnapshots",
            about: "Lists all the snapshots along with the size on disk and true size. True size is the total size of all SSTables which are \
                not backed up to disk. Size on disk is total size of the snapshot on disk. Total TrueDiskSpaceUsed does not make any \
                SSTable deduplication.",
            options: &[
                Choice::flag(&["-e", "--ephemeral"], "Include ephememeral snapshots"),
                Choice::flag(&["-nt", "--no-ttl"], "Skip snapshots with TTL"),
            ],
            arguments: None,
        },
        run: |call, node, out| Box::pin(snapshots::list(call, node, out)),
    },
    Verb {
        syntax: Syntax {
            name: "loadpartitiondenylist",
            about: "Load the partitions that are denied from system_distributed.partition_denylist (StorageProxy.loadPartitionDenylist of JMX)",
            options: &[],
            arguments: None,
        },
        run: |_, node, _| Box::pin(request_logs::plain("loadpartitiondenylist", node)),
    },
    Verb {
        syntax: Syntax {
            name: "rebuild_index",
            about: "A full rebuild of native secondary indexes for a given table",
            options: &[],
            arguments: some(
                "<keyspace> <table> <indexName...>",
                "The keyspace and table name followed by a list of index names",
            ),
        },
        run: |call, node, _| Box::pin(tables::rebuild_index(call, node)),
    },
    Verb {
        syntax: Syntax {
            name: "refresh",
            about: "Load newly placed SSTables to the system without restart",
            options: &[],
            arguments: some("<keyspace> <table>", "The keyspace and table name"),
        },
        run: |call, node, _| Box::pin(tables::refresh(call, node)),
    },
    Verb {
        syntax: Syntax {
            name: "refreshsizeestimates",
            about: "Refresh system.size_estimates",
            options: &[],
            arguments: None,
        },
        run: |_, node, _| Box::pin(tables::refresh_size_estimates(node)),
    },
    Verb {
        syntax: Syntax {
            name: "reloadssl",
            about: "Signals Cassandra to reload SSL certificates",
            options: &[],
            arguments: None,
        },
        run: |_, node, _| Box::pin(settings::reload_certificates(node)),
    },
    Verb {
        syntax: Syntax {
            name: "resetfullquerylog",
            about: "Stop the full query log and clean files in the configured full query log directory from cassandra.yaml as well as JMX",
            options: &[],
            arguments: None,
        },
        run: |_, node, _| Box::pin(request_logs::plain("resetfullquerylog", node)),
    },
    Verb {
        syntax: Syntax {
            name: "setcompactionthroughput",
            about: "Set the MiB/s throughput cap for compaction in the system, or 0 to disable throttling",
            options: &[],
            arguments: one(
                "<compaction_throughput>",
                "Value in MiB per second, 0 to disable throttling",
            ),
        },
        run: |call, node, _| Box::pin(compaction::set_throughput(call, node)),
    },
    Verb {
        syntax: Syntax {
            name: "setconcurrentcompactors",
            about: "Set number of concurrent compactors in the system.",
            options: &[],
            arguments: one("<value>", "Number of concurrent compactors, greater than 0."),
        },
        run: |call, node, _| Box::pin(compaction::set_compactors(call, node)),
    },
    Verb {
        syntax: Syntax {
            name: "setguardrailsconfig",
            about: "Modify runtime configuration of guardrails.",
            options: &[],
            arguments: some(
                "[<setter> <value1> ...]",
                "For flags, possible values are 'true' or 'false'. For thresholds, two values are expected, first for failure, second for warning. For values, enumeration of values expected or one value where multiple items are separated by comma. Setting for thresholds accepting strings and value guardrails are reset by specifying 'null' or '[]' value. For thresholds accepting integers, the reset value is -1.",
            ),
        },
        run: |call, node, _| Box::pin(guardrails::set(call, node)),
    },
    Verb {
        syntax: Syntax {
            name: "setlogginglevel",
            about: "Set the log level threshold for a given component or class. Will reset to the initial configuration if called with no parameters.",
            options: &[],
            arguments: some(
                "<component|class> <level>",
                "The component or class to change the level for and the log level threshold to set. Will reset to initial level if omitted. Available components:  bootstrap, compaction, repair, streaming, cql, ring",
            ),
        },
        run: |call, node, _| Box::pin(settings::set_logging_level(call, node)),
    },
    Verb {
        syntax: Syntax {
            name: "settraceprobability",
            about: "Sets the probability for tracing any given request to value. 0 disables, 1 enables for all requests, 0 is the default",
            options: &[],
            arguments: one("<value>", "Trace probability between 0 and 1 (ex: 0.2)"),
        },
        run: |call, node, _| Box::pin(settings::set_trace_probability(call, node)),
    },
    Verb {
        syntax: Syntax {
            name: "snapshot",
            about: "Take a snapshot of specified keyspaces or a snapshot of the specified table",
            options: &[
                Choice::value(
                    &["-cf", "--column-family", "--table"],
                    "table",
                    "The table name (you must specify one and only one keyspace for using this option)",
                ),
                Choice::value(
                    &["-kt", "--kt-list", "-kc", "--kc.list"],
                    "ktlist",
                    "The list of Keyspace.table to take snapshot.(you must not specify only keyspace)",
                ),
                Choice::flag(
                    &["-sf", "--skip-flush"],
                    "Do not flush memtables before snapshotting (snapshot will not contain unflushed data)",
                ),
                Choice::value(&["-t", "--tag"], "tag", "The name of the snapshot"),
                Choice::value(&["--ttl"], "ttl", "Specify a TTL of created snapshot"),
            ],
            arguments: some("[<keyspaces...>]", "List of keyspaces. By default, all keyspaces"),
        },
        run: |call, node, out| Box::pin(snapshots::take(call, node, out)),
    },
    Verb {
        syntax: Syntax {
            name: "status",
            about: "Print cluster information (state, load, IDs, ...)",
            options: &[Choice::flag(
                &["-r", "--resolve-ip"],
                "Show node domain names instead of IPs",
            )],
            arguments: one("[<keyspace>]", "The keyspace name"),
        },
        run: |call, node, out| Box::pin(status::status(call, node, out)),
    },
    Verb {
        syntax: Syntax {
            name: "statusautocompaction",
            about: "status of autocompaction of the given keyspace and table",
            options: &[Choice::flag(
                &["-a", "--all"],
                "Show auto compaction status for each keyspace/table",
            )],
            arguments: TABLES,
        },
        run: |call, node, out| Box::pin(compaction::automatic(call, node, out)),
    },
    Verb {
        syntax: Syntax {
            name: "tablestats",
            about: "Print statistics on tables",
            options: &[
                Choice::value(&["-F", "--format"], "format", "Output format (json, yaml)"),
                HUMAN,
                Choice::flag(&["-i"], "Ignore the list of tables and display the remaining tables"),
                Choice::flag(
                    &["-l", "--sstable-location-check"],
                    "Check whether or not the SSTables are in the correct location.",
                ),
                Choice::value(
                    &["-s", "--sort"],
                    "sort_key",
                    "Sort tables by specified sort key; a wrong one is answered with the list of keys",
                ),
                Choice::value(
                    &["-t", "--top"],
                    "top",
                    "Show only the top K tables for the sort key (specify the number K of tables to be shown",
                ),
            ],
            arguments: some("[<keyspace.table>...]", "List of tables (or keyspace) names"),
        },
        run: |call, node, out| Box::pin(tablestats::print(call, node, out)),
    },
    Verb {
        syntax: Syntax {
            name: "version",
            about: "Print cassandra version",
            options: &[Choice::flag(&["-v", "--verbose"], "Include additional information")],
            arguments: None,
        },
        run: |call, node, out| Box::pin(status::version(call, node, out)),
    },
];

/// Commands of Cassandra 5.0 that are not there yet.
pub(super) const OF_CASSANDRA_ONLY: &[&str] = &[
    "assassinate",
    "autorepairstatus",
    "bootstrap",
    "checktokenmetadata",
    "cidrfilteringstats",
    "cleanup",
    "compactionhistory",
    "datapaths",
    "decommission",
    "describecluster",
    "describering",
    "disablebackup",
    "disablebinary",
    "disablegossip",
    "disablehandoff",
    "disablehintsfordc",
    "disableoldprotocolversions",
    "dropcidrgroup",
    "enablebackup",
    "enablebinary",
    "enablegossip",
    "enablehandoff",
    "enablehintsfordc",
    "enableoldprotocolversions",
    "failuredetector",
    "forcecompact",
    "garbagecollect",
    "gcstats",
    "getauthcacheconfig",
    "getautorepairconfig",
    "getbatchlogreplaythrottle",
    "getcidrgroupsofip",
    "getcolumnindexsize",
    "getcompactionthreshold",
    "getconcurrency",
    "getconcurrentviewbuilders",
    "getdefaultrf",
    "getendpoints",
    "getinterdcstreamthroughput",
    "getmaxhintwindow",
    "getseeds",
    "getsnapshotthrottle",
    "getsstables",
    "getstreamthroughput",
    "gettimeout",
    "gossipinfo",
    "import",
    "invalidatecidrpermissionscache",
    "invalidatecountercache",
    "invalidatecredentialscache",
    "invalidatejmxpermissionscache",
    "invalidatekeycache",
    "invalidatenetworkpermissionscache",
    "invalidatepermissionscache",
    "invalidaterolescache",
    "invalidaterowcache",
    "join",
    "listcidrgroups",
    "listpendinghints",
    "move",
    "netstats",
    "pausehandoff",
    "profileload",
    "proxyhistograms",
    "rangekeysample",
    "rebuild",
    "recompress_sstables",
    "reloadcidrgroupscache",
    "reloadlocalschema",
    "reloadseeds",
    "reloadtriggers",
    "relocatesstables",
    "removenode",
    "repair",
    "repair_admin",
    "replaybatchlog",
    "resetlocalschema",
    "resumehandoff",
    "ring",
    "scrub",
    "setauthcacheconfig",
    "setautorepairconfig",
    "setbatchlogreplaythrottle",
    "setcachecapacity",
    "setcachekeystosave",
    "setcolumnindexsize",
    "setcompactionthreshold",
    "setconcurrency",
    "setconcurrentviewbuilders",
    "setdefaultrf",
    "sethintedhandoffthrottlekb",
    "setinterdcstreamthroughput",
    "setmaxhintwindow",
    "setsnapshotthrottle",
    "setstreamthroughput",
    "settimeout",
    "sjk",
    "sstablerepairedset",
    "statusbackup",
    "statusbinary",
    "statusgossip",
    "statushandoff",
    "stop",
    "stopdaemon",
    "tablehistograms",
    "toppartitions",
    "tpstats",
    "truncatehints",
    "updatecidrgroup",
    "upgradesstables",
    "verify",
    "viewbuildstatus",
];
