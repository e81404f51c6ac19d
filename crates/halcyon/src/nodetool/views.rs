//! `viewbuildstatus`.

use super::arguments::{Call, keyspace_and_name};
use super::failure::{Failure, Result};
use super::node::Node;
use super::text::{row, table};

pub(super) async fn build_status(call: &Call, node: &mut Node, out: &mut String) -> Result<()> {
    let Some((keyspace, view)) = keyspace_and_name(&call.arguments) else {
        return Failure::usage("viewbuildstatus requires keyspace and view name arguments");
    };
    let built =
        "SELECT view_name FROM system.built_views WHERE keyspace_name = ? AND view_name = ?";
    if node.rows_of(built, &keyspace, &view).await?.iter().next().is_some() {
        out.push_str(&format!("{keyspace}.{view} has finished building\n"));
        return Ok(());
    }
    let begun =
        "SELECT view_name FROM system_schema.views WHERE keyspace_name = ? AND view_name = ?";
    let is_view = node.rows_of(begun, &keyspace, &view).await?.iter().next().is_some();
    let state = if is_view { "STARTED" } else { "UNKNOWN" };
    let address = format!("/{}", node.address().await?);
    let lines = [row(["Host", "Info"]), row([&address, state])];
    out.push_str(&format!(
        "{keyspace}.{view} has not finished building; node status is below.\n\n{}",
        table(&lines, " ")
    ));
    Err(Failure::Told)
}
