//! Groups of addresses that roles may come from: `updatecidrgroup`, `dropcidrgroup`, `listcidrgroups`, `getcidrgroupsofip`, and their
//! caches. The groups are rows of `system_auth.cidr_groups`.

use std::net::IpAddr;

use halcyon_server::command::Command;
use halcyon_server::{Cidr, CidrGroups};

use super::arguments::Call;
use super::failure::{Failure, Result};
use super::node::Node;
use super::text;

pub(super) async fn update(call: &Call, node: &mut Node) -> Result<()> {
    let [group, ranges @ ..] = call.arguments.as_slice() else { return too_few() };
    if ranges.is_empty() {
        return too_few();
    }
    let mut parts = Vec::with_capacity(ranges.len());
    for range in ranges {
        let (address, prefix) = range.parse::<Cidr>().map_err(Failure::Failed)?.parts();
        parts.push(format!("[\"{address}\", {prefix}]"));
    }
    const UPDATE: &str =
        "UPDATE system_auth.cidr_groups SET cidrs = fromJson(?) WHERE cidr_group = ?";
    node.ask(UPDATE, &[&format!("[{}]", parts.join(", ")), group]).await.map(drop)
}

fn too_few() -> Result<()> {
    Failure::usage("updatecidrgroup command requires a cidr group name and atleast one CIDR")
}

pub(super) async fn drop_group(call: &Call, node: &mut Node, out: &mut String) -> Result<()> {
    let group = call.arguments.first().map(String::as_str).unwrap_or_default();
    if ranges_of(node, group).await?.is_empty() {
        return Failure::failed(format!("CIDR group '{group}' doesn't exists"));
    }
    node.ask("DELETE FROM system_auth.cidr_groups WHERE cidr_group = ?", &[group]).await?;
    out.push_str(&format!("Deleted CIDR group {group}\n"));
    Ok(())
}

pub(super) async fn list(call: &Call, node: &mut Node, out: &mut String) -> Result<()> {
    let (heading, names) = match call.arguments.first() {
        Some(group) => {
            let ranges = ranges_of(node, group).await?;
            ("CIDRs: ", ranges.iter().map(Cidr::to_string).collect())
        }
        None => {
            let rows = node.rows("SELECT cidr_group FROM system_auth.cidr_groups").await?;
            ("CIDR Groups: ", rows.iter().map(|row| row.text("cidr_group")).collect::<Vec<_>>())
        }
    };
    print(heading, names, out);
    Ok(())
}

pub(super) async fn groups_of(call: &Call, node: &mut Node, out: &mut String) -> Result<()> {
    let Some(address) = call.arguments.first() else {
        return Failure::usage("Requires IP address as input");
    };
    supported(node, "'Get CIDR groups for IP' operation").await?;
    let Ok(address) = address.parse::<IpAddr>() else {
        return Failure::failed(format!("Invalid IP {address}"));
    };
    let mut groups = CidrGroups::default();
    for row in node.rows("SELECT cidr_group, cidrs FROM system_auth.cidr_groups").await?.iter() {
        let (name, ranges) = (row.text("cidr_group"), row.elements("cidrs"));
        ranges.into_iter().filter_map(Cidr::of_tuple).for_each(|range| groups.add(&name, range));
    }
    print("CIDR Groups: ", groups.of(address).to_vec(), out);
    Ok(())
}

pub(super) async fn reload(node: &mut Node, out: &mut String) -> Result<()> {
    supported(node, "Load CIDR groups cache operation").await?;
    node.command(&Command::InvalidateAuthCaches, ("", "")).await?;
    out.push_str("Reloaded CIDR groups cache\n");
    Ok(())
}

/// The cache is emptied as a whole, also for one role.
pub(super) async fn forget(call: &Call, node: &mut Node, out: &mut String) -> Result<()> {
    supported(node, "Invalidate CIDR permissions cache operation").await?;
    node.command(&Command::InvalidateAuthCaches, ("", "")).await?;
    if call.arguments.is_empty() {
        out.push_str("Invalidated CIDR permissions cache\n");
    }
    for role in &call.arguments {
        out.push_str(&format!("Invalidated the role {role} from CIDR permissions cache\n"));
    }
    Ok(())
}

async fn supported(node: &mut Node, what: &str) -> Result<()> {
    match node.setting("cidr_authorizer.class_name").await?.contains("CassandraCIDRAuthorizer") {
        true => Ok(()),
        false => Failure::failed(format!("{what} not supported by AllowAllCIDRAuthorizer")),
    }
}

async fn ranges_of(node: &mut Node, group: &str) -> Result<Vec<Cidr>> {
    const SELECT: &str = "SELECT cidrs FROM system_auth.cidr_groups WHERE cidr_group = ?";
    let rows = node.ask(SELECT, &[group]).await?;
    let mut ranges = Vec::new();
    for row in rows.iter() {
        ranges.extend(row.elements("cidrs").into_iter().filter_map(Cidr::of_tuple));
    }
    Ok(ranges)
}

/// Both tables of `system_views`.
pub(super) async fn statistics(node: &mut Node, out: &mut String) -> Result<()> {
    let rows = node.rows("SELECT * FROM system_views.cidr_filtering_metrics_counts").await?;
    let counts = rows.iter().map(|row| vec![row.text("name"), row.count("value").to_string()]);
    let heading = vec![text::row(["name", "value"])];
    out.push_str("cidr_filtering_metrics_counts: \n");
    out.push_str(&text::table(&heading.into_iter().chain(counts).collect::<Vec<_>>(), " "));
    const TIMES: [&str; 5] = ["p50th", "p95th", "p99th", "p999th", "max"];
    let rows = node.rows("SELECT * FROM system_views.cidr_filtering_metrics_latencies").await?;
    let times = rows.iter().map(|row| {
        let nanos = TIMES.map(|column| format!("{:?}", row.double(column)));
        [row.text("name")].into_iter().chain(nanos).collect()
    });
    let heading = ["name"].into_iter().chain(TIMES).map(str::to_owned).collect();
    out.push_str("\ncidr_filtering_metrics_latencies: \n");
    out.push_str(&text::table(&[heading].into_iter().chain(times).collect::<Vec<_>>(), " "));
    out.push('\n');
    Ok(())
}

/// `NodeProbe.printSet`
fn print(heading: &str, names: Vec<String>, out: &mut String) {
    if !names.is_empty() {
        let rows = std::iter::once(heading.to_owned()).chain(names).map(|name| vec![name]);
        out.push_str(&text::table(&rows.collect::<Vec<_>>(), " "));
    }
}
