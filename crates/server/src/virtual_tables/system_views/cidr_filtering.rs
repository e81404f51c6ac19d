//! What the CIDR authorizer counts, over all shards: `nodetool cidrfilteringstats`.

use std::collections::BTreeMap;

use halcyon_access::{CidrMetrics, CidrSummary};
use halcyon_io::clock::now;

use crate::virtual_tables::rows::Rows;
use crate::virtual_tables::table::{Node, VirtualTable};

pub(in crate::virtual_tables) const COUNTS: VirtualTable = VirtualTable::computed(
    "CREATE TABLE system_views.cidr_filtering_metrics_counts (
    name text PRIMARY KEY,
    value bigint
) WITH ID = fe07f650-a9a3-3e3f-b482-687ec808f9bd
    AND comment = 'Count metrics specific to CIDR filtering';",
    fill_counts,
);

pub(in crate::virtual_tables) const LATENCIES: VirtualTable = VirtualTable::computed(
    "CREATE TABLE system_views.cidr_filtering_metrics_latencies (
    name text PRIMARY KEY,
    max double,
    p50th double,
    p95th double,
    p999th double,
    p99th double
) WITH ID = 9c046366-df5e-37fa-b4ed-6bcd0834dfd6
    AND comment = 'Latency metrics specific to CIDR filtering';",
    fill_latencies,
);

fn fill_counts(node: &Node, rows: &mut Rows<'_>) {
    let (mut reloads, mut accesses) = (0, BTreeMap::new());
    for shard in node.facts.access.cidr_metrics() {
        reloads += shard.reloads.get();
        shard.add_to(&mut accesses);
    }
    let mut rows = rows.with(["name", "value"]);
    rows.push(["CIDR groups cache reload count".into(), reloads.into()]);
    for (group, of) in &accesses {
        // Cassandra has no row of what did not happen.
        for (what, count) in [("accepted", of.accepted), ("rejected", of.rejected)] {
            if count > 0 {
                let name = format!("Number of CIDR accesses {what} from CIDR group - {group}");
                rows.push([name.into(), count.into()]);
            }
        }
    }
}

fn fill_latencies(node: &Node, rows: &mut Rows<'_>) {
    let shards = node.facts.access.cidr_metrics();
    let mut rows = rows.with(["name", "max", "p50th", "p95th", "p99th", "p999th"]);
    let mut show = |name: &str, of: fn(&CidrMetrics, &mut CidrSummary)| {
        let mut times = CidrSummary::nothing();
        shards.iter().for_each(|shard| of(shard, &mut times));
        let quantile = |quantile| (times.quantile(quantile) as f64).into();
        rows.push([
            name.into(),
            (times.max() as f64).into(),
            quantile(0.5),
            quantile(0.95),
            quantile(0.99),
            quantile(0.999),
        ]);
    };
    show("CIDR checks latency (ns)", |shard, times| times.add(&shard.checks, now()));
    show("CIDR groups cache reload latency (ns)", |shard, times| {
        times.add(&shard.reload_times, now());
    });
    show("Lookup IP in CIDR groups cache latency (ns)", |shard, times| {
        times.add(&shard.lookups, now());
    });
}
