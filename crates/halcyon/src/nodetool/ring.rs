//! What Cassandra's tool prints of a ring, its gossip, hints, streams and repairs: this node is the only one of its own.

use halcyon_client::Row;

use super::arguments::{Call, unexpected};
use super::failure::{Failure, Result};
use super::node::{Node, address_of, local_of, uuid_of};
use super::text::file_size;

/// In the order of the ring.
fn tokens_of(local: &Row<'_>) -> Vec<i64> {
    let mut tokens: Vec<i64> =
        local.texts("tokens").iter().filter_map(|token| token.parse().ok()).collect();
    tokens.sort_unstable();
    tokens
}

/// Cassandra's gossip falls silent when the node is drained.
pub(super) async fn gossip_status(node: &mut Node, out: &mut String) -> Result<()> {
    say_running(node.mode().await? != "DRAINED", out)
}

pub(super) async fn binary_status(node: &mut Node, out: &mut String) -> Result<()> {
    say_running(node.has_native_transport().await?, out)
}

fn say_running(is_running: bool, out: &mut String) -> Result<()> {
    out.push_str(if is_running { "running\n" } else { "not running\n" });
    Ok(())
}

pub(super) async fn handoff_status(out: &mut String) -> Result<()> {
    out.push_str("Hinted handoff is not running\n");
    Ok(())
}

pub(super) async fn pending_hints(out: &mut String) -> Result<()> {
    out.push_str("This node does not have any pending hints\n");
    Ok(())
}

pub(super) async fn no_mismatches(out: &mut String) -> Result<()> {
    out.push('\n');
    Ok(())
}

pub(super) async fn suspicions(out: &mut String) -> Result<()> {
    out.push_str("  Endpoint,             Phi\n");
    Ok(())
}

pub(super) async fn seeds(out: &mut String) -> Result<()> {
    out.push_str("Seed node list does not contain any remote node IPs\n");
    Ok(())
}

pub(super) async fn join() -> Result<()> {
    Failure::usage("This node has already joined the ring.")
}

pub(super) async fn bootstrap(call: &Call) -> Result<()> {
    match call.arguments.first().map(String::as_str) {
        None => Err(Failure::AskedForHelp),
        Some("resume") => Failure::failed("'nodetool bootstrap resume' is disabled."),
        Some(other) => unexpected(&[other.to_owned()]),
    }
}

pub(super) async fn removal(call: &Call, out: &mut String) -> Result<()> {
    match call.arguments.first().map(String::as_str) {
        Some("status") => {
            out.push_str("RemovalStatus: No token removals in process.\n");
            Ok(())
        }
        _ => Failure::failed("removenode: this node is the only one of its ring"),
    }
}

pub(super) async fn repair_sessions(call: &Call, out: &mut String) -> Result<()> {
    match call.arguments.first().map(String::as_str) {
        None | Some("list") => {
            out.push_str("no sessions\n");
            Ok(())
        }
        Some(what @ ("cancel" | "cleanup" | "summarize-pending" | "summarize-repaired")) => {
            Failure::failed(format!(
                "repair_admin {what}: the node has no replicas, so it runs no repairs"
            ))
        }
        Some(other) => unexpected(&[other.to_owned()]),
    }
}

/// As `DESCRIBE`'s map: without the class.
fn replication(options: &[String]) -> (String, String) {
    let mut class = String::new();
    let mut others = Vec::new();
    for pair in options.chunks(2) {
        let [key, value] = pair else { continue };
        match key.as_str() {
            "class" => value.rsplit('.').next().unwrap_or_default().clone_into(&mut class),
            key => others.push(format!("{key}={value}")),
        }
    }
    (class, others.join(", "))
}

pub(super) async fn cluster(node: &mut Node, out: &mut String) -> Result<()> {
    let rows = node.local().await?;
    let of = local_of(&rows)?;
    let settings = node.settings().await?;
    let keyspaces =
        node.rows("SELECT keyspace_name, replication FROM system_schema.keyspaces").await?;
    let address = address_of(&of);
    let snitch = settings.get("endpoint_snitch").filter(|snitch| !snitch.is_empty());
    let snitch =
        snitch.map_or("SimpleSnitch", |snitch| snitch.rsplit('.').next().unwrap_or(snitch));
    let port = settings.get("storage_port").cloned().unwrap_or_default();
    let mut keyspaces: Vec<(String, (String, String))> = keyspaces
        .iter()
        .map(|row| (row.text("keyspace_name"), replication(&row.texts("replication"))))
        .collect();
    keyspaces.sort();
    let keyspaces: String = keyspaces
        .iter()
        .map(|(name, (class, options))| {
            format!("\t{name} -> Replication class: {class} {{{options}}}\n")
        })
        .collect();
    out.push_str(&format!(
        "Cluster Information:\n\tName: {}\n\tSnitch: org.apache.cassandra.locator.{snitch}\n\t\
         DynamicEndPointSnitch: disabled\n\tPartitioner: {}\n\tSchema versions:\n\t\t{}: [{address}]\n\n\
         Stats for all nodes:\n\tLive: 1\n\tJoining: 0\n\tMoving: 0\n\tLeaving: 0\n\tUnreachable: 0\n\n\
         Data Centers: \n\t{} #Nodes: 1 #Down: 0\n\nDatabase versions:\n\t{}: [{address}:{port}]\n\n\
         Keyspaces:\n{keyspaces}",
        of.text("cluster_name"),
        of.text("partitioner"),
        uuid_of(&of, "schema_version"),
        of.text("data_center"),
        of.text("release_version"),
    ));
    Ok(())
}

/// One range for each token, from the one before it.
pub(super) async fn ranges(call: &Call, node: &mut Node, out: &mut String) -> Result<()> {
    let rows = node.local().await?;
    let of = local_of(&rows)?;
    let keyspace = call.arguments.first().map_or("", String::as_str);
    out.push_str(&format!("Schema Version:{}\nTokenRange: \n", uuid_of(&of, "schema_version")));
    if !node.keyspaces().await?.iter().any(|known| known == keyspace) {
        return Failure::failed(format!("No such keyspace: {keyspace}"));
    }
    let (tokens, address) = (tokens_of(&of), address_of(&of));
    let before = tokens.last().into_iter().chain(&tokens);
    for (start, end) in before.zip(&tokens) {
        out.push_str(&format!(
            "\tTokenRange(start_token:{start}, end_token:{end}, endpoints:[{address}], rpc_endpoints:[{address}], \
             endpoint_details:[EndpointDetails(host:{address}, datacenter:{}, rack:{})])\n",
            of.text("data_center"),
            of.text("rack")
        ));
    }
    Ok(())
}

pub(super) async fn tokens(call: &Call, node: &mut Node, out: &mut String) -> Result<()> {
    call.refuse(&["-r"])?;
    let rows = node.local().await?;
    let of = local_of(&rows)?;
    if let Some(keyspace) = call.arguments.first()
        && !node.keyspaces().await?.contains(keyspace)
    {
        out.push_str(&format!("\nError: The keyspace {keyspace}, does not exist\n"));
        return Err(Failure::Told);
    }
    let load = file_size(node.load().await?);
    let port = node.setting("storage_port").await?;
    let (tokens, address) = (tokens_of(&of), address_of(&of));
    // As wide as the address with its port, which is not shown.
    let width = address.len() + 1 + port.len() + 2;
    let line = |cells: [&str; 7]| {
        let [address, rack, status, state, load, owns, token] = cells;
        format!("{address:<width$}{rack:<12}{status:<7}{state:<8}{load:<16}{owns:<20}{token:<44}\n")
    };
    out.push_str(&format!("\nDatacenter: {}\n==========\n", of.text("data_center")));
    out.push_str(&line(["Address", "Rack", "Status", "State", "Load", "Owns", "Token"]));
    let rack = of.text("rack");
    let tokens: Vec<String> = tokens.iter().map(i64::to_string).collect();
    match tokens.as_slice() {
        [_, .., last] => out.push_str(&line(["", "", "", "", "", "", last])),
        _ => out.push('\n'),
    }
    for token in &tokens {
        out.push_str(&line([&address, &rack, "Up", "Normal", &load, "100.00%", token]));
    }
    out.push('\n');
    if tokens.len() > 1 {
        out.push_str(
            "  Warning: \"nodetool ring\" is used to output all the tokens of a node.\n  \
             To view status related info of a node use \"nodetool status\" instead.\n\n",
        );
    }
    out.push_str("\n  ");
    Ok(())
}

/// The states that gossip spreads, as far as this node has them. Theirs have versions, which count changes; here each is 1.
pub(super) async fn gossip(call: &Call, node: &mut Node, out: &mut String) -> Result<()> {
    call.refuse(&["-r"])?;
    let rows = node.local().await?;
    let of = local_of(&rows)?;
    let of_node = node.rows("SELECT load, uptime_seconds FROM halcyon_views.node").await?;
    let count = |column: &str| of_node.iter().next().map_or(0, |row| row.count(column));
    let port = node.setting("native_transport_port").await?;
    let address = address_of(&of);
    let status = format!("NORMAL,{}", tokens_of(&of).first().copied().unwrap_or_default());
    out.push_str(&format!(
        "/{address}\n  generation:{}\n  heartbeat:{}\n",
        of.count("gossip_generation"),
        count("uptime_seconds")
    ));
    for (state, value) in [
        ("STATUS", status.clone()),
        ("LOAD", format!("{:?}", count("load") as f64)),
        ("SCHEMA", uuid_of(&of, "schema_version")),
        ("DC", of.text("data_center")),
        ("RACK", of.text("rack")),
        ("RELEASE_VERSION", of.text("release_version")),
        ("RPC_ADDRESS", address.clone()),
        ("HOST_ID", uuid_of(&of, "host_id")),
        ("RPC_READY", "true".to_owned()),
        ("NATIVE_ADDRESS_AND_PORT", format!("{address}:{port}")),
        ("STATUS_WITH_PORT", status),
    ] {
        out.push_str(&format!("  {state}:1:{value}\n"));
    }
    out.push_str("  TOKENS:1:<hidden>\n\n");
    Ok(())
}

pub(super) async fn network(node: &mut Node, out: &mut String) -> Result<()> {
    let mode = node.mode().await?;
    out.push_str(&format!(
        "Mode: {mode}\nNot sending any streams.\nRead Repair Statistics:\nAttempted: 0\nMismatch (Blocking): 0\n\
         Mismatch (Background): 0\n"
    ));
    let mut line = |[name, active, pending, completed, dropped]: [&str; 5]| {
        out.push_str(&format!("{name:<25}{active:>10}{pending:>10}{completed:>15}{dropped:>10}\n"));
    };
    line(["Pool Name", "Active", "Pending", "Completed", "Dropped"]);
    for pool in ["Large messages", "Small messages", "Gossip messages"] {
        line([pool, "n/a", "0", "0", "0"]);
    }
    Ok(())
}
