//! Commands about a ring: this node is the only one of its own.

use super::super::arguments::{Choice, Times};
use super::super::{ring, sstables};
use super::verb::{HUMAN, RESOLVE, TABLES, Verb, one, refused, required, some, verb};

const ALONE: &str = "this node is the only one of its ring; it has no other nodes to act on";
const NO_HINTS: &str = "a node without other nodes stores and sends no hints; files of hints that Cassandra left stay as they are";
const NO_REPAIR: &str =
    "the node has no replicas to compare with; `nodetool verify` checks its own files";
const NO_GOSSIP: &str =
    "the node does not gossip; `nodetool drain` stops writes, SIGTERM ends the node";
const SESSION_TOKENS: [Choice; 2] = [
    Choice::value(&["-st", "--start-token"], "start_token", "Start of the range, exclusive"),
    Choice::value(&["-et", "--end-token"], "end_token", "End of the range, inclusive"),
];

/// By name.
pub(super) const VERBS: &[Verb] = &[
    refused(
        "assassinate",
        "Remove a dead node without copying its data",
        &[],
        required("<ip_address>", "The address of the node", "ip address"),
        ALONE,
    ),
    refused(
        "autorepairstatus",
        "Print the state of automatic repairs",
        &[Choice::value(&["-t", "--repair-type"], "repair type", "Repair type")],
        None,
        NO_REPAIR,
    ),
    verb(
        "bootstrap",
        "Show or resume the bootstrap of the node",
        &[Choice::flag(&["-f", "--force"], "Resume although it was not begun")],
        one("[resume]", "Resume the streams of the bootstrap"),
        |call, _, _| Box::pin(ring::bootstrap(call)),
    ),
    verb(
        "checktokenmetadata",
        "Compare the tokens in gossip with those in memory",
        &[],
        None,
        |_, _, out| Box::pin(ring::no_mismatches(out)),
    ),
    refused(
        "decommission",
        "Hand the data of this node over to others and leave the ring",
        &[Choice::flag(&["-f", "--force"], "Also if keyspaces then have too few replicas")],
        None,
        "no other node can take the data; `nodetool drain` and SIGTERM end the node",
    ),
    verb(
        "describecluster",
        "Print the name, the snitch, the partitioner and the schema version of the cluster",
        &[],
        None,
        |_, node, out| Box::pin(ring::cluster(node, out)),
    ),
    verb(
        "describering",
        "Print the token ranges of a keyspace",
        &[],
        required("<keyspace>", "The keyspace name", "keyspace"),
        |call, node, out| Box::pin(ring::ranges(call, node, out)),
    ),
    refused(
        "disablegossip",
        "Disable gossip, so that others take the node for down",
        &[],
        None,
        NO_GOSSIP,
    ),
    refused("disablehandoff", "Store no more hints", &[], None, NO_HINTS),
    refused(
        "disablehintsfordc",
        "Store no more hints for a data center",
        &[],
        required("<datacenter>", "The data center", "datacenter"),
        NO_HINTS,
    ),
    refused("enablegossip", "Enable gossip again", &[], None, NO_GOSSIP),
    refused("enablehandoff", "Store hints again", &[], None, NO_HINTS),
    refused(
        "enablehintsfordc",
        "Store hints for a data center again",
        &[],
        required("<datacenter>", "The data center", "datacenter"),
        NO_HINTS,
    ),
    verb(
        "failuredetector",
        "Print the suspicion that other nodes are down",
        &[],
        None,
        |_, _, out| Box::pin(ring::suspicions(out)),
    ),
    refused("getautorepairconfig", "Print the settings of automatic repairs", &[], None, NO_REPAIR),
    verb(
        "getendpoints",
        "Print the nodes that have a partition",
        &[],
        some("<keyspace> <table> <key>", "The keyspace, the table, and the partition key"),
        |call, node, out| Box::pin(sstables::endpoints(call, node, out)),
    ),
    verb("getseeds", "Print the seed nodes without this one", &[], None, |_, _, out| {
        Box::pin(ring::seeds(out))
    }),
    verb(
        "gossipinfo",
        "Print what gossip knows of the nodes",
        &[RESOLVE],
        None,
        |call, node, out| Box::pin(ring::gossip(call, node, out)),
    ),
    verb("join", "Join the ring", &[], None, |_, _, _| Box::pin(ring::join())),
    verb("listpendinghints", "Print the hints that wait on this node", &[], None, |_, _, out| {
        Box::pin(ring::pending_hints(out))
    }),
    refused(
        "move",
        "Move the node to another token",
        &[],
        required("<new token>", "The new token", "newToken"),
        "this node is alone in its ring and owns all tokens",
    ),
    verb("netstats", "Print streams and messages of the node", &[HUMAN], None, |_, node, out| {
        Box::pin(ring::network(node, out))
    }),
    refused("pausehandoff", "Pause the delivery of hints", &[], None, NO_HINTS),
    refused(
        "rebuild",
        "Fetch the data of the node from other nodes",
        &[
            Choice::flag(&["--exclude-local-dc"], "Not from nodes of this data center"),
            Choice::value(&["-ks", "--keyspace"], "specific_keyspace", "Only this keyspace"),
            Choice::value(
                &["-s", "--sources"],
                "specific_sources",
                "With -ts: comma-separated nodes to fetch from",
            ),
            Choice::value(
                &["-ts", "--tokens"],
                "specific_tokens",
                "Only these ranges: \"(start_token_1,end_token_1],(start_token_2,end_token_2]\"",
            ),
        ],
        one("<src-dc-name>", "The data center to fetch from; any if none is named"),
        "no other node can send the data; `nodetool refresh` takes in SSTables",
    ),
    verb("reloadseeds", "Read the list of seed nodes again", &[], None, |_, _, out| {
        Box::pin(ring::seeds(out))
    }),
    verb(
        "removenode",
        "Show, force or begin the removal of a node",
        &[],
        required(
            "<status>|<force>|<ID>",
            "Show the removal that runs, force its end, or remove the node with this id",
            "remove_operation",
        ),
        |call, _, out| Box::pin(ring::removal(call, out)),
    ),
    refused(
        "repair",
        "Repair one or more tables",
        &[
            Choice::value(&["-dc", "--in-dc"], "specific_dc", "Only this data center")
                .times(Times::Many),
            Choice::flag(&["-dcpar", "--dc-parallel"], "Data centers in parallel"),
            Choice::value(&["-et", "--end-token"], "end_token", "End of the range, inclusive"),
            Choice::flag(&["-force", "--force"], "Leave out nodes that are down"),
            Choice::flag(&["-full", "--full"], "A full repair"),
            Choice::value(&["-hosts", "--in-hosts"], "specific_host", "Only this node")
                .times(Times::Many),
            Choice::flag(
                &["-iuk", "--ignore-unreplicated-keyspaces"],
                "Pass over keyspaces with one replica instead of failing",
            ),
            Choice::value(
                &["-j", "--job-threads"],
                "job_threads",
                "Number of tables at a time (default: 1, at most 4)",
            ),
            Choice::flag(&["-local", "--in-local-dc"], "Only nodes of this data center"),
            Choice::flag(
                &["-os", "--optimise-streams"],
                "Fewer streams (experimental, CASSANDRA-3200)",
            ),
            Choice::flag(&["-paxos-only", "--paxos-only"], "Only operations of Paxos"),
            Choice::flag(&["-pl", "--pull"], "Stream to this node only"),
            Choice::flag(
                &["-pr", "--partitioner-range"],
                "Only the first range of the partitioner",
            ),
            Choice::flag(&["-prv", "--preview"], "Show what would be streamed"),
            Choice::flag(&["-seq", "--sequential"], "One replica after the other"),
            Choice::flag(&["-skip-paxos", "--skip-paxos"], "Without operations of Paxos"),
            Choice::value(
                &["-st", "--start-token"],
                "start_token",
                "Start of the range, exclusive",
            ),
            Choice::flag(&["-tr", "--trace"], "Trace to system_traces.events"),
            Choice::flag(
                &["-vd", "--validate"],
                "Check that repaired data is the same on all nodes",
            ),
        ],
        TABLES,
        NO_REPAIR,
    ),
    verb(
        "repair_admin",
        "List incremental repairs, or cancel one",
        &[
            Choice::value(&["-s", "--session"], "session", "Of `cancel`: the session"),
            Choice::flag(
                &["-f", "--force"],
                "Of `cancel` and `cleanup`: from any node, with running compactions",
            ),
            SESSION_TOKENS[0],
            SESSION_TOKENS[1],
            Choice::flag(&["-v", "--verbose"], "Of summaries: each range"),
        ],
        one(
            "[list | cancel | cleanup | summarize-pending | summarize-repaired]",
            "What to do; without, `list`",
        ),
        |call, _, out| Box::pin(ring::repair_sessions(call, out)),
    ),
    refused(
        "resetlocalschema",
        "Drop the schema of the node and fetch it from another one",
        &[],
        None,
        "no other node can send the schema, so it would be lost",
    ),
    refused("resumehandoff", "Resume the delivery of hints", &[], None, NO_HINTS),
    verb(
        "ring",
        "Print the tokens of the ring",
        &[RESOLVE],
        one("[<keyspace>]", "The keyspace whose replicas are counted"),
        |call, node, out| Box::pin(ring::tokens(call, node, out)),
    ),
    refused(
        "setautorepairconfig",
        "Set a setting of automatic repairs",
        &[Choice::value(&["-t", "--repair-type"], "repair type", "Repair type")],
        some("<autorepairparam> <value>", "The setting and its value"),
        NO_REPAIR,
    ),
    refused(
        "sethintedhandoffthrottlekb",
        "Set the rate of hints of each delivery thread, in KiB/s",
        &[],
        required("<value_in_kb_per_sec>", "Value in KiB per second", "throttle_in_kb"),
        NO_HINTS,
    ),
    verb("statusgossip", "Print whether gossip runs", &[], None, |_, node, out| {
        Box::pin(ring::gossip_status(node, out))
    }),
    verb("statushandoff", "Print whether hints are stored", &[], None, |_, _, out| {
        Box::pin(ring::handoff_status(out))
    }),
    refused(
        "truncatehints",
        "Delete hints of all or of some nodes",
        &[],
        some("[endpoint ... ]", "The nodes, by address or name"),
        NO_HINTS,
    ),
];
