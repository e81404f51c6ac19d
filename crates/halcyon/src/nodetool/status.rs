//! `status`, `info`, `version`.

use super::arguments::Call;
use super::failure::{Failure, Result};
use super::node::{Node, address_of, local_of, uuid_of};
use super::text::{file_size, row, table};
use halcyon_client::Rows;

pub(super) async fn version(call: &Call, node: &mut Node, out: &mut String) -> Result<()> {
    let rows = node.rows("SELECT release_version FROM system.local").await?;
    for of in rows.iter() {
        out.push_str(&format!("ReleaseVersion: {}\n", of.text("release_version")));
    }
    if call.has("-v") {
        out.push_str(&format!("Halcyon: {}\n", env!("CARGO_PKG_VERSION")));
    }
    Ok(())
}

/// One node owns everything.
pub(super) async fn status(call: &Call, node: &mut Node, out: &mut String) -> Result<()> {
    call.refuse(&["-r"])?;
    let local = node.local().await?;
    let load = node.load().await?;
    if let Some(keyspace) = call.arguments.first()
        && !node.keyspaces().await?.contains(keyspace)
    {
        out.push_str(&format!("\nError: The keyspace {keyspace}, does not exist\n"));
        return Err(Failure::Told);
    }
    let of = local_of(&local)?;
    let tokens = of.texts("tokens");
    let header = format!("Datacenter: {}", of.text("data_center"));
    let (address, load, id) = (address_of(&of), file_size(load), uuid_of(&of, "host_id"));
    let (owns, rack) = ("100.0%", of.text("rack"));
    let lines = match tokens.as_slice() {
        [token] => [
            row(["--", "Address", "Load", "Owns (effective)", "Host ID", "Token", "Rack"]),
            row(["UN", &address, &load, owns, &id, token, &rack]),
        ],
        several => [
            row(["--", "Address", "Load", "Tokens", "Owns (effective)", "Host ID", "Rack"]),
            row(["UN", &address, &load, &several.len().to_string(), owns, &id, &rack]),
        ],
    };
    out.push_str(&format!("{header}\n{}\n", "=".repeat(header.len())));
    out.push_str("Status=Up/Down\n|/ State=Normal/Leaving/Joining/Moving\n");
    out.push_str(&table(&lines, "  "));
    out.push('\n');
    Ok(())
}

pub(super) async fn info(call: &Call, node: &mut Node, out: &mut String) -> Result<()> {
    let local = node.local().await?;
    let of_node = node.rows("SELECT * FROM halcyon_views.node").await?;
    let statistics = "SELECT data_bytes, bytes_repaired, filter_memory, summary_memory, compression_memory FROM halcyon_views.table_statistics";
    let tables = node.rows(statistics).await?;
    let caches = node.rows("SELECT * FROM system_views.caches").await?;
    let settings = node.rows("SELECT name, value FROM system_views.settings").await?;
    let (Some(local), Some(of_node)) = (local.iter().next(), of_node.iter().next()) else {
        return Failure::failed("system.local is empty");
    };
    let sum = |column: &str| -> u64 { tables.iter().map(|table| table.count(column)).sum() };
    let mut line = |name: &str, value: String| out.push_str(&format!("{name:<23}: {value}\n"));
    let mebibytes = |bytes: u64| format!("{:.2}", bytes as f64 / f64::from(1 << 20));
    line("ID", uuid_of(&local, "host_id"));
    // One node is all there is to gossip about; Cassandra's falls silent when it is drained.
    line("Gossip active", (of_node.text("mode") != "DRAINED").to_string());
    line("Native Transport active", of_node.is_true("native_transport_active").to_string());
    line("Load", file_size(of_node.count("load")));
    line("Uncompressed load", file_size(sum("data_bytes")));
    line("Generation No", local.count("gossip_generation").to_string());
    line("Uptime (seconds)", of_node.count("uptime_seconds").to_string());
    let (memory, most) = (of_node.count("memory"), of_node.count("memory_max"));
    line("Heap Memory (MB)", format!("{} / {}", mebibytes(memory), mebibytes(most)));
    let beside = sum("filter_memory") + sum("summary_memory") + sum("compression_memory");
    line("Off Heap Memory (MB)", mebibytes(beside));
    line("Data Center", local.text("data_center"));
    line("Rack", local.text("rack"));
    for (title, name) in CACHES {
        if let Some(text) = cache(&caches, &settings, name) {
            line(title, text);
        }
    }
    let (data, repaired) = (sum("data_bytes"), sum("bytes_repaired"));
    line("Percent Repaired", format!("{:?}%", percent(repaired, data)));
    match local.texts("tokens").as_slice() {
        [] => line("Token", "(node is not joined to the cluster)".to_owned()),
        tokens if tokens.len() == 1 || call.has("-T") => {
            tokens.iter().for_each(|token| line("Token", token.clone()));
        }
        tokens => {
            let count = tokens.len();
            line("Token", format!("(invoke with -T/--tokens to see all {count} tokens)"));
        }
    }
    line("Bootstrap state", local.text("bootstrapped"));
    for what in ["Bootstrap failed", "Decommissioning", "Decommission failed"] {
        line(what, "false".to_owned());
    }
    if call.has("-O") {
        // A node that owns all tokens gets no operation for a token of another.
        let columns = format!("{:<48} {:>10} {:>10} {:>10}", "Keyspace", "Read", "Write", "Paxos");
        line("Invalid Token Ops", columns);
    }
    Ok(())
}

/// Of data, rounded to two decimals; all of nothing.
pub(super) fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 100.0 } else { (part as f64 / whole as f64 * 10_000.0).round() / 100.0 }
}

/// Titles, and names in `system_views.caches`.
const CACHES: [(&str, &str); 3] =
    [("Key Cache", "keys"), ("Row Cache", "rows"), ("Chunk Cache", "chunks")];

fn cache(caches: &Rows, settings: &Rows, name: &str) -> Option<String> {
    let of = caches.iter().find(|row| row.text("name") == name)?;
    let (requests, hits) = (of.count("request_count"), of.count("hit_count"));
    let rate = match requests {
        0 => "NaN".to_owned(),
        requests => format!("{:.3}", hits as f64 / requests as f64),
    };
    let sizes = (file_size(of.count("size_bytes")), file_size(of.count("capacity_bytes")));
    let head =
        format!("entries {}, size {}, capacity {}", of.count("entry_count"), sizes.0, sizes.1);
    if name == "chunks" {
        let misses = requests.saturating_sub(hits);
        return Some(format!(
            "{head}, {misses} misses, {requests} requests, {rate} recent hit rate"
        ));
    }
    let setting = if name == "keys" { "key_cache_save_period" } else { "row_cache_save_period" };
    let period =
        settings.iter().find(|row| row.text("name") == setting).map(|row| row.text("value"));
    let period = period.and_then(|seconds| seconds.parse().ok()).unwrap_or(0_u64);
    Some(format!(
        "{head}, {hits} hits, {requests} requests, {rate} recent hit rate, {period} save period in seconds"
    ))
}
