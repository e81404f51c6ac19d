//! The caches of all shards together, and how often they were asked lately.

use crate::cache_rates::{NAMES, of_node};
use crate::virtual_tables::rows::Rows;
use crate::virtual_tables::table::{Filled, Node, VirtualTable};

pub(in crate::virtual_tables) const TABLE: VirtualTable = VirtualTable::gathered(CQL, fill);

const CQL: &str = "CREATE TABLE system_views.caches (
    name text PRIMARY KEY,
    capacity_bytes bigint,
    entry_count int,
    hit_count bigint,
    hit_ratio double,
    recent_hit_rate_per_second bigint,
    recent_request_rate_per_second bigint,
    request_count bigint,
    size_bytes bigint
) WITH ID = c456053d-ded6-3f10-b770-daba90c4dd83
    AND comment = 'system caches';";

/// Counters have no cache here: the memtable has what is hot.
fn fill<'a>(node: &'a Node, rows: &'a mut Rows<'_>) -> Filled<'a> {
    let mut rows = rows.with([
        "name",
        "capacity_bytes",
        "entry_count",
        "size_bytes",
        "hit_count",
        "hit_ratio",
        "request_count",
        "recent_hit_rate_per_second",
        "recent_request_rate_per_second",
    ]);
    Box::pin(async move {
        let caches = of_node(&node.engine).await;
        let per_second = node.facts.cache_rates.per_second();
        for ((name, cache), (requests, hits)) in NAMES.iter().zip(caches).zip(per_second) {
            let asked = cache.hits + cache.misses;
            rows.push([
                (*name).into(),
                cache.capacity.into(),
                i32::try_from(cache.entries).unwrap_or(i32::MAX).into(),
                cache.bytes.into(),
                cache.hits.into(),
                (cache.hits as f64 / asked as f64).into(),
                asked.into(),
                (hits as u64).into(),
                (requests as u64).into(),
            ]);
        }
    })
}
