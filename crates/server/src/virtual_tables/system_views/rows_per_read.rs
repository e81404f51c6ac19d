use halcyon_engine::Measure;

use super::by_table::histograms;
use crate::virtual_tables::rows::Rows;
use crate::virtual_tables::table::{Node, VirtualTable};

pub(in crate::virtual_tables) const TABLE: VirtualTable = VirtualTable::computed(CQL, fill);

const CQL: &str = "CREATE TABLE system_views.rows_per_read (
    keyspace_name text,
    table_name text,
    count bigint,
    max double,
    p50th double,
    p99th double,
    PRIMARY KEY ((keyspace_name, table_name))
) WITH ID = a4d00f60-2eef-35e1-b6cf-958986ae7559;";

fn fill(node: &Node, rows: &mut Rows<'_>) {
    histograms(node, Measure::RowsPerRead, rows);
}
