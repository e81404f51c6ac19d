//! Which keyspaces belong to the system, by name.

/// Keyspaces that exist once per node and that no statement can change.
pub fn is_local(keyspace: &str) -> bool {
    keyspace == "system" || keyspace == "system_schema"
}

/// Keyspaces whose tables no statement can change, though their replication can be.
pub fn is_replicated_system(keyspace: &str) -> bool {
    matches!(keyspace, "system_auth" | "system_distributed" | "system_traces")
}
