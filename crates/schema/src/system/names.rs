//! Which keyspaces belong to the system, by name, and what is refused in them.

use crate::{Error, Result};

/// Keyspaces that exist once per node and that no statement can change.
pub fn is_local(keyspace: &str) -> bool {
    keyspace == "system" || keyspace == "system_schema"
}

/// Refuses to write rows of the schema as rows: what a statement checks would not be checked, and the next start would obey them.
/// Cassandra lets a client without authorization do it.
pub fn refuse_modification(keyspace: &str) -> Result<()> {
    match keyspace {
        "system_schema" => Err(not_modifiable(keyspace)),
        _ => Ok(()),
    }
}

/// Cassandra's refusal to change what belongs to the system.
pub(crate) fn not_modifiable(keyspace: &str) -> Error {
    Error::Unauthorized(format!("{keyspace} keyspace is not user-modifiable."))
}

/// Keyspaces whose tables no statement can change, though their replication can be.
pub fn is_replicated_system(keyspace: &str) -> bool {
    matches!(keyspace, "system_auth" | "system_distributed" | "system_traces")
}
