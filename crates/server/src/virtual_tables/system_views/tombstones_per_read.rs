use halcyon_engine::Measure;

use super::by_table::histograms;
use crate::virtual_tables::rows::Rows;
use crate::virtual_tables::table::{Node, VirtualTable};

pub(in crate::virtual_tables) const TABLE: VirtualTable = VirtualTable::computed(CQL, fill);

const CQL: &str = "CREATE TABLE system_views.tombstones_per_read (
    keyspace_name text,
    table_name text,
    count bigint,
    max double,
    p50th double,
    p99th double,
    PRIMARY KEY ((keyspace_name, table_name))
) WITH ID = 232a8f1b-a759-32f8-810c-35f36e87f50c;";

fn fill(node: &Node, rows: &mut Rows<'_>) {
    histograms(node, Measure::TombstonesPerRead, rows);
}
