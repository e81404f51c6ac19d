//! How many SSTables had the partition of each local read.

use halcyon_engine::Measure;

use crate::virtual_tables::rows::Rows;
use crate::virtual_tables::system_views::by_table::histograms;
use crate::virtual_tables::table::{Node, VirtualTable};

pub(in crate::virtual_tables) const TABLE: VirtualTable = VirtualTable::computed(CQL, fill);

const CQL: &str = "CREATE TABLE halcyon_views.sstables_per_read (
    keyspace_name text,
    table_name text,
    count bigint,
    max double,
    p50th double,
    p99th double,
    PRIMARY KEY ((keyspace_name, table_name))
) WITH ID = 873be278-dc03-3b14-b779-288664959918
    AND comment = 'SSTables that have the partition of a read; of the last minutes';";

fn fill(node: &Node, rows: &mut Rows<'_>) {
    histograms(node, Measure::SSTablesPerRead, rows);
}
