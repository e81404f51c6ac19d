//! Commands about compactions and other rewrites of SSTables.

use super::super::arguments::Choice;
use super::super::{compaction, history, rewrite};
use super::verb::{FORMAT, HUMAN, TABLES, Verb, one, refused, some, verb};

const JOBS: Choice = Choice::value(
    &["-j", "--jobs"],
    "jobs",
    "Number of SSTables to rewrite at a time; 0 uses all compaction threads",
);

/// By name.
pub(super) const VERBS: &[Verb] = &[
    verb(
        "cleanup",
        "Delete partitions that do not belong to the node",
        &[JOBS],
        TABLES,
        |call, node, _| Box::pin(rewrite::done(call, node)),
    ),
    verb(
        "compact",
        "Force a (major) compaction on one or more tables or user-defined compaction on given SSTables",
        &[
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
        some(
            "[<keyspace> <tables>...] or <SSTable file>...",
            "The keyspace followed by one or many tables or list of SSTable data files when using --user-defined",
        ),
        |call, node, _| Box::pin(compaction::compact(call, node)),
    ),
    verb(
        "compactionhistory",
        "Print the compactions that have ended",
        &[FORMAT],
        None,
        |call, node, out| Box::pin(history::print(call, node, out)),
    ),
    verb(
        "compactionstats",
        "Print statistics on compactions",
        &[HUMAN, Choice::flag(&["-V", "--vtable"], "Display fields matching vtable output")],
        None,
        |call, node, out| Box::pin(compaction::stats(call, node, out)),
    ),
    verb(
        "disableautocompaction",
        "Disable autocompaction for the given keyspace and table",
        &[],
        TABLES,
        |call, node, _| Box::pin(compaction::set_automatic(call, node, false)),
    ),
    verb(
        "enableautocompaction",
        "Enable autocompaction for the given keyspace and table",
        &[],
        TABLES,
        |call, node, _| Box::pin(compaction::set_automatic(call, node, true)),
    ),
    verb(
        "forcecompact",
        "Compact partitions of a table, whatever its gc_grace_seconds",
        &[],
        some(
            "[<keyspace> <table> <keys>]",
            "The keyspace, the table, and partition keys whose tombstones are dropped before gc_grace_seconds",
        ),
        |call, node, _| Box::pin(rewrite::force_compact(call, node)),
    ),
    verb(
        "garbagecollect",
        "Remove deleted data from one or more tables",
        &[
            Choice::value(
                &["-g", "--granularity"],
                "granularity",
                "ROW (default): deleted partitions and rows; CELL: overwritten and deleted cells too",
            ),
            JOBS,
        ],
        TABLES,
        |call, node, _| Box::pin(rewrite::garbage(call, node)),
    ),
    verb(
        "getcompactionthreshold",
        "Print the least and most SSTables of a compaction of a table",
        &[],
        some("<keyspace> <table>", "The keyspace with a table"),
        |call, node, out| Box::pin(compaction::thresholds(call, node, out)),
    ),
    verb(
        "getcompactionthroughput",
        "Print the MiB/s throughput cap for compaction in the system as a rounded number",
        &[Choice::flag(
            &["-d", "--precise-mib"],
            "Print the MiB/s throughput cap for compaction in the system as a precise number (double)",
        )],
        None,
        |call, node, out| Box::pin(compaction::throughput(call, node, out)),
    ),
    verb(
        "getconcurrentcompactors",
        "Get the number of concurrent compactors in the system.",
        &[],
        None,
        |_, node, out| Box::pin(compaction::compactors(node, out)),
    ),
    verb(
        "recompress_sstables",
        "Rewrite SSTables whose compression differs from the table's",
        &[JOBS],
        TABLES,
        |call, node, _| Box::pin(rewrite::recompress(call, node)),
    ),
    verb(
        "relocatesstables",
        "Move SSTables to the directory of their tokens",
        &[JOBS],
        some("<keyspace> <table>", "The keyspace and table name"),
        |call, node, _| Box::pin(rewrite::done(call, node)),
    ),
    verb(
        "scrub",
        "Rewrite SSTables of one or more tables, without what is corrupt",
        &[
            JOBS,
            Choice::flag(&["-n", "--no-validate"], "Do not check values by their types"),
            Choice::flag(&["-ns", "--no-snapshot"], "Do not take a snapshot first"),
            Choice::flag(
                &["-r", "--reinsert-overflowed-ttl"],
                "Rewrite rows whose expiration overflowed (CASSANDRA-14092) with the latest one",
            ),
            Choice::flag(
                &["-s", "--skip-corrupted"],
                "Skip corrupt partitions of counter tables too",
            ),
        ],
        TABLES,
        |call, node, _| Box::pin(rewrite::scrub(call, node)),
    ),
    verb(
        "setcompactionthreshold",
        "Set the least and most SSTables of a compaction of a table",
        &[],
        some(
            "<keyspace> <table> <minthreshold> <maxthreshold>",
            "The keyspace, the table, both thresholds",
        ),
        |call, node, _| Box::pin(compaction::set_thresholds(call, node)),
    ),
    verb(
        "setcompactionthroughput",
        "Set the MiB/s throughput cap for compaction in the system, or 0 to disable throttling",
        &[],
        one("<value_in_mb>", "Value in MiB per second, 0 to disable throttling"),
        |call, node, _| Box::pin(compaction::set_throughput(call, node)),
    ),
    verb(
        "setconcurrentcompactors",
        "Set number of concurrent compactors in the system.",
        &[],
        one("<value>", "Number of concurrent compactors, greater than 0."),
        |call, node, _| Box::pin(compaction::set_compactors(call, node)),
    ),
    refused(
        "sstablerepairedset",
        "Mark SSTables as repaired or unrepaired",
        &[
            Choice::flag(&["--is-repaired"], "Mark them as repaired"),
            Choice::flag(&["--is-unrepaired"], "Mark them as unrepaired"),
            Choice::flag(&["--really-set"], "Do it; without, the SSTables are only listed"),
        ],
        some("[<keyspace> <table...>]", "The keyspace followed by any number of tables"),
        "the node has no replicas to repair with; a full repair after joining a ring marks SSTables",
    ),
    verb(
        "statusautocompaction",
        "status of autocompaction of the given keyspace and table",
        &[Choice::flag(&["-a", "--all"], "Show auto compaction status for each keyspace/table")],
        TABLES,
        |call, node, out| Box::pin(compaction::automatic(call, node, out)),
    ),
    verb(
        "stop",
        "Stop compactions",
        &[Choice::value(
            &["-id", "--compaction-id"],
            "compactionId",
            "Stop the compaction with this id, as `compactionstats` shows it",
        )],
        one(
            "<compaction type>",
            "COMPACTION, VALIDATION, CLEANUP, SCRUB, UPGRADE_SSTABLES, INDEX_BUILD, TOMBSTONE_COMPACTION, ANTICOMPACTION, VERIFY, VIEW_BUILD, INDEX_SUMMARY, RELOCATE, GARBAGE_COLLECT",
        ),
        |call, node, _| Box::pin(compaction::stop(call, node)),
    ),
    verb(
        "upgradesstables",
        "Rewrite SSTables that are not of the version that is written now",
        &[
            Choice::flag(&["-a", "--include-all-sstables"], "Those of the current version too"),
            JOBS,
            Choice::value(
                &["-t", "--max-timestamp"],
                "max_timestamp",
                "Only SSTables that were created before this time, in milliseconds since 1970",
            ),
        ],
        TABLES,
        |call, node, _| Box::pin(rewrite::upgrade(call, node)),
    ),
    verb(
        "verify",
        "Check the checksums of one or more tables",
        &[
            Choice::flag(
                &["-c", "--check-version"],
                "Check that all SSTables have the latest version",
            ),
            Choice::flag(&["-d", "--dfp"], "Apply disk_failure_policy to a corrupt SSTable"),
            Choice::flag(&["-e", "--extended-verify"], "Decode each cell, beside the checksums"),
            Choice::flag(
                &["-f", "--force"],
                "Verify although Cassandra disables it by default (CASSANDRA-9947)",
            ),
            Choice::flag(&["-q", "--quick"], "Do not read all data"),
            Choice::flag(&["-r", "--rsc"], "Mark corrupt SSTables as unrepaired"),
            Choice::flag(
                &["-t", "--check-tokens"],
                "Check that the node owns all tokens of the SSTables",
            ),
        ],
        TABLES,
        |call, node, out| Box::pin(rewrite::verify(call, node, out)),
    ),
];
