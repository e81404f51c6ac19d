//! Tables of what Halcyon does not do (gossip, internode messages, repair, streaming, indexes, permissions), with the columns that
//! Cassandra 5.0.9 has: clients find the table, and no rows.

use crate::virtual_tables::table::VirtualTable;

pub(in crate::virtual_tables) const TABLES: [VirtualTable; 21] = [
    VirtualTable::empty(
        "CREATE TABLE system_views.cidr_filtering_metrics_counts (
    name text PRIMARY KEY,
    value bigint
) WITH ID = fe07f650-a9a3-3e3f-b482-687ec808f9bd
    AND comment = 'Count metrics specific to CIDR filtering';",
    ),
    VirtualTable::empty(
        "CREATE TABLE system_views.cidr_filtering_metrics_latencies (
    name text PRIMARY KEY,
    max double,
    p50th double,
    p95th double,
    p999th double,
    p99th double
) WITH ID = 9c046366-df5e-37fa-b4ed-6bcd0834dfd6
    AND comment = 'Latency metrics specific to CIDR filtering';",
    ),
    VirtualTable::empty(
        "CREATE TABLE system_views.credentials_cache_keys (
    role text PRIMARY KEY
) WITH ID = 0ebf8d18-4035-38d6-8a2d-6518e5308cb1
    AND comment = 'keys in the credentials cache';",
    ),
    VirtualTable::empty(
        r#"CREATE TABLE system_views.gossip_info (
    address inet,
    port int,
    dc text,
    dc_version int,
    disk_usage text,
    disk_usage_version int,
    generation int,
    heartbeat int,
    host_id text,
    host_id_version int,
    hostname text,
    index_status text,
    index_status_version int,
    internal_address_and_port text,
    internal_address_and_port_version int,
    internal_ip text,
    internal_ip_version int,
    load text,
    load_version int,
    native_address_and_port text,
    native_address_and_port_version int,
    net_version text,
    net_version_version int,
    rack text,
    rack_version int,
    release_version text,
    release_version_version int,
    removal_coordinator text,
    removal_coordinator_version int,
    rpc_address text,
    rpc_address_version int,
    rpc_ready text,
    rpc_ready_version int,
    "schema" text,
    schema_version int,
    severity text,
    severity_version int,
    sstable_versions text,
    sstable_versions_version int,
    status text,
    status_version int,
    status_with_port text,
    status_with_port_version int,
    tokens_version int,
    x1 text,
    x10 text,
    x10_version int,
    x1_version int,
    x2 text,
    x2_version int,
    x3 text,
    x3_version int,
    x4 text,
    x4_version int,
    x5 text,
    x5_version int,
    x6 text,
    x6_version int,
    x7 text,
    x7_version int,
    x8 text,
    x8_version int,
    x9 text,
    x9_version int,
    x_11_padding text,
    x_11_padding_version int,
    PRIMARY KEY (address, port)
) WITH ID = 6c8d5ec9-2734-306e-968b-0f03da888309
    AND comment = 'lists the gossip information for the cluster';"#,
    ),
    VirtualTable::empty(
        "CREATE TABLE system_views.internode_inbound (
    address inet,
    port int,
    dc text,
    rack text,
    corrupt_frames_recovered bigint,
    corrupt_frames_unrecovered bigint,
    error_bytes bigint,
    error_count bigint,
    expired_bytes bigint,
    expired_count bigint,
    processed_bytes bigint,
    processed_count bigint,
    received_bytes bigint,
    received_count bigint,
    scheduled_bytes bigint,
    scheduled_count bigint,
    throttled_count bigint,
    throttled_nanos bigint,
    using_bytes bigint,
    using_reserve_bytes bigint,
    PRIMARY KEY ((address, port), dc, rack)
) WITH ID = fe42678d-af5c-313e-bfe8-4a9e054df25f;",
    ),
    VirtualTable::empty(
        "CREATE TABLE system_views.internode_outbound (
    address inet,
    port int,
    dc text,
    rack text,
    active_connections bigint,
    connection_attempts bigint,
    error_bytes bigint,
    error_count bigint,
    expired_bytes bigint,
    expired_count bigint,
    overload_bytes bigint,
    overload_count bigint,
    pending_bytes bigint,
    pending_count bigint,
    sent_bytes bigint,
    sent_count bigint,
    successful_connection_attempts bigint,
    using_bytes bigint,
    using_reserve_bytes bigint,
    PRIMARY KEY ((address, port), dc, rack)
) WITH ID = 58b632fd-94ed-36fa-9fe4-181db238d413;",
    ),
    VirtualTable::empty(
        "CREATE TABLE system_views.jmx_permissions_cache_keys (
    role text PRIMARY KEY
) WITH ID = 6a0b1348-06e0-348e-a718-6ff7d48da1fe
    AND comment = 'keys in the JMX permissions cache';",
    ),
    VirtualTable::empty(
        "CREATE TABLE system_views.network_permissions_cache_keys (
    role text PRIMARY KEY
) WITH ID = caa4f536-dad5-3e80-af4b-97e6840bbf4a
    AND comment = 'keys in the network permissions cache';",
    ),
    VirtualTable::empty(
        "CREATE TABLE system_views.pending_hints (
    host_id uuid PRIMARY KEY,
    address inet,
    dc text,
    files int,
    newest timestamp,
    oldest timestamp,
    port int,
    rack text,
    status text
) WITH ID = 7b0c7a5c-45a3-33bb-99cd-5b11520e95ef
    AND comment = 'Pending hints that this node has for other nodes';",
    ),
    VirtualTable::empty(
        "CREATE TABLE system_views.permissions_cache_keys (
    role text,
    resource text,
    PRIMARY KEY ((role, resource))
) WITH ID = f951c92c-5198-31f5-9e02-183b47d400b0
    AND comment = 'keys in the permissions cache';",
    ),
    VirtualTable::empty(
        "CREATE TABLE system_views.repair_jobs (
    id uuid PRIMARY KEY,
    completed boolean,
    duration_millis bigint,
    failure_cause text,
    keyspace_name text,
    last_updated_at timestamp,
    participants frozen<list<text>>,
    ranges frozen<list<text>>,
    repair_id timeuuid,
    session_id timeuuid,
    state_failure_timestamp timestamp,
    state_init_timestamp timestamp,
    state_skipped_timestamp timestamp,
    state_snapshot_complete_timestamp timestamp,
    state_snapshot_start_timestamp timestamp,
    state_start_timestamp timestamp,
    state_stream_start_timestamp timestamp,
    state_success_timestamp timestamp,
    state_validation_complete_timestamp timestamp,
    state_validation_start_timestamp timestamp,
    status text,
    success_message text,
    table_name text
) WITH ID = d856b14c-70b6-3e1c-a29d-1ce7f2127b28
    AND comment = 'Repair job';",
    ),
    VirtualTable::empty(
        "CREATE TABLE system_views.repair_participates (
    id timeuuid PRIMARY KEY,
    completed boolean,
    duration_millis bigint,
    failure_cause text,
    global boolean,
    incremental boolean,
    initiator text,
    last_updated_at timestamp,
    preview_kind text,
    ranges frozen<list<text>>,
    repaired_at timestamp,
    state_failure_timestamp timestamp,
    state_init_timestamp timestamp,
    state_skipped_timestamp timestamp,
    state_success_timestamp timestamp,
    success_message text,
    tables frozen<set<text>>,
    validations frozen<set<uuid>>
) WITH ID = ef04b8ba-fd4a-3fe4-bf83-6ccbfca289ac
    AND comment = 'Repair participate summary';",
    ),
    VirtualTable::empty(
        "CREATE TABLE system_views.repair_sessions (
    id timeuuid PRIMARY KEY,
    completed boolean,
    duration_millis bigint,
    failure_cause text,
    jobs frozen<set<uuid>>,
    keyspace_name text,
    last_updated_at timestamp,
    participants frozen<list<text>>,
    ranges frozen<list<text>>,
    repair_id timeuuid,
    state_failure_timestamp timestamp,
    state_init_timestamp timestamp,
    state_jobs_start_timestamp timestamp,
    state_skipped_timestamp timestamp,
    state_start_timestamp timestamp,
    state_success_timestamp timestamp,
    status text,
    success_message text,
    table_names frozen<list<text>>
) WITH ID = 9a74b1b1-0369-346b-95e8-08409a1110b0
    AND comment = 'Repair session';",
    ),
    VirtualTable::empty(
        "CREATE TABLE system_views.repair_validations (
    id uuid PRIMARY KEY,
    bytes_read bigint,
    completed boolean,
    duration_millis bigint,
    estimated_partitions bigint,
    estimated_total_bytes bigint,
    failure_cause text,
    initiator text,
    keyspace_name text,
    last_updated_at timestamp,
    partitions_processed bigint,
    progress_percentage float,
    ranges frozen<list<text>>,
    repair_id timeuuid,
    session_id timeuuid,
    state_accept_timestamp timestamp,
    state_failure_timestamp timestamp,
    state_init_timestamp timestamp,
    state_sending_trees_timestamp timestamp,
    state_skipped_timestamp timestamp,
    state_start_timestamp timestamp,
    state_success_timestamp timestamp,
    status text,
    success_message text,
    table_name text
) WITH ID = f844505f-0cca-30ad-9426-b6cb6d634235
    AND comment = 'Repair validation';",
    ),
    VirtualTable::empty(
        "CREATE TABLE system_views.repairs (
    id timeuuid PRIMARY KEY,
    command_id int,
    completed boolean,
    duration_millis bigint,
    failure_cause text,
    keyspace_name text,
    last_updated_at timestamp,
    options_column_families frozen<set<text>>,
    options_data_centers frozen<set<text>>,
    options_force_repair boolean,
    options_hosts frozen<set<text>>,
    options_ignore_unreplicated_keyspaces boolean,
    options_incremental boolean,
    options_job_threads int,
    options_optimise_streams boolean,
    options_parallelism text,
    options_preview_kind text,
    options_primary_range boolean,
    options_pull_repair boolean,
    options_ranges frozen<set<text>>,
    options_subrange_repair boolean,
    options_trace boolean,
    participants frozen<list<text>>,
    ranges frozen<list<frozen<list<text>>>>,
    sessions frozen<set<timeuuid>>,
    state_failure_timestamp timestamp,
    state_init_timestamp timestamp,
    state_prepare_complete_timestamp timestamp,
    state_prepare_start_timestamp timestamp,
    state_repair_complete_timestamp timestamp,
    state_repair_start_timestamp timestamp,
    state_setup_timestamp timestamp,
    state_skipped_timestamp timestamp,
    state_start_timestamp timestamp,
    state_success_timestamp timestamp,
    status text,
    success_message text,
    table_names frozen<list<text>>,
    type text,
    unfiltered_ranges frozen<list<frozen<list<text>>>>
) WITH ID = 36459791-890b-3415-bd07-0df15e868e5a
    AND comment = 'Repair summary';",
    ),
    VirtualTable::empty(
        "CREATE TABLE system_views.roles_cache_keys (
    role text PRIMARY KEY
) WITH ID = 98f349e9-0e71-3ab1-9c99-a0524ee6ecd8
    AND comment = 'keys in the roles cache';",
    ),
    VirtualTable::empty(
        "CREATE TABLE system_views.sai_column_indexes (
    keyspace_name text,
    index_name text,
    analyzer text,
    column_name text,
    is_building boolean,
    is_queryable boolean,
    is_string boolean,
    table_name text,
    PRIMARY KEY (keyspace_name, index_name)
) WITH ID = 18739376-df4d-3084-90a6-2f9ae6e74935
    AND comment = 'Storage-attached column index metadata';",
    ),
    VirtualTable::empty(
        "CREATE TABLE system_views.sai_sstable_index_segments (
    keyspace_name text,
    index_name text,
    sstable_name text,
    segment_row_id_offset bigint,
    cell_count bigint,
    column_name text,
    component_metadata frozen<map<text, frozen<map<text, text>>>>,
    end_token text,
    max_sstable_row_id bigint,
    max_term text,
    min_sstable_row_id bigint,
    min_term text,
    start_token text,
    table_name text,
    PRIMARY KEY (keyspace_name, index_name, sstable_name, segment_row_id_offset)
) WITH ID = cf6f23c6-332c-3260-b590-97b245538702
    AND comment = 'SSTable index segment metadata';",
    ),
    VirtualTable::empty(
        "CREATE TABLE system_views.sai_sstable_indexes (
    keyspace_name text,
    index_name text,
    sstable_name text,
    cell_count bigint,
    column_name text,
    end_token text,
    format_version text,
    max_row_id bigint,
    min_row_id bigint,
    per_column_disk_size bigint,
    per_table_disk_size bigint,
    start_token text,
    table_name text,
    PRIMARY KEY (keyspace_name, index_name, sstable_name)
) WITH ID = 286e51de-ce12-3747-9955-b9760774f82c
    AND comment = 'SSTable index metadata';",
    ),
    VirtualTable::empty(
        "CREATE TABLE system_views.streaming (
    id timeuuid PRIMARY KEY,
    bytes_received bigint,
    bytes_sent bigint,
    bytes_to_receive bigint,
    bytes_to_send bigint,
    duration_millis bigint,
    failure_cause text,
    files_received bigint,
    files_sent bigint,
    files_to_receive bigint,
    files_to_send bigint,
    follower boolean,
    last_updated_at timestamp,
    operation text,
    peers frozen<list<text>>,
    progress_percentage float,
    status text,
    status_failure_timestamp timestamp,
    status_init_timestamp timestamp,
    status_start_timestamp timestamp,
    status_success_timestamp timestamp,
    success_message text
) WITH ID = d5f37e09-3f11-3f10-894a-59f6378b5d5a;",
    ),
    VirtualTable::empty(
        "CREATE TABLE system_views.system_logs (
    timestamp timestamp,
    order_in_millisecond int,
    level text,
    logger text,
    message text,
    PRIMARY KEY (timestamp, order_in_millisecond)
) WITH ID = 95df5040-98b5-3cdd-907f-17bd96651f58
    AND comment = 'Cassandra logs';",
    ),
];
