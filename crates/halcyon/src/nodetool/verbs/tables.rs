//! Commands about tables, their files and snapshots.

use super::super::arguments::{Arguments, Choice};
use super::super::{
    data_paths, histograms, profiles, snapshots, sstables, tables, tablestats, views,
};
use super::verb::{FORMAT, HUMAN, TABLES, Verb, refused, some, verb};

const SAMPLER_OPTIONS: &[Choice] = &[
    Choice::value(&["-a"], "samplers", "Comma-separated samplers (default: all)"),
    Choice::value(
        &["-i", "--interval"],
        "intervalMillis",
        "Sample in the background, once each interval in milliseconds",
    ),
    Choice::value(&["-k"], "topCount", "Number of top samples to list (default: 10)"),
    Choice::flag(&["-l", "--list"], "List the scheduled jobs"),
    Choice::value(&["-s"], "capacity", "Capacity of a sampler (default: 256)"),
    Choice::flag(&["-t", "--stop"], "Stop the scheduled job of <keyspace> and <cfname>"),
];
const SAMPLED: Option<Arguments> = some(
    "<keyspace> <cfname> <duration>",
    "The keyspace, the table, and the duration in milliseconds (default: 10000)",
);

/// By name.
pub(super) const VERBS: &[Verb] = &[
    verb(
        "clearsnapshot",
        "Remove the snapshot with the given name from the given keyspaces",
        &[
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
        some("[<keyspaces>...] ", "Remove snapshots from the given keyspaces"),
        |call, node, out| Box::pin(snapshots::clear(call, node, out)),
    ),
    verb(
        "datapaths",
        "Print the directories of tables",
        &[FORMAT],
        some("[<keyspace.table>...]", "Tables or keyspaces"),
        |call, node, out| Box::pin(data_paths::print(call, node, out)),
    ),
    verb("flush", "Flush one or more tables", &[], TABLES, |call, node, _| {
        Box::pin(tables::flush(call, node))
    }),
    verb(
        "getsstables",
        "Print the SSTables that have a partition",
        &[
            Choice::flag(&["-hf", "--hex-format"], "The key is in hexadecimal digits"),
            Choice::flag(
                &["-l", "--show-levels"],
                "Show the level of each SSTable if the table has levels",
            ),
        ],
        some("<keyspace> <cfname> <key>", "The keyspace, the table, and the partition key"),
        |call, node, out| Box::pin(sstables::of_key(call, node, out)),
    ),
    verb(
        "import",
        "Take SSTables of other directories in",
        &[
            Choice::flag(&["-c", "--no-invalidate-caches"], "Keep the row cache"),
            Choice::flag(&["-cd", "--copy-data"], "Copy the files instead of moving them"),
            Choice::flag(&["-e", "--extended-verify"], "Decode each cell of the new SSTables"),
            Choice::flag(&["-l", "--keep-level"], "Keep their levels"),
            Choice::flag(
                &["-niv", "--no-index-validation"],
                "Do not check the checksums of attached indexes",
            ),
            Choice::flag(&["-q", "--quick"], "Check nothing, and keep the row cache"),
            Choice::flag(&["-r", "--keep-repaired"], "Keep their repair states"),
            Choice::flag(
                &["-ri", "--require-index-components"],
                "Refuse SSTables without the components of attached indexes",
            ),
            Choice::flag(&["-t", "--no-tokens"], "Do not check that the node owns their tokens"),
            Choice::flag(&["-v", "--no-verify"], "Do not check the new SSTables"),
        ],
        some(
            "<keyspace> <table> <directory> ...",
            "The keyspace, the table, and directories of SSTables",
        ),
        |call, node, out| Box::pin(tables::import(call, node, out)),
    ),
    verb(
        "listsnapshots",
        "Lists all the snapshots along with the size on disk and true size. True size is the total size of all SSTables which are not backed up to disk. Size on disk is total size of the snapshot on disk. Total TrueDiskSpaceUsed does not make any SSTable deduplication.",
        &[
            Choice::flag(&["-e", "--ephemeral"], "Include ephememeral snapshots"),
            Choice::flag(&["-nt", "--no-ttl"], "Skip snapshots with TTL"),
        ],
        None,
        |call, node, out| Box::pin(snapshots::list(call, node, out)),
    ),
    verb(
        "profileload",
        "Sample the load of a period",
        SAMPLER_OPTIONS,
        SAMPLED,
        |call, node, out| Box::pin(profiles::profile(call, node, out)),
    ),
    verb("rangekeysample", "Print the tokens of sampled keys", &[], None, |_, node, out| {
        Box::pin(tables::sampled_tokens(node, out))
    }),
    verb(
        "rebuild_index",
        "A full rebuild of native secondary indexes for a given table",
        &[],
        some(
            "<keyspace> <table> <indexName...>",
            "The keyspace and table name followed by a list of index names",
        ),
        |call, node, _| Box::pin(tables::rebuild_index(call, node)),
    ),
    verb(
        "refresh",
        "Load newly placed SSTables to the system without restart",
        &[],
        some("<keyspace> <table>", "The keyspace and table name"),
        |call, node, out| Box::pin(tables::refresh(call, node, out)),
    ),
    verb("refreshsizeestimates", "Refresh system.size_estimates", &[], None, |_, node, _| {
        Box::pin(tables::refresh_size_estimates(node))
    }),
    verb("reloadlocalschema", "Read the schema from its tables again", &[], None, |_, _, _| {
        Box::pin(tables::in_force())
    }),
    refused(
        "reloadtriggers",
        "Load the classes of triggers again",
        &[],
        None,
        "Halcyon has no triggers",
    ),
    verb("replaybatchlog", "Replay batches and wait for their end", &[], None, |_, _, _| {
        Box::pin(tables::in_force())
    }),
    verb(
        "snapshot",
        "Take a snapshot of specified keyspaces or a snapshot of the specified table",
        &[
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
        some("[<keyspaces...>]", "List of keyspaces. By default, all keyspaces"),
        |call, node, out| Box::pin(snapshots::take(call, node, out)),
    ),
    verb(
        "tablehistograms",
        "Print histograms of a table",
        &[],
        some("[<keyspace> <table> | <keyspace.table>]", "The keyspace and table name"),
        |call, node, out| Box::pin(histograms::of_tables(call, node, out)),
    ),
    verb(
        "tablestats",
        "Print statistics on tables",
        &[
            FORMAT,
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
        some("[<keyspace.table>...]", "List of tables (or keyspace) names"),
        |call, node, out| Box::pin(tablestats::print(call, node, out)),
    ),
    verb(
        "toppartitions",
        "Sample and print the partitions with the most requests",
        SAMPLER_OPTIONS,
        SAMPLED,
        |call, node, out| Box::pin(profiles::profile(call, node, out)),
    ),
    verb(
        "viewbuildstatus",
        "Print whether a view is built",
        &[],
        some("<keyspace> <view> | <keyspace.view>", "The keyspace and view name"),
        |call, node, out| Box::pin(views::build_status(call, node, out)),
    ),
];
