//! The table of each group, and the list of all groups.

use super::{Filled, Node, Rows, found, group, type_name};
use crate::virtual_tables::table::VirtualTable;

/// Tables and groups of 6.0-alpha2, with the ids that Cassandra computes.
macro_rules! groups {
    ($($table:ident $group:literal $id:literal;)*) => {
        const GROUPS: &[(&str, &str)] = &[$(($group, stringify!($table))),*];

        const OF_GROUPS: &[VirtualTable] = &[ALL, $({
            const CQL: &str = concat!(
                "CREATE TABLE system_metrics.", stringify!($table),
                " (name text PRIMARY KEY, scope text, type text, value text) WITH ID = ", $id,
                " AND comment = 'All metrics for \"", $group, "\" metric group';",
            );

            fn fill<'a>(node: &'a Node, rows: &'a mut Rows<'_>) -> Filled<'a> {
                Box::pin(of_group(node, rows, $group))
            }

            VirtualTable::gathered(CQL, fill)
        }),*];
    };
}

pub(in crate::virtual_tables) const TABLES: &[VirtualTable] = OF_GROUPS;

groups! {
    accord_cache_group "AccordCache" "9658dca9-241f-3409-9724-015a1b52ce34";
    accord_coordinator_group "AccordCoordinator" "f7a105a9-a902-3d0b-93d0-597881eafd27";
    accord_executor_group "AccordExecutor" "5215c877-6a1e-3ec2-b1f0-85e8b73f3f5a";
    accord_replica_group "AccordReplica" "deb826b7-5f5e-3fb7-aa61-a20235ae15f9";
    accord_system_group "AccordSystem" "3752a8e6-8166-3ad7-a6ff-de5a4bab0ec5";
    autorepair_group "autorepair" "0d17fd15-ccc3-395d-9f77-807b048cd0aa";
    batch_group "Batch" "095aeee5-1a8c-3797-b8a2-c1d8031c1737";
    buffer_pool_group "BufferPool" "391eab94-f1b5-39d1-882b-c0d6f71bc02b";
    cache_group "Cache" "12f024dc-bad1-3a17-ac91-74890397520c";
    chunk_cache_group "ChunkCache" "6a4a59a2-948f-35cc-bb05-5fac330e7cee";
    cidr_authorizer_group "CIDRAuthorizer" "03090f38-5e29-3946-ab0e-264f6a61211c";
    client_group "Client" "fb407758-fac0-344f-808a-9c2ab0fc702e";
    client_message_size_group "ClientMessageSize" "c655a7ac-566b-3e43-b36e-5a35149e9791";
    client_request_group "ClientRequest" "a3a771a8-0b81-31ea-ad2a-586c00c7b4b0";
    client_request_size_group "ClientRequestSize" "c8a59c44-f2a6-3805-80f6-8889b8ce33c6";
    column_family_group "ColumnFamily" "d83a0159-f0d5-36bf-a3d2-f9cf9fb7b980";
    commit_log_group "CommitLog" "f1b0fa8a-b53c-3dc1-adb5-d9cfad1c4c9d";
    compaction_group "Compaction" "c578d593-6ae7-38f4-88f7-3807e76b26c1";
    connection_group "Connection" "5225bb5e-9a88-35ae-a169-967ed817d3d5";
    cql_group "CQL" "b98be6f5-2228-31a5-8e7f-b98c88eec738";
    dropped_message_group "DroppedMessage" "a0770f80-3e31-382b-afc2-691f8f0dad64";
    hints_service_group "HintsService" "23df3398-2a66-3759-abf4-7b870dc0864a";
    index_column_family_group "IndexColumnFamily" "edbb37c0-a9fe-3191-b3f5-f6191455d5f4";
    index_group "Index" "9f73b778-1c92-32a1-bcba-5f6f29164696";
    index_table_group "IndexTable" "b866ce3a-ee77-3a07-9fa9-b57bcf2bd7a1";
    internode_inbound_group "InternodeInbound" "d54c0e7a-3e14-323d-af58-6b9276cfa91a";
    journal_group "Journal" "72db70c4-b7f6-3240-87cb-584ff3103973";
    keyspace_group "keyspace" "42ddfef1-8af5-38c9-8e2c-80ff66808c9b";
    memtable_pool_group "MemtablePool" "1a2d4ad9-59d6-3519-99cd-e72435c96f3d";
    messaging_group "Messaging" "384f0b0d-5252-38ae-ad64-b9cce9e832af";
    mutual_tls_group "MutualTls" "3a24528a-bf96-31e9-9a5f-fa81393fe43c";
    paxos_group "Paxos" "237725f9-cc95-35d1-bc6e-f1d0ef311b11";
    read_repair_group "ReadRepair" "a6f51ffa-4c50-314a-9008-61990898cc63";
    repair_group "Repair" "26be6b61-8439-34fa-a939-bece57953a18";
    route_index_group "RouteIndex" "96066a0c-e83d-361e-b6ed-48f065a0f611";
    storage_attached_index_group "StorageAttachedIndex" "36fa7d88-e1fb-35f3-821c-dc91f0743886";
    storage_group "Storage" "719c703d-d606-3840-b95a-2d1b58b86d72";
    storage_proxy_group "StorageProxy" "90241af7-c784-3548-ac50-3fa2ad3faff8";
    streaming_group "Streaming" "21dc243a-f7fb-3c50-a1f3-646e7f000c26";
    table_group "Table" "af4a96bf-f2c8-39fc-9569-b4cea9d2eabb";
    tcm_group "TCM" "c24e31d4-0292-304b-878a-47078223af3b";
    thread_pools_group "ThreadPools" "819e7e0c-2911-3c3e-ba5b-d48c227ece40";
    trie_memtable_group "TrieMemtable" "5201addc-a575-30d3-ad96-20e726a1a40e";
    unweighted_cache_group "UnweightedCache" "276eea3e-6809-3680-b147-07eb00f90a0e";
}

const ALL: VirtualTable = VirtualTable::computed(
    "CREATE TABLE system_metrics.all_groups (group_name text PRIMARY KEY, virtual_table text)
    WITH ID = bcfa1b10-932f-33dd-adbd-b5097ca039fe AND comment = 'All metric group names';",
    fill_all,
);

fn fill_all(_: &Node, rows: &mut Rows<'_>) {
    let mut rows = rows.with(["group_name", "virtual_table"]);
    for (group, table) in GROUPS {
        rows.push([(*group).into(), (*table).into()]);
    }
}

async fn of_group(node: &Node, rows: &mut Rows<'_>, wanted: &'static str) {
    let found = found(node, move |metric| group(metric) == wanted).await;
    let mut rows = rows.with(["name", "scope", "type", "value"]);
    for of in found {
        let (kind, value) = (type_name(of.kind), of.text());
        rows.push([of.name.into(), of.scope.into(), kind.into(), value.as_str().into()]);
    }
}
