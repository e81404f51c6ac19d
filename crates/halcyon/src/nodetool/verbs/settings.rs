//! Commands that show or change settings.

use super::super::arguments::Choice;
use super::super::{caches, guardrails, running_settings};
use super::verb::{Verb, one, refused, required, some, verb};

const MEBIBYTES: Choice = Choice::flag(&["-m", "--mib"], "In MiB/s");
const WHOLE_SSTABLES: Choice = Choice::flag(
    &["-e", "--entire-sstable-throughput"],
    "The throughput of streams of entire SSTables, in MiB/s",
);
const PRECISE_MEGABITS: Choice =
    Choice::flag(&["-d", "--precise-mbit"], "In Mbit/s, not rounded (double)");
const STREAM_OPTIONS: &[Choice] = &[PRECISE_MEGABITS, WHOLE_SSTABLES, MEBIBYTES];
const NO_STREAMS: &str = "this node is the only one of its ring and streams nothing";
const NO_STAGES: &str = "each shard does the work of all stages on its thread; `halcyon serve --shards` sets their number";

/// By name.
pub(super) const VERBS: &[Verb] = &[
    verb(
        "getbatchlogreplaythrottle",
        "Print the rate at which batches are replayed, in KB/s",
        &[],
        None,
        |_, node, out| Box::pin(running_settings::batchlog(node, out)),
    ),
    verb(
        "getcolumnindexsize",
        "Print the distance of entries in the index of a partition's rows, in KiB",
        &[],
        None,
        |_, node, out| Box::pin(running_settings::column_index(node, out)),
    ),
    verb(
        "getconcurrency",
        "Print the number of threads of stages",
        &[],
        some("[stage-names]", "Names of stages; all if none is named"),
        |call, node, out| Box::pin(running_settings::concurrency(call, node, out)),
    ),
    verb(
        "getconcurrentviewbuilders",
        "Print how many builds of views run at a time",
        &[],
        None,
        |_, node, out| Box::pin(running_settings::view_builders(node, out)),
    ),
    verb(
        "getdefaultrf",
        "Print the replication factor of keyspaces that name none",
        &[],
        None,
        |_, node, out| Box::pin(running_settings::default_factor(node, out)),
    ),
    verb(
        "getguardrailsconfig",
        "Print runtime configuration of guardrails.",
        &[
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
        one("[<args>...]", "Specific name of a guardrail to get configuration of."),
        |call, node, out| Box::pin(guardrails::show(call, node, out)),
    ),
    verb(
        "getinterdcstreamthroughput",
        "Print the cap of streams to other data centers, in Mbit/s",
        STREAM_OPTIONS,
        None,
        |call, node, out| Box::pin(running_settings::inter_dc_streams(call, node, out)),
    ),
    verb(
        "getmaxhintwindow",
        "Print for how long hints are stored for a node that is down",
        &[],
        None,
        |_, node, out| Box::pin(running_settings::hint_window(node, out)),
    ),
    verb(
        "getsnapshotthrottle",
        "Print how many links a second snapshots make",
        &[],
        None,
        |_, node, out| Box::pin(running_settings::snapshot_links(node, out)),
    ),
    verb(
        "getstreamthroughput",
        "Print the cap of streams, in Mbit/s",
        STREAM_OPTIONS,
        None,
        |call, node, out| Box::pin(running_settings::streams(call, node, out)),
    ),
    verb(
        "gettimeout",
        "Print a timeout in ms",
        &[],
        one("<timeout_type>", running_settings::TIMEOUT_TYPES),
        |call, node, out| Box::pin(running_settings::timeout(call, node, out)),
    ),
    verb("invalidatecountercache", "Empty the counter cache", &[], None, |_, _, _| {
        Box::pin(caches::no_counters())
    }),
    verb("invalidatekeycache", "Empty the key cache", &[], None, |_, node, _| {
        Box::pin(caches::forget_keys(node))
    }),
    verb("invalidaterowcache", "Empty the row cache", &[], None, |_, node, _| {
        Box::pin(caches::forget_rows(node))
    }),
    refused(
        "setbatchlogreplaythrottle",
        "Set the rate at which batches are replayed, in KB/s",
        &[],
        required(
            "<value_in_kb_per_sec>",
            "Value in KiB per second; 0: unlimited",
            "batchlog_replay_throttle",
        ),
        "batches are replayed at the start, without a throttle",
    ),
    verb(
        "setcachecapacity",
        "Set the sizes of the caches, in MB",
        &[],
        some(
            "<key-cache-capacity> <row-cache-capacity> <counter-cache-capacity>",
            "The sizes of the caches, in MB",
        ),
        |call, node, _| Box::pin(caches::set_capacity(call, node)),
    ),
    verb(
        "setcachekeystosave",
        "Set how many entries of each cache are saved; 0: none",
        &[],
        some(
            "<key-cache-keys-to-save> <row-cache-keys-to-save> <counter-cache-keys-to-save>",
            "The numbers of entries; 0: none",
        ),
        |call, node, _| Box::pin(caches::set_saved(call, node)),
    ),
    verb(
        "setcolumnindexsize",
        "Set the distance of entries in the index of a partition's rows, in KiB",
        &[],
        required("<value_in_kib>", "Value in KiB", "column_index_size"),
        |call, node, _| Box::pin(running_settings::set_column_index(call, node)),
    ),
    refused(
        "setconcurrency",
        "Set the number of threads of a stage",
        &[],
        some(
            "<stage-name> <maximum-concurrency> | <stage-name> <core-pool> <maximum-concurrency>",
            "The stage and its threads",
        ),
        NO_STAGES,
    ),
    refused(
        "setconcurrentviewbuilders",
        "Set how many builds of views run at a time",
        &[],
        required("<value>", "Number of builds, greater than 0", "concurrent_view_builders"),
        "Halcyon does not limit the number of builds",
    ),
    verb(
        "setdefaultrf",
        "Set the replication factor of keyspaces that name none",
        &[],
        required("<value>", "The replication factor", "default_rf"),
        |call, node, _| Box::pin(running_settings::set_default_factor(call, node)),
    ),
    verb(
        "setguardrailsconfig",
        "Modify runtime configuration of guardrails.",
        &[],
        some(
            "[<setter> <value1> ...]",
            "For flags, possible values are 'true' or 'false'. For thresholds, two values are expected, first for failure, second for warning. For values, enumeration of values expected or one value where multiple items are separated by comma. Setting for thresholds accepting strings and value guardrails are reset by specifying 'null' or '[]' value. For thresholds accepting integers, the reset value is -1.",
        ),
        |call, node, _| Box::pin(guardrails::set(call, node)),
    ),
    refused(
        "setinterdcstreamthroughput",
        "Set the cap of streams to other data centers",
        &[WHOLE_SSTABLES, MEBIBYTES],
        required("<value_in_mb>", "Value in megabits; 0: unlimited", "inter_dc_stream_throughput"),
        NO_STREAMS,
    ),
    refused(
        "setmaxhintwindow",
        "Set for how long hints are stored for a node that is down",
        &[],
        required("<value_in_ms>", "Value in milliseconds", "max_hint_window"),
        "a node without other nodes stores no hints",
    ),
    verb(
        "setsnapshotthrottle",
        "Set how many links a second snapshots make",
        &[],
        required("<throttle>", "Links per second; 0: unlimited", "setsnapshotthrottle"),
        |call, node, _| Box::pin(running_settings::set_snapshot_links(call, node)),
    ),
    refused(
        "setstreamthroughput",
        "Set the cap of streams",
        &[WHOLE_SSTABLES, MEBIBYTES],
        required("<value_in_mb>", "Value in megabits; 0: unlimited", "stream_throughput"),
        NO_STREAMS,
    ),
    verb(
        "settimeout",
        "Set a timeout in ms; 0 disables it",
        &[],
        some("<timeout_type> <timeout_in_ms>", running_settings::TIMEOUT_TYPES),
        |call, node, _| Box::pin(running_settings::set_timeout(call, node)),
    ),
];
