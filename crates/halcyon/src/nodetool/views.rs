//! `viewbuildstatus`.

use super::arguments::Call;
use super::failure::{Failure, Result};
use super::node::Node;
use super::text::{row, table};

pub(super) async fn build_status(call: &Call, node: &mut Node, out: &mut String) -> Result<()> {
    let names = match call.arguments.as_slice() {
        [keyspace, view] => Some((keyspace.as_str(), view.as_str())),
        [both] => both.split_once('.').filter(|(_, view)| !view.contains('.')),
        _ => None,
    };
    let Some((keyspace, view)) = names else {
        return Failure::usage("viewbuildstatus requires keyspace and view name arguments");
    };
    let built =
        "SELECT view_name FROM system.built_views WHERE keyspace_name = ? AND view_name = ?";
    if node.rows_of(built, keyspace, view).await?.iter().next().is_some() {
        out.push_str(&format!("{keyspace}.{view} has finished building\n"));
        return Ok(());
    }
    let begun =
        "SELECT view_name FROM system_schema.views WHERE keyspace_name = ? AND view_name = ?";
    let is_view = node.rows_of(begun, keyspace, view).await?.iter().next().is_some();
    let state = if is_view { "STARTED" } else { "UNKNOWN" };
    let address = format!("/{}", node.address().await?);
    let lines = [row(["Host", "Info"]), row([&address, state])];
    out.push_str(&format!(
        "{keyspace}.{view} has not finished building; node status is below.\n\n{}",
        table(&lines, " ")
    ));
    Err(Failure::Told)
}
