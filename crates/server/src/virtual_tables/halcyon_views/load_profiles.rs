//! What samplings found (`nodetool profileload`). A read names one by the id that was chosen for it.

use crate::virtual_tables::rows::Rows;
use crate::virtual_tables::table::{Applied, Node, VirtualTable};

pub(in crate::virtual_tables) const TABLE: VirtualTable = VirtualTable::of_key(CQL, fill);

const CQL: &str = "CREATE TABLE halcyon_views.load_profiles (
    id text,
    sampler text,
    place int,
    count bigint,
    error bigint,
    table_name text,
    value text,
    PRIMARY KEY (id, sampler, place)
) WITH ID = ffde153c-feb0-3eda-9745-fe846f12c742
    AND comment = 'SELECT with an id: what a sampling of nodetool profileload found, the most frequent or largest first';";

fn fill<'a>(node: &'a Node, asked: Vec<String>, rows: &'a mut Rows<'_>) -> Applied<'a> {
    Box::pin(async move {
        let [id] = asked.as_slice() else { return Ok(()) };
        let Some(profile) = node.facts.profiles.found(id) else { return Ok(()) };
        let mut rows =
            rows.with(["id", "sampler", "place", "count", "error", "table_name", "value"]);
        for (sampler, samples) in profile {
            for (place, sampled) in (0_i32..).zip(samples) {
                rows.push([
                    id.as_str().into(),
                    sampler.name().into(),
                    place.into(),
                    sampled.count.into(),
                    sampled.error.into(),
                    sampled.table.into(),
                    sampled.value.into(),
                ]);
            }
        }
        Ok(())
    })
}
