//! Settings that are shown, and timeouts, which are set too.

use halcyon_model::units::settings::{duration, rate, size};

use super::arguments::Call;
use super::failure::{Failure, Result};
use super::node::Node;

pub(super) const TIMEOUT_TYPES: &str = "The timeout type, one of read, range, write, counterwrite, cascontention, truncate, internodeconnect, internodeuser, internodestreaminguser, misc";
/// Cassandra's words for its timeout types.
const TYPES: &str = "one of (read, range, write, counterwrite, cascontention, truncate, internodeconnect, internodeuser, internodestreaminguser, misc (general rpc_timeout_in_ms))";

/// The setting of a timeout type.
fn setting_of(kind: &str) -> Result<&'static str> {
    Ok(match kind {
        "read" => "read_request_timeout",
        "range" => "range_request_timeout",
        "write" => "write_request_timeout",
        "counterwrite" => "counter_write_request_timeout",
        "cascontention" => "cas_contention_timeout",
        "truncate" => "truncate_request_timeout",
        "internodeconnect" => "internode_tcp_connect_timeout",
        "internodeuser" => "internode_tcp_user_timeout",
        "internodestreaminguser" => "internode_streaming_tcp_user_timeout",
        "misc" => "request_timeout",
        _ => return Failure::usage(format!("Timeout type requires {TYPES}")),
    })
}

async fn millis(node: &mut Node, setting: &str) -> Result<u128> {
    let value = node.setting(setting).await?;
    Ok(duration(&value).map_or(0, |duration| duration.as_millis()))
}

pub(super) async fn timeout(call: &Call, node: &mut Node, out: &mut String) -> Result<()> {
    let Some(kind) = call.arguments.first() else {
        return Failure::usage(format!("gettimeout requires a timeout type, {TYPES}"));
    };
    let millis = millis(node, setting_of(kind)?).await?;
    out.push_str(&format!("Current timeout for type {kind}: {millis} ms\n"));
    Ok(())
}

pub(super) async fn set_timeout(call: &Call, node: &mut Node) -> Result<()> {
    let [kind, value] = call.arguments.as_slice() else {
        return match call.arguments.is_empty() {
            true => Failure::usage("Required parameters are missing: args"),
            false => Failure::usage(format!(
                "Timeout type followed by value in ms (0 disables socket streaming timeout). Type should be {TYPES}"
            )),
        };
    };
    let Ok(millis) = value.parse::<i64>() else {
        return Failure::usage(format!("For input string: \"{value}\""));
    };
    if millis < 0 {
        return Failure::usage("timeout must be non-negative");
    }
    node.set(setting_of(kind)?, &format!("{millis}ms")).await
}

pub(super) async fn hint_window(node: &mut Node, out: &mut String) -> Result<()> {
    let millis = millis(node, "max_hint_window").await?;
    out.push_str(&format!("Current max hint window: {millis} ms\n"));
    Ok(())
}

pub(super) async fn batchlog(node: &mut Node, out: &mut String) -> Result<()> {
    let bytes = size(&node.setting("batchlog_replay_throttle").await?).unwrap_or(0);
    out.push_str(&format!("Batchlog replay throttle: {} KB/s\n", bytes >> 10));
    Ok(())
}

/// Null is Cassandra's -1: the format's own distance.
pub(super) async fn column_index(node: &mut Node, out: &mut String) -> Result<()> {
    let kibibytes = size(&node.setting("column_index_size").await?).map(|bytes| bytes >> 10);
    let kibibytes = kibibytes.map_or("-1".to_owned(), |kibibytes| kibibytes.to_string());
    out.push_str(&format!("Current value for column_index_size: {kibibytes} KiB\n"));
    Ok(())
}

/// The one argument, as an `int` or `long` of Java.
fn argument<T: std::str::FromStr>(call: &Call, title: &str, of: &str) -> Result<T> {
    let text = call.arguments.first().map_or("", String::as_str);
    let wrong = || Failure::Usage(format!("{title}: can not convert \"{text}\" to a {of}"));
    text.parse().map_err(|_| wrong())
}

/// In KiB; -1 is the format's own.
pub(super) async fn set_column_index(call: &Call, node: &mut Node) -> Result<()> {
    let kibibytes: i32 = argument(call, "column_index_size", "int")?;
    match kibibytes {
        -1 => node.unset("column_index_size").await,
        0..=COLUMN_INDEX_MAX => node.set("column_index_size", &format!("{kibibytes}KiB")).await,
        ..0 => Failure::usage("Invalid data storage: value must be non-negative"),
        _ => Failure::failed(format!(
            "column_index_size must be positive value <= 2147483646B, but was {}B",
            i64::from(kibibytes) * 1024
        )),
    }
}

/// More are not an `int` of bytes.
const COLUMN_INDEX_MAX: i32 = i32::MAX / 1024;

pub(super) async fn set_default_factor(call: &Call, node: &mut Node) -> Result<()> {
    let factor: i32 = argument(call, "default_rf", "Integer")?;
    if factor < 1 {
        return Failure::usage("default_keyspace_rf cannot be less than 1");
    }
    node.set_or_usage("default_keyspace_rf", &factor.to_string()).await
}

pub(super) async fn set_snapshot_links(call: &Call, node: &mut Node) -> Result<()> {
    let links: i64 = argument(call, "setsnapshotthrottle", "Long")?;
    if links < 0 {
        return Failure::usage("Invalid throttle for snapshot_links_per_second: must be positive");
    }
    node.set("snapshot_links_per_second", &links.to_string()).await
}

pub(super) async fn view_builders(node: &mut Node, out: &mut String) -> Result<()> {
    let count = node.setting("concurrent_materialized_view_builders").await?;
    out.push_str(&format!(
        "Current number of concurrent view builders in the system is: \n{count}\n"
    ));
    Ok(())
}

pub(super) async fn default_factor(node: &mut Node, out: &mut String) -> Result<()> {
    out.push_str(&format!("{}\n", node.setting("default_keyspace_rf").await?));
    Ok(())
}

/// 0 is unlimited, which Cassandra shows as the largest number.
pub(super) async fn snapshot_links(node: &mut Node, out: &mut String) -> Result<()> {
    let links = match node.setting("snapshot_links_per_second").await?.parse() {
        Ok(0) | Err(_) => i64::MAX,
        Ok(links) => links,
    };
    out.push_str(&format!("Current snapshot throttle: {links} links/s\n"));
    Ok(())
}

pub(super) async fn streams(call: &Call, node: &mut Node, out: &mut String) -> Result<()> {
    let settings = ["stream_throughput_outbound", "entire_sstable_stream_throughput_outbound"];
    throughput(call, node, settings, "stream", out).await
}

pub(super) async fn inter_dc_streams(call: &Call, node: &mut Node, out: &mut String) -> Result<()> {
    let settings = [
        "inter_dc_stream_throughput_outbound",
        "entire_sstable_inter_dc_stream_throughput_outbound",
    ];
    throughput(call, node, settings, "inter-datacenter stream", out).await
}

async fn throughput(
    call: &Call,
    node: &mut Node,
    [partial, whole]: [&str; 2],
    what: &str,
    out: &mut String,
) -> Result<()> {
    let given = ["-d", "-e", "-m"].into_iter().filter(|flag| call.has(flag)).count();
    if given > 1 {
        return Failure::usage("You cannot use more than one flag with this command");
    }
    let setting = if call.has("-e") { whole } else { partial };
    let bytes = rate(&node.setting(setting).await?).unwrap_or(0) as f64;
    let (mebibytes, megabits) = (bytes / f64::from(1 << 20), bytes * 8.0 / 1e6);
    let line = if call.has("-e") {
        format!("Current entire SSTable {what} throughput: {mebibytes:?} MiB/s")
    } else if call.has("-m") {
        format!("Current {what} throughput: {mebibytes:?} MiB/s")
    } else if call.has("-d") {
        // Cassandra says the same of both.
        format!("Current stream throughput: {megabits:?} Mb/s")
    } else if megabits.fract() == 0.0 {
        format!("Current {what} throughput: {megabits} Mb/s")
    } else {
        return Failure::failed(
            "Use the -d flag to quiet this error and get the exact throughput in megabits/s",
        );
    };
    out.push_str(&format!("{line}\n"));
    Ok(())
}

/// Stages by the names of Cassandra's enum.
const STAGES: [(&str, &str); 13] = [
    ("ANTI_ENTROPY", "AntiEntropyStage"),
    ("COUNTER_MUTATION", "CounterMutationStage"),
    ("GOSSIP", "GossipStage"),
    ("IMMEDIATE", "ImmediateStage"),
    ("INTERNAL_RESPONSE", "InternalResponseStage"),
    ("MIGRATION", "MigrationStage"),
    ("MISC", "MiscStage"),
    ("MUTATION", "MutationStage"),
    ("PAXOS_REPAIR", "PaxosRepairStage"),
    ("READ", "ReadStage"),
    ("REQUEST_RESPONSE", "RequestResponseStage"),
    ("TRACING", "TracingStage"),
    ("VIEW_MUTATION", "ViewMutationStage"),
];

/// The shards do the work of the stages that read and write; the other stages have no threads.
pub(super) async fn concurrency(call: &Call, node: &mut Node, out: &mut String) -> Result<()> {
    out.push_str(&format!("{:<25}{:>16}{:>16}\n", "Stage", "CorePoolSize", "MaximumPoolSize"));
    for name in &call.arguments {
        if !STAGES.iter().any(|(known, _)| known == name) {
            return Failure::usage(
                "Must be one of READ,MUTATION,COUNTER_MUTATION,VIEW_MUTATION,GOSSIP,REQUEST_RESPONSE,ANTI_ENTROPY,MIGRATION,MISC,TRACING,INTERNAL_RESPONSE,IMMEDIATE,PAXOS_REPAIR",
            );
        }
    }
    let shards = node.rows("SELECT * FROM halcyon_views.shards").await?.iter().count();
    for (name, stage) in STAGES {
        if !call.arguments.is_empty() && !call.arguments.iter().any(|asked| asked == name) {
            continue;
        }
        let works = matches!(name, "COUNTER_MUTATION" | "MUTATION" | "READ" | "VIEW_MUTATION");
        out.push_str(&format!("{stage:<25}{:>16}{:>16}\n", 0, if works { shards } else { 0 }));
    }
    Ok(())
}
